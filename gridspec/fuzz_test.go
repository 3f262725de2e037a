package gridspec_test

import (
	"errors"
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
