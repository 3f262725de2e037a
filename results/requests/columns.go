package requests

import (
	"fmt"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Column is one figure of a request's record: a key of --report-jsonl and a column of a Parquet file. Where the
// reference has the figure the name is its.
type Column struct {
	// Name is the key, Unit its unit such as ms ("" for none), Doc what it means in a sentence, and Kind the type of its values.
	Name, Unit, Doc string
	Kind            gridspec.Kind
	// Value is false where the request does not have the figure.
	Value func(*simcore.RequestRecord) (gridspec.Value, bool)
}

// Columns are the figures of the records of a workload, in the order in which files have them.
func Columns(w *workload.Workload) []Column {
	out := identityColumns(w)
	out = append(out, lifeColumns()...)
	out = append(out, partColumns()...)
	out = append(out, handoffColumns()...)
	out = append(out, hintColumns(w)...)
	out = append(out, graphColumns(w)...)
	return append(out, scenarioColumns()...)
}

// IDColumn holds the content ID of the point that the requests are of.
func IDColumn(id string) Column {
	return textColumn("id", "Content ID of the point.", func(*simcore.RequestRecord) string { return id })
}

// identityColumns say which request it is and how it ended.
func identityColumns(w *workload.Workload) []Column {
	session := textColumn("session_id", "Name of the request's session; null where each request stands alone.",
		func(r *simcore.RequestRecord) string { return w.SessionName(r.Session) })
	turn := countColumn("turn_index", "", "Turn in the session, from 0; null where each request stands alone.",
		func(r *simcore.RequestRecord) int32 { return int32(r.Turn) })
	inSessions := func(*simcore.RequestRecord) bool { return !w.SingleTurn() || w.Graph != nil }
	return []Column{
		session.where(inSessions),
		turn.where(inSessions),
		countColumn("request", "", "Number of the request in the workload, from 0.", func(r *simcore.RequestRecord) int32 { return int32(r.Request) }),
		textColumn("uuid", "Name of the request in the trace, or one made from its number; of weka after that of the conversation, in the AgentX scenario before the number of the play.", func(r *simcore.RequestRecord) string { return nameOf(r, w) }),
		textColumn("terminal_status", "How it ended: completed, rejected (it could never fit), failed (no decode worker could ever hold it), cancelled (its client gave it up) or unfinished.",
			func(r *simcore.RequestRecord) string { return terminalStatus(r.Life.State) }),
	}
}

// lifeColumns hold lengths, times and latencies.
func lifeColumns() []Column {
	life := func(name, doc string, get func(*engine.Request) float64) Column {
		return timeColumn(name, doc, func(r *simcore.RequestRecord) float64 { return get(&r.Life) })
	}
	count := func(name, doc string, get func(*engine.Request) int32) Column {
		return countColumn(name, "tokens", doc, func(r *simcore.RequestRecord) int32 { return get(&r.Life) })
	}
	tokens := func(least int32) func(*simcore.RequestRecord) bool {
		return func(r *simcore.RequestRecord) bool { return r.Life.Tokens >= least }
	}
	return []Column{
		life("arrival_time_ms", "When it arrived.", func(r *engine.Request) float64 { return r.ArrivalMs }),
		life("routed_ms", "When the router sent it to a worker.", func(r *engine.Request) float64 { return r.RoutedMs }),
		life("first_admit_ms", "When a worker first admitted it.", func(r *engine.Request) float64 { return r.AdmittedMs }),
		life("first_token_ms", "When its first token came out.", func(r *engine.Request) float64 { return r.FirstTokenMs }),
		life("last_token_ms", "When its latest token came out.", func(r *engine.Request) float64 { return r.LastTokenMs }),
		life("ttft_ms", "Time from arrival to first token.", func(r *engine.Request) float64 { return max(0, r.FirstTokenMs-r.ArrivalMs) }).where(tokens(1)),
		life("ttst_ms", "Time from first to second token.", func(r *engine.Request) float64 { return r.SecondTokenMs - r.FirstTokenMs }).where(tokens(2)),
		life("e2e_latency_ms", "Time from arrival to latest token.", func(r *engine.Request) float64 { return max(0, r.LastTokenMs-r.ArrivalMs) }).where(tokens(1)),
		life("itl_ms", "Mean time between two tokens.", func(r *engine.Request) float64 { return (r.LastTokenMs - r.FirstTokenMs) / float64(r.Tokens-1) }).where(tokens(2)),
		count("input_length", "Prompt length.", func(r *engine.Request) int32 { return r.Input }),
		count("output_length", "Requested output.", func(r *engine.Request) int32 { return r.Output }),
		count("output_tokens", "Output produced.", func(r *engine.Request) int32 { return r.Tokens }),
		countColumn("reused_input_tokens", "tokens", "Prompt tokens found in the prefix cache at the best admission; of a prefill worker when disaggregated.", func(r *simcore.RequestRecord) int32 {
			if r.Handoff != nil {
				return r.Handoff.PrefillReused
			}
			return r.Life.Reused
		}),
		count("first_admission_reused_input_tokens", "The same at the first admission.", func(r *engine.Request) int32 { return r.ReusedFirst }),
		count("route_overlap_tokens", "Prompt tokens that the router knew to be in the worker's prefix cache; 0 for policies that do not look.", func(r *engine.Request) int32 { return r.RouteOverlap }),
		count("onboarded_tokens", "Tokens whose KV cache was loaded from memory tiers below the GPU's.", func(r *engine.Request) int32 { return r.LoadedTokens }),
		life("onboard_wait_ms", "How long it waited for that.", func(r *engine.Request) float64 { return r.LoadWaitMs }),
	}
}

// partColumns split the latency of a request into what it did meanwhile.
func partColumns() []Column {
	part := func(name, doc string, get func(*simcore.LatencyParts) float64) Column {
		return timeColumn(name, doc, func(r *simcore.RequestRecord) float64 { return get(&r.Parts) }).
			where(func(r *simcore.RequestRecord) bool { return r.Life.Tokens > 0 })
	}
	return []Column{
		part("queue_time_ms", "Part of e2e_latency_ms before the first admission to a pass, in the router and at the worker.", func(p *simcore.LatencyParts) float64 { return p.QueueMs }),
		part("prefill_time_ms", "Part from there to the first token, or to the end of the prompt on a prefill worker, less stalls.", func(p *simcore.LatencyParts) float64 { return p.PrefillMs }),
		part("transfer_time_ms", "Part from the end of the prompt on a prefill worker until a decode worker had its KV blocks, and of waiting for KV blocks from lower memory tiers.", func(p *simcore.LatencyParts) float64 { return p.TransferMs }),
		part("decode_time_ms", "Part from the first token to the latest one, or on a decode worker from the first admission, less stalls.", func(p *simcore.LatencyParts) float64 { return p.DecodeMs }),
		part("stall_time_ms", "Part from losing KV blocks to the next token, and from the arrival of the KV blocks at a decode worker to the first admission there. The five parts add up to e2e_latency_ms.", func(p *simcore.LatencyParts) float64 { return p.StallMs }),
	}
}

// handoffColumns hold how a request went from prefill to decode. They are null in an aggregated deployment, but for the
// worker.
func handoffColumns() []Column {
	when := func(name, doc string, get func(*simcore.Handoff) float64) Column {
		return timeColumn(name, doc, func(r *simcore.RequestRecord) float64 { return get(r.Handoff) })
	}
	columns := []Column{
		countColumn("prefill_worker_idx", "", "Prefill worker that computed the prompt, from 0.", func(r *simcore.RequestRecord) int32 { return r.Handoff.PrefillWorker }),
		timeColumn("prefill_admit_ms", "When a prefill worker admitted it.", func(r *simcore.RequestRecord) float64 { return r.Life.AdmittedMs }),
		when("source_held_ms", "When the prompt was computed.", func(h *simcore.Handoff) float64 { return h.SourceHeldMs }),
		when("destination_reserved_ms", "When a decode worker had room for it.", func(h *simcore.Handoff) float64 { return h.DestinationReservedMs }),
		when("destination_activated_ms", "When its KV cache had arrived there.", func(h *simcore.Handoff) float64 { return h.ActivatedMs }),
		when("decode_admit_ms", "When its decoding began.", func(h *simcore.Handoff) float64 { return h.DecodeAdmittedMs }),
		when("source_released_ms", "When the prefill worker gave up its KV blocks.", func(h *simcore.Handoff) float64 { return h.SourceReleasedMs }),
		countColumn("decode_reused_input_tokens", "tokens", "Prompt tokens that the decode worker had in its prefix cache when it computed the prompt again.", func(r *simcore.RequestRecord) int32 { return r.Handoff.DecodeReused }),
		countColumn("prefill_route_overlap_tokens", "tokens", "Prompt tokens that the router knew to be in the prefill worker's prefix cache.", func(r *simcore.RequestRecord) int32 { return r.Life.RouteOverlap }),
		countColumn("decode_route_overlap_tokens", "tokens", "The same of the decode worker.", func(r *simcore.RequestRecord) int32 { return r.Handoff.DecodeRouteOverlap }),
	}
	for i := range columns {
		columns[i] = columns[i].where(func(r *simcore.RequestRecord) bool { return r.Handoff != nil })
	}
	worker := countColumn("decode_worker_idx", "", "Worker that served it, from 0; the decode worker when disaggregated.", func(r *simcore.RequestRecord) int32 { return r.Life.Worker })
	return append([]Column{worker.where(func(r *simcore.RequestRecord) bool { return r.Life.Worker >= 0 })}, columns...)
}

// hintColumns hold what the request told the router.
func hintColumns(w *workload.Workload) []Column {
	return []Column{
		countColumn("priority", "", "Its priority in the router's queue.", func(r *simcore.RequestRecord) int32 { return w.Hints(r.Request).Priority }),
		{"strict_priority", "", "Its strict priority in the router's queue.", gridspec.KindInt, func(r *simcore.RequestRecord) (gridspec.Value, bool) {
			return gridspec.Value{Kind: gridspec.KindInt, Int: int64(w.Hints(r.Request).StrictPriority)}, true
		}},
		textColumn("policy_class", "The policy class that it names; null when it names none.", func(r *simcore.RequestRecord) string { return w.Hints(r.Request).PolicyClass }),
	}
}

// graphColumns say where a request stands in the graph of a captured agent. They are null where requests form none.
func graphColumns(w *workload.Workload) []Column {
	columns := []Column{
		textColumn("play", "Name of its play: the requests that wait for each other, directly or not.", func(r *simcore.RequestRecord) string {
			return w.Graph.PlayNames[w.Graph.Play[r.Request]]
		}),
		textColumn("parent_session_id", "Name of the session that spawned its session; null when none did.", func(r *simcore.RequestRecord) string {
			if parent := w.Graph.Parent[r.Session]; parent >= 0 {
				return w.SessionName(int(parent))
			}
			return ""
		}),
		textColumn("waited_for", "What it waited for, by relation: sequence, spawn, join and replay_barrier; null for the first of a play.", func(r *simcore.RequestRecord) string {
			return relationsOf(w.Graph.Edges(int32(r.Request)))
		}),
		textColumn("source_model", "Model that served it in the trace; null when the trace does not say.", func(r *simcore.RequestRecord) string {
			if model := w.Graph.Model[r.Request]; model >= 0 {
				return w.Graph.ModelNames[model]
			}
			return ""
		}),
	}
	for i := range columns {
		columns[i] = columns[i].where(func(*simcore.RequestRecord) bool { return w.Graph != nil })
	}
	return columns
}

// scenarioColumns say what a request was in the AgentX scenario. They are null without it.
func scenarioColumns() []Column {
	profiled := func(r *simcore.RequestRecord) bool { return r.Play >= 0 && !r.WarmUp }
	phase := textColumn("phase", "Phase of the AgentX scenario: warm_up, which only fills the cache, or profile, which is measured; null without the scenario.",
		func(r *simcore.RequestRecord) string {
			if r.WarmUp {
				return "warm_up"
			}
			return "profile"
		})
	number := countColumn("play_index", "", "Number of the play in the order in which users started them, from 0; null without the AgentX scenario and in its warm-up.",
		func(r *simcore.RequestRecord) int32 { return int32(r.Play) })
	return []Column{phase.where(func(r *simcore.RequestRecord) bool { return r.WarmUp || profiled(r) }), number.where(profiled)}
}

// relationsOf lists the relations of edges, each once.
func relationsOf(edges []workload.Edge) string {
	var names []string
	for _, e := range edges {
		if name := e.Relation.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// where restricts a column to requests that have it.
func (c Column) where(has func(*simcore.RequestRecord) bool) Column {
	value := c.Value
	c.Value = func(r *simcore.RequestRecord) (gridspec.Value, bool) {
		if !has(r) {
			return gridspec.Value{}, false
		}
		return value(r)
	}
	return c
}

func textColumn(name, doc string, get func(*simcore.RequestRecord) string) Column {
	return Column{name, "", doc, gridspec.KindString, func(r *simcore.RequestRecord) (gridspec.Value, bool) {
		s := get(r)
		return gridspec.Value{Kind: gridspec.KindString, Str: s}, s != ""
	}}
}

func countColumn(name, unit, doc string, get func(*simcore.RequestRecord) int32) Column {
	return Column{name, unit, doc, gridspec.KindInt, func(r *simcore.RequestRecord) (gridspec.Value, bool) {
		return gridspec.Value{Kind: gridspec.KindInt, Int: int64(get(r))}, true
	}}
}

// timeColumn holds a time or latency; what never happened is null.
func timeColumn(name, doc string, get func(*simcore.RequestRecord) float64) Column {
	return Column{name, "ms", doc, gridspec.KindFloat, func(r *simcore.RequestRecord) (gridspec.Value, bool) {
		ms := get(r)
		return gridspec.Value{Kind: gridspec.KindFloat, Float: ms}, ms != engine.Never
	}}
}

// nameOf is the name of a request, and in the AgentX scenario what tells its plays apart.
func nameOf(r *simcore.RequestRecord, w *workload.Workload) string {
	id := w.RequestName(r.Request)
	switch {
	case r.WarmUp:
		return id + "#warm-up"
	case r.Play >= 0:
		return fmt.Sprintf("%s#%d", id, r.Play)
	}
	return id
}

func terminalStatus(s engine.State) string {
	switch s {
	case engine.Completed:
		return "completed"
	case engine.Rejected:
		return "rejected"
	case engine.Failed:
		return "failed"
	case engine.Cancelled:
		return "cancelled"
	}
	return "unfinished"
}
