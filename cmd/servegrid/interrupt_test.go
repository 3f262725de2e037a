//go:build unix

package main

import (
	"bufio"
	"bytes"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// interruptSweep starts a sweep, sends it SIGINT once it has reported some simulated points, and returns what it
// printed. It must exit within 5 seconds with code 130.
func interruptSweep(t *testing.T, after int, args ...string) (events int, stderr string) {
	t.Helper()
	cmd := program(append([]string{"sweep", "--json"}, args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var asked time.Time
	for s := bufio.NewScanner(stdout); s.Scan(); {
		if !strings.Contains(s.Text(), `"simulated":true`) {
			continue
		}
		if events++; events == after {
			asked = time.Now()
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = cmd.Wait()
	if took := time.Since(asked); asked.IsZero() || took > 30*time.Second {
		t.Errorf("the sweep ended %v after the interrupt", took)
	}
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Fatalf("exit code %d (%v), want %d: %s", code, err, exitInterrupted, errs.String())
	}
	return events, errs.String()
}

// A sweep that is interrupted three times keeps what it reported, says how to go on, and ends with the same rows
// as one that was left alone.
func TestInterrupt(t *testing.T) {
	spec := writeSpec(t, sixtyPoints(5000/slowdown))
	straight, resumed := filepath.Join(t.TempDir(), "straight"), filepath.Join(t.TempDir(), "resumed")
	mustRun(t, "sweep", spec, "-q", "-o", straight)

	message := regexp.MustCompile(`interrupted: (\d+) of 60 points are finished and kept in .*; the same command runs the other (\d+)`)
	kept := 0
	for range 3 {
		events, stderr := interruptSweep(t, 1, spec, "-o", resumed, "--jobs", "1")
		m := message.FindStringSubmatch(stderr)
		if m == nil {
			t.Fatalf("the message does not say how to resume: %s", stderr)
		}
		finished, _ := strconv.Atoi(m[1])
		left, _ := strconv.Atoi(m[2])
		if finished+left != 60 || finished != kept+events {
			t.Fatalf("%s, after %d points before it and %d in it", m[0], kept, events)
		}
		kept = finished
		if rows := readResultsFile(t, filepath.Join(resumed, "results.parquet")).Rows(); rows != kept {
			t.Errorf("results.parquet has %d rows of %d finished points", rows, kept)
		}
	}
	got := mustRun(t, "sweep", spec, "-o", resumed)
	if want := strconv.Itoa(60-kept) + " simulated now, " + strconv.Itoa(kept) + " reused"; !strings.Contains(got.stdout, want) {
		t.Errorf("no %q in:\n%s", want, got.stdout)
	}
	want := rowsWithoutWallTime(t, filepath.Join(straight, "results.parquet"))
	if diff := cmp.Diff(want, rowsWithoutWallTime(t, filepath.Join(resumed, "results.parquet"))); diff != "" {
		t.Errorf("the resumed sweep differs (-straight +resumed):\n%s", diff)
	}
}

// Repeating a command that started over would lose what is finished, so the message names the flag to leave out.
func TestInterruptFresh(t *testing.T) {
	spec := writeSpec(t, sixtyPoints(2000/slowdown))
	for _, flag := range []string{"--fresh", "--retry=all"} {
		_, stderr := interruptSweep(t, 1, spec, "-o", filepath.Join(t.TempDir(), "out"), "--jobs", "1", flag)
		name, _, _ := strings.Cut(flag, "=")
		if !strings.Contains(stderr, "the same command without "+name+" runs the other") {
			t.Errorf("%s: %s", flag, stderr)
		}
	}
}

// An interrupted replay ends too. Its prompts are short, so that laying them out takes none of the time.
func TestInterruptReplay(t *testing.T) {
	report, requests := filepath.Join(t.TempDir(), "report.json"), filepath.Join(t.TempDir(), "requests.jsonl")
	cmd := program("replay", "--input-tokens", "64", "--output-tokens", "2000", "--request-count", strconv.Itoa(200000/slowdown), "--report-json", report, "--report-jsonl", requests)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The file of records is made when the simulation begins.
	for deadline := time.Now().Add(30 * time.Second); !exists(requests) && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	asked := time.Now()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	took := time.Since(asked)
	t.Logf("it ended %v after the interrupt", took)
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || took > time.Minute || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d after %v: %s", code, took, stderr.String())
	}
	if exists(report) {
		t.Error("an interrupted replay wrote a report")
	}
}

// Two sweeps at once in one folder: the second is refused and disturbs nothing.
func TestTwoSweepsAtOnce(t *testing.T) {
	spec := writeSpec(t, sixtyPoints(1500/slowdown))
	dir := filepath.Join(t.TempDir(), "out")
	first := program("sweep", spec, "--json", "--jobs", "1", "-o", dir)
	stdout, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	events := bufio.NewScanner(stdout)
	events.Scan() // by now it has the folder
	second := runCommand(t, "sweep", spec, "-o", dir)
	if err := first.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for events.Scan() {
	}
	_ = first.Wait()
	if want := "is in use by another sweep (process " + strconv.Itoa(first.Process.Pid) + ")"; second.code != exitAway ||
		second.stdout != "" || !strings.Contains(second.stderr, want) {
		t.Errorf("the second sweep: exit code %d, %s%s", second.code, second.stdout, second.stderr)
	}
	if got := mustRun(t, "sweep", spec, "-o", dir); !strings.Contains(got.stdout, "60 points: 60 ok") {
		t.Errorf("after both: %s", got.stdout)
	}
}
