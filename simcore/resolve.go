package simcore

import (
	"errors"
	"slices"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/perfmodel/memory"
	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/rules"
)

// Resolve returns the configuration with what it leaves open filled in: the timing source with the canonical names of
// GPU, model and release, the context length, and the size of the KV pool. It returns all problems of the configuration, by key path.
// Resolving a resolved configuration changes nothing.
func (c Config) Resolve() (Config, problem.List) {
	l := c.validate()
	set, err := rules.For(c.Compat)
	if err != nil {
		return c, l
	}
	timing, problems := c.Timing.Resolve(set, c.Engine.Type)
	c.Timing = timing.Config
	l = append(l, problems.Under("timing")...)
	l = append(l, c.checkMemoryShares(timing.Memory != nil || len(problems) > 0).Under("engine")...)
	if c.Engine.NumGPUBlocks == 0 && len(l) == 0 {
		need := timing.Memory
		if set.NoMemoryEstimate {
			need = nil
		}
		l = append(l, c.sizePool(need)...)
	}
	if c.Engine.ContextLength == 0 && timing.ContextLength > 0 && !set.UnlimitedContext && len(l) == 0 {
		// An engine does not start with a context that its pool cannot hold once.
		c.Engine.ContextLength = min(timing.ContextLength, c.Engine.NumGPUBlocks*c.Engine.BlockSize)
	}
	return c, l
}

// checkMemoryShares refuses a share of the memory that the backend does not know, or where the memory is not known: it
// would change nothing.
func (c Config) checkMemoryShares(memoryKnown bool) problem.List {
	var l problem.List
	for _, s := range []struct {
		key, backend string
		value        float64
	}{
		{"gpu_memory_utilization", "vllm", c.Engine.GPUMemoryUtilization},
		{"mem_fraction_static", "sglang", c.Engine.MemFractionStatic},
		{"free_gpu_memory_fraction", "trtllm", c.Engine.FreeGPUMemoryFraction},
	} {
		if s.value > 0 && !memoryKnown {
			l.Add(s.key, s.value, "source %s does not know GPU and model, so it would change nothing; leave it out", c.Timing.Source)
		}
		if s.value > 0 && slices.Contains(perfmodel.Backends(), c.Timing.Backend) && c.Timing.Backend != s.backend {
			l.Add(s.key, s.value, "only backend %s takes it; this is backend %s", s.backend, c.Timing.Backend)
		}
	}
	return l
}

// sizePool gives every worker as many KV blocks as the memory of its GPUs has room for. The ranks of a worker share
// one scheduler, so their pools add up.
func (c *Config) sizePool(need *memory.Requirements) problem.List {
	if need == nil {
		c.Engine.NumGPUBlocks = engine.DefaultNumGPUBlocks
		return nil
	}
	var l problem.List
	plan, err := need.Plan(c.MemorySettings())
	if err != nil {
		path, value := "timing.model", c.Timing.Model
		var full *memory.DoesNotFit
		if !errors.As(err, &full) {
			path, value = "engine", ""
		}
		l.Add(path, value, "%v", err)
		return l
	}
	blocks := plan.KVTokens / c.Engine.BlockSize * c.Timing.DP
	if blocks == 0 {
		l.Add("engine.block_size", c.Engine.BlockSize, "the memory that is left holds %d tokens, not one block", plan.KVTokens)
	}
	c.Engine.NumGPUBlocks = min(blocks, engine.MaxBlocks)
	return l
}

// MemorySettings is what the engine's configuration says about the memory of a GPU.
func (c Config) MemorySettings() memory.Settings {
	return memory.Settings{
		GPUMemoryUtilization:  c.Engine.GPUMemoryUtilization,
		MemFractionStatic:     c.Engine.MemFractionStatic,
		FreeGPUMemoryFraction: c.Engine.FreeGPUMemoryFraction,
		MaxBatchedTokens:      c.Engine.MaxNumBatchedTokens,
	}
}
