//go:build unix

package main

import (
	"bufio"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A machine that is lost takes with it what it had under way: every point that it reported as finished is at the URL, where
// another machine, without the scratch folder, goes on.
func TestMachinesAreLost(t *testing.T) {
	spec := writeSpec(t, sixtyPoints(8000/slowdown))
	straight := filepath.Join(t.TempDir(), "straight")
	url := "file://" + filepath.ToSlash(t.TempDir()) + "/runs/x"
	mustRun(t, "sweep", spec, "-q", "-o", straight)
	reported := 0
	for range 3 {
		cmd := program("sweep", "--json", spec, "-o", url, "--jobs", "1")
		cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+t.TempDir())
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		events := 0
		for s := bufio.NewScanner(stdout); s.Scan(); {
			if !strings.Contains(s.Text(), `"simulated":true`) {
				continue
			}
			if events++; events == 2 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed
		reported += events
	}
	cmd := program("sweep", spec, "-o", url)
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+t.TempDir())
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	reused := 0
	if _, after, found := strings.Cut(string(text), " simulated now, "); found {
		reused, _ = strconv.Atoi(strings.Fields(after)[0])
	}
	if reused < reported || reported < 6 {
		t.Errorf("%d points were reported as finished, %d were reused", reported, reused)
	}
	want := rowsWithoutWallTime(t, filepath.Join(straight, "results.parquet"))
	got := rowsWithoutWallTime(t, filepath.FromSlash(strings.TrimPrefix(url, "file://")+"/results.parquet"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the sweep of several machines differs (-straight +several):\n%s", diff)
	}
}
