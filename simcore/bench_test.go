package simcore

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/workload"
)

// BenchmarkRun simulates an hour of chat, about 12,000 requests. The name says workers x tokens per KV block.
func BenchmarkRun(b *testing.B) {
	w, err := workload.PresetSpec{Name: workload.PresetChat, Seed: 1}.Generate()
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []struct{ workers, block int }{{4, 512}, {8, 64}, {64, 64}} {
		b.Run(fmt.Sprintf("%dx%d", size.workers, size.block), func(b *testing.B) {
			cfg := dynamoConfig()
			cfg.Deployment.Workers, cfg.Engine.BlockSize = size.workers, size.block
			benchmarkRun(b, cfg, w)
		})
	}
}

// BenchmarkRunKVRouter simulates the same hour behind a KV router. The name is the number of workers.
func BenchmarkRunKVRouter(b *testing.B) {
	w, err := workload.PresetSpec{Name: workload.PresetChat, Seed: 1}.Generate()
	if err != nil {
		b.Fatal(err)
	}
	for _, workers := range []int{8, 64, 256} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			cfg := dynamoConfig()
			cfg.Deployment.Workers, cfg.Router.Policy = workers, router.PolicyKVRouter
			benchmarkRun(b, cfg, w)
		})
	}
}

// BenchmarkRunSGLang simulates the same hour with the SGLang-style scheduler, whose decode steps all take different times.
// The name is the number of tokens per page.
func BenchmarkRunSGLang(b *testing.B) {
	w, err := workload.PresetSpec{Name: workload.PresetChat, Seed: 1}.Generate()
	if err != nil {
		b.Fatal(err)
	}
	for _, page := range []int{1, 64} {
		b.Run(fmt.Sprint(page), func(b *testing.B) {
			cfg := dynamoConfig()
			cfg.Engine.Type, cfg.Deployment.Workers = engine.TypeSGLang, 8
			cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = page, 1<<20/page
			benchmarkRun(b, cfg, w)
		})
	}
}

// BenchmarkRunTiers simulates the same hour with small GPU memory and all memory tiers below it, under the default rules. The
// name is the number of workers.
func BenchmarkRunTiers(b *testing.B) {
	w, err := workload.PresetSpec{Name: workload.PresetChat, Seed: 1}.Generate()
	if err != nil {
		b.Fatal(err)
	}
	for _, workers := range []int{8, 64, 256} {
		for _, host := range []int{0, 8192} {
			b.Run(fmt.Sprintf("%dx%d", workers, host), func(b *testing.B) {
				cfg := DefaultConfig()
				cfg.Deployment.Workers = workers
				cfg.Engine.NumGPUBlocks, cfg.Engine.KVBytesPerToken = 4096, 131_072
				cfg.Load = Load{Mode: LoadConcurrency, Speedup: 1, Concurrency: 16 * workers}
				t := &cfg.Tiers
				if t.NumG2Blocks = host; host > 0 {
					t.NumG3Blocks, t.EnableG4Storage, t.WorkersPerNode = 65536, true, 8
					t.BandwidthG1ToG2, t.BandwidthG2ToG1, t.BandwidthG2ToG3, t.BandwidthG3ToG2, t.BandwidthG2ToG4, t.BandwidthG4ToG2 = 64, 64, 6, 6, 2, 2
				}
				benchmarkRun(b, cfg, w)
			})
		}
	}
}

// BenchmarkRunScaled simulates the same hour with an autoscaler that adds and removes a worker in turn and hears of every pass,
// from runs of passes or one by one. The name says workers x tokens per KV block.
func BenchmarkRunScaled(b *testing.B) {
	w, err := workload.PresetSpec{Name: workload.PresetChat, Seed: 1}.Generate()
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []struct{ workers, block int }{{4, 512}, {8, 64}} {
		for _, every := range []bool{false, true} {
			b.Run(fmt.Sprintf("%dx%d/every=%v", size.workers, size.block, every), func(b *testing.B) {
				cfg := dynamoConfig()
				cfg.Deployment.Workers, cfg.Engine.BlockSize = size.workers, size.block
				b.ReportAllocs()
				passes := 0
				for b.Loop() {
					scaler := &flapping{workers: size.workers}
					if _, err := Run(context.Background(), cfg, w, Options{Autoscaler: scaler, everyPass: every}); err != nil {
						b.Fatal(err)
					}
					passes += scaler.passes
				}
				b.ReportMetric(float64(passes)/b.Elapsed().Seconds(), "passes/s")
			})
		}
	}
}

// flapping adds a worker and removes one in turn, every 10 s.
type flapping struct {
	workers, ticks, passes int
	targets                [1]int
}

func (f *flapping) NextTickMs() float64 { return float64(f.ticks+1) * 10_000 }

func (f *flapping) Pass(*PassMetrics) { f.passes++ }

func (f *flapping) Tick(float64, []PoolState) []int {
	f.ticks++
	f.targets[0] = f.workers + f.ticks%2
	return f.targets[:]
}

// TestScaledPassesAllocateNothing checks that a simulation with an autoscaler that hears of four times the passes allocates no
// more often.
func TestScaledPassesAllocateNothing(t *testing.T) {
	for _, opt := range []Options{{}, {everyPass: true}, {model: growing{}}} {
		allocs := func(output int) float64 {
			w := requestsOf(t, 200, output, 40)
			cfg := DefaultConfig()
			cfg.Engine.BlockSize, cfg.Deployment.Workers = 64, 2
			return testing.AllocsPerRun(3, func() {
				opt.Autoscaler = &flapping{workers: 2}
				if _, err := Run(context.Background(), cfg, w, opt); err != nil {
					t.Fatal(err)
				}
			})
		}
		// A longer run has more ticks, each of which adds or removes a worker.
		if few, many := allocs(200), allocs(800); many > few+100 {
			t.Errorf("%+v: %v allocations for 200 output tokens a request, %v for 800", opt, few, many)
		}
	}
}

// BenchmarkRunSessions simulates coding agents, whose turns couple the workers.
func BenchmarkRunSessions(b *testing.B) {
	w, err := workload.PresetSpec{Name: workload.PresetAgentic, Requests: 12_000, Rate: 2, Seed: 1}.Generate()
	if err != nil {
		b.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Deployment.Workers = 8
	benchmarkRun(b, cfg, w)
}

func benchmarkRun(b *testing.B, cfg Config, w *workload.Workload) {
	b.ReportAllocs()
	var requests int64
	for b.Loop() {
		r, err := Run(context.Background(), cfg, w, Options{})
		if err != nil {
			b.Fatal(err)
		}
		requests += r.CompletedRequests
	}
	b.ReportMetric(float64(requests)/b.Elapsed().Seconds(), "requests/s")
}

// TestPassesAllocateNothing checks that a simulation with four times the passes allocates no more often.
func TestPassesAllocateNothing(t *testing.T) {
	for _, opt := range []Options{{}, {oneClock: true}, {everyPass: true}, {model: growing{}}} {
		checkAllocations(t, engine.TypeVLLM, opt)
	}
	for _, opt := range []Options{{}, {everyPass: true}} {
		checkAllocations(t, engine.TypeSGLang, opt)
	}
}

func checkAllocations(t *testing.T, engineType string, opt Options) {
	t.Helper()
	allocs := func(output int) float64 {
		w := requestsOf(t, 200, output, 40)
		cfg := DefaultConfig()
		cfg.Engine.Type, cfg.Engine.BlockSize = engineType, 64
		fewest := math.Inf(1) // of several runs, since memory of earlier ones may be gone
		for range 8 {
			fewest = min(fewest, testing.AllocsPerRun(1, func() {
				if _, err := Run(context.Background(), cfg, w, opt); err != nil {
					t.Fatal(err)
				}
			}))
		}
		return fewest
	}
	// Lists grow by doubling, so a few more allocations are no sign of one a pass.
	if few, many := allocs(200), allocs(800); many > few+10 {
		t.Errorf("%s, %+v: %v allocations for 200 output tokens a request, %v for 800", engineType, opt, few, many)
	}
}
