package gridspec_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/servegrid/servegrid/gridspec"
)

// An expansion takes the room of its points and the values of their axes, and makes little besides: neither arrays that grow
// nor configurations that nobody keeps, which are most of what a large sweep would have in memory at its beginning.
func TestMemoryOfExpansion(t *testing.T) {
	s := load(t, `workload: {synthetic: {input_tokens: 10, output_tokens: 2, requests: 1}}
grid:
  deployment.workers: {range: [1, 500, 1]}
  engine.max_num_seqs: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
`)
	expand(t, s)
	before := memory()
	ps := expand(t, s)
	after := memory()
	n := uint64(len(ps))
	point, values := uint64(unsafe.Sizeof(ps[0])), uint64(len(ps[0].Axes))*uint64(unsafe.Sizeof(gridspec.AxisValue{}))
	if kept := (after.HeapAlloc - before.HeapAlloc) / n; kept > point+values+point/20 {
		t.Errorf("%d bytes a point are in use; the point has %d and its axes %d", kept, point, values)
	}
	if made := (after.TotalAlloc - before.TotalAlloc) / n; made > 6*point {
		t.Errorf("%d bytes a point were allocated; the point has %d", made, point)
	}
	runtime.KeepAlive(ps)
}

func memory() runtime.MemStats {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m
}

// Points of equal workloads share the sections of these, unless their seeds differ.
func TestSharedWorkloads(t *testing.T) {
	ps := expand(t, load(t, `workload: {synthetic: {input_tokens: 10, output_tokens: 2, requests: 1}}
execution: {replicates: 2, seeds: derived}
grid: {deployment.workers: [1, 2], workload.synthetic.requests: [3, 4]}
`))
	same := func(a, b int) bool { return ps[a].Workload.Synthetic == ps[b].Workload.Synthetic }
	// The replicate is the fastest, then the requests, then the workers.
	if len(ps) != 8 || !same(0, 4) || !same(1, 5) || !same(2, 6) || same(0, 1) || same(0, 2) {
		for _, p := range ps {
			t.Errorf("%v %p %+v", p.Axes, p.Workload.Synthetic, p.Workload.Synthetic)
		}
	}
}
