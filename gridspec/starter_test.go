package gridspec_test

import (
	"testing"

	"github.com/servegrid/servegrid/gridspec"
)

func TestStarterAndQuickstartExpand(t *testing.T) {
	for name, src := range map[string]gridspec.Source{
		"starter":    {Data: gridspec.Starter()},
		"quickstart": {Path: "../examples/quickstart/grid.yaml"},
	} {
		s, err := gridspec.Load(src)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ps, err := s.Expand(gridspec.ExpandOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(ps) < 30 || uint64(len(ps)) >= s.Count() {
			t.Errorf("%s has %d points of %d; it shows a sweep and an exclude", name, len(ps), s.Count())
		}
		if len(s.Objectives.Maximize)+len(s.Objectives.Minimize) < 2 || !ps[0].Config.SLA.Set() {
			t.Errorf("%s has fewer than two objectives or no SLA", name)
		}
	}
}
