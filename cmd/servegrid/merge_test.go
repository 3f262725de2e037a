package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/sweep"
)

// Two results of a point that cannot both be right are an error which names it, and nothing is written.
func TestMergeConflicts(t *testing.T) {
	dir := t.TempDir()
	spec := writeSpec(t, "workload: {synthetic: {input_tokens: 100, output_tokens: 5, requests: 10}}\ngrid: {deployment.workers: [1, 2]}\n")
	right, wrong, merged := filepath.Join(dir, "right"), filepath.Join(dir, "wrong"), filepath.Join(dir, "merged")
	mustRun(t, "sweep", spec, "-q", "-o", right)
	text, err := os.ReadFile(filepath.Join(right, sweep.JournalFile))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := sweep.DecodeRows(text)
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i := range rows {
		rows[i].Metrics[1] = math.Nextafter(rows[i].Metrics[1], math.Inf(1))
		if text, err = sweep.EncodeRows(rows[:i+1]); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(wrong, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(wrong, sweep.JournalFile), text, 0o666); err != nil {
			t.Fatal(err)
		}
		got := runCommand(t, "merge", wrong, right, "-o", merged)
		if got.code != exitRefused {
			t.Errorf("exit code %d: %s", got.code, got.stderr)
		}
		for _, want := range []string{
			[]string{"1 point has two different results", "2 points have two different results"}[i],
			rows[0].ID + " (workers=", "), in " + wrong + " and in " + right + ":\n", "completed_requests: 10.000000000000002 and 10",
		} {
			if !strings.Contains(got.stderr, want) {
				t.Errorf("%s\nlacks %q", got.stderr, want)
			}
		}
		if _, err := os.Stat(merged); !os.IsNotExist(err) {
			t.Errorf("the folder was made: %v", err)
		}
	}
}

// A line of a journal that somebody changed is left out with a warning, also when merge is to be quiet, and its point is missing.
func TestMergeWarnsOfDamagedLines(t *testing.T) {
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	mustRun(t, "sweep", writeSpec(t, `
workload: {synthetic: {input_tokens: 100, output_tokens: 5, requests: 10}}
grid: {deployment.workers: [1, 2, 3]}
`), "-q", "-o", dir)
	path := filepath.Join(dir, "journal.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	lines[2] = strings.Replace(lines[2], `"ok"`, `"no"`, 1)
	if changed := strings.Join(lines, ""); changed == string(text) {
		t.Fatal("nothing was changed")
	} else if err := os.WriteFile(path, []byte(changed), 0o666); err != nil {
		t.Fatal(err)
	}
	got := runCommand(t, "merge", dir, "-q", "-o", out)
	if got.code != exitSomeFailed || !strings.Contains(got.stderr, "warning: "+dir+": 1 line of the journal unreadable and left out") ||
		!strings.Contains(got.stderr, "1 point of the spec missing") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	if got := runCommand(t, "status", out); got.code != exitSomeFailed || !strings.Contains(got.stdout, "1 left") {
		t.Errorf("exit code %d: %s", got.code, got.stdout)
	}
}
