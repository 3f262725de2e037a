package router

import (
	"fmt"
	"math"
	"testing"

	"github.com/servegrid/servegrid/simcore/kvcache"
	"github.com/servegrid/servegrid/simcore/workload"
)

// blockSize is the number of tokens in the blocks of these tests, of traces and KV caches alike.
const blockSize = 4

// pool is a pool of workers whose caches a test fills by hand.
type pool struct {
	Environment
	index *kvcache.Index
}

// newPool makes the environment of a router for requests with arrival at 0.
func newPool(t testing.TB, workers int, requests ...workload.Request) *pool {
	t.Helper()
	b := workload.NewBuilder("test", blockSize)
	for _, r := range requests {
		if r.Input == 0 {
			r.Input = blockSize * len(r.Hashes)
		}
		r.Output = 1
		b.Add(r)
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := w.Blocks(blockSize, true)
	if err != nil {
		t.Fatal(err)
	}
	sessions := make([]int32, w.Requests())
	for session := range w.Sessions() {
		for r := w.SessionStart[session]; r < w.SessionStart[session+1]; r++ {
			sessions[r] = int32(session)
		}
	}
	index := kvcache.NewIndex(workers, blocks.Shared)
	return &pool{index: index, Environment: Environment{
		Workers: workers, MaxNumBatchedTokens: 100, Workload: w, Blocks: blocks, Sessions: sessions, Index: index,
	}}
}

// caches puts the first n blocks of a request into a worker's cache.
func (p *pool) caches(worker int, request int32, n int) {
	sequence, _ := p.sequence(request)
	for i := range n {
		p.index.Store(worker, sequence.At(i), 1)
	}
}

// kvConfig is the KV router's default.
func kvConfig() Config {
	c := DefaultConfig()
	c.Policy = PolicyKVRouter
	return c
}

// arrive routes a request and fails on an error.
func arrive(t testing.TB, r Router, now float64, request int32) int32 {
	t.Helper()
	w, err := r.Arrive(now, request)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// chiSquared is Pearson's statistic of counts against equal probabilities.
func chiSquared(counts []int) float64 {
	n := 0
	for _, c := range counts {
		n += c
	}
	expected, sum := float64(n)/float64(len(counts)), 0.0
	for _, c := range counts {
		sum += math.Pow(float64(c)-expected, 2) / expected
	}
	return sum
}

// prompts makes n prompts of one block each, all different.
func prompts(n int) []workload.Request {
	out := make([]workload.Request, n)
	for i := range out {
		out[i] = workload.Request{Hashes: []uint64{uint64(i)}, Session: fmt.Sprint(i)}
	}
	return out
}
