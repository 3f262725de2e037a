package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// The space of a trace is a sound spec: it has the combinations that its search counts on, and each stays within the GPUs.
func TestSpaceOfATrace(t *testing.T) {
	for _, gpus := range []int{1, 2, 5, 8, 16} {
		f := recommendFlags{gpus: gpus, space: traceSpace{model: "llama-3.1-8b", gpuTypes: []string{"h200", "b200", "h100"}}}
		f.output = "runs/x"
		text, err := f.spaceText("a trace's.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		spec, err := gridspec.Load(gridspec.Source{Path: "grid.yaml", Data: []byte(text), Format: gridspec.YAML})
		if err != nil {
			t.Fatalf("%d GPUs: %v\n%s", gpus, err, text)
		}
		points, err := spec.Expand(gridspec.ExpandOptions{})
		if err != nil {
			t.Fatal(err)
		}
		most := 0
		for _, p := range points {
			most = max(most, p.Config.GPUs())
		}
		if most != gpus {
			t.Errorf("the largest of %d configurations has %d GPUs; %d are allowed", len(points), most, gpus)
		}
		if search := strings.Contains(text, "search:"); search != (len(points) > searchFrom) {
			t.Errorf("%d GPUs: %d combinations, search: %v", gpus, len(points), search)
		}
	}
}

// GPUs without a price are left out where the answer needs one, and are named; a price that is given counts.
func TestUnpricedGPUsAreLeftOut(t *testing.T) {
	for _, c := range []struct {
		name      string
		flags     recommendFlags
		tried     []string
		cautioned string
	}{
		{"cost", recommendFlags{objective: "cost"}, []string{"h200_sxm"}, "gb300, rtx_pro_6000_server"},
		{"a cost column", recommendFlags{objective: "min:cost_usd"}, []string{"h200_sxm"}, "gb300"},
		{"a budget", recommendFlags{objective: "speed", usdPerHour: 20}, []string{"h200_sxm"}, "gb300"},
		{"speed", recommendFlags{objective: "speed"}, []string{"h200_sxm", "gb300", "rtx_pro_6000_server"}, ""},
	} {
		c.flags.gpus, c.flags.space = 2, traceSpace{model: "llama-3.1-8b", gpuTypes: []string{"h200", "gb300", "rtx_pro_6000_server"}}
		got, err := c.flags.pricedGPUs()
		if err != nil || !slices.Equal(got, c.tried) {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.tried)
		}
		if text := strings.Join(c.flags.unpricedCautions(), ""); (text != "") != (c.cautioned != "") || !strings.Contains(text, c.cautioned) {
			t.Errorf("%s: caution %q; want %q", c.name, text, c.cautioned)
		}
	}
	own := recommendFlags{objective: "cost", space: traceSpace{gpuTypes: []string{"h200", "gb300"}}}
	own.set = []string{"prices.gb300=9"}
	if got, _ := own.pricedGPUs(); len(got) != 2 {
		t.Errorf("with a price of one's own: %v", got)
	}
	none := recommendFlags{objective: "cost", space: traceSpace{gpuTypes: []string{"gb300"}}}
	if got, _ := none.pricedGPUs(); len(got) != 1 || none.unpriced != nil {
		t.Errorf("where none has a price: %v without %v", got, none.unpriced)
	}
}

// A search goes after the objective of the recommendation alone, under its limits.
func TestSearchAim(t *testing.T) {
	priced := []gridspec.Point{{GPUPrice: metrics.GPUPrice{USDPerHour: 2}}}
	spec := results.Analysis{
		Objectives:  []results.Objective{{Name: "cost_usd_per_mtok_output"}, {Name: "mean_output_token_throughput_per_user", Maximize: true}},
		Constraints: results.SLAConstraints(simcore.SLA{TTFTMs: 2000}),
	}
	for _, c := range []struct {
		flags  recommendFlags
		points []gridspec.Point
		want   string
	}{
		{recommendFlags{objective: "cost"}, priced, "least cost_usd_per_mtok_output: p99_ttft_ms <= 2000"},
		{recommendFlags{objective: "cost"}, []gridspec.Point{{}}, "least gpu_hours: p99_ttft_ms <= 2000"},
		{recommendFlags{objective: "speed", where: "p90_ttft_ms <= 800 && gpu == h200_sxm", gpus: 4}, priced,
			"most mean_output_token_throughput_per_user: p99_ttft_ms <= 2000, p90_ttft_ms <= 800, gpus <= 4"},
		{recommendFlags{objective: "max:sla_attainment"}, priced, "most sla_attainment: p99_ttft_ms <= 2000"},
		{recommendFlags{objective: "p99_ttft_ms"}, priced, "least p99_ttft_ms: p99_ttft_ms <= 2000"},
		{recommendFlags{objective: "min:derived"}, priced, "least cost_usd_per_mtok_output most mean_output_token_throughput_per_user: p99_ttft_ms <= 2000"},
	} {
		var objectives, limits []string
		aim := c.flags.searchAim(spec, c.points)
		for _, o := range aim.Objectives {
			objectives = append(objectives, map[bool]string{true: "most ", false: "least "}[o.Maximize]+o.Name)
		}
		for _, l := range aim.Constraints {
			limits = append(limits, l.String())
		}
		if got := strings.Join(objectives, " ") + ": " + strings.Join(limits, ", "); got != c.want {
			t.Errorf("%s: %s; want %s", c.flags.objective, got, c.want)
		}
	}
	if len(spec.Objectives) != 2 || len(spec.Constraints) != 1 {
		t.Error("the spec's own analysis was changed")
	}
}

func TestWorkerCounts(t *testing.T) {
	for most, want := range map[int][]int{1: {1}, 2: {1, 2}, 5: {1, 2, 3, 4, 5}, 8: {1, 2, 3, 4, 6, 8}, 20: {1, 2, 3, 4, 6, 8, 12, 16, 20}} {
		if got := workerCounts(most); !slices.Equal(got, want) {
			t.Errorf("up to %d: %v; want %v", most, got, want)
		}
	}
}
