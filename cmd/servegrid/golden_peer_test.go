package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// peerRun is a small random run of the newest peer, most often one that a rule of its own decides: the arguments with which
// servegrid does the same, the trace, and what became of each request of it, in the order of its lines. The peer counts
// output that a preempted request finds cached as reused, which is left out here.
type peerRun struct {
	Name     string
	Args     []string
	Trace    string
	Fields   []string
	Requests [][]*float64
}

// TestGoldenPeerRuns replays the recorded random runs of the newest peer under the default rules: memory pressure, and
// disaggregated deployments of all engines.
func TestGoldenPeerRuns(t *testing.T) {
	var runs []peerRun
	readGzipJSON(t, "testdata/golden/cases_peer.json.gz", &runs)
	if len(runs) < 50 {
		t.Fatalf("%d runs, want 50 or more", len(runs))
	}
	for _, r := range runs {
		t.Run(r.Name, func(t *testing.T) {
			trace, records := filepath.Join(t.TempDir(), "trace.jsonl"), filepath.Join(t.TempDir(), "requests.jsonl")
			if err := os.WriteFile(trace, []byte(r.Trace), 0o666); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"replay", trace}, r.Args...)
			if got := runCommand(t, append(args, "--report-json", os.DevNull, "--report-jsonl", records)...); got.code != exitOK {
				t.Fatalf("exit code %d: %s", got.code, got.stderr)
			}
			got := readFields(t, records, r.Fields)
			if len(got) != len(r.Requests) {
				t.Fatalf("%d requests, want %d", len(got), len(r.Requests))
			}
			for i, want := range r.Requests {
				for f, field := range r.Fields {
					if g, w := got[i][f], want[f]; (g == nil) != (w == nil) || w != nil && !close(*g, *w, 1e-6) {
						t.Fatalf("%s of request %d is %s, want %s", field, i, number(g), number(w))
					}
				}
			}
		})
	}
}

// readFields reads fields of the records of a replay, in the order of the trace. Fields that are null are nil.
func readFields(t *testing.T, path string, fields []string) [][]*float64 {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var records []map[string]any
	for s := bufio.NewScanner(file); s.Scan(); {
		var record map[string]any
		if err := json.Unmarshal(s.Bytes(), &record); err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
	slices.SortFunc(records, func(a, b map[string]any) int {
		return cmp.Compare(a["request"].(float64), b["request"].(float64))
	})
	values := make([][]*float64, len(records))
	for i, record := range records {
		for _, field := range fields {
			if v, ok := record[field].(float64); ok {
				values[i] = append(values[i], &v)
			} else {
				values[i] = append(values[i], nil)
			}
		}
	}
	return values
}

func number(v *float64) string {
	data, _ := json.Marshal(v)
	return string(data)
}
