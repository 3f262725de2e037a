package report

import (
	"slices"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/requests"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// onlySimulated are the columns of a simulated request that nobody can know of a live one.
var onlySimulated = []string{
	"routed_ms", "first_admit_ms", "first_admission_reused_input_tokens", "route_overlap_tokens", "onboarded_tokens", "onboard_wait_ms",
	"queue_time_ms", "prefill_time_ms", "transfer_time_ms", "decode_time_ms", "stall_time_ms",
}

// requestTable lays live requests out with the columns of simulated ones, and those that only live ones have.
func requestTable(id string, w *workload.Workload, records []live.Record, measured []simcore.MeasuredRequest, versions map[string]string) *results.Table {
	lives := make([]simcore.RequestRecord, len(measured))
	for i := range measured {
		lives[i] = measured[i].RequestRecord
	}
	t := requests.Table(id, lives, w, versions)
	for _, name := range onlySimulated {
		old := t.Column(name)
		blank := results.NewColumn(name, old.Kind, len(records))
		blank.Unit, blank.Doc, blank.Role = old.Unit, old.Doc, old.Role
		t.Add(blank)
	}
	reused, status := t.Column("reused_input_tokens"), t.Column("terminal_status")
	phase := t.Column("phase")
	for i := range records {
		r := &records[i]
		if r.CachedTokens < 0 {
			reused.Null[i], reused.Ints[i] = true, 0
		}
		if r.Cancelled {
			status.Set(i, text("cancelled"))
		}
		if r.Phase != "" {
			phase.Set(i, text(r.Phase))
		}
	}
	for _, c := range liveColumns {
		t.Add(c.build(records))
	}
	return t
}

// liveColumn is a figure that only live requests have.
type liveColumn struct {
	name, unit, doc string
	kind            gridspec.Kind
	value           func(*live.Record) (v gridspec.Value, ok bool)
}

var liveColumns = []liveColumn{
	{"source", "", "Where the figures come from: live.", gridspec.KindString, func(*live.Record) (gridspec.Value, bool) { return text(string(results.SourceLive)), true }},
	{"request_id", "", "ID that the request had as X-Request-ID, unique in the run.", gridspec.KindString, func(r *live.Record) (gridspec.Value, bool) { return text(r.Call.ID), r.Call.ID != "" }},
	{"scheduled_ms", "ms", "When it was to be sent; arrival_time_ms is when it was.", gridspec.KindFloat, func(r *live.Record) (gridspec.Value, bool) { return ms(r.ScheduledMs), true }},
	{"schedule_lag_ms", "ms", "How long after that it was sent.", gridspec.KindFloat, func(r *live.Record) (gridspec.Value, bool) { return ms(max(0, r.SentMs-r.ScheduledMs)), true }},
	{"end_ms", "ms", "When the answer was complete or had failed.", gridspec.KindFloat, func(r *live.Record) (gridspec.Value, bool) { return ms(r.EndMs), r.EndMs >= 0 }},
	{"prompt_tokens", "tokens", "Length of the prompt as the endpoint counts it; null when it does not say.", gridspec.KindInt, func(r *live.Record) (gridspec.Value, bool) { return count(r.InputTokens), r.InputTokens >= 0 }},
	{"chunks", "", "Chunks of the answer with text or reasoning.", gridspec.KindInt, func(r *live.Record) (gridspec.Value, bool) { return count(r.Chunks), true }},
	{"error_kind", "", "What went wrong, such as timeout or dropped; null when nothing did.", gridspec.KindString, func(r *live.Record) (gridspec.Value, bool) {
		if r.Err == nil {
			return gridspec.Value{}, false
		}
		return text(string(r.Err.Kind)), true
	}},
	{"error_status", "", "HTTP status of an answer that was none; null without.", gridspec.KindInt, func(r *live.Record) (gridspec.Value, bool) {
		if r.Err == nil || r.Err.Status == 0 {
			return gridspec.Value{}, false
		}
		return count(r.Err.Status), true
	}},
	{"error", "", "Message of what went wrong; null when nothing did.", gridspec.KindString, func(r *live.Record) (gridspec.Value, bool) {
		if r.Err == nil {
			return gridspec.Value{}, false
		}
		return text(r.Err.Message), true
	}},
}

// Columns describes the columns that the requests of a live run have beside those of simulated ones: name, unit, meaning.
func Columns() []results.Column {
	out := make([]results.Column, len(liveColumns))
	for i, c := range liveColumns {
		out[i] = *c.build(nil)
	}
	return out
}

// Unknown reports whether a column of simulated requests is always null in those of a live run.
func Unknown(name string) bool { return slices.Contains(onlySimulated, name) }

func (c liveColumn) build(records []live.Record) *results.Column {
	column := results.NewColumn(c.name, c.kind, len(records))
	column.Unit, column.Doc, column.Role = c.unit, c.doc, results.RolePoint
	for i := range records {
		if v, ok := c.value(&records[i]); ok {
			column.Set(i, v)
		}
	}
	return column
}

func text(s string) gridspec.Value { return gridspec.Value{Kind: gridspec.KindString, Str: s} }

func count(n int) gridspec.Value { return gridspec.Value{Kind: gridspec.KindInt, Int: int64(n)} }

func ms(v float64) gridspec.Value { return gridspec.Value{Kind: gridspec.KindFloat, Float: v} }
