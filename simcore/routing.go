package simcore

import (
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/kvcache"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/workload"
)

// newRouter returns the configured router of a pool of workers. When it looks at what they hold, the pool's environment
// gets the index that they tell, so the router has to be made before them. sessions is the session of each request.
func (s *simulation) newRouter(pool *engine.Environment, workers int, stage router.Stage, sessions []int32) (router.Router, error) {
	blocks := pool.Blocks
	if pool.Config.SharesPrefixes(s.rules) {
		if s.cfg.Router.UsesIndex() && stage != router.Decode {
			pool.Index = kvcache.NewIndex(workers, blocks.Shared)
			s.online.hold(blocks, pool.Index)
		}
	} else {
		var err error
		if blocks, err = s.workload.Blocks(pool.Config.BlockSize, true); err != nil {
			return nil, err
		}
	}
	model := pool.Model
	if s.cfg.Router.PredictsItself() {
		var err error
		if model, err = perfmodel.New(s.cfg.Router.PrefillTiming); err != nil {
			return nil, err
		}
	}
	env := router.Environment{
		Workers: workers, Stage: stage,
		MaxNumBatchedTokens: pool.Config.MaxNumBatchedTokens,
		Workload:            s.workload, Blocks: blocks, Index: pool.Index, Sessions: sessions,
		PrefillMs: prefillPrediction(model),
	}
	if s.tiers != nil && stage != router.Decode {
		env.Tiers = s.tiers
	}
	if s.cfg.Router.UsesIndex() && stage != router.Decode {
		pool.Kept = new(engine.Backlog)
	}
	r := router.New(s.cfg.Router, env)
	if holder, ok := r.(workload.BlockHolder); ok {
		s.online.hold(blocks, holder)
	}
	return r, nil
}

// prefillPrediction predicts how long a prompt alone takes of which some tokens are cached, in ms.
func prefillPrediction(model perfmodel.Model) func(uncached, cached int) float64 {
	var pass perfmodel.Pass
	return func(uncached, cached int) float64 {
		all := cached + uncached
		pass.Prefill = perfmodel.Prefill{
			Requests: 1, Length: all, Prefix: cached, Tokens: uncached, Finishing: 1,
			Chunks: append(pass.Prefill.Chunks[:0], perfmodel.Chunk{Before: cached, Length: all}),
		}
		return model.Price(&pass).PrefillMs
	}
}
