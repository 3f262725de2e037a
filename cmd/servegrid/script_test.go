package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep/telemetry"
)

// TestMain makes the test binary the program itself when it is run under the name servegrid, so that tests can
// start it as a process of its own.
func TestMain(m *testing.M) {
	os.Setenv("GORACE", noExitPause)
	testscript.Main(m, map[string]func(){"servegrid": main, "nats-server": natsServer})
}

// noExitPause keeps the race detector from waiting a second at the end of every process that a test starts.
const noExitPause = "atexit_sleep_ms=0"

// TestScripts runs the command line end to end; each file in testdata/script is one story. Its commands are those
// of testscript and the ones in scriptCommands.
func TestScripts(t *testing.T) {
	traces, err := filepath.Abs("testdata/golden/traces")
	if err != nil {
		t.Fatal(err)
	}
	pandas, err := filepath.Abs("testdata/pandas.parquet")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Abs(embeddedTables)
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		RequireUniqueNames: true,
		ContinueOnError:    true,
		Cmds:               scriptCommands(),
		Condition: func(name string) (bool, error) {
			switch name {
			case "root":
				return os.Geteuid() == 0, nil
			case "full":
				return telemetry.Build == "full", nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", noExitPause)
			env.Setenv("TRACES", traces)
			env.Setenv("PANDAS", pandas)
			env.Setenv("TABLES", tables)
			return nil
		},
	})
}

type scriptCommand = func(ts *testscript.TestScript, neg bool, args []string)

// scriptCommands are the commands that scripts have besides those of testscript.
func scriptCommands() map[string]scriptCommand {
	return map[string]scriptCommand{
		"exits":       scriptExits,
		"compress":    scriptCompress,
		"cut":         scriptCut,
		"samereport":  scriptSameReport,
		"samefigures": scriptSameFigures,
		"head":        scriptHead,
		"tail":        scriptTail,
		"jsonlines":   scriptJSONLines,
		"columns":     scriptColumns,
		"freeport":    scriptFreePort,
	}
}

// scriptExits runs `exits CODE PROGRAM ARGS...` and requires that exit code, and that no Go panic is printed.
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
	if text := ts.ReadFile("stderr"); strings.Contains(text, "panic:") || strings.Contains(text, "goroutine ") {
		ts.Fatalf("the program panicked")
	}
}

// scriptCompress writes `compress gz|zst SOURCE TARGET`.
func scriptCompress(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: compress gz|zst source target")
	}
	target, err := os.Create(ts.MkAbs(args[2]))
	ts.Check(err)
	defer target.Close()
	var w io.WriteCloser
	if args[0] == "gz" {
		w = gzip.NewWriter(target)
	} else {
		w, err = zstd.NewWriter(target)
		ts.Check(err)
	}
	_, err = io.WriteString(w, ts.ReadFile(args[1]))
	ts.Check(errors.Join(err, w.Close()))
}

// scriptCut leaves the first bytes of a file: `cut BYTES FILE`.
func scriptCut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cut bytes file")
	}
	n, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[1]), n))
}

// scriptHead writes the first lines of a file into another: `head LINES SOURCE TARGET`.
func scriptHead(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: head lines source target")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	lines := strings.SplitAfter(ts.ReadFile(args[1]), "\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(strings.Join(lines[:min(n, len(lines))], "")), 0o666))
}

// scriptTail writes the last lines of a file into another: `tail LINES SOURCE TARGET`.
func scriptTail(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: tail lines source target")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	lines := strings.SplitAfter(strings.TrimSuffix(ts.ReadFile(args[1]), "\n"), "\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(strings.Join(lines[max(0, len(lines)-n):], "")), 0o666))
}

// scriptSameReport requires that two reports are of the same requests and say the same: `samereport REPORT REPORT`.
func scriptSameReport(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: samereport report report")
	}
	var reports [2]map[string]any
	for i, name := range args {
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(name)), &reports[i]))
	}
	sameFigures(ts, reports, "workload_digest")
}

// scriptSameFigures is scriptSameReport for reports of the same work in other words.
func scriptSameFigures(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: samefigures report report")
	}
	var reports [2]map[string]any
	for i, name := range args {
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(name)), &reports[i]))
	}
	sameFigures(ts, reports, "prefix_cache_reused_ratio", "total_input_tokens", "total_output_tokens")
}

// sameFigures compares the times of two reports, and what else keys name.
func sameFigures(ts *testscript.TestScript, reports [2]map[string]any, keys ...string) {
	for _, key := range append(keys, "mean_ttft_ms", "duration_ms") {
		if a, b := reports[0][key], reports[1][key]; a == nil || a != b {
			ts.Fatalf("%s differs: %v and %v", key, a, b)
		}
	}
}

// scriptJSONLines requires that every line of a file (or of stdout) is one JSON object.
func scriptJSONLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: jsonlines file")
	}
	n := 0
	for s := bufio.NewScanner(strings.NewReader(ts.ReadFile(args[0]))); s.Scan(); n++ {
		var object map[string]any
		if err := json.Unmarshal(s.Bytes(), &object); err != nil {
			ts.Fatalf("line %d: %v: %s", n+1, err, s.Text())
		}
	}
	if n == 0 {
		ts.Fatalf("%s is empty", args[0])
	}
}

// scriptColumns prints columns of a results file, one row a line: `columns FILE NAME...`.
func scriptColumns(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: columns file name...")
	}
	t, err := results.ReadTable(ts.MkAbs(args[0]))
	ts.Check(err)
	columns := make([]*results.Column, len(args)-1)
	for i, name := range args[1:] {
		columns[i], err = t.Lookup(name)
		ts.Check(err)
	}
	for row := range t.Rows() {
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = c.Text(row)
		}
		fmt.Fprintln(ts.Stdout(), strings.Join(cells, " "))
	}
}

// program returns the command that runs the program as a process of its own, without the SERVEGRID_ variables of
// the developer.
func program(args ...string) *exec.Cmd {
	cmd := exec.Command("servegrid", args...)
	cmd.Env = programEnv()
	return cmd
}

func programEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, gridspec.EnvPrefix) })
}
