package simcore

import (
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/kvcache/tiers"
	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/rules"
)

// newTiers makes the memory tiers below the GPUs of so many workers, if there are any, and connects those of a pool.
func (s *simulation) newTiers(workers int, pool *engine.Environment) {
	if !s.cfg.Tiers.Enabled() {
		return
	}
	s.tiers = tiers.New(s.cfg.Tiers, tiers.Deployment{
		Workers:       workers,
		BlockTokens:   pool.Config.BlockSize,
		BytesPerToken: pool.Config.KVBytesPerToken,
		IDs:           pool.Blocks.IDs,
		Endless:       s.online != nil,
	})
	s.online.hold(pool.Blocks, s.tiers)
	s.connectTiers(pool)
	if s.scaling != nil {
		s.scaling.useTiers(s.tiers, workers)
	}
}

// connectTiers lets the workers of a pool use the tiers below them.
func (s *simulation) connectTiers(pool *engine.Environment) {
	pool.Tiers, pool.TierConfig = s.tiers, s.cfg.Tiers
}

// tieredPool is a pool of workers with lower memory tiers, and where its settings are.
type tieredPool struct {
	path   string
	engine engine.Config
}

// tieredPools lists the pools that use lower memory tiers.
func (c Config) tieredPools() []tieredPool {
	switch {
	case !c.Tiers.Enabled():
		return nil
	case c.Deployment.Mode != ModeDisaggregated:
		return []tieredPool{{"engine", c.Engine}}
	case c.Tiers.DecodeOffload:
		return []tieredPool{{"prefill.engine", c.Prefill.Engine}, {"decode.engine", c.Decode.Engine}}
	}
	return []tieredPool{{"prefill.engine", c.Prefill.Engine}}
}

// validateTiers returns the problems of memory tiers, by key path.
func (c Config) validateTiers(set rules.Set) problem.List {
	l := c.Tiers.Validate().Under("tiers")
	if c.Tiers.Enabled() && set.NoMemoryTiers {
		l.Add("tiers.num_g2_blocks", c.Tiers.NumG2Blocks, "the releases that compat stands for have no memory tiers; leave compat or the tiers out")
	}
	for _, p := range c.tieredPools() {
		if !p.engine.EnablePrefixCaching {
			l.Add(p.path+".enable_prefix_caching", p.engine.EnablePrefixCaching, "lower memory tiers keep what the prefix cache has no room for; switch it on, or leave tiers.num_g2_blocks out")
		}
	}
	return l
}

// validateTierBytes returns the problems of a resolved configuration with the size of the blocks that its tiers move.
func (c Config) validateTierBytes() problem.List {
	var l problem.List
	pools := c.tieredPools()
	for _, p := range pools {
		if p.engine.KVBytesPerToken == 0 && c.Tiers.NeedsBytes() {
			l.Add(p.path+".kv_bytes_per_token", "null", "the timing source does not know the model, and tiers with a bandwidth move bytes; give the size of a token's KV cache on one GPU")
		}
	}
	if len(pools) == 2 && pools[0].engine.KVBytesPerToken != pools[1].engine.KVBytesPerToken {
		l.Add(pools[1].path+".kv_bytes_per_token", pools[1].engine.KVBytesPerToken, "with tiers.decode_offload both pools have the same, and that of the prefill workers is %d", pools[0].engine.KVBytesPerToken)
	}
	return l
}
