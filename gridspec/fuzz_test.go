package gridspec_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/servegrid/servegrid/gridspec"
)

// FuzzLoad checks that no text makes loading panic, and that a spec which loads survives being resolved.
func FuzzLoad(f *testing.F) {
	f.Add(gridspec.Starter(), "yaml", "engine.block_size=16")
	f.Add([]byte(chat+"grid: {timing.tp: {range: [1, 3, 1]}, timing: [{dp: 1}, {dp: 2}]}"), "yaml", "grid.engine.block_size=[1, 2]")
	f.Add([]byte("a: &a [1]\nb: {<<: *a, ? x : y}\n--- |\n  z\n"), "yaml", "=")
	f.Add([]byte(`{"workload": {"preset": {"name": "chat"}}, "cases": {"a": {"timing.tp": 1e0}}}`), "json", "cases.b={timing: {tp: 2}}")
	f.Add([]byte("workload.preset = {name = 'chat'}\n[grid]\n'timing.tp' = [1, 2]\n[[include]]\ntiming.tp = 3\n"), "toml", "include=")
	f.Fuzz(func(t *testing.T, data []byte, format, set string) {
		s, err := gridspec.Load(gridspec.Source{Data: data, Format: gridspec.Format(format), Set: []string{set}})
		if err != nil {
			return
		}
		resolved, err := s.Resolved(".")
		if err != nil {
			t.Fatal(err)
		}
		again, err := gridspec.Load(gridspec.Source{Data: resolved})
		if err != nil {
			t.Fatalf("the resolved spec does not load: %v\n%s", err, resolved)
		}
		if again.Count() != s.Count() {
			t.Fatalf("the resolved spec has %d points, not %d\n%s", again.Count(), s.Count(), resolved)
		}
		var problems gridspec.Problems
		if _, err := s.Expand(gridspec.ExpandOptions{MaxPoints: 200}); err != nil && !errors.As(err, &problems) {
			t.Fatalf("%T: %v", err, err)
		}
	})
}

// FuzzFromPortable checks that no text from elsewhere makes reading it panic, or a point that names another file than the
// declared one, and that a point which is read travels on as it is.
func FuzzFromPortable(f *testing.F) {
	const declared = "aa/trace.json"
	for _, text := range []string{
		chat, "workload: {trace: {path: aa/trace.json}}", "workload: {trace: {paths: [aa/trace.json, /etc/passwd]}}", "workload: {trace: {path: aa/../../x}}",
		chat + "timing: {gpu: h200_sxm, model: aa/trace.json, tables: ../aa}", chat + "deployment: {mode: disaggregated}\nprefill: {timing: {profile: /etc/passwd}}",
		chat + "router: {policy: kv_router, router_policy_config: [x]}", chat + "planner: {policy: dynamo, load_predictor_warmup_trace: aa/trace.json}",
		chat + "engine: &e {block_size: 16}\nload: {<<: *e}", chat + "timing.profile: x", chat + "grid: {timing.tp: [1, 2]}", "workload: [{trace: {path: '-'}}]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		p, err := gridspec.FromPortable(text, dir, []string{declared})
		if err != nil {
			return
		}
		again, err := p.Portable(func(key, path string) (string, error) {
			if path != filepath.Join(dir, declared) {
				t.Fatalf("%s names %q", key, path)
			}
			return declared, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		back, err := gridspec.FromPortable(again, dir, []string{declared})
		if err != nil {
			t.Fatalf("%v\n%s\nof\n%s", err, again, text)
		}
		if a, b := p.ContentID("d"), back.ContentID("d"); a != b {
			t.Fatalf("content ID %s became %s\n%s\nof\n%s", a, b, again, text)
		}
	})
}
