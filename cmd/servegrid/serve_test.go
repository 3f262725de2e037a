package main

import (
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/live/endpoint"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
)

// All that is wrong with the flags is said at once.
func TestServeRefuses(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte("- {status: 42}\n- {drop: true, share: 3}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	got := runCommand(t, "serve", "--listen", "8000", "--speedup", "0", "--max-requests", "0", "--max-connections", "-1", "--max-body", "much", "--read-timeout", "0s",
		"--write-timeout", "-1s", "--grace", "-1s", "--duration", "-1s", "--model", "", "--api-key-env", "NO_SUCH_KEY", "--default-output-tokens", "9-3", "--tokenizer", "chars:9",
		"--reasoning-share", "2", "--fault", "drop,speed=4", "--fault-file", rules, "--fault-file", "nowhere.yaml", "--num-workers", "0")
	for _, want := range []string{
		`--listen: "8000"`, "--speedup: 0", "--max-requests: 0", "--max-connections: -1", `--max-body: "much"`, "--read-timeout: 0s", "--write-timeout: -1s", "--grace: -1s", "--duration: -1s",
		"--model: ", "--api-key-env: NO_SUCH_KEY", `--default-output-tokens: "9-3"`, `--tokenizer: tokenizer "chars:9"`, "--reasoning-share: 2", `--fault "drop,speed=4"`, "rule 1: status=42",
		"rule 2: share=3", "nowhere.yaml", "workers",
	} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("no %q in %s", want, got.stderr)
		}
	}
	if got.code != exitRefused || got.stdout != "" {
		t.Errorf("exit code %d: %s", got.code, got.stdout)
	}
}

// What a spec must have to be served, and what goes beside one.
func TestServeRefusesSpecs(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	several := write("several.yaml", "grid: {deployment.workers: [1, 2]}\n")
	foreseen := write("foreseen.yaml", "planner: {policy: foresight}\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{several}, "has 2 points, and one is served; choose it with --point 0 to 1"},
		{[]string{several, "--point", "2"}, "--point: 2 is not allowed"},
		{[]string{several, "--point", "1", "--num-workers", "3"}, "--num-workers: the spec describes the deployment"},
		{[]string{foreseen}, "planner.policy: foresight is not allowed; it knows all requests beforehand, and here they come from outside; use dynamo or target_tracking"},
		{[]string{foreseen, "--planner-config", "{}"}, "--planner-config: the spec describes the deployment"},
		{[]string{"--planner-config", `{"optimization_target":"speed"}`}, "speed"},
		{[]string{"--point", "1"}, "--point is for a SPEC of several points"},
		{[]string{filepath.Join(dir, "none.yaml")}, "none.yaml"},
		{[]string{several, several}, "SPEC"},
	} {
		if got := runCommand(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--duration", "1ms"}, c.args...)...); got.code != exitRefused || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%v: exit code %d, no %q in %s", c.args, got.code, c.want, got.stderr)
		}
	}
}

// An address that is in use may be free again.
func TestServeAddressInUse(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if got := runCommand(t, "serve", "--listen", other.Addr().String()); got.code != exitAway || !strings.Contains(got.stderr, "--listen: ") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
}

// What waits in a file beside comes back as it was, and the file goes.
func TestServedRequestsWait(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "requests.parquet")
	s, err := newServedRequests(path, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	var want []endpoint.Served
	for i, session := range []string{"a", "", "a", "", "b"} {
		r := endpoint.Served{ID: strings.Repeat("x", i+1), Session: session, Record: simcore.RequestRecord{
			Life: engine.Request{Input: 10, Output: 5, Tokens: 5, State: engine.Completed, ArrivalMs: float64(5 - i), AdmittedMs: engine.Never, FirstTokenMs: 7.5, LastTokenMs: 9},
		}}
		if i == 2 {
			r.Record.Handoff = &simcore.Handoff{PrefillWorker: 3}
		}
		want = append(want, r)
		s.add(r)
	}
	got, err := s.read()
	if diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if err := s.write(); err != nil {
		t.Fatal(err)
	}
	s.close()
	table := readResultsFile(t, path)
	column := func(name string) (out []string) {
		c, err := table.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range table.Rows() {
			out = append(out, c.Text(i))
		}
		return out
	}
	// Sessions in the order in which they came, each with its turns in order.
	if got, want := strings.Join(column("uuid"), " "), "xxxxx xxxx xxx x xx"; got != want {
		t.Errorf("rows %s, not %s", got, want)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left are %v", left)
	}
}

// A spec of the AgentX scenario is served like any other: who sends requests does not matter.
func TestServeAgentXSpec(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agentx.yaml")
	if err := os.WriteFile(path, []byte("agentx: {preset: rfc}\nload: {concurrency: 2}\ndeployment: {workers: 3}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	got := runCommand(t, "serve", path, "--listen", "127.0.0.1:0", "--duration", "10ms")
	if got.code != exitOK || !strings.Contains(got.stderr, "3 workers") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
}
