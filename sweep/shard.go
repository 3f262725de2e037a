package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// maxShards bounds the number of shards; who needs more means something else.
const maxShards = 1_000_000

// AutoShard stands for the index of a shard in the environment; see [ParseShard].
const AutoShard = "auto"

// ParseShard reads a shard: "3/8", from 1 on. "auto" takes it from the variables of a Slurm array job that numbers all its
// tasks, from 1 or 0 on and without gaps. "auto/8" gives the number of shards and takes the index alone: of a Slurm array,
// the task's ID as it is, so that `--array=3` runs shard 3 again; of an Indexed Job of Kubernetes, which counts from 0 and
// does not say how many there are, one more than its index. Lookup returns the value of an environment variable, such as
// os.LookupEnv. The error says what to give or set.
func ParseShard(text string, lookup func(name string) (string, bool)) (gridspec.Shard, error) {
	index, count, both := strings.Cut(strings.TrimSpace(text), "/")
	s := gridspec.Shard{}
	var err error
	if both {
		if s.Count, err = shardNumber(count); err != nil {
			return gridspec.Shard{}, fmt.Errorf("%q is no shard: its number of shards %q %w", text, count, err)
		}
	}
	switch {
	case index == AutoShard:
		if s, err = environmentShard(s.Count, lookup); err != nil {
			return gridspec.Shard{}, fmt.Errorf("%s: %w", text, err)
		}
	case !both:
		return gridspec.Shard{}, fmt.Errorf("%q is no shard; give the shard and their number, such as 3/8, or auto or auto/8 in an array job", text)
	default:
		if s.Index, err = shardNumber(index); err != nil {
			return gridspec.Shard{}, fmt.Errorf("%q is no shard: its index %q %w", text, index, err)
		}
	}
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		return gridspec.Shard{}, err
	}
	return s, nil
}

func shardNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxShards || strconv.Itoa(n) != text {
		return 0, fmt.Errorf("is no number from 1 to %d; give such as 3/8", maxShards)
	}
	return n, nil
}

// The variables of array jobs.
const (
	slurmTask  = "SLURM_ARRAY_TASK_ID"
	slurmMin   = "SLURM_ARRAY_TASK_MIN"
	slurmMax   = "SLURM_ARRAY_TASK_MAX"
	slurmStep  = "SLURM_ARRAY_TASK_STEP"
	slurmCount = "SLURM_ARRAY_TASK_COUNT"
	// completionIndex is that of a pod of an Indexed Job of Kubernetes.
	completionIndex = "JOB_COMPLETION_INDEX"
)

// environmentShard is the shard of this task. The count is 0 when it is not given.
func environmentShard(count int, lookup func(string) (string, bool)) (gridspec.Shard, error) {
	_, slurm := lookup(slurmTask)
	_, kubernetes := lookup(completionIndex)
	switch {
	case slurm && kubernetes:
		return gridspec.Shard{}, fmt.Errorf("%s and %s are both set; give the shard itself, such as 3/8, or unset one of them", slurmTask, completionIndex)
	case slurm && count > 0:
		return slurmTaskOf(count, lookup)
	case slurm:
		return slurmArray(lookup)
	case kubernetes && count == 0:
		return gridspec.Shard{}, fmt.Errorf("%s does not say how many shards there are; give the job's completions, such as auto/8", completionIndex)
	case kubernetes:
		index, err := variable(completionIndex, lookup)
		if err == nil && index >= count {
			err = fmt.Errorf("%s is %d, and the last of %d is %d; give the job's completions", completionIndex, index, count, count-1)
		}
		return gridspec.Shard{Index: index + 1, Count: count}, err
	}
	return gridspec.Shard{}, fmt.Errorf("neither %s (a Slurm array job) nor %s (an Indexed Job of Kubernetes) is set; give the shard itself, such as 3/8", slurmTask, completionIndex)
}

// slurmTaskOf is the shard with the ID of this task.
func slurmTaskOf(count int, lookup func(string) (string, bool)) (gridspec.Shard, error) {
	task, err := variable(slurmTask, lookup)
	if err != nil {
		return gridspec.Shard{}, err
	}
	if _, set := lookup(slurmMin); set {
		first, err := variable(slurmMin, lookup)
		if err != nil {
			return gridspec.Shard{}, err
		}
		if first == 0 {
			task = 0 // so that no task of such an array takes the shard of its neighbour
		}
	}
	if task < 1 || task > count {
		return gridspec.Shard{}, fmt.Errorf("the IDs of the array's tasks are the shards, so they must be 1 to %d; submit it with --array=1-%d, or with some of these", count, count)
	}
	return gridspec.Shard{Index: task, Count: count}, nil
}

// slurmArray is the shard of a task of an array that has all shards.
func slurmArray(lookup func(string) (string, bool)) (gridspec.Shard, error) {
	var task, first, last, count int
	var errs []error
	for _, v := range []struct {
		name string
		into *int
	}{{slurmTask, &task}, {slurmMin, &first}, {slurmMax, &last}, {slurmCount, &count}} {
		var err error
		*v.into, err = variable(v.name, lookup)
		errs = append(errs, err)
	}
	step := 1
	if _, set := lookup(slurmStep); set {
		var err error
		step, err = variable(slurmStep, lookup)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return gridspec.Shard{}, err
	}
	if first > 1 || step != 1 || last-first+1 != count || task < first || task > last {
		return gridspec.Shard{}, fmt.Errorf("task %d of the array %d-%d with step %d and %d tasks: which part of all shards these are cannot be told; "+
			"submit all of them with --array=1-N, or say how many shards there are with auto/N, whose tasks may be any of 1 to N", task, first, last, step, count)
	}
	return gridspec.Shard{Index: task - first + 1, Count: count}, nil
}

// variable is the value of an environment variable that must be a number.
func variable(name string, lookup func(string) (string, bool)) (int, error) {
	text, set := lookup(name)
	if !set {
		return 0, fmt.Errorf("%s is not set; set it, or say how many shards there are with auto/N", name)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxShards {
		return 0, fmt.Errorf("%s is %q, which is no number from 0 to %d; give the shard itself, such as 3/8", name, text, maxShards)
	}
	return n, nil
}

// ShardFolder is the name of the folder of a shard below the output folder that all shards have in common, such as
// shard-3-of-8.
func ShardFolder(s gridspec.Shard) string { return fmt.Sprintf("shard-%d-of-%d", s.Index, s.Count) }

var shardFolder = regexp.MustCompile(`^shard-([1-9]\d*)-of-([1-9]\d*)$`)

// ShardOfFolder is the shard whose folder has a name; false when it is none's.
func ShardOfFolder(folder string) (gridspec.Shard, bool) {
	m := shardFolder.FindStringSubmatch(folder)
	if m == nil {
		return gridspec.Shard{}, false
	}
	index, err := shardNumber(m[1])
	count, countErr := shardNumber(m[2])
	s := gridspec.Shard{Index: index, Count: count}
	return s, err == nil && countErr == nil && s.Check() == nil
}

// ResultFolders finds the folders of sweeps at and below some paths: the path itself when it has a journal, the folders of
// shards below it, and when it has neither, whatever has one of them further down. Each comes once. The error names the paths
// without any.
func ResultFolders(paths []string) ([]string, error) {
	var all []string
	var errs []error
	for _, path := range paths {
		found, err := foldersAt(path)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("%s has no %s and no folders of shards such as %s; name folders of sweeps", path, JournalFile, ShardFolder(gridspec.Shard{Index: 1, Count: 8}))
		}
		errs = append(errs, err)
		for _, dir := range found {
			if !slices.ContainsFunc(all, func(known string) bool { return sameFolder(known, dir) }) {
				all = append(all, dir)
			}
		}
	}
	return all, errors.Join(errs...)
}

// foldersAt finds the folders of sweeps at and below a path, shards in the order of their numbers.
func foldersAt(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; name folders of sweeps", path, results.FileCause(err))
	}
	var found []string
	var shards, others []string
	for _, e := range entries {
		_, shard := ShardOfFolder(e.Name())
		switch {
		case e.Name() == JournalFile:
			found = append(found, path)
		case shard:
			shards = append(shards, e.Name())
		case e.IsDir() && e.Name()[0] != '.':
			others = append(others, e.Name())
		}
	}
	slices.SortFunc(shards, func(a, b string) int {
		x, _ := ShardOfFolder(a)
		y, _ := ShardOfFolder(b)
		return cmp.Or(cmp.Compare(x.Count, y.Count), cmp.Compare(x.Index, y.Index))
	})
	if len(found) == 0 && len(shards) == 0 {
		shards = others
	}
	for _, name := range shards {
		below, err := foldersAt(filepath.Join(path, name))
		if err != nil {
			return nil, err
		}
		found = append(found, below...)
	}
	return found, nil
}

// OverlappingShards finds two of some shards that have points in common, as shard 1 of 2 and shard 3 of 4 have; false when no two do.
func OverlappingShards(shards []gridspec.Shard) (a, b gridspec.Shard, overlap bool) {
	for i, b := range shards {
		for _, a := range shards[:i] {
			if a.Count != b.Count && (a.Index-b.Index)%commonDivisor(a.Count, b.Count) == 0 {
				return a, b, true
			}
		}
	}
	return gridspec.Shard{}, gridspec.Shard{}, false
}

// maxResidues bounds the least common multiple of numbers of shards that are looked at together.
const maxResidues = 4 * maxShards

// MissingShards lists the shards that make folders of shards complete, those that lie wholly in what is not there first. A
// shard may be there as the shards of another cut: shard 3 of 3 is the shards 3 and 6 of 6. It is empty when no folder is
// that of a shard.
func MissingShards(folders []string) []gridspec.Shard {
	present := map[gridspec.Shard]bool{}
	var counts []int
	for _, dir := range folders {
		if s, ok := ShardOfFolder(filepath.Base(dir)); ok {
			present[s] = true
			counts = append(counts, s.Count)
		}
	}
	slices.Sort(counts)
	counts = slices.Compact(counts)
	whole := 1
	for _, count := range counts {
		whole *= count / commonDivisor(whole, count)
		if whole > maxResidues { // cuts that have little in common: each on its own
			return missingOfEach(counts, present)
		}
	}
	there := make([]bool, whole)
	for s := range present {
		cover(there, s)
	}
	var missing []gridspec.Shard
	for _, overlapping := range []bool{false, true} {
		for _, count := range counts {
			for i := range count {
				s := gridspec.Shard{Index: i + 1, Count: count}
				if lacks, has := covered(there, s); lacks && (overlapping || !has) {
					missing = append(missing, s)
					cover(there, s)
				}
			}
		}
	}
	return missing
}

// missingOfEach lists the shards of some counts that are not present.
func missingOfEach(counts []int, present map[gridspec.Shard]bool) []gridspec.Shard {
	var missing []gridspec.Shard
	for _, count := range counts {
		for i := range count {
			if s := (gridspec.Shard{Index: i + 1, Count: count}); !present[s] {
				missing = append(missing, s)
			}
		}
	}
	return missing
}

// cover marks what belongs to a shard.
func cover(there []bool, s gridspec.Shard) {
	for r := s.Index - 1; r < len(there); r += s.Count {
		there[r] = true
	}
}

// covered reports whether something of a shard is not there, and whether something is.
func covered(there []bool, s gridspec.Shard) (lacks, has bool) {
	for r := s.Index - 1; r < len(there); r += s.Count {
		lacks, has = lacks || !there[r], has || there[r]
	}
	return lacks, has
}

func commonDivisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// sameFolder reports whether two paths lead to one folder.
func sameFolder(a, b string) bool {
	x, err := os.Stat(a)
	y, otherErr := os.Stat(b)
	return err == nil && otherErr == nil && os.SameFile(x, y)
}
