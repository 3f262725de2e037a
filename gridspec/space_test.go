package gridspec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/gridspec"
)

// spacePoints makes the points of every place, without those that are equal to an earlier one.
func spacePoints(t interface{ Fatal(...any) }, s *gridspec.Spec) []gridspec.Point {
	space, err := s.Space()
	if err != nil {
		t.Fatal(err)
	}
	var out []gridspec.Point
	seen := map[string]bool{}
	place := make([]int, len(space.Dimensions))
	for range space.Count() {
		points, err := space.Points(place)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range points {
			if key := p.ContentID(fmt.Sprintf("%+v", p.Workload.Preset)); !seen[key] {
				seen[key] = true
				p.Index = len(out)
				out = append(out, p)
			}
		}
		for i := len(place) - 1; i >= 0; i-- {
			if place[i]++; place[i] < space.Dimensions[i].Size {
				break
			}
			place[i] = 0
		}
	}
	return out
}

// TestSpaceIsTheExpansion checks that the places of a space are the points of the spec: equal configurations, workloads,
// axes and content IDs.
func TestSpaceIsTheExpansion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := chat
		if rapid.Bool().Draw(t, "grid") {
			text += fmt.Sprintf("grid: {deployment.workers: [1, 2, 4], engine.block_size: %s, workload.preset.rate: [1, 2]}\n",
				rapid.SampledFrom([]string{"[16, 32]", "[16]", "{powers: [2, 4, 6]}"}).Draw(t, "sizes"))
		}
		if rapid.Bool().Draw(t, "zip") {
			text += "zip: {engine.max_num_seqs: [8, 16], engine.num_gpu_blocks: [1000, 2000]}\n"
		}
		if rapid.Bool().Draw(t, "samples") {
			text += "lhs: {samples: 3, space: {engine.max_num_batched_tokens: {int: [512, 600]}}}\n"
		}
		text += "cases: {a: {timing.tp: 1}, b: {timing.tp: 2}}\n"
		text += rapid.SampledFrom([]string{"", "exclude: ['timing.tp * deployment.workers > 4']\n", "exclude: ['per > 1.2']\n"}).Draw(t, "exclude")
		text += "derive: {per: 'gpus / 2.5'}\n"
		text += fmt.Sprintf("execution: {replicates: %d}\n", rapid.IntRange(1, 2).Draw(t, "replicates"))
		s, err := gridspec.Load(gridspec.Source{Data: []byte(text), Dir: "."})
		if err != nil {
			t.Fatal(err)
		}
		want, err := s.Expand(gridspec.ExpandOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := spacePoints(t, s)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s\n%s", text, diff)
		}
		for i := range want {
			if want[i].ContentID("w") != got[i].ContentID("w") {
				t.Fatalf("point %d has another content ID", i)
			}
		}
	})
}

func mustSpace(t *testing.T, text string) *gridspec.Space {
	t.Helper()
	s, err := gridspec.Load(gridspec.Source{Data: []byte(chat + text), Dir: "."})
	if err != nil {
		t.Fatal(err)
	}
	space, err := s.Space()
	if err != nil {
		t.Fatal(err)
	}
	return space
}

// TestDimensions checks what a space says of its axes.
func TestDimensions(t *testing.T) {
	space := mustSpace(t, `
cases: {a: {timing.tp: 1}, b: {timing.tp: 2}}
zip: {engine.max_num_seqs: [8, 16], engine.num_gpu_blocks: [2000, 1000]}
grid:
  router.policy: [round_robin, kv_router]
  load.rate: [4, 2, 1]
  deployment.workers: [1, 4, 2]
  workload.preset.scale: [0.5, 1]
`)
	want := []gridspec.Dimension{
		{Name: "case", Paths: []string{"case"}, Size: 2},
		{Name: "max_num_seqs+num_gpu_blocks", Paths: []string{"engine.max_num_seqs", "engine.num_gpu_blocks"}, Values: []float64{8, 16}, Size: 2},
		{Name: "router_policy", Paths: []string{"router.policy"}, Size: 2},
		{Name: "load_rate", Paths: []string{"load.rate"}, Values: []float64{4, 2, 1}, Size: 3},
		{Name: "workers", Paths: []string{"deployment.workers"}, Size: 3},
		{Name: "scale", Paths: []string{"workload.preset.scale"}, Values: []float64{0.5, 1}, Size: 2, Traffic: true},
	}
	if diff := cmp.Diff(want, space.Dimensions); diff != "" {
		t.Error(diff)
	}
	if n := space.Count(); n != 2*2*2*3*3*2 {
		t.Errorf("%d combinations", n)
	}
	if d := mustSpace(t, "cases: {a: {workload.preset.scale: 1}, b: {workload.preset.scale: 2}}").Dimensions[0]; !d.Traffic {
		t.Error("cases that change the workload are traffic")
	}
}

// TestHugeSpace checks that a space of more combinations than 64 bits can count takes no time.
func TestHugeSpace(t *testing.T) {
	space := mustSpace(t, `
grid:
  engine.block_size: [16, 32]
  load.rate: {logspace: [0.1, 100, 100000]}
  engine.max_num_batched_tokens: {linspace: [1024, 101023, 100000]}
  engine.num_gpu_blocks: {linspace: [100000, 199999, 100000]}
  deployment.workers: {range: [1, 1000, 1]}
  sla.ttft_ms: {linspace: [1, 100, 1000]}
exclude: ["deployment.workers < 3"]
`)
	if n := space.Count(); n != ^uint64(0) {
		t.Errorf("%d combinations, want the largest number", n)
	}
	points, err := space.Points([]int{1, 99_999, 500, 7, 999, 3})
	if err != nil || len(points) != 1 {
		t.Fatalf("%d points: %v", len(points), err)
	}
	if c := points[0].Config; c.Deployment.Workers != 1000 || c.Load.Rate != 100 || c.Engine.MaxNumBatchedTokens != 1524 {
		t.Errorf("another point: %+v", points[0].Axes)
	}
	if points, err = space.Points(make([]int, 6)); err != nil || len(points) != 0 {
		t.Errorf("exclude keeps %d points: %v", len(points), err)
	}
	checked, err := space.Check()
	if err != nil || checked.All || checked.Looked < 1000 || len(checked.Points) < checked.Looked/2 {
		t.Errorf("looked at %d, all %v, %d points: %v", checked.Looked, checked.All, len(checked.Points), err)
	}
}

// TestSpaceRefuses checks what is said of impossible combinations and of spaces that are none.
func TestSpaceRefuses(t *testing.T) {
	s, err := gridspec.Load(gridspec.Source{Data: []byte(chat), Dir: "."})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Space(); err == nil || !strings.Contains(err.Error(), "needs axes") {
		t.Errorf("a spec without axes: %v", err)
	}
	impossible := "grid: {engine.block_size: [16, -1], timing.tp: [1, 2]}\n"
	space := mustSpace(t, impossible)
	if _, err := space.Points([]int{1, 0}); err == nil || !strings.Contains(err.Error(), "engine.block_size") {
		t.Errorf("an impossible combination: %v", err)
	}
	if _, err := space.Check(); err == nil || !strings.Contains(err.Error(), "engine.block_size") {
		t.Errorf("a space with impossible combinations: %v", err)
	}
	space = mustSpace(t, impossible+"execution: {on_invalid: skip}\n")
	if points, err := space.Points([]int{1, 0}); err != nil || len(points) != 1 || points[0].SkipReason != gridspec.SkipInvalid {
		t.Errorf("on_invalid: skip gives %+v, %v", points, err)
	}
	space = mustSpace(t, "grid: {deployment.workers: {range: [1, 30000, 1]}}\nexclude: ['deployment.workers > 0']\n")
	if _, err := space.Check(); err == nil || !strings.Contains(err.Error(), "exclude") {
		t.Errorf("nothing is left: %v", err)
	}
}

// TestSearchSection checks what the section accepts, and that all that is wrong is reported at once.
func TestSearchSection(t *testing.T) {
	axes := chat + "grid: {load.rate: [1, 2]}\n"
	for text, want := range map[string][]string{
		"{method: refine, points: 15%, batch: 4, patience: 2}":     nil,
		"{method: saturation, axis: load.rate, tolerance: 0.01}":   nil,
		"{method: saturation, axis: load_rate}":                    nil,
		"{method: halving, points: 40, eta: 2, min_fidelity: 0.1}": nil,
		"{method: guess}":                                             {"search.method"},
		"{method: refine, points: 0%}":                                {"search.points"},
		"{method: refine, points: 120%}":                              {"search.points"},
		"{method: refine, points: 0.15}":                              {"search.points", "such as 15%"},
		"{method: refine, axis: load.rate, eta: 3, population: 4}":    {"search.axis", "search.method saturation", "search.eta", "search.population"},
		"{method: saturation}":                                        {"search.axis", "load.rate"},
		"{method: saturation, axis: load.concurrency, tolerance: -1}": {"search.axis", "search.tolerance"},
		"{method: halving, eta: 1.09, min_fidelity: 2, batch: -1}":    {"search.eta", "search.min_fidelity", "search.batch"},
	} {
		_, err := gridspec.Load(gridspec.Source{Data: []byte(axes + "search: " + text), Dir: "."})
		if (err == nil) != (want == nil) {
			t.Errorf("%s: %v", text, err)
		}
		for _, part := range want {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q is missing in\n%v", text, part, err)
			}
		}
	}
}

func TestSearchPoints(t *testing.T) {
	for _, test := range []struct {
		points gridspec.SearchPoints
		total  uint64
		want   int
	}{{0, 100, 15}, {0, 1 << 40, 1000}, {0, 1, 1}, {0.15, 1200, 180}, {0.001, 10, 1}, {50, 1200, 50}, {50, 10, 10}} {
		if got := test.points.Of(test.total); got != test.want {
			t.Errorf("%v of %d are %d, want %d", test.points, test.total, got, test.want)
		}
	}
	for points, want := range map[gridspec.SearchPoints]bool{0: false, .15: true, 1: false, 500: false} {
		if _, share := points.Share(); share != want {
			t.Errorf("%v is a share: %v, want %v", points, share, want)
		}
	}
	for text, want := range map[string]int{"100%": 1200, "15 %": 180} {
		s, err := gridspec.Load(gridspec.Source{Data: []byte(chat + "search: {points: " + text + "}"), Dir: "."})
		if err != nil || s.Search.Points.Of(1200) != want {
			t.Errorf("%s: %v, %v", text, s, err)
		}
	}
}
