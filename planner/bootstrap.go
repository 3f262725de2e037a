package planner

import (
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// poolSetups says what the planner must know of the pools of a resolved configuration: their limits, and, for the target
// sla, how long passes take by the timing model, if that knows the GPU (planner specification §1.2 and §6).
func poolSetups(cfg simcore.Config, config *Config, r ruleSet) ([]poolSetup, error) {
	stages := cfg.Stages()
	var setups []poolSetup
	for i, stage := range stages {
		kind := aggregatedPool
		if len(stages) == 2 {
			kind = []poolKind{prefillPool, decodePool}[i]
		}
		s := poolSetup{
			kind: kind, gpus: config.gpusPerWorker(i, cfg), workers: stage.Workers, limits: limitsOf(stage.Stage),
		}
		if config.OptimizationTarget == "sla" && (!r.KnowsTablesOnly || stage.Timing.Source == perfmodel.SourceTable) {
			model, err := perfmodel.New(stage.Timing)
			if err != nil {
				return nil, err
			}
			s.known = s.benchmark(model, config.BenchmarkGranularity, r)
		}
		setups = append(setups, s)
	}
	return setups, nil
}

// limitsOf returns the limits of an engine; what is not limited is so by its KV cache.
func limitsOf(s simcore.Stage) limits {
	e := s.Engine
	l := limits{kvTokens: int64(e.NumGPUBlocks) * int64(e.BlockSize)}
	l.batchedTokens, l.sequences = int64(e.MaxNumBatchedTokens), int64(e.MaxNumSeqs)
	if l.batchedTokens == 0 {
		l.batchedTokens = l.kvTokens
	}
	if l.sequences == 0 {
		l.sequences = l.kvTokens
	}
	return l
}

// gpusPerWorker is the number of GPUs of a worker of a pool, as configured or by its parallelism.
func (c *Config) gpusPerWorker(pool int, cfg simcore.Config) int {
	stages := cfg.Stages()
	configured := c.DecodeEngineNumGPU
	if len(stages) == 2 && pool == 0 {
		configured = c.PrefillEngineNumGPU
	}
	if configured > 0 {
		return configured
	}
	return max(1, stages[pool].GPUsPerWorker())
}

// benchmark prices passes of different sizes, in steps of the given granularity.
func (s *poolSetup) benchmark(model perfmodel.Model, granularity int, r ruleSet) (passes []pass) {
	if s.kind != decodePool {
		passes = s.benchmarkPrefill(model, granularity)
	}
	if s.kind != prefillPool {
		passes = append(passes, s.benchmarkDecode(model, granularity)...)
	}
	if s.kind == aggregatedPool && !r.OneRegression && !r.KnowsTablesOnly {
		passes = append(passes, s.benchmarkMixed(model)...)
	}
	return passes
}

// price adds a pass if the model says how long it takes.
func (s *poolSetup) price(model perfmodel.Model, passes []pass, prompt, batch, context int) []pass {
	p := perfmodel.Pass{}
	known := pass{}
	if prompt > 0 {
		p.Prefill = perfmodel.Prefill{
			Requests: 1, Length: prompt, Tokens: prompt, Finishing: 1, Chunks: []perfmodel.Chunk{{Length: prompt}},
		}
		known.prefills, known.prefillTokens = 1, int64(prompt)
	}
	if batch > 0 {
		p.Decode = perfmodel.Decode{
			Requests: batch, Context: context + 1, HeldTokens: batch * context, PoolTokens: int(s.limits.kvTokens),
		}
		known.decodes, known.decodeTokens = int64(batch), int64(batch*context)
	}
	price := model.Price(&p)
	if known.wallSeconds = (price.PrefillMs + price.DecodeMs) / 1000; known.wallSeconds <= 0 {
		return passes
	}
	return append(passes, known)
}

// benchmarkPrefill prices single prompts of lengths from 100 tokens to a full pass.
func (s *poolSetup) benchmarkPrefill(model perfmodel.Model, granularity int) (passes []pass) {
	most := int(s.limits.batchedTokens)
	for length := 100; length <= most; length += max(1, (most-100)/max(1, granularity)) {
		passes = s.price(model, passes, length, 0, 0)
	}
	return passes
}

// benchmarkContexts are the lengths of the requests in batches that are priced.
var benchmarkContexts = []int{500, 2000, 4000, 8000}

// benchmarkDecode prices batches of requests of different lengths, as far as they fit.
func (s *poolSetup) benchmarkDecode(model perfmodel.Model, granularity int) (passes []pass) {
	most := int(s.limits.sequences)
	for _, context := range benchmarkContexts {
		for batch := 1; batch <= most && batch*context <= int(s.limits.kvTokens); batch += max(1, most/max(1, granularity)) {
			passes = s.price(model, passes, 0, batch, context)
		}
	}
	return passes
}

// benchmarkMixed prices batches that decode while a prompt is computed.
func (s *poolSetup) benchmarkMixed(model perfmodel.Model) (passes []pass) {
	most, batch := int(s.limits.batchedTokens), max(1, int(s.limits.sequences)/8)
	for _, prompt := range []int{most / 8, most / 2, most} {
		for _, context := range benchmarkContexts {
			if prompt > 0 && batch*context <= int(s.limits.kvTokens) {
				passes = s.price(model, passes, prompt, batch, context)
			}
		}
	}
	return passes
}
