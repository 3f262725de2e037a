package planner

import (
	"testing"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// benchDynamo is a planner that looks at four workers.
func benchDynamo(tb testing.TB) (*dynamo, []simcore.PoolState) {
	tb.Helper()
	cfg := simcore.DefaultConfig()
	cfg.Timing.Source = perfmodel.SourcePolynomial
	cfg.Deployment.Workers = 4
	cfg, problems := cfg.Resolve()
	if err := problems.Err(); err != nil {
		tb.Fatal(err)
	}
	c := trapConfig("sla")
	c.MaxGPUBudget = -1
	d, err := newDynamo(cfg, c, &Record{}, newGPUClock(cfg, &c))
	if err != nil {
		tb.Fatal(err)
	}
	return d, []simcore.PoolState{{Ready: []int32{0, 1, 2, 3}}}
}

// benchPass is the n-th of a mixture of passes.
func benchPass(n int) simcore.PassMetrics {
	p := simcore.PassMetrics{Worker: int32(n % 4), WallSeconds: 0.01 + 1e-5*float64(n%97), PassLoad: engine.PassLoad{
		DecodeRequests: 1 + n%50, DecodeKVTokens: int64(1+n%50) * int64(1000+n%777),
	}}
	if n%10 == 0 {
		p.PrefillRequests, p.PrefillTokens = 1, int64(100+n%8000)
	}
	return p
}

// BenchmarkPass is what hearing of a pass, and learning it at the next tick, costs.
func BenchmarkPass(b *testing.B) {
	d, pools := benchDynamo(b)
	passes := make([]simcore.PassMetrics, 1<<12)
	for i := range passes {
		passes[i] = benchPass(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.Pass(&passes[i%len(passes)])
		if i%4096 == 4095 {
			d.Tick(d.NextTickMs(), pools)
		}
	}
}

// TestPassesAreLearnedWithoutAllocating bounds what a tick with many passes allocates.
func TestPassesAreLearnedWithoutAllocating(t *testing.T) {
	d, pools := benchDynamo(t)
	const passes = 4096
	round := func() {
		for i := range passes {
			p := benchPass(i)
			d.Pass(&p)
		}
		d.Tick(d.NextTickMs(), pools)
	}
	for range 10 {
		round()
	}
	if n := testing.AllocsPerRun(20, round); n > passes/20 {
		t.Errorf("%v allocations for %d passes", n, passes)
	}
}
