package simcore

import (
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// LatencyParts says where the time of a request went.
type LatencyParts = metrics.LatencyParts

// latencyParts splits the time of a request from its arrival to its latest token. Without a token there is none.
func (s *simulation) latencyParts(q *engine.Request) LatencyParts {
	switch {
	case q.Tokens == 0:
		return LatencyParts{}
	case s.handoffs != nil:
		return s.handoffs[q.Number].parts
	}
	p := LatencyParts{
		QueueMs:    q.AdmittedMs - q.ArrivalMs - q.AdmitLoadMs,
		PrefillMs:  q.FirstTokenMs - q.AdmittedMs - q.FirstStallMs,
		TransferMs: q.AdmitLoadMs + q.StallLoadMs,
		DecodeMs:   q.LastTokenMs - q.FirstTokenMs - (q.StallMs - q.FirstStallMs),
		StallMs:    q.StallMs - q.StallLoadMs,
	}
	return withoutRounding(p)
}

// latencyPartsOf is the same of a request that two workers served, the first of which had the job of computing its prompt.
func latencyPartsOf(q, job *engine.Request, h *Handoff) LatencyParts {
	if q.Tokens == 0 {
		return LatencyParts{}
	}
	p := LatencyParts{
		QueueMs:    job.AdmittedMs - job.ArrivalMs - job.AdmitLoadMs,
		PrefillMs:  h.SourceHeldMs - job.AdmittedMs - job.StallMs,
		TransferMs: h.ActivatedMs - h.SourceHeldMs + job.AdmitLoadMs + job.StallLoadMs + q.AdmitLoadMs + q.StallLoadMs,
		DecodeMs:   q.LastTokenMs - q.AdmittedMs - q.StallMs,
		StallMs:    q.AdmittedMs - h.ActivatedMs - q.AdmitLoadMs + job.StallMs - job.StallLoadMs + q.StallMs - q.StallLoadMs,
	}
	return withoutRounding(p)
}

// withoutRounding makes parts 0 that differences of times have made a little less.
func withoutRounding(p LatencyParts) LatencyParts {
	return LatencyParts{
		QueueMs: max(0, p.QueueMs), PrefillMs: max(0, p.PrefillMs), TransferMs: max(0, p.TransferMs),
		DecodeMs: max(0, p.DecodeMs), StallMs: max(0, p.StallMs),
	}
}

// reportBreakdown adds where the time of completed requests went, and what limited the workers.
func (s *simulation) reportBreakdown(r *Report) {
	r.LatencyParts = s.totals.parts.Mean()
	seconds := r.PrefillWorkerSeconds + r.DecodeWorkerSeconds
	share := func(l engine.Limit) float64 {
		if seconds <= 0 {
			return 0
		}
		return min(1, s.limited[l].Value()/1000/seconds)
	}
	r.Limited = metrics.Limited{
		Compute:    share(engine.LimitCompute),
		BatchSlots: share(engine.LimitBatchSlots),
		KVMemory:   share(engine.LimitKVMemory),
		Transfer:   share(engine.LimitTransfer),
		Router:     share(engine.LimitRouter),
	}
}
