package aiperf

import (
	"iter"
	"time"

	"github.com/servegrid/servegrid/live"
)

// cancelled is the status that AIPerf gives to requests that it ended itself.
const cancelled = 499

// FromRun describes the requests of a live run as AIPerf does, one after another: each is valid until the next one.
func FromRun(run *live.Run) iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		sessions := map[string]int{}
		metrics := map[string]Metric{}
		for i := range run.Records {
			r := &run.Records[i]
			session := r.Call.Session
			if session == "" {
				session = r.Call.ID
			}
			if _, known := sessions[session]; !known {
				sessions[session] = len(sessions)
			}
			clear(metrics)
			out := recordOf(run.Started, r, session, metrics)
			out.Metadata.SessionNum = sessions[session]
			if !yield(&out) {
				return
			}
		}
	}
}

// recordOf describes a request, its figures in an empty map.
func recordOf(started time.Time, r *live.Record, session string, metrics map[string]Metric) Record {
	at := func(ms float64) int64 {
		if ms < 0 {
			return 0
		}
		return started.UnixNano() + int64(ms*1e6)
	}
	out := Record{
		Metadata: Metadata{
			RequestID: r.Call.ID, CorrelationID: session, ConversationID: session, TurnIndex: r.Call.Turn,
			CreditIssuedNs: at(r.ScheduledMs), RequestStartNs: at(r.SentMs), RequestAckNs: at(r.FirstTokenMs), RequestEndNs: max(at(r.EndMs), at(r.SentMs)),
			WorkerID: "servegrid", BenchmarkPhase: PhaseProfiling, WasCancelled: r.Cancelled, ParentCorrelation: r.Call.ParentSession, RootCorrelation: session,
		},
		Metrics: metrics,
	}
	if r.Phase == live.PhaseWarmUp {
		out.Metadata.BenchmarkPhase = PhaseWarmUp
	}
	if r.Call.ParentSession != "" {
		out.Metadata.AgentDepth, out.Metadata.RootCorrelation = 1, r.Call.ParentSession
	}
	switch {
	case r.Cancelled:
		out.Error = &ErrorDetails{Code: cancelled, Type: "RequestCancellationError", Message: "the run ended the request"}
	case r.Err != nil:
		out.Error = &ErrorDetails{Code: r.Err.Status, Type: string(r.Err.Kind), Message: r.Err.Message}
	default:
		out.addMetrics(r)
	}
	return out
}

// addMetrics adds the figures of a completed request.
func (out *Record) addMetrics(r *live.Record) {
	set := func(tag string, v float64) {
		for _, f := range perRequest {
			if f.tag == tag {
				out.Metrics[tag] = Metric{Value: Scalar(v), Unit: f.unit}
			}
		}
	}
	input, output := float64(r.Call.Input), float64(r.OutputTokens)
	if r.InputTokens >= 0 {
		input = float64(r.InputTokens)
		set(usagePrompt, input)
		set(usageCompletion, output)
		set(usageTotal, input+output)
	}
	if r.CachedTokens >= 0 {
		set(usageCached, float64(r.CachedTokens))
	}
	set(inputLength, input)
	set(outputLength, output)
	set(outputCount, output)
	if r.Call.Output > 0 {
		set(lengthMismatchPct, 100*(output-float64(r.Call.Output))/float64(r.Call.Output))
	}
	end := r.EndMs
	if r.LastTokenMs >= 0 {
		end = r.LastTokenMs
	}
	latency := end - r.SentMs
	set(requestLatency, latency)
	if latency > 0 {
		set(outputEndToEnd, output/latency*1000)
	}
	if r.FirstTokenMs < 0 {
		return
	}
	ttft := r.FirstTokenMs - r.SentMs
	set(timeToFirstToken, ttft)
	set(timeToFirstOutput, ttft)
	set(decodeDuration, latency-ttft)
	if ttft > 0 {
		set(prefillPerUser, input/ttft*1000)
	}
	if r.SecondTokenMs >= 0 {
		set(timeToSecondToken, r.SecondTokenMs-r.FirstTokenMs)
	}
	if output > 1 {
		gap := (latency - ttft) / (output - 1)
		set(interTokenLatency, gap)
		if gap > 0 {
			set(outputPerUser, 1000/gap)
		}
	}
}
