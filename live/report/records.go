package report

import (
	"slices"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/workload"
)

// measuredOf describes live requests as those of a simulation are: each arrives when it was sent.
func measuredOf(w *workload.Workload, run *live.Run) []simcore.MeasuredRequest {
	out := make([]simcore.MeasuredRequest, len(run.Records))
	for i := range run.Records {
		out[i] = measuredRequest(w, &run.Records[i])
		out[i].Play = run.Play(&run.Records[i])
	}
	return out
}

func measuredRequest(w *workload.Workload, r *live.Record) simcore.MeasuredRequest {
	call := r.Call
	life := engine.Request{
		Number: int32(call.Request), Input: int32(call.Input), Output: int32(call.Output), Tokens: int32(r.OutputTokens), Worker: -1, State: stateOf(r),
		ArrivalMs: r.SentMs, RoutedMs: engine.Never, AdmittedMs: engine.Never, FirstTokenMs: r.FirstTokenMs, SecondTokenMs: r.SecondTokenMs, LastTokenMs: r.LastTokenMs,
	}
	if life.Tokens > 0 && life.FirstTokenMs < 0 { // the answer came as a whole
		life.FirstTokenMs, life.LastTokenMs = r.EndMs, r.EndMs
	}
	if life.Tokens > 1 && life.SecondTokenMs < 0 { // all tokens came in one chunk
		life.SecondTokenMs = life.FirstTokenMs
	}
	if r.CachedTokens > 0 { // the chat template makes prompts a little longer than the workload's
		life.Reused = int32(min(r.CachedTokens, call.Input))
	}
	return simcore.MeasuredRequest{
		RequestRecord: simcore.RequestRecord{Request: call.Request, Session: w.SessionOf(call.Request), Turn: call.Turn, Play: -1, WarmUp: r.Phase == live.PhaseWarmUp, Life: life},
		Number:        call.Number, Cancelled: r.Cancelled, LagMs: max(0, r.SentMs-r.ScheduledMs),
	}
}

func stateOf(r *live.Record) engine.State {
	switch {
	case r.Cancelled, r.EndMs < 0:
		return engine.Pending
	case r.Err == nil:
		return engine.Completed
	case r.Err.Kind == live.ErrRejected:
		return engine.Rejected
	}
	return engine.Failed
}

// knowsReuse reports whether the target said of some request how much of its prompt was in the prefix cache.
func knowsReuse(records []live.Record) bool {
	return slices.ContainsFunc(records, func(r live.Record) bool { return r.CachedTokens >= 0 && r.Err == nil })
}

// preemptions is how many preemptions all endpoints counted during the run; false where none says so.
func preemptions(samples []live.Sample) (count int64, known bool) {
	first := map[string]float64{}
	last := map[string]float64{}
	for _, s := range samples {
		if !(s.Preemptions >= 0) {
			continue
		}
		if _, seen := first[s.Endpoint]; !seen {
			first[s.Endpoint] = s.Preemptions
		}
		last[s.Endpoint] = s.Preemptions
	}
	for endpoint, n := range last {
		count += max(0, int64(n-first[endpoint])) // a server that started again counts from 0
	}
	return count, len(last) > 0
}
