package simcore

import (
	"errors"
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/perfmodel/memory"
	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/rules"
)

// Resolve returns the configuration with what it leaves open filled in: the timing source with the canonical names of
// GPU, model and release, the block size, the context length, the size of the KV pool and of a token's KV cache. It returns all
// problems of the configuration, by key path. Resolving a resolved configuration changes nothing.
func (c Config) Resolve() (Config, problem.List) {
	c, l := c.resolveStages()
	if len(l) == 0 {
		l = c.validateTierBytes()
	}
	return c, l
}

func (c Config) resolveStages() (Config, problem.List) {
	l := c.validate()
	set, err := rules.For(c.Compat)
	if err != nil {
		return c, l
	}
	engineType := c.Engine.Type
	if c.Deployment.Mode == ModeDisaggregated {
		engineType = c.Prefill.Engine.Type
	}
	if c.Router.PredictsItself() {
		timing, problems := c.Router.PrefillTiming.Resolve(set, engineType)
		c.Router.PrefillTiming = timing.Config
		l = append(l, problems.Under("router.prefill_timing")...)
	}
	if c.Deployment.Mode != ModeDisaggregated {
		stage, problems := Stage{c.Engine, c.Timing}.resolve(set, c.Tiers.Enabled(), len(l) == 0)
		c.Engine, c.Timing = stage.Engine, stage.Timing
		return c, append(l, problems...)
	}
	valid := len(l) == 0
	for _, s := range []struct {
		path  string
		stage *Stage
	}{{"prefill", &c.Prefill}, {"decode", &c.Decode}} {
		stage, problems := s.stage.resolve(set, c.Tiers.Enabled(), valid)
		*s.stage = stage
		l = append(l, problems.Under(s.path)...)
	}
	return c, append(l, c.validatePools(set)...)
}

// resolve fills in what the stage leaves open; tiered says that KV blocks move to lower memory tiers. A stage that is not
// valid otherwise gets its timing only.
func (s Stage) resolve(set rules.Set, tiered, valid bool) (Stage, problem.List) {
	var l problem.List
	timing, problems := s.Timing.Resolve(set, s.Engine.Type)
	s.Timing = timing.Config
	l = append(l, problems.Under("timing")...)
	l = append(l, s.checkMemoryShares(timing.Memory != nil || len(problems) > 0).Under("engine")...)
	if s.Engine.BlockSize == 0 {
		s.Engine.BlockSize, problems = s.Engine.ResolvedBlockSize()
		l = append(l, problems.Under("engine")...)
	}
	valid = valid && len(l) == 0
	if s.Engine.NumGPUBlocks == 0 && valid {
		need := timing.Memory
		if set.NoMemoryEstimate {
			need = nil
		}
		l = append(l, s.sizePool(need)...)
		valid = len(l) == 0
	}
	if s.Engine.ContextLength == 0 && timing.ContextLength > 0 && !set.UnlimitedContext && valid {
		// An engine does not start with a context that its pool cannot hold once.
		s.Engine.ContextLength = min(timing.ContextLength, s.Engine.NumGPUBlocks*s.Engine.BlockSize)
	}
	if s.Engine.KVTransferTimingMode == "" {
		s.Engine.KVTransferTimingMode = engine.TransferDestinationMissing
		if set.TransfersFullPrompt {
			s.Engine.KVTransferTimingMode = engine.TransferFullPrompt
		}
	}
	if s.Engine.KVBytesPerToken == 0 && (tiered || s.Engine.KVTransferBandwidth > 0) && timing.Memory != nil && !set.NoTransferEstimate && valid {
		// Each GPU sends its part of the cache over a link of its own. Where some layers stop at a window, a token of a
		// prompt of usual length counts.
		const usual = 4096
		s.Engine.KVBytesPerToken = int(math.Round(timing.Memory.KV.Bytes(usual) / usual))
	}
	return s, l
}

// checkMemoryShares refuses a share of the memory that the backend does not know, or where the memory is not known: it
// would change nothing.
func (s Stage) checkMemoryShares(memoryKnown bool) problem.List {
	var l problem.List
	for _, share := range []struct {
		key, backend string
		value        float64
	}{
		{"gpu_memory_utilization", "vllm", s.Engine.GPUMemoryUtilization},
		{"mem_fraction_static", "sglang", s.Engine.MemFractionStatic},
		{"free_gpu_memory_fraction", "trtllm", s.Engine.FreeGPUMemoryFraction},
	} {
		if share.value > 0 && !memoryKnown {
			l.Add(share.key, share.value, "source %s does not know GPU and model, so it would change nothing; leave it out", s.Timing.Source)
		}
		if share.value > 0 && slices.Contains(perfmodel.Backends(), s.Timing.Backend) && s.Timing.Backend != share.backend {
			l.Add(share.key, share.value, "only backend %s takes it; this is backend %s", share.backend, s.Timing.Backend)
		}
	}
	return l
}

// sizePool gives every worker as many KV blocks as the memory of its GPUs has room for. The ranks of a worker share
// one scheduler, so their pools add up.
func (s *Stage) sizePool(need *memory.Requirements) problem.List {
	if need == nil {
		s.Engine.NumGPUBlocks = engine.DefaultNumGPUBlocks
		return nil
	}
	var l problem.List
	plan, err := need.Plan(s.MemorySettings())
	if err != nil {
		path, value := "timing.model", s.Timing.Model
		var full *memory.DoesNotFit
		if !errors.As(err, &full) {
			path, value = "engine", ""
		}
		l.Add(path, value, "%v", err)
		return l
	}
	blocks := plan.KVTokens / s.Engine.BlockSize * s.Timing.DP
	if blocks == 0 {
		l.Add("engine.block_size", s.Engine.BlockSize, "the memory that is left holds %d tokens, not one block", plan.KVTokens)
	}
	s.Engine.NumGPUBlocks = min(blocks, engine.MaxBlocks)
	return l
}

// MemorySettings is what the engine's configuration says about the memory of a GPU.
func (s Stage) MemorySettings() memory.Settings {
	return memory.Settings{
		GPUMemoryUtilization:  s.Engine.GPUMemoryUtilization,
		MemFractionStatic:     s.Engine.MemFractionStatic,
		FreeGPUMemoryFraction: s.Engine.FreeGPUMemoryFraction,
		MaxBatchedTokens:      s.Engine.MaxNumBatchedTokens,
	}
}
