package sweep

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/gridspec"
)

func TestParseShard(t *testing.T) {
	slurm := func(task, first, last, step, count string) map[string]string {
		return map[string]string{slurmTask: task, slurmMin: first, slurmMax: last, slurmStep: step, slurmCount: count}
	}
	index := func(i string) map[string]string { return map[string]string{completionIndex: i} }
	for _, tt := range []struct {
		text string
		env  map[string]string
		want gridspec.Shard
		err  string
	}{
		{"3/8", nil, gridspec.Shard{Index: 3, Count: 8}, ""},
		{" 1/1 ", nil, gridspec.Shard{Index: 1, Count: 1}, ""},
		{"8/8", slurm("1", "1", "4", "1", "4"), gridspec.Shard{Index: 8, Count: 8}, ""},
		{"9/8", nil, gridspec.Shard{}, "shard 9/8 does not exist; the shards of 8 are 1/8 to 8/8"},
		{"0/8", nil, gridspec.Shard{}, `its index "0" is no number from 1`},
		{"1/0", nil, gridspec.Shard{}, `its number of shards "0" is no number from 1`},
		{"+1/8", nil, gridspec.Shard{}, `its index "+1"`},
		{"01/8", nil, gridspec.Shard{}, `its index "01"`},
		{"1/8/2", nil, gridspec.Shard{}, `its number of shards "8/2"`},
		{"1/9999999999999999999999", nil, gridspec.Shard{}, "its number of shards"},
		{"3", nil, gridspec.Shard{}, "give the shard and their number, such as 3/8"},
		{"", nil, gridspec.Shard{}, "give the shard and their number"},
		{"self/8", nil, gridspec.Shard{}, `its index "self"`},

		{"auto", slurm("3", "1", "8", "1", "8"), gridspec.Shard{Index: 3, Count: 8}, ""},
		{"auto", slurm("0", "0", "7", "1", "8"), gridspec.Shard{Index: 1, Count: 8}, ""},
		{"auto", slurm("7", "0", "7", "1", "8"), gridspec.Shard{Index: 8, Count: 8}, ""},
		{"auto", map[string]string{slurmTask: "2", slurmMin: "1", slurmMax: "2", slurmCount: "2"}, gridspec.Shard{Index: 2, Count: 2}, ""},
		{"auto", slurm("3", "1", "7", "2", "4"), gridspec.Shard{}, "task 3 of the array 1-7 with step 2 and 4 tasks"},
		{"auto", slurm("3", "1", "7", "1", "3"), gridspec.Shard{}, "submit all of them with --array=1-N, or say how many shards there are with auto/N"},
		{"auto", slurm("3", "3", "3", "1", "1"), gridspec.Shard{}, "task 3 of the array 3-3"},
		{"auto", slurm("9", "1", "8", "1", "8"), gridspec.Shard{}, "task 9 of the array 1-8"},
		{"auto", slurm("x", "1", "8", "1", "8"), gridspec.Shard{}, `SLURM_ARRAY_TASK_ID is "x", which is no number`},
		{"auto", map[string]string{slurmTask: "2"}, gridspec.Shard{}, "SLURM_ARRAY_TASK_COUNT is not set"},
		{"auto", nil, gridspec.Shard{}, "auto: neither SLURM_ARRAY_TASK_ID (a Slurm array job) nor JOB_COMPLETION_INDEX"},
		{"auto", index("0"), gridspec.Shard{}, "give the job's completions, such as auto/8"},

		{"auto/8", slurm("3", "3", "3", "1", "1"), gridspec.Shard{Index: 3, Count: 8}, ""},
		{"auto/8", map[string]string{slurmTask: "8"}, gridspec.Shard{Index: 8, Count: 8}, ""},
		{"auto/8", slurm("3", "0", "7", "1", "8"), gridspec.Shard{}, "submit it with --array=1-8"},
		{"auto/8", slurm("0", "0", "7", "1", "8"), gridspec.Shard{}, "submit it with --array=1-8"},
		{"auto/8", slurm("9", "1", "9", "1", "9"), gridspec.Shard{}, "they must be 1 to 8"},
		{"auto/8", index("0"), gridspec.Shard{Index: 1, Count: 8}, ""},
		{"auto/8", index("7"), gridspec.Shard{Index: 8, Count: 8}, ""},
		{"auto/8", index("8"), gridspec.Shard{}, "JOB_COMPLETION_INDEX is 8, and the last of 8 is 7"},
		{"auto/8", index("-1"), gridspec.Shard{}, `auto/8: JOB_COMPLETION_INDEX is "-1"`},
		{"auto/8", nil, gridspec.Shard{}, "auto/8: neither SLURM_ARRAY_TASK_ID"},
		{"auto/8", map[string]string{slurmTask: "1", completionIndex: "1"}, gridspec.Shard{}, "are both set"},
		{"auto/x", index("1"), gridspec.Shard{}, `its number of shards "x"`},
	} {
		got, err := ParseShard(tt.text, func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q with %v: %v, %v; want %v, %q", tt.text, tt.env, got, err, tt.want, tt.err)
		}
	}
}

func TestResultFolders(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{
		"a/shard-1-of-2", "a/shard-10-of-11", "a/shard-2-of-11", "a/requests", "a/.hidden", "a/shard-3-of-2x",
		"b", "b/shard-1-of-2", "b/inner",
		"deep/er/x", "deep/er/y/shard-2-of-2",
		"none/er",
	} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o777); err != nil {
			t.Fatal(err)
		}
		if base := filepath.Base(name); name != "none/er" && base != "requests" {
			if err := os.WriteFile(filepath.Join(root, name, JournalFile), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		paths, want []string
		missing     []string
		err         string
	}{
		{paths: []string{"a"}, want: []string{"a/shard-1-of-2", "a/shard-2-of-11", "a/shard-10-of-11"},
			missing: []string{"2/2"}},
		{paths: []string{"a/shard-1-of-2", "a"}, want: []string{"a/shard-1-of-2", "a/shard-2-of-11", "a/shard-10-of-11"},
			missing: []string{"2/2"}},
		{paths: []string{"b", "b/inner"}, want: []string{"b", "b/shard-1-of-2", "b/inner"}, missing: []string{"2/2"}},
		{paths: []string{"deep", "b/shard-1-of-2"}, want: []string{"deep/er/x", "deep/er/y/shard-2-of-2", "b/shard-1-of-2"}},
		{paths: []string{"none", "b", "gone"}, want: []string{"b", "b/shard-1-of-2"}, missing: []string{"2/2"}, err: "none has no journal.jsonl and no folders of shards such as shard-1-of-8"},
	} {
		var paths []string
		for _, p := range tt.paths {
			paths = append(paths, filepath.Join(root, p))
		}
		got, err := ResultFolders(paths)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%v: %v, want %q", tt.paths, err, tt.err)
		}
		var missing []string
		for _, s := range MissingShards(got) {
			missing = append(missing, s.String())
		}
		for i := range got {
			got[i], _ = filepath.Rel(root, got[i])
			got[i] = filepath.ToSlash(got[i])
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v: (-want +got)\n%s", tt.paths, diff)
		}
		if diff := cmp.Diff(tt.missing, missing); diff != "" {
			t.Errorf("%v: missing (-want +got)\n%s", tt.paths, diff)
		}
	}
}

// A shard that another cut has in parts is not missing.
func TestMissingShardsOfSeveralCuts(t *testing.T) {
	for _, tt := range []struct{ folders, missing []string }{
		{[]string{"shard-1-of-3", "shard-2-of-3", "shard-3-of-6"}, []string{"shard-6-of-6"}},
		{[]string{"shard-1-of-3", "shard-2-of-3", "shard-3-of-6", "shard-6-of-6"}, nil},
		{[]string{"shard-1-of-3", "shard-3-of-6"}, []string{"shard-2-of-3", "shard-6-of-6"}},
		{[]string{"other"}, nil},
	} {
		var missing []string
		for _, s := range MissingShards(tt.folders) {
			missing = append(missing, ShardFolder(s))
		}
		if diff := cmp.Diff(tt.missing, missing); diff != "" {
			t.Errorf("%v: (-want +got)\n%s", tt.folders, diff)
		}
	}
}

// Shards of different cuts have points in common when a remainder of both numbers can be the same.
func TestOverlappingShards(t *testing.T) {
	for _, tt := range []struct{ shards, want string }{
		{"1/2 2/4 3/4 4/4", "1/2 3/4 true"},
		{"1/2 2/4 4/4", "0/0 0/0 false"},
		{"1/3 2/3 3/3", "0/0 0/0 false"},
		{"1/2 1/2", "0/0 0/0 false"},
		{"1/1 3/4", "1/1 3/4 true"},
		{"2/2 1/3", "2/2 1/3 true"},
		{"6/6 4/4 2/4", "6/6 4/4 true"},
		{"", "0/0 0/0 false"},
	} {
		var shards []gridspec.Shard
		for _, text := range strings.Fields(tt.shards) {
			s, err := ParseShard(text, nil)
			if err != nil {
				t.Fatal(err)
			}
			shards = append(shards, s)
		}
		a, b, overlap := OverlappingShards(shards)
		if got := fmt.Sprint(a, b, overlap); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.shards, got, tt.want)
		}
	}
}
