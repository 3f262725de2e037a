package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/gridspec"
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

func TestWorkerCounts(t *testing.T) {
	for most, want := range map[int][]int{1: {1}, 2: {1, 2}, 5: {1, 2, 3, 4, 5}, 8: {1, 2, 3, 4, 6, 8}, 20: {1, 2, 3, 4, 6, 8, 12, 16, 20}} {
		if got := workerCounts(most); !slices.Equal(got, want) {
			t.Errorf("up to %d: %v; want %v", most, got, want)
		}
	}
}
