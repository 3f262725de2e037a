package simcore

import (
	"cmp"
	"slices"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// RequestRecord is the life of one request. Times are simulated ms, or [engine.Never] where the request did not
// get there.
type RequestRecord struct {
	// Request and Session number the request and its session in the workload; Turn counts from 0.
	Request, Session, Turn int
	// Life holds lengths, times and counts.
	Life engine.Request
}

// completed reports whether a request counts as completed under the rule set.
func (s *simulation) completed(r *engine.Request) bool {
	return r.State == engine.Completed || s.rules.CompletedNeedsToken && r.AdmittedMs >= 0 && r.Tokens > 0
}

// report sums the simulation up.
func (s *simulation) report() *Report {
	r := &Report{
		NumRequests:                  s.arrived,
		Preemptions:                  s.preemptions,
		DecodeGPUsPerWorker:          int64(s.cfg.GPUsPerWorker()),
		SimulatorVersion:             SemanticVersion,
		WorkloadDigest:               s.workload.Digest(),
		ITL:                          s.gaps.ITL(),
		OutputTokenThroughputPerUser: s.gaps.ThroughputPerUser(),
	}
	s.sumRequests(r)
	seconds := max(r.DurationMs/1000, 1e-9)
	r.RequestThroughputRPS = float64(r.CompletedRequests) / seconds
	r.InputThroughputTokS = float64(r.TotalInputTokens) / seconds
	r.OutputThroughputTokS = float64(r.TotalOutputTokens) / seconds
	r.TotalThroughputTokS = float64(r.TotalInputTokens+r.TotalOutputTokens) / seconds
	r.OutputThroughputTokSPerGPU = r.OutputThroughputTokS / float64(s.cfg.GPUs())
	r.DecodeWorkerSeconds = float64(s.cfg.Deployment.Workers) * s.endMs / 1000
	if s.rules.SingleWorkerLoop && s.cfg.Deployment.Workers == 1 {
		r.DecodeWorkerSeconds = seconds
	}
	r.GPUHours = r.DecodeWorkerSeconds * float64(r.DecodeGPUsPerWorker) / 3600
	if g := r.Goodput; g != nil {
		g.RequestThroughputRPS = float64(g.CompletedRequests) / seconds
		g.OutputThroughputTokS /= seconds
		if r.NumRequests > 0 {
			g.SLAAttainment = float64(g.CompletedRequests) / float64(r.NumRequests)
		}
	}
	return r
}

// sumRequests adds up counts, tokens and the latencies of each request.
func (s *simulation) sumRequests(r *Report) {
	var ttft, ttst, tpot, e2e metrics.Values
	for _, v := range []*metrics.Values{&ttft, &ttst, &tpot, &e2e} {
		v.Grow(len(s.env.Requests))
	}
	if s.cfg.SLA.Set() {
		r.Goodput = &metrics.Goodput{}
	}
	var reused, reusedFirst int64
	for i := range s.env.Requests {
		q := &s.env.Requests[i]
		if q.State == engine.Rejected {
			r.RejectedRequests++
		} else if q.State != engine.Pending && q.State != engine.Completed {
			r.UnfinishedRequests++
		}
		if q.Truncated && q.State != engine.Pending {
			r.TruncatedRequests++
		}
		if !s.completed(q) {
			continue
		}
		r.CompletedRequests++
		r.TotalInputTokens += int64(q.Input)
		r.TotalOutputTokens += int64(q.Output)
		reused += int64(q.Reused)
		reusedFirst += int64(q.ReusedFirst)
		if q.Tokens == 0 {
			continue
		}
		r.DurationMs = max(r.DurationMs, q.LastTokenMs)
		ttft.Add(q.FirstTokenMs - q.ArrivalMs)
		e2e.Add(q.LastTokenMs - q.ArrivalMs)
		if q.Tokens > 1 {
			ttst.Add(q.SecondTokenMs - q.FirstTokenMs)
			tpot.Add((q.LastTokenMs - q.FirstTokenMs) / float64(q.Tokens-1))
		}
		if r.Goodput != nil && s.good(q) {
			r.Goodput.CompletedRequests++
			r.Goodput.OutputThroughputTokS += float64(q.Output)
		}
	}
	r.TTFT, r.TTST, r.TPOT, r.E2ELatency = ttft.Summary(), ttst.Summary(), tpot.Summary(), e2e.Summary()
	if r.TotalInputTokens > 0 {
		r.PrefixCacheReusedRatio = float64(reused) / float64(r.TotalInputTokens)
		r.FirstAdmissionReusedRatio = float64(reusedFirst) / float64(r.TotalInputTokens)
	}
}

// good reports whether a request kept every bound of the SLA.
func (s *simulation) good(q *engine.Request) bool {
	sla := s.cfg.SLA
	ttft := max(0, q.FirstTokenMs-q.ArrivalMs)
	e2e := max(0, q.LastTokenMs-q.ArrivalMs)
	switch {
	case sla.TTFTMs > 0 && ttft > sla.TTFTMs,
		sla.E2EMs > 0 && e2e > sla.E2EMs,
		sla.ITLMs > 0 && q.Output > 1 && (e2e-ttft)/float64(q.Output-1) > sla.ITLMs:
		return false
	}
	return true
}

// emitRecords hands out the records of all requests that arrived, in order of arrival.
func (s *simulation) emitRecords(emit func(RequestRecord)) {
	w := s.workload
	records := make([]RequestRecord, 0, s.arrived)
	for session := range w.Sessions() {
		first := w.SessionStart[session]
		for i := first; i < w.SessionStart[session+1]; i++ {
			if r := s.env.Requests[i]; r.State != engine.Pending {
				records = append(records, RequestRecord{Request: int(i), Session: session, Turn: int(i - first), Life: r})
			}
		}
	}
	slices.SortStableFunc(records, func(a, b RequestRecord) int { return cmp.Compare(a.Life.ArrivalMs, b.Life.ArrivalMs) })
	for _, r := range records {
		emit(r)
	}
}
