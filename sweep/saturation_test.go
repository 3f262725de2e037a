package sweep

import (
	"slices"
	"testing"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep/search"
)

const ratesSpec = `
workload: {preset: {name: chat, requests: 120, scale: 0.25, seed: 1}}
load: {mode: rate}
timing: {model: llama-3.1-8b}
sla: {ttft_ms: 1000, itl_ms: 30}
grid:
  timing.gpu: [h100_sxm, b200_sxm]
  deployment.workers: [1, 2]
  load.rate: {logspace: [1, 1000, 61]}
`

// TestSaturationFindsTheEdgesOfTheGrid compares a saturation search, whose hopeless points end early, with the whole grid:
// the same edges, for a fifth of the points at most.
func TestSaturationFindsTheEdgesOfTheGrid(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates a whole grid")
	}
	spec, err := gridspec.Load(gridspec.Source{Data: []byte(ratesSpec)})
	if err != nil {
		t.Fatal(err)
	}
	points, err := spec.Expand(gridspec.ExpandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	grid := mustRun(t, points, Options{Dir: t.TempDir()})
	space, err := spec.Space()
	if err != nil {
		t.Fatal(err)
	}
	rates := space.Dimensions[2].Size
	strategy := search.NewSaturation(SearchSpace(space), search.SaturationOptions{Axis: space.Dimensions[2].Name}, 0)
	opt := SearchOptions{Options: Options{Dir: t.TempDir(), StopLost: true}, Batch: 8}
	opt.Measure = func(rows []results.Row) (objectives, margins []float64) {
		return results.Analysis{Objectives: results.DefaultObjectives(), Constraints: results.SLAConstraints(rows[0].Point.Config.SLA)}.Figures(rows)
	}
	out, err := Search(t.Context(), space, strategy, opt)
	if err != nil {
		t.Fatal(err)
	}
	if out.Counts.Total*5 > len(points) || out.Counts.Stopped == 0 {
		t.Errorf("%+v of %d points", out.Counts, len(points))
	}
	several := 0
	for i, e := range strategy.Edges() {
		var kept []bool
		for _, row := range grid.Rows[i*rates : (i+1)*rates] {
			kept = append(kept, row.KeepsSLA())
		}
		switch first := slices.Index(kept, false); {
		case !e.Holds || e.Next != e.Place[2]+1 || !kept[e.Place[2]] || kept[e.Next]:
			t.Errorf("configuration %d: edge %+v, and the grid has %v", i, e, kept)
		case slices.Contains(kept[first:], true): // the 99th percentile of so few requests is that of two
			several++
		case e.Next != first:
			t.Errorf("configuration %d: edge %+v, want it before %d", i, e, first)
		}
	}
	if several > 1 {
		t.Errorf("%d configurations have several edges: they say little", several)
	}
	t.Logf("%d of %d points, %d of them stopped", out.Counts.Total, len(points), out.Counts.Stopped)
}
