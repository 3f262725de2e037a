package simcore

import (
	"cmp"
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// agentXTotals adds up what only the scenario reports.
type agentXTotals struct {
	released []releasedRequest
	perToken metrics.Values
}

// releasedRequest is a request of the scenario that was released; endedMs is NaN while it goes on.
type releasedRequest struct {
	number              int32
	atMs, endedMs       float64
	measured, completed bool
}

func (t *agentXTotals) add(s *simulation, q *engine.Request) {
	r := releasedRequest{number: q.Number, atMs: q.ArrivalMs, endedMs: math.NaN(), completed: s.completed(q)}
	if r.completed && q.Tokens > 0 {
		r.endedMs = q.LastTokenMs
	}
	if r.measured = r.completed && !s.warmsUp(q.Number); r.measured && q.Tokens > 0 {
		t.perToken.Add((q.LastTokenMs - q.ArrivalMs) / float64(q.Tokens))
	}
	t.released = append(t.released, r)
}

// reportAgentX adds what only the scenario reports.
func (s *simulation) reportAgentX(r *Report) error {
	t, run := &s.totals.agentX, s.scenario
	hits, err := s.theoreticalHits()
	if err != nil {
		return err
	}
	r.WorkloadDigest = run.base.Digest()
	gpus := r.MeanGPUs
	r.AgentX = &metrics.AgentX{
		WarmUpRequests: s.totals.warmUps, StartMs: run.startMs, StartedPlays: int64(run.started), CompletedPlays: int64(run.completed),
		IdleCuts: int64(run.shifts), IdleCutMs: run.shiftedMs, NeverIssued: s.neverIssued(),
		TotalThroughputTokSPerGPU: r.TotalThroughputTokS / gpus, InputThroughputTokSPerGPU: r.InputThroughputTokS / gpus,
		E2EPerToken: t.perToken.Summary(), PlayLatency: s.playLatency(),
	}
	if r.TotalInputTokens > 0 {
		r.AgentX.TheoreticalHitRatio = float64(hits) / float64(r.TotalInputTokens)
	}
	return nil
}

// theoreticalHits counts the prompt tokens of measured requests that earlier ones had, in the order of release: full KV
// blocks whose whole prefix is known.
func (s *simulation) theoreticalHits() (tokens int64, err error) {
	size := s.cfg.Stages()[0].Engine.BlockSize
	table, err := s.workload.Blocks(size, true)
	if err != nil {
		return 0, err
	}
	released := s.totals.agentX.released
	slices.SortFunc(released, func(a, b releasedRequest) int {
		return cmp.Or(cmp.Compare(a.atMs, b.atMs), cmp.Compare(a.number, b.number))
	})
	seen := make([]bool, table.Shared)
	for _, q := range released {
		left, leading := int(s.workload.Input[q.number])/size, true
		for _, run := range table.Segments(int(q.number)) {
			for k := uint32(0); k < run.Len && left > 0; k++ {
				if leading = leading && seen[run.Start+k]; leading && q.measured {
					tokens += int64(size)
				}
				seen[run.Start+k] = true
				left--
			}
		}
	}
	return tokens, nil
}

// neverIssued counts the requests of started plays that were not released.
func (s *simulation) neverIssued() int64 {
	started := int64(0)
	for _, play := range s.workload.Graph.Play {
		if int(play) < s.scenario.WarmUps+s.scenario.started {
			started++
		}
	}
	return started - int64(len(s.totals.agentX.released))
}

// playLatency summarises how long completed plays took.
func (s *simulation) playLatency() metrics.Summary {
	plays := make([]struct {
		begin, end float64
		left       int
	}, s.scenario.WarmUps+s.scenario.started)
	for i := range plays {
		plays[i].begin = math.Inf(1)
	}
	for _, play := range s.workload.Graph.Play {
		if int(play) < len(plays) {
			plays[play].left++
		}
	}
	for _, q := range s.totals.agentX.released {
		if p := s.workload.Graph.Play[q.number]; int(p) < len(plays) && q.completed {
			plays[p].left--
			plays[p].begin = min(plays[p].begin, q.atMs)
			if !math.IsNaN(q.endedMs) {
				plays[p].end = max(plays[p].end, q.endedMs)
			}
		}
	}
	var took metrics.Values
	for i := s.scenario.WarmUps; i < len(plays); i++ {
		if p := &plays[i]; p.left == 0 && p.end >= p.begin {
			took.Add(p.end - p.begin)
		}
	}
	return took.Summary()
}
