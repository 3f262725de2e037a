package simcore

import (
	"testing"

	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// TestEvictionsAreSeen checks when a router sees that a block is gone: from the start of the pass that takes its place on,
// even when that is one of many equal passes. The pool has 4 blocks. Request 0 leaves blocks 1 and 2 in the cache, request
// 1 shares block 1, and its growing output takes the free block and then that of block 2.
func TestEvictionsAreSeen(t *testing.T) {
	// With dynamo-1.3 the pass of 20 ms that starts at 100 gives token 1, the one at 180 token 8, and takes room for the 13th
	// of all tokens. By default the pass of 10 ms gives token 1, and the one at 180 computes the 13th token.
	const gone = 180
	for _, compat := range []rules.Compat{rules.Dynamo13, rules.Default} {
		for at := 101.0; at < 205; at += 1.5 {
			w := build(t, 4, []workload.Request{
				{Session: "a", Input: 8, Output: 1, Hashes: []uint64{1, 2}},
				{Session: "b", ArrivalMs: 100, Input: 5, Output: 10, Hashes: []uint64{1, 9}},
				{Session: "c", ArrivalMs: at, Input: 8, Output: 1, Hashes: []uint64{1, 2}},
			})
			cfg := DefaultConfig()
			cfg.Compat, cfg.Deployment.Workers, cfg.Router.Policy = compat, 2, router.PolicyKVRouter
			cfg.Router.RouterTrackActiveBlocks = false
			cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = 4, 4
			cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 10, 10
			want := int32(8)
			if at > gone {
				want = 4
			}
			for _, everyPass := range []bool{true, false} {
				o := simulate(t, cfg, w, Options{everyPass: everyPass})
				if o.Err != nil {
					t.Fatal(o.Err)
				}
				if got := o.Records[2].Life.RouteOverlap; got != want {
					t.Errorf("%q, every pass %v: at %v ms the router sees %d tokens, want %d", compat, everyPass, at, got, want)
				}
			}
		}
	}
}

// TestPrefillTiming checks that the KV router predicts prompts with the workers' timing unless it has its own. Request 2
// comes when a prompt of 400 tokens has been computed for 50 ms on one worker, and one of 8 tokens for 5 ms on the other. By
// the workers' 100 ms, 200 and 8 tokens are left; by the router's 20 ms, none and 6.
func TestPrefillTiming(t *testing.T) {
	w := build(t, 4, []workload.Request{
		{Session: "a", Input: 400, Output: 1, Hashes: make([]uint64, 100)},
		{Session: "b", ArrivalMs: 45, Input: 8, Output: 1, Hashes: []uint64{1, 2}},
		{Session: "c", ArrivalMs: 50, Input: 100, Output: 1, Hashes: make([]uint64, 25)},
	})
	for own, joins := range map[float64]int{0: 1, 20: 0} {
		cfg := DefaultConfig()
		cfg.Deployment.Workers, cfg.Router.Policy = 2, router.PolicyKVRouter
		cfg.Router.RouterPrefillLoadModel, cfg.Router.RouterTrackActiveBlocks = router.PrefillLoadAIC, false
		cfg.Router.OverlapScoreCredit = 0
		cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = 4, 1000
		cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 100, 1
		if own > 0 {
			cfg.Router.PrefillTiming = cfg.Timing
			cfg.Router.PrefillTiming.PrefillMs = own
		}
		o := simulate(t, cfg, w, Options{})
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		if r := o.Records; r[0].Life.Worker == r[1].Life.Worker || r[2].Life.Worker != r[joins].Life.Worker {
			t.Errorf("with own timing of %v ms the requests are on workers %d, %d and %d, and the last should join request %d",
				own, r[0].Life.Worker, r[1].Life.Worker, r[2].Life.Worker, joins)
		}
	}
}
