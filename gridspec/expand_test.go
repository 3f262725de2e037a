package gridspec_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/gridspec"
)

func TestDomains(t *testing.T) {
	for _, tc := range []struct {
		path, domain, column string
		want                 []string
	}{
		{"timing.tp", "[1, 4, 2]", "tp", []string{"1", "4", "2"}},
		{"timing.tp", "{range: [1, 7, 3]}", "tp", []string{"1", "4", "7"}},
		{"timing.tp", "{range: [1, 6, 3]}", "tp", []string{"1", "4"}},
		{"timing.tp", "{range: [3, 1, -1]}", "tp", []string{"3", "2", "1"}},
		{"load.speedup", "{range: [0.1, 0.5, 0.1]}", "speedup", []string{"0.1", "0.2", "0.3", "0.4", "0.5"}},
		{"load.speedup", "{linspace: [1, 2, 5]}", "speedup", []string{"1", "1.25", "1.5", "1.75", "2"}},
		{"load.speedup", "{linspace: [3, 3, 1]}", "speedup", []string{"3"}},
		{"load.concurrency", "{logspace: [1, 256, 9], round: true}", "concurrency", []string{"1", "2", "4", "8", "16", "32", "64", "128", "256"}},
		{"load.concurrency", "{logspace: [1, 8, 8], round: true}", "concurrency", []string{"1", "2", "3", "4", "6", "8"}},
		{"timing.tp", "{powers: [2, 0, 3]}", "tp", []string{"1", "2", "4", "8"}},
		{"load.speedup", "{powers: [2, -1, 1]}", "speedup", []string{"0.5", "1", "2"}},
		{"engine.preemption_mode", "[lifo, fifo]", "preemption_mode", []string{"lifo", "fifo"}},
		{"engine.enable_prefix_caching", "[true, false]", "enable_prefix_caching", []string{"true", "false"}},
		{"engine.max_num_seqs", "[8, null]", "max_num_seqs", []string{"8", "0"}},
		{"workload.preset.rate", "[1, 2.5]", "preset_rate", []string{"1", "2.5"}},
		{"timing", "[{tp: 2}, {source: fixed, decode_ms: 1}]", "timing", []string{`{"tp":2}`, `{"decode_ms":1,"source":"fixed"}`}},
		{"workload", "[{preset: {name: agentic}}, {name: x, preset: {name: chat, rate: 3}}]", "workload", []string{"agentic", "x"}},
	} {
		ps := expand(t, load(t, chat+"grid: {"+tc.path+": "+tc.domain+"}"))
		if diff := cmp.Diff(tc.want, column(t, ps, tc.column)); diff != "" {
			t.Errorf("%s: %s: %s", tc.path, tc.domain, diff)
		}
	}
}

func TestOrder(t *testing.T) {
	s := load(t, `
workload: [{preset: {name: chat}}, {preset: {name: agentic}}]
grid: {timing.tp: [1, 2], timing.dp: [1, 2]}
zip: {engine.block_size: [16, 32], engine.num_gpu_blocks: [200, 100]}
cases: {z: {}, a: {load.speedup: 2}}
`)
	ps := expand(t, s)
	var got []string
	for _, p := range ps {
		var parts []string
		for _, a := range p.Axes {
			parts = append(parts, a.Value.String())
		}
		got = append(got, strings.Join(parts, " "))
	}
	var want []string
	for _, w := range []string{"chat", "agentic"} {
		for _, c := range []string{"z", "a"} {
			for _, z := range []string{"16 200", "32 100"} {
				for _, g := range []string{"1 1", "1 2", "2 1", "2 2"} {
					want = append(want, w+" "+c+" "+z+" "+g)
				}
			}
		}
	}
	// Replicated settings aside, cases z and a differ; nothing falls together.
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i, p := range ps {
		if p.Index != i {
			t.Errorf("point %d has index %d", i, p.Index)
		}
	}
}

func TestColumns(t *testing.T) {
	s := load(t, chat+`
grid:
  router.policy: [round_robin]
  engine.type: [vllm]
  load.mode: [trace]
  timing.source: [polynomial]
  deployment.workers: [1]
  workload.preset.rate: [1]
  engine.block_size: [16]
  workload.trace.block_size: [16]
execution: {replicates: 2}
derive: {b: a * 2, a: workers + 1}
`)
	var got []string
	for _, c := range s.Columns() {
		got = append(got, c.Name)
	}
	want := []string{"router_policy", "engine_type", "load_mode", "timing_source", "workers", "preset_rate",
		"engine_block_size", "workload_trace_block_size", "replicate", "b", "a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestIncludeExcludeDerive(t *testing.T) {
	s := load(t, chat+`
grid: {deployment.workers: [1, 2, 4], timing.tp: [1, 8]}
include: [{deployment.workers: 9, engine.block_size: 16}, {timing.tp: 8, workload: {preset: {name: long-context}}}]
exclude: ["tp * workers > 16", "cost > 2 && workload == 'chat'", "deployment.workers == 4 and tp == 1"]
derive: {cost: gpus / 4, gpus: deployment.workers * timing.tp}
`)
	ps := expand(t, s)
	rows := make([]string, len(ps))
	for i, name := range []string{"workers", "tp", "block_size", "gpus", "cost"} {
		for j, v := range column(t, ps, name) {
			if i > 0 {
				rows[j] += " "
			}
			rows[j] += v
		}
	}
	want := []string{"1 1 64 1 0.25", "1 8 64 8 2", "2 1 64 2 0.5", "9 1 16 9 2.25", "1 8 64 8 2"}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
	if got := ps[4].Workload.Preset.Name; got != "long-context" {
		t.Errorf("the included workload is %s", got)
	}
}

func TestIncludeRunsOnEveryWorkload(t *testing.T) {
	ps := expand(t, load(t, `
workload: [{preset: {name: chat}}, {preset: {name: agentic}}]
include: [{timing.tp: 2}, {timing.tp: 4, workload: {preset: {name: chat}}}]
`))
	if diff := cmp.Diff([]string{"chat", "agentic", "chat", "agentic", "chat"}, column(t, ps, "workload")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"1", "1", "2", "2", "4"}, column(t, ps, "tp")); diff != "" {
		t.Error(diff)
	}
}

func TestEqualPointsFallTogether(t *testing.T) {
	s := load(t, chat+"random: {samples: 100, space: {timing.tp: {int: [1, 3]}}}\ninclude: [{timing.tp: 2}]")
	if ps := expand(t, s); len(ps) != 3 || s.Count() != 101 {
		t.Errorf("%d points of %d", len(ps), s.Count())
	}
}

func TestReplicates(t *testing.T) {
	text := "workload: {preset: {name: chat, requests: 5, seed: 7}}\ngrid: {timing.tp: [1, 2]}\nexecution: {replicates: 3, seeds: %s}"
	derived := expand(t, load(t, fmt.Sprintf(text, "derived")))
	if diff := cmp.Diff([]string{"0", "1", "2", "0", "1", "2"}, column(t, derived, "replicate")); diff != "" {
		t.Error(diff)
	}
	seeds := map[uint64]bool{}
	for i, p := range derived {
		seeds[p.Workload.Preset.Seed] = true
		if p.Workload.Preset.Seed != derived[i%3].Workload.Preset.Seed || p.Replicate != i%3 {
			t.Errorf("point %d has replicate %d and seed %d", i, p.Replicate, p.Workload.Preset.Seed)
		}
	}
	if len(seeds) != 3 || derived[0].Workload.Preset.Seed != 7 {
		t.Errorf("seeds %v; the first replicate keeps the spec's", seeds)
	}
	ids := map[string]bool{}
	for _, p := range expand(t, load(t, fmt.Sprintf(text, "shared"))) {
		if p.Workload.Preset.Seed != 7 {
			t.Errorf("a shared seed became %d", p.Workload.Preset.Seed)
		}
		ids[p.ContentID("digest")] = true
	}
	if len(ids) != 6 {
		t.Errorf("%d IDs for 6 rows", len(ids))
	}
}

func TestInvalidPoints(t *testing.T) {
	for _, tc := range []struct {
		name, spec string
		want       []string
		lines      int
	}{
		{"no workload", "engine: {block_size: 64}", []string{"workload: give exactly one of trace, preset and synthetic"}, 1},
		{"base", chat + "router: {policy: magic}\ngrid: {timing.tp: [1, 2]}", []string{`grid.yaml:2:10: router.policy: magic is not allowed; use one of`}, 1},
		{"axis", chat + "grid:\n  engine.block_size: [16, -1]\n  timing.tp: [1, 2]",
			[]string{"grid.yaml:3:3: engine.block_size: -1 is not allowed; give 1 to 1048576 tokens, or null for the engine's default (at block_size=-1, tp=1 and 1 more point)"}, 1},
		{"combination", chat + "cases: {a: {timing.source: fixed}, b: {timing.source: fixed, timing.decode_ms: 1}}",
			[]string{"timing.decode_ms: 0 is not allowed; source fixed needs the duration of a decode step in ms (at case=a)"}, 1},
		{"many", chat + "grid: {engine.block_size: {range: [-31, -1, 1]}}", []string{"and 11 more"}, 21},
		{"both modes", chat + "load: {rate: 1}\ngrid: {load.concurrency: [1]}", []string{"both load.concurrency and load.rate are given; set load.mode"}, 3},
		{"expression", chat + "grid: {timing.tp: [1, 0, 2]}\nexclude: [\"tp == 0\"]\nderive: {x: 'tp % (tp - 1)'}",
			[]string{`derive.x: "tp % (tp - 1)" is not allowed; column 4: `, "(at tp=1)"}, 1},
		{"not finite", chat + "grid: {timing.tp: [1, 2]}\nderive: {x: '1 / (tp - 1)'}", []string{"the result is +Inf, not a finite number (at tp=1)"}, 1},
		{"no scalar", chat + "derive: {x: '[1]'}", []string{"derive.x: \"[1]\" is not allowed; the result is [1]; a derived value is a number"}, 1},
		{"missing section", chat + "exclude: ['workload.trace.block_size > 1']", []string{"exclude[0]: \"workload.trace.block_size > 1\" is not allowed; column"}, 1},
		{"equal cases", chat + "cases: {a: {}, b: {engine.max_num_seqs: 256}}", []string{"grid.yaml:2:16: cases.b: \"b\" is not allowed; it gives the same point as \"a\""}, 1},
		{"equal workloads", "workload: [{name: a, preset: {name: chat}}, {name: b, preset: {name: chat}}]", []string{"workload: \"b\" is not allowed; it gives the same point as \"a\""}, 1},
		{"mixed types", chat + "grid: {timing.tp: [1, 2]}\nderive: {x: \"tp == 1 ? 'a' : 2\"}", []string{"derive.x: it is of different types"}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := gridspec.Load(gridspec.Source{Path: "grid.yaml", Data: []byte(tc.spec)})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Expand(gridspec.ExpandOptions{})
			checkProblems(t, err, tc.want)
			if err != nil && strings.Count(err.Error(), "\n")+1 != tc.lines {
				t.Errorf("got\n%v\nwant %d lines", err, tc.lines)
			}
		})
	}
}

func TestSkipInvalid(t *testing.T) {
	ps := expand(t, load(t, chat+"grid: {engine.block_size: [16, -1]}\nexecution: {on_invalid: skip}"))
	if len(ps) != 2 || ps[0].SkipReason != "" || ps[1].SkipReason != gridspec.SkipInvalid || !strings.Contains(ps[1].SkipMessage, "engine.block_size: -1 is not allowed") {
		t.Errorf("%+v", ps)
	}
	s := load(t, chat+"engine: {block_size: -1}\ngrid: {timing.tp: [1, 2]}\nexecution: {on_invalid: skip}")
	_, err := s.Expand(gridspec.ExpandOptions{})
	checkProblems(t, err, []string{"engine.block_size: -1 is not allowed"})
}

func TestTooManyPoints(t *testing.T) {
	s := load(t, chat+"grid: {engine.block_size: {range: [1, 10000, 1]}, timing.tp: {range: [1, 1000, 1]}}")
	_, err := s.Expand(gridspec.ExpandOptions{})
	checkProblems(t, err, []string{"the spec makes 10000000 points before exclude, and at most 1000000 are allowed; raise --max-points"})
	_, err = s.Expand(gridspec.ExpandOptions{MaxPoints: 9_999_999})
	checkProblems(t, err, []string{"at most 9999999 are allowed"})

	var axes []string
	for _, path := range []string{"timing.tp", "timing.dp", "engine.block_size", "engine.num_gpu_blocks"} {
		axes = append(axes, path+": {range: [1, 100000, 1]}")
	}
	s = load(t, chat+"grid: {"+strings.Join(axes, ", ")+"}")
	_, err = s.Expand(gridspec.ExpandOptions{})
	checkProblems(t, err, []string{"the spec makes more than 18446744073709551615 points"})
	s = load(t, chat+"execution: {replicates: 2000000}")
	_, err = s.Expand(gridspec.ExpandOptions{})
	checkProblems(t, err, []string{"the spec makes 2000000 points"})
}

// drawnAxes are axes with sound values in any combination.
func drawnAxes(t *rapid.T) map[string][]int {
	paths := []string{"deployment.workers", "engine.block_size", "engine.num_gpu_blocks", "engine.max_num_seqs", "timing.tp", "workload.preset.requests"}
	axes := map[string][]int{}
	for _, p := range rapid.SliceOfNDistinct(rapid.SampledFrom(paths), 1, 4, rapid.ID[string]).Draw(t, "paths") {
		axes[p] = rapid.SliceOfNDistinct(rapid.IntRange(1, 64), 1, 4, rapid.ID[int]).Draw(t, p)
	}
	return axes
}

func gridText(axes map[string][]int, order []string) string {
	var b strings.Builder
	b.WriteString(chat + "grid:\n")
	for _, p := range order {
		fmt.Fprintf(&b, "  %s: [%s]\n", p, strings.Trim(strings.ReplaceAll(fmt.Sprint(axes[p]), " ", ", "), "[]"))
	}
	return b.String()
}

func TestGridProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		axes := drawnAxes(t)
		var order []string
		for p := range axes {
			order = append(order, p)
		}
		slices.Sort(order)
		shuffled := rapid.Permutation(order).Draw(t, "order")
		limit := rapid.IntRange(1, 64).Draw(t, "limit")
		exclude := fmt.Sprintf("exclude: ['%s > %d']\n", order[0], limit)

		product, kept := 1, 0
		for _, values := range axes {
			product *= len(values)
		}
		for _, v := range axes[order[0]] {
			if v <= limit {
				kept += product / len(axes[order[0]])
			}
		}
		all := mustExpand(t, gridText(axes, order))
		if len(all) != product {
			t.Fatalf("%d points, want %d", len(all), product)
		}
		if kept == 0 {
			if s, err := gridspec.Load(gridspec.Source{Data: []byte(gridText(axes, order) + exclude)}); err != nil {
				t.Fatal(err)
			} else if _, err := s.Expand(gridspec.ExpandOptions{}); err == nil {
				t.Fatal("a spec without points is no error")
			}
			return
		}
		some := mustExpand(t, gridText(axes, order)+exclude)
		if len(some) != kept {
			t.Fatalf("%d points after exclude, want %d", len(some), kept)
		}
		again := mustExpand(t, gridText(axes, order)+exclude)
		if diff := cmp.Diff(some, again); diff != "" {
			t.Fatal(diff)
		}
		// The order of keys changes the order of points but not their IDs.
		if diff := cmp.Diff(sortedIDs(all), sortedIDs(mustExpand(t, gridText(axes, shuffled)))); diff != "" {
			t.Fatal(diff)
		}
	})
}

func mustExpand(t *rapid.T, text string) []gridspec.Point {
	s, err := gridspec.Load(gridspec.Source{Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	ps, err := s.Expand(gridspec.ExpandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

func sortedIDs(ps []gridspec.Point) []string {
	ids := make([]string, len(ps))
	for i, p := range ps {
		ids[i] = p.ContentID(fmt.Sprint(*p.Workload.Preset))
	}
	slices.Sort(ids)
	return ids
}

func TestResolvedRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		axes := drawnAxes(t)
		var order []string
		for p := range axes {
			order = append(order, p)
		}
		slices.Sort(order)
		text := gridText(axes, rapid.Permutation(order).Draw(t, "order")) + `
sobol: {samples: 3, space: {load.speedup: {loguniform: [0.5, 8]}, engine.preemption_mode: [lifo, fifo]}}
include: [{timing.dp: 3}]
derive: {x: "gpus * 2"}
`
		set := []string{
			fmt.Sprintf("execution.seed=%d", rapid.IntRange(0, 1<<40).Draw(t, "seed")),
			fmt.Sprintf("sla.ttft_ms=%v", rapid.Float64Range(1e-7, 1e22).Draw(t, "ttft")),
			fmt.Sprintf("cases=%s", `{"yes": {router.policy: round_robin, engine.context_length: 1}, b: {}}`),
		}
		first, err := gridspec.Load(gridspec.Source{Data: []byte(text), Set: set})
		if err != nil {
			t.Fatal(err)
		}
		resolved, err := first.Resolved(".")
		if err != nil {
			t.Fatal(err)
		}
		second, err := gridspec.Load(gridspec.Source{Data: resolved})
		if err != nil {
			t.Fatalf("%v\n%s", err, resolved)
		}
		again, err := second.Resolved(".")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(resolved), string(again)); diff != "" {
			t.Fatal(diff)
		}
		a, errA := first.Expand(gridspec.ExpandOptions{})
		b, errB := second.Expand(gridspec.ExpandOptions{})
		if diff := cmp.Diff(a, b); diff != "" || errA != nil || errB != nil {
			t.Fatal(errA, errB, diff)
		}
	})
}
