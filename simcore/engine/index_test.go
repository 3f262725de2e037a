package engine

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/kvcache"
)

// TestIndexIsWhatWorkersHold drives several workers that tell a router what they hold, and checks after every step of one of
// them that it is what their caches have: of vLLM and TensorRT-LLM at once, of SGLang from the end of a pass on.
func TestIndexIsWhatWorkersHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := drawSGLang(t, Aggregated)
		env.Config.Type = rapid.SampledFrom(Types()).Draw(t, "type")
		workers := make([]Worker, rapid.IntRange(1, 3).Draw(t, "workers"))
		env.Index = kvcache.NewIndex(len(workers), env.Blocks.Shared)
		for w := range workers {
			workers[w] = New(env, Place{Worker: w, Seat: w})
		}
		next := 0
		now := make([]float64, len(workers))
		stuck := make([]bool, len(workers))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w := rapid.IntRange(0, len(workers)-1).Draw(t, "worker")
			for next < len(env.Requests) && rapid.Bool().Draw(t, "arrives") {
				workers[w].Submit(int32(next))
				next++
			}
			if stuck[w] || !workers[w].HasWork() {
				continue
			}
			end, progress, err := workers[w].Start(now[w], math.Inf(1), math.Inf(1))
			if stuck[w] = err != nil; stuck[w] {
				continue
			}
			if env.Config.Type != TypeSGLang {
				checkIndex(t, env, workers)
			}
			if progress {
				workers[w].Finish()
				now[w] = end
				checkIndex(t, env, workers)
			}
		}
	})
}

// checkIndex compares the index with the workers' caches for every prompt.
func checkIndex(t *rapid.T, env *Environment, workers []Worker) {
	into := make([]int32, len(workers))
	for i := range env.Requests {
		s := env.sequence(int32(i))
		n := min(int(s.Known), int(env.Requests[i].Input)/env.Config.BlockSize)
		env.Index.Overlaps(s, n, into)
		for w := range workers {
			held := 0
			switch worker := workers[w].(type) {
			case *VLLM:
				held, _ = worker.cache.Match(s, n)
			case *SGLang:
				held = worker.tree.Lookup(s, n)
			}
			if n > 0 && int(into[w]) != held {
				t.Fatalf("worker %d holds %d of the first %d blocks of request %d, the index says %d", w, held, n, i, into[w])
			}
		}
	}
}
