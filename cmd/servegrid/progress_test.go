package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
