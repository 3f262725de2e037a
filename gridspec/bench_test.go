package gridspec_test

import (
	"testing"

	"github.com/servegrid/servegrid/gridspec"
)

// BenchmarkExpand reports the cost of a point of a spec that uses every kind of work: expressions, derived
// values, validation and a workload of its own.
func BenchmarkExpand(b *testing.B) {
	spec, err := gridspec.Load(gridspec.Source{Data: []byte(`
workload: {preset: {name: chat, requests: 50}}
grid:
  deployment.workers: {range: [1, 10, 1]}
  engine.block_size: [16, 32, 64, 128]
  engine.num_gpu_blocks: {range: [1000, 5000, 100]}
  workload.preset.rate: [1, 2, 4, 8, 16]
exclude: ["workers * tp > 9"]
derive: {per_gpu: "workload.preset.rate / gpus"}
`)})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	points := 0
	for b.Loop() {
		ps, err := spec.Expand(gridspec.ExpandOptions{})
		if err != nil {
			b.Fatal(err)
		}
		points = len(ps)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(points), "ns/point")
}

// BenchmarkContentID reports the cost of naming a point.
func BenchmarkContentID(b *testing.B) {
	spec, err := gridspec.Load(gridspec.Source{Data: []byte("workload: {preset: {name: chat, requests: 50}}\nengine: {block_size: 16}")})
	if err != nil {
		b.Fatal(err)
	}
	ps, err := spec.Expand(gridspec.ExpandOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		ps[0].ContentID("digest")
	}
}
