package metrics

import (
	"cmp"

	"github.com/servegrid/servegrid/simcore/exact"
)

// LatencyParts splits the end-to-end latency of requests into what they did meanwhile, in ms. The parts add up to it.
type LatencyParts struct {
	// QueueMs is the time from arrival to the first admission to a pass, in the router and at the worker.
	QueueMs float64
	// PrefillMs is the time from there to the first token, or on a prefill worker to the end of the prompt.
	PrefillMs float64
	// TransferMs is the time from the end of the prompt on a prefill worker until a decode worker had its KV blocks, room for
	// them included, and the time of waiting for KV blocks from lower memory tiers.
	TransferMs float64
	// DecodeMs is the rest of the time from the first token to the last one, or from the first admission to a pass of the
	// decode worker.
	DecodeMs float64
	// StallMs is the time from losing the KV blocks to the next token, and that between the arrival of the KV blocks at a decode
	// worker and the first admission to a pass there.
	StallMs float64
}

// TotalMs is the end-to-end latency.
func (p LatencyParts) TotalMs() float64 {
	return p.QueueMs + p.PrefillMs + p.TransferMs + p.DecodeMs + p.StallMs
}

// LatencyPartsSum adds up the parts of many requests.
type LatencyPartsSum struct {
	requests                                int64
	queue, prefill, transfer, decode, stall exact.Sum
}

// Add adds the parts of a request.
func (s *LatencyPartsSum) Add(p LatencyParts) {
	s.requests++
	s.queue.Add(p.QueueMs)
	s.prefill.Add(p.PrefillMs)
	s.transfer.Add(p.TransferMs)
	s.decode.Add(p.DecodeMs)
	s.stall.Add(p.StallMs)
}

// Mean is the mean over the requests added, nil without any.
func (s *LatencyPartsSum) Mean() *LatencyParts {
	if s.requests == 0 {
		return nil
	}
	n := float64(s.requests)
	return &LatencyParts{
		QueueMs: s.queue.Value() / n, PrefillMs: s.prefill.Value() / n, TransferMs: s.transfer.Value() / n,
		DecodeMs: s.decode.Value() / n, StallMs: s.stall.Value() / n,
	}
}

// Limited says in what share of the workers' time requests waited and what kept the next one from being admitted. A moment of
// a worker counts for one limit at most.
type Limited struct {
	// Compute is the budget of tokens of a pass, BatchSlots the number of requests in a batch, KVMemory the room for KV blocks,
	// Transfer KV blocks on their way, Router a router that keeps requests.
	Compute, BatchSlots, KVMemory, Transfer, Router float64
}

// LimitedThreshold is the share of the workers' time that limits have to take together for one of them to count as the limiting
// resource.
const LimitedThreshold = .05

// LimitNone is the limiting resource where requests hardly wait for one, so that the load is all that limits.
const LimitNone = "none"

// LimitFields names the fields that say how long each limit held, by the name of the limiting resource.
func LimitFields() []struct{ Resource, Field string } {
	out := make([]struct{ Resource, Field string }, len(limitParts))
	for i, p := range limitParts {
		out[i].Resource, out[i].Field = p.name, "limited_by_"+p.name+"_share"
	}
	return out
}

// LimitingResource names the limit with the largest share, given in the order of [LimitFields]; the first of equals. It is
// [LimitNone] unless they sum to more than [LimitedThreshold].
func LimitingResource(shares []float64) string {
	sum, most := 0.0, 0
	for i, share := range shares {
		sum += share
		if share > shares[most] {
			most = i
		}
	}
	if !(sum > LimitedThreshold) {
		return LimitNone
	}
	return limitParts[most].name
}

var limitParts = []struct {
	name, doc string
	get       func(*Limited) float64
}{
	{"compute", "the budget of tokens of a pass", func(l *Limited) float64 { return l.Compute }},
	{"batch_slots", "the number of requests in a batch", func(l *Limited) float64 { return l.BatchSlots }},
	{"kv_memory", "the room for KV blocks", func(l *Limited) float64 { return l.KVMemory }},
	{"transfer", "KV blocks on their way from lower memory tiers, or from a prefill worker to a decode worker that had nothing else to do", func(l *Limited) float64 { return l.Transfer }},
	{"router", "the router, which kept it while the worker had admitted all that it had", func(l *Limited) float64 { return l.Router }},
}

var latencyParts = []struct {
	name, what string
	get        func(*LatencyParts) float64
}{
	{"queue", "before the first admission to a pass, in the router and at the worker", func(p *LatencyParts) float64 { return p.QueueMs }},
	{"prefill", "from there to the first token, or to the end of the prompt on a prefill worker, less stalls", func(p *LatencyParts) float64 { return p.PrefillMs }},
	{"transfer", "from the end of the prompt on a prefill worker until a decode worker had its KV blocks, and of waiting for KV blocks from lower memory tiers", func(p *LatencyParts) float64 { return p.TransferMs }},
	{"decode", "from the first token to the last one, or on a decode worker from the first admission, less stalls", func(p *LatencyParts) float64 { return p.DecodeMs }},
	{"stall", "from losing KV blocks to the next token, and from the arrival of the KV blocks at a decode worker to the first admission there", func(p *LatencyParts) float64 { return p.StallMs }},
}

// breakdownFields say where the time of requests goes, and what limits workers.
func breakdownFields() []Field {
	var fs []Field
	for _, p := range latencyParts {
		fs = append(fs, Field{Name: "mean_" + p.name + "_time_ms", Unit: "ms", Doc: "Mean time " + p.what + "; the five parts add up to `mean_e2e_latency_ms`.",
			Better: LowerIsBetter, Sampled: true, Optional: true,
			get: func(r *Report) (float64, bool) {
				return p.get(cmp.Or(r.LatencyParts, &LatencyParts{})), r.LatencyParts != nil
			}})
	}
	for _, p := range latencyParts {
		fs = append(fs, Field{Name: p.name + "_time_share", Unit: "ratio", Doc: "Share of the end-to-end latency of all completed requests " + p.what + "; the five shares add up to 1.",
			Sampled: true, Optional: true,
			get: func(r *Report) (float64, bool) {
				if r.LatencyParts == nil || r.LatencyParts.TotalMs() <= 0 {
					return 0, false
				}
				return p.get(r.LatencyParts) / r.LatencyParts.TotalMs(), true
			}})
	}
	for _, p := range limitParts {
		fs = append(fs, Field{Name: "limited_by_" + p.name + "_share", Unit: "ratio", Doc: "Share of the workers' time in which requests waited and what kept the next one from being admitted was " + p.doc + ".",
			Better: LowerIsBetter, get: func(r *Report) (float64, bool) { return p.get(&r.Limited), true }})
	}
	return fs
}
