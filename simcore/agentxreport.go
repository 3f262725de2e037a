package simcore

import (
	"cmp"
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/workload"
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

// add adds a request with a number of the scenario's.
func (t *agentXTotals) add(number int32, q *engine.Request, completed, warmUp bool) {
	r := releasedRequest{number: number, atMs: q.ArrivalMs, endedMs: math.NaN(), completed: completed}
	if r.completed && q.Tokens > 0 {
		r.endedMs = q.LastTokenMs
	}
	if r.measured = r.completed && !warmUp; r.measured && q.Tokens > 0 {
		t.perToken.Add((q.LastTokenMs - q.ArrivalMs) / float64(q.Tokens))
	}
	t.released = append(t.released, r)
}

// Scenario is how the AgentX scenario of a schedule went: what its users played, and how much idle time was cut.
type Scenario struct {
	run      *agentXRun
	workload *workload.Workload // its requests
}

// Play numbers the play of a release, as [Release.Play] does.
func (s *Scenario) Play(number int32) int {
	return s.run.Instance(int(s.workload.Graph.Play[number]))
}

// report is what only the scenario reports, beside a report of its window. blockSize is that of the KV blocks that a cache without
// limit would have, in tokens. The error is that there are too many of them; everything else is reported all the same.
func (t *agentXTotals) report(of Scenario, r *Report, warmUps int64, blockSize int, gpus float64) (*metrics.AgentX, error) {
	a := &metrics.AgentX{
		WarmUpRequests: warmUps, StartMs: of.run.startMs, StartedPlays: int64(of.run.started), CompletedPlays: int64(of.run.completed),
		IdleCuts: int64(of.run.shifts), IdleCutMs: of.run.shiftedMs, NeverIssued: t.neverIssued(of),
		TotalThroughputTokSPerGPU: r.TotalThroughputTokS / gpus, InputThroughputTokSPerGPU: r.InputThroughputTokS / gpus,
		E2EPerToken: t.perToken.Summary(), PlayLatency: t.playLatency(of), TheoreticalHitRatio: math.NaN(),
	}
	hits, err := t.theoreticalHits(of.workload, blockSize)
	if err != nil {
		return a, err
	}
	a.TheoreticalHitRatio = 0
	if r.TotalInputTokens > 0 {
		a.TheoreticalHitRatio = float64(hits) / float64(r.TotalInputTokens)
	}
	return a, nil
}

// theoreticalHits counts the prompt tokens of measured requests that earlier ones had, in the order of release: full KV
// blocks whose whole prefix is known.
func (t *agentXTotals) theoreticalHits(w *workload.Workload, size int) (tokens int64, err error) {
	table, err := w.Blocks(size, true)
	if err != nil {
		return 0, err
	}
	slices.SortFunc(t.released, func(a, b releasedRequest) int {
		return cmp.Or(cmp.Compare(a.atMs, b.atMs), cmp.Compare(a.number, b.number))
	})
	seen := make([]bool, table.Shared)
	for _, q := range t.released {
		left, leading := int(w.Input[q.number])/size, true
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
func (t *agentXTotals) neverIssued(of Scenario) int64 {
	started := int64(0)
	for _, play := range of.workload.Graph.Play {
		if int(play) < of.run.WarmUps+of.run.started {
			started++
		}
	}
	return started - int64(len(t.released))
}

// playLatency summarises how long completed plays took.
func (t *agentXTotals) playLatency(of Scenario) metrics.Summary {
	plays := make([]struct {
		begin, end float64
		left       int
	}, of.run.WarmUps+of.run.started)
	for i := range plays {
		plays[i].begin = math.Inf(1)
	}
	for _, play := range of.workload.Graph.Play {
		if int(play) < len(plays) {
			plays[play].left++
		}
	}
	for _, q := range t.released {
		if p := of.workload.Graph.Play[q.number]; int(p) < len(plays) && q.completed {
			plays[p].left--
			plays[p].begin = min(plays[p].begin, q.atMs)
			if !math.IsNaN(q.endedMs) {
				plays[p].end = max(plays[p].end, q.endedMs)
			}
		}
	}
	var took metrics.Values
	for i := of.run.WarmUps; i < len(plays); i++ {
		if p := &plays[i]; p.left == 0 && p.end >= p.begin {
			took.Add(p.end - p.begin)
		}
	}
	return took.Summary()
}
