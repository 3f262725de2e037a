package simcore

import (
	"context"
	"testing"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/workload"
)

// An SGLang prompt has its room on the decode worker before it is computed. When the prefill worker rejects it, the room
// is free again: as many prompts as you like can be too long.
func TestRejectedPromptsGiveUpTheirRoom(t *testing.T) {
	var requests []workload.Request
	for i := range 40 {
		r := workload.Request{ArrivalMs: float64(i) * 3000, Input: 1000, Output: 20}
		if i%2 == 1 {
			r.Input = 6000
		}
		requests = append(requests, r)
	}
	for _, policy := range []string{"round_robin", "kv_router"} {
		cfg := DefaultConfig()
		cfg.Router.Policy = policy
		cfg.Deployment.Mode, cfg.Deployment.PrefillWorkers, cfg.Deployment.DecodeWorkers = ModeDisaggregated, 1, 2
		cfg.Prefill.Engine.Type, cfg.Prefill.Engine.BlockSize, cfg.Prefill.Engine.NumGPUBlocks, cfg.Prefill.Engine.ContextLength = engine.TypeSGLang, 16, 600, 4000
		cfg.Decode.Engine = cfg.Prefill.Engine
		rejected := 0
		report, err := Run(context.Background(), cfg, build(t, 0, requests), Options{Records: func(r RequestRecord) {
			if r.Life.State == engine.Rejected {
				rejected++
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if report.CompletedRequests != 20 || rejected != 20 {
			t.Errorf("%s: %d completed and %d rejected, want 20 of each", policy, report.CompletedRequests, rejected)
		}
	}
}
