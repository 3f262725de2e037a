package simcore

import (
	"cmp"
	"context"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// TestAgentXReport compares the figures of the scenario with the records of its requests, normalised latency by one
// definition among them (aiperf#1270).
func TestAgentXReport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := conversations(t)
		cfg := DefaultConfig()
		cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = 16, 4096
		cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 20, 3
		cfg.Load.Mode, cfg.Load.Concurrency = LoadConcurrency, rapid.IntRange(1, 5).Draw(t, "users")
		drawAgentX(t, &cfg.AgentX)
		cfg.AgentX.DurationS, cfg.AgentX.Seed = rapid.Float64Range(1, 120).Draw(t, "duration"), rapid.Uint64().Draw(t, "seed")
		var records []RequestRecord
		r, err := Run(context.Background(), cfg, w, Options{Records: func(r RequestRecord) { records = append(records, r) }})
		if err != nil {
			t.Fatal(err)
		}
		a := r.AgentX
		warmUps, measured := int64(0), int64(0)
		first, last := math.Inf(1), 0.0
		var perToken []float64
		for _, q := range records {
			switch {
			case q.WarmUp:
				warmUps++
				continue
			case q.Life.ArrivalMs < a.StartMs-1e-9:
				t.Fatalf("a request of the window is released at %v, before it begins at %v", q.Life.ArrivalMs, a.StartMs)
			}
			measured++
			if q.Life.Tokens == q.Life.Output && q.Life.Tokens > 0 {
				first, last = min(first, q.Life.ArrivalMs), max(last, q.Life.LastTokenMs)
				perToken = append(perToken, (q.Life.LastTokenMs-q.Life.ArrivalMs)/float64(q.Life.Tokens))
			}
		}
		if a.WarmUpRequests != warmUps || r.NumRequests != measured || int(r.CompletedRequests) != len(perToken) {
			t.Fatalf("%d, %d and %d requests, in the records %d, %d and %d", a.WarmUpRequests, r.NumRequests, r.CompletedRequests, warmUps, measured, len(perToken))
		}
		if a.NeverIssued < 0 || a.CompletedPlays > a.StartedPlays || a.StartedPlays < int64(cfg.Load.Concurrency) {
			t.Fatalf("%+v", a)
		}
		if len(perToken) == 0 {
			return
		}
		slices.SortFunc(perToken, cmp.Compare[float64])
		if want := perToken[int(math.Round(float64(len(perToken)-1)*.9))]; a.E2EPerToken.P90 != want {
			t.Fatalf("the 90th percentile of the latency by tokens is %v, want %v", a.E2EPerToken.P90, want)
		}
		if math.Abs(r.DurationMs-(last-first)) > 1e-6 {
			t.Fatalf("the window lasts %v ms, want %v", r.DurationMs, last-first)
		}
		// A cache without limit has what this one has, and what is computed at the same time.
		if r.PrefixCacheReusedRatio > a.TheoreticalHitRatio+1e-9 {
			t.Fatalf("%v is reused, %v by a cache without limit", r.PrefixCacheReusedRatio, a.TheoreticalHitRatio)
		}
	})
}
