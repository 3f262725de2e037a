package planner

import (
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
)

// dynamo is the policy of that name at work: it collects what a simulation tells, and lets the core decide at each tick.
type dynamo struct {
	core     *core
	schedule *schedule
	traffic  traffic
	record   *Record
	// passes are those of each pool since the last look at the engines.
	passes [][]pass
	gpus   *gpuClock
	// tokensPerStep is the number of tokens that a decode step gives a request.
	tokensPerStep float64
}

var (
	_ simcore.Autoscaler      = (*dynamo)(nil)
	_ simcore.PassObserver    = (*dynamo)(nil)
	_ simcore.RequestObserver = (*dynamo)(nil)
)

// newDynamo makes the policy for a resolved configuration.
func newDynamo(cfg simcore.Config, config Config, record *Record, gpus *gpuClock) (*dynamo, error) {
	r := rulesFor(cfg.Compat)
	setups, err := poolSetups(cfg, &config, r)
	if err != nil {
		return nil, err
	}
	c, err := newCore(config, r, setups)
	if err != nil {
		return nil, err
	}
	decodes := cfg.Stages()[len(setups)-1].Engine
	if decodes.NumSpeculativeTokens > 0 {
		c.config.SpeculativeNextN = decodes.NumSpeculativeTokens
	}
	tokensPerStep := decodes.TokensPerStep()
	if !r.AcceptanceFromTraffic {
		c.accept(tokensPerStep)
	}
	for _, s := range setups {
		record.KVCapacityTokens = append(record.KVCapacityTokens, s.limits.kvTokens)
	}
	return &dynamo{
		core: c, schedule: newSchedule(&config, r), record: record, passes: make([][]pass, len(setups)), gpus: gpus,
		tokensPerStep: tokensPerStep,
		traffic:       traffic{rules: r, prompts: newMovingAverage(config.MaxNumFPMSamples)},
	}, nil
}

// NextTickMs implements [simcore.Autoscaler].
func (d *dynamo) NextTickMs() float64 { return d.schedule.at * 1000 }

// Pass implements [simcore.PassObserver].
func (d *dynamo) Pass(p *simcore.PassMetrics) {
	d.passes[p.Pool] = append(d.passes[p.Pool], pass{
		worker:   p.Worker,
		prefills: int64(p.PrefillRequests), prefillTokens: p.PrefillTokens,
		decodes: int64(p.DecodeRequests), decodeTokens: p.DecodeKVTokens,
		queuedPrefills: int64(p.QueuedPrefills), queuedPrefillTokens: p.QueuedPrefillTokens,
		queuedDecodes: int64(p.QueuedDecodes), queuedDecodeTokens: p.QueuedDecodeKVTokens,
		wallSeconds: p.WallSeconds,
	})
}

// Arrived implements [simcore.RequestObserver].
func (d *dynamo) Arrived(_ float64, r *engine.Request) { d.traffic.arrive(r) }

// Completed implements [simcore.RequestObserver].
func (d *dynamo) Completed(_ float64, r *engine.Request) { d.traffic.complete(r) }

// Routed implements [simcore.RequestObserver].
func (d *dynamo) Routed(_ float64, overlapBlocks, promptBlocks int) {
	d.traffic.route(overlapBlocks, promptBlocks)
}

// Tick implements [simcore.Autoscaler].
func (d *dynamo) Tick(nowMs float64, pools []simcore.PoolState) []int {
	load, throughput := d.schedule.due()
	in := tickInput{
		atMs: d.schedule.at * 1000, nowMs: nowMs, load: load, throughput: throughput,
		promptTokens: d.traffic.prompts.mean(),
	}
	for i := range pools {
		in.pools = append(in.pools, poolInput{ready: pools[i].Ready, starting: pools[i].Starting, passes: d.passes[i]})
	}
	if throughput || load && d.schedule.throughput == 0 {
		in.acceptLength = d.tokensPerStep
		in.traffic = d.traffic.drain(nowMs / 1000)
	}
	t, targets := d.core.tick(&in)
	d.note(&t, pools, targets)
	if load || d.core.rules.PassesLostAtTraffic {
		for i := range d.passes {
			d.passes[i] = d.passes[i][:0]
		}
	}
	d.schedule.advance(nowMs / 1000)
	return targets
}

// note records a tick and what it changes.
func (d *dynamo) note(t *Tick, pools []simcore.PoolState, targets []int) {
	d.record.TickCount++
	for i, p := range d.core.pools {
		from := p.current(d.core.rules)
		t.Pools[i].Draining = pools[i].Draining
		for j := range p.seen {
			w := &p.seen[j]
			t.Pools[i].Workers = append(t.Pools[i].Workers, WorkerTick{
				Worker: w.worker, QueuedPrefillTokens: w.queuedPrefillTokens,
				QueuedDecodeKVTokens: w.queuedDecodeTokens, DecodeKVTokens: w.decodeTokens,
			})
		}
		if targets != nil && targets[i] != from {
			d.record.Decisions = append(d.record.Decisions, Decision{
				AtMs: t.NowMs, Pool: i, From: from, To: targets[i], Reason: d.core.why,
			})
		}
	}
	t.GPUHours = d.gpus.hours(t.NowMs)
	if t.LoadScaling || t.ThroughputScaling || targets != nil {
		d.record.Ticks = append(d.record.Ticks, *t)
	}
}
