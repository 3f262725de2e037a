package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore/workload"
)

func TestTraceCheck(t *testing.T) {
	const captures = "../../simcore/workload/testdata/dynamo/"
	const mooncake = "../../simcore/workload/testdata/mooncake/"
	like := filepath.Join(t.TempDir(), "like.json")
	for _, test := range []struct {
		args string
		code int
		want []string // what is printed
	}{
		{captures + "agentic.000000.jsonl.gz " + captures + "agentic.000001.jsonl.gz", exitOK,
			[]string{"000000.jsonl.gz: 4 records, read to its end", "Format dynamo, blocks of 64 tokens", "5 requests with 2,300 input tokens and 68 output tokens", "2 sessions, 1 of them of subagents; 2 tool calls", "Nothing is wrong"}},
		{captures + "agentic.all.jsonl --requests 5 --sessions 2 --turns run=3 --turns run:child=2", exitOK, []string{"Nothing is wrong"}},
		{captures + "agentic.all.jsonl --requests 6 --sessions 1 --turns run=4 --turns lost=1", exitSomeFailed,
			[]string{"PROBLEM: requests: there are 5, expected are 6", "sessions: there are 2, expected are 1", `turns of session "lost": there are 0, expected are 1`, `turns of session "run": there are 3, expected are 4`}},
		{captures + "agentic.000000.jsonl.gz", exitSomeFailed, []string{"PROBLEM: " + captures + "agentic.000001 is not given"}},
		{captures + "dy_trunc_member.jsonl.gz", exitSomeFailed, []string{"2 records, CUT OFF", "PROBLEM: " + captures + "dy_trunc_member.jsonl.gz:3: cannot be read past line 2: the compressed stream is cut off", "good records before it: 2; --salvage keeps them", "2 requests"}},
		{captures + "dy_trunc_member.jsonl.gz --salvage --requests 2", exitOK, []string{"2 records, CUT OFF", "Note: left out: " + captures + "dy_trunc_member.jsonl.gz:3: cannot be read", "Partial: 1 damaged record left out"}},
		{captures + "dy_trunc_member.jsonl.gz --salvage --requests 3", exitSomeFailed, []string{"PROBLEM: requests: there are 2, expected are 3"}},
		{captures + "dy_parentmissing.jsonl", exitSomeFailed, []string{`parent_session_id is "ghost"`}},
		{captures + "dy_onlytools.jsonl", exitSomeFailed, []string{"has no request_end records"}},
		{captures + "std.000000.jsonl", exitOK, []string{"3 sessions"}},
		{mooncake + "sessions.jsonl", exitOK, []string{"Format mooncake, blocks of 512 tokens"}},
		{captures + "std.000000.jsonl --trace-format mooncake", exitSomeFailed, []string{"PROBLEM: ", "hash_ids"}},
		{captures + "nowhere.jsonl", exitRefused, nil},
		{captures + "agentic.all.jsonl --turns run", exitRefused, nil},
		{captures + "agentic.all.jsonl --like " + mooncake + "flat.jsonl", exitRefused, nil},
		{"", exitRefused, nil},
	} {
		got := runCommand(t, append([]string{"trace", "check"}, strings.Fields(test.args)...)...)
		if got.code != test.code {
			t.Errorf("%s: exit code %d, want %d: %s%s", test.args, got.code, test.code, got.stdout, got.stderr)
		}
		for _, want := range test.want {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("%s: prints no %q:\n%s", test.args, want, got.stdout)
			}
		}
		if (got.stderr != "") != (test.code == exitRefused) {
			t.Errorf("%s: standard error has %q", test.args, got.stderr)
		}
	}
	got := runCommand(t, "trace", "check", captures+"agentic.all.jsonl", "--json")
	var check workload.TraceCheck
	if err := json.Unmarshal([]byte(got.stdout), &check); err != nil || check.Turns["run:child"] != 2 || check.Problems == nil {
		t.Errorf("--json prints %s", got.stdout)
	}
	if err := os.WriteFile(like, []byte(got.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runCommand(t, "trace", "check", captures+"agentic.000001.jsonl.gz", captures+"agentic.000000.jsonl.gz", "--like", like); got.code != exitOK {
		t.Errorf("the same capture in two files: %s", got.stdout)
	}
	if got := runCommand(t, "trace", "check", captures+"deep.jsonl", "--like", like); got.code != exitSomeFailed || !strings.Contains(got.stdout, `turns of session "run": there are 2, expected are 3`) {
		t.Errorf("another capture: %s", got.stdout)
	}
}
