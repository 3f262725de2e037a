package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep"
)

// runOnTerminal runs a command line whose standard error is a terminal.
func runOnTerminal(args ...string) outcome {
	var stdout, stderr bytes.Buffer
	st := &state{args: args, stdout: &stdout, stderr: &stderr, terminal: func() (int, bool) { return 120, true }, now: time.Now}
	return outcome{run(context.Background(), st), stdout.String(), stderr.String()}
}

// On a terminal a bar shows what is done and the best point so far; a refused sweep shows none.
func TestProgressBar(t *testing.T) {
	spec, dir := writeSpec(t, sixtyPoints(20)), filepath.Join(t.TempDir(), "out")
	got := runOnTerminal("sweep", spec, "-o", dir)
	for _, want := range []string{"60/60 points", "100 %", "best output_throughput_tok_s_per_gpu"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("no %q on the terminal: %q", want, got.stderr)
		}
	}
	if got.code != exitOK || !strings.Contains(got.stdout, "60 points: 60 ok") || strings.Contains(got.stdout, "60/60 points") {
		t.Errorf("exit code %d: %s", got.code, got.stdout)
	}
	if quiet := runOnTerminal("sweep", spec, "-o", dir, "--quiet"); quiet.stderr != "" || quiet.stdout != "" {
		t.Errorf("--quiet prints %q and %q", quiet.stdout, quiet.stderr)
	}
	refused := runOnTerminal("sweep", spec, "-o", spec)
	if refused.code != exitRefused || strings.Contains(refused.stderr, "points") {
		t.Errorf("exit code %d: %q", refused.code, refused.stderr)
	}
}

// A sweep that only reused earlier results has no rate.
func TestSummaryLine(t *testing.T) {
	for _, c := range []struct {
		p    sweep.Progress
		want string
	}{
		{sweep.Progress{Done: 3, Reused: 3, ETAKnown: true}, ""},
		{sweep.Progress{Done: 3, Reused: 2, Rate: 0.25, Left: 1, ETA: 4 * time.Second, ETAKnown: true}, "0.25/s, 4s left"},
		{sweep.Progress{Done: 3, Rate: 1234.5, Failed: 1, Best: &results.Row{}, BestValue: 6114}, "1,234.50/s, 1 failed, best x 6,114.00"},
	} {
		if got := summaryLine(c.p, "x"); got != c.want {
			t.Errorf("%q; want %q", got, c.want)
		}
	}
}

func TestTerminalNumbers(t *testing.T) {
	for got, want := range map[string]string{
		settingFigure(1048576): "1,048,576", settingFigure(0.5): "0.5", settingFigure(1.5e300): "1.5e+300", settingFigure(0): "0", results.WithSeparators("-1234567.25"): "-1,234,567.25",
		figure(0.00123456): "0.001235", figure(1234.5): "1,234.50", figure(1e308): "1e+308",
	} {
		if got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
}

// failingWriter takes so many bytes and then no more, as a full disk does.
type failingWriter struct{ room int }

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.room -= len(p); w.room < 0 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

// Events that cannot be written end in an error, once, and the results are kept.
func TestLostEvents(t *testing.T) {
	for _, room := range []int{0, 500} {
		spec, dir := writeSpec(t, sixtyPoints(5)), filepath.Join(t.TempDir(), "out")
		var stderr bytes.Buffer
		st := &state{args: []string{"sweep", spec, "-o", dir, "--json"}, stdout: &failingWriter{room}, stderr: &stderr,
			terminal: func() (int, bool) { return 0, false }, now: time.Now}
		if code := run(context.Background(), st); code != exitRefused || stderr.String() != "servegrid: --json: no space left\n" {
			t.Errorf("exit code %d: %q", code, stderr.String())
		}
		if rows := readResultsFile(t, filepath.Join(dir, "results.parquet")).Rows(); rows != 60 {
			t.Errorf("%d rows are kept", rows)
		}
	}
}
