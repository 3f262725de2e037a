package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/live/fidelity"
	"github.com/servegrid/servegrid/live/fidelity/calibrate"
)

// fidelityOf compares two runs, which must agree.
func fidelityOf(t *testing.T, args ...string) *fidelity.Comparison {
	t.Helper()
	got := runCommand(t, append([]string{"fidelity", "--json"}, args...)...)
	if got.code != exitOK {
		t.Fatalf("exit code %d: %s%s", got.code, got.stdout, got.stderr)
	}
	var c fidelity.Comparison
	if err := json.Unmarshal([]byte(got.stdout), &c); err != nil {
		t.Fatal(err)
	}
	return &c
}

// TestAgentReplay goes the whole way of docs/capture.md: a capture of agents is checked, simulated, sent to a server again, and
// compared with both; and the other way round, what the server did is compared with what it was asked for.
func TestAgentReplay(t *testing.T) {
	capture := filepath.Join(repository, "examples", "capture", "agents.000000.jsonl.gz")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(args ...string) outcome {
		t.Helper()
		got := runCommand(t, args...)
		if got.code != exitOK {
			t.Fatalf("%s: exit code %d: %s%s", strings.Join(args, " "), got.code, got.stdout, got.stderr)
		}
		return got
	}
	must("trace", "check", capture, "--requests", "34", "--sessions", "9")
	must("replay", capture, "--num-workers", "2", "--report-parquet", at("simulated.parquet"), "--report-json", at("simulated.json"))
	must("replay", capture, "--num-workers", "2", "--compat", "dynamo-1.3", "--trace-format", "dynamo", "--report-jsonl", at("compat.jsonl"), "--report-json", at("compat.json"))
	server := startServe(t, "--tokenizer", "chars:4", "--num-workers", "2", "--requests-parquet", at("served.parquet"))
	must("live", capture, "--url", server.url, "--tokenizer", "chars:4", "--arrival-speedup-ratio", "5", "--output", at("live"), "-q")
	if code := server.stop(t); code != exitOK {
		t.Errorf("the server's exit code is %d: %s", code, server.stderr.String())
	}

	for name, pair := range map[string][2]string{
		"capture and simulation":            {filepath.Dir(capture), at("simulated.parquet")},
		"capture and the reference's rules": {capture, at("compat.jsonl")},
		"capture and live":                  {capture, at("live")},
		"simulation and live":               {at("simulated.parquet"), at("live")},
		"live and what was served":          {at("live"), at("served.parquet")},
		"live and its files as AIPerf's":    {at("live"), at("live/aiperf")},
	} {
		c := fidelityOf(t, pair[0], pair[1])
		if c.Join != fidelity.JoinID || c.Pairs != 34 {
			t.Errorf("%s: %d pairs by %s", name, c.Pairs, c.Join)
		}
		for _, check := range c.Checks {
			if check.Outcome != fidelity.Holds {
				t.Errorf("%s: %s: %s %s, %s", name, check.Name, check.A, check.B, check.Outcome)
			}
		}
		if name == "simulation and live" {
			for _, d := range c.Deltas {
				// At five times the rate routing differs, so workers find other prefixes; text must not lose them altogether.
				if d.Metric == "reuse" && d.B.Mean < d.A.Mean/2 || d.Metric == "input" && d.Absolute.Max != 0 {
					t.Errorf("%s: %+v and %+v", d.Metric, d.A, d.B)
				}
			}
		}
	}
	var fitted calibrate.Result
	if err := json.Unmarshal([]byte(must("calibrate", at("live"), capture, "--num-workers", "2", "--json").stdout), &fitted); err != nil {
		t.Fatal(err)
	}
	if n := fitted.Fitted.Requests + fitted.HeldOut.Requests; n != 34 || fitted.HeldOut.Requests < 5 {
		t.Errorf("%d requests, %d of them held out", n, fitted.HeldOut.Requests)
	}
}
