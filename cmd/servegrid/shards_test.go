package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The array job of the examples, with a task that is lost and submitted again, gives what one machine finds.
func TestSlurmExample(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh here to run the script")
	}
	spec := writeSpec(t, sixtyPoints(20))
	dir := t.TempDir()
	single, out, merged := filepath.Join(dir, "single"), filepath.Join(dir, "out"), filepath.Join(dir, "merged")
	mustRun(t, "sweep", spec, "-q", "-o", single)
	task := func(id, first, last, count int) {
		t.Helper()
		cmd := exec.Command("sh", filepath.Join(repository, "examples/shards/slurm.sh"), spec, out, "4")
		cmd.Env = append(programEnv(), "SLURM_CPUS_PER_TASK=2", "SLURM_ARRAY_TASK_STEP=1",
			fmt.Sprintf("SLURM_ARRAY_TASK_ID=%d", id), fmt.Sprintf("SLURM_ARRAY_TASK_MIN=%d", first),
			fmt.Sprintf("SLURM_ARRAY_TASK_MAX=%d", last), fmt.Sprintf("SLURM_ARRAY_TASK_COUNT=%d", count))
		if text, err := cmd.CombinedOutput(); err != nil || len(text) > 0 {
			t.Fatalf("task %d: %v\n%s", id, err, text)
		}
	}
	for _, id := range []int{4, 1, 2} {
		task(id, 1, 4, 4)
	}
	if got := runCommand(t, "merge", out, "-q", "-o", merged); got.code != exitSomeFailed {
		t.Errorf("exit code %d without shard 3: %s", got.code, got.stderr)
	}
	task(3, 3, 3, 1)
	mustRun(t, "merge", out, "-q", "-o", merged)
	want, got := rowsWithoutWallTime(t, filepath.Join(single, "results.parquet")), rowsWithoutWallTime(t, filepath.Join(merged, "results.parquet"))
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 61 {
		t.Errorf("(-single +merged):\n%s", diff)
	}
}
