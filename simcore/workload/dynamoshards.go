package workload

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/servegrid/servegrid/simcore/files"
)

// shardName is how a capture names its files: prefix.NNNNNN.jsonl, compressed or not, numbered from 000000.
var shardName = regexp.MustCompile(`^(.*)\.(\d{6})\.jsonl(?:\.gz|\.zst)?$`)

// shardGaps tells of files of a numbered capture that are missing between those given, and of those that lie beside
// them without being given.
func (s Source) shardGaps(ctx context.Context, paths []string) []string {
	given := map[string][]int{}
	var prefixes []string
	for _, path := range paths {
		prefix, number, ok := shardOf(path)
		if !ok {
			continue
		}
		if given[prefix] == nil {
			prefixes = append(prefixes, prefix)
		}
		given[prefix] = append(given[prefix], number)
	}
	var gaps []string
	for _, prefix := range prefixes {
		numbers := given[prefix]
		slices.Sort(numbers)
		beside := s.shardsBeside(ctx, prefix)
		for expected, last := 0, slices.Max(append(beside, numbers...)); expected <= last; {
			if found(numbers, expected) {
				expected++
				continue
			}
			from := expected
			for expected <= last && !found(numbers, expected) && found(beside, expected) == found(beside, from) {
				expected++
			}
			gaps = append(gaps, describeGap(prefix, from, expected-1, found(beside, from)))
		}
	}
	return gaps
}

func found(sorted []int, n int) bool {
	_, ok := slices.BinarySearch(sorted, n)
	return ok
}

// describeGap says which files are missing; those that exist were only not given.
func describeGap(prefix string, from, to int, exists bool) string {
	which, verb := fmt.Sprintf("%s.%06d", prefix, from), "is"
	if to > from {
		which, verb = fmt.Sprintf("%s to %06d", which, to), "are"
	}
	if exists {
		return fmt.Sprintf("%s %s not given, but belongs to the same capture; a replay without is another one", which, verb)
	}
	return fmt.Sprintf("%s %s missing: the capture numbers its files without gaps, so requests may be lost", which, verb)
}

// shardOf splits the path of a numbered capture file into what all files of the capture have in common and its number.
func shardOf(path string) (prefix string, number int, ok bool) {
	parts := shardName.FindStringSubmatch(files.Base(path))
	if parts == nil {
		return "", 0, false
	}
	number, err := strconv.Atoi(parts[2])
	return files.Join(files.Dir(path), parts[1]), number, err == nil
}

// shardsBeside lists the numbers of the capture's files that exist, in order.
func (s Source) shardsBeside(ctx context.Context, prefix string) []int {
	entries, err := files.Or(s.Files).List(ctx, files.Dir(prefix))
	if err != nil {
		return nil // the files given tell what is wrong with the folder
	}
	var numbers []int
	for _, entry := range entries {
		if of, number, ok := shardOf(files.Join(files.Dir(prefix), entry.Name)); ok && of == prefix && !entry.Folder {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}
