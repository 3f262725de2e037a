package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/results"
)

// Explanation splits the difference of a mean latency between two points into the parts of the requests' time.
type Explanation struct {
	// Metric is the explained figure, such as mean_e2e_latency_ms.
	Metric string `json:"metric"`
	// BeforeMs and AfterMs are its values.
	BeforeMs float64 `json:"before_ms"`
	AfterMs  float64 `json:"after_ms"`
	// Parts add up to the difference, the largest change first.
	Parts []PartChange `json:"parts"`
}

// PartChange is how one part of the time changed.
type PartChange struct {
	// Part is queueing, prefill, transfer, decode or stalls.
	Part string `json:"part"`
	// BeforeMs and AfterMs are its means over requests.
	BeforeMs float64 `json:"before_ms"`
	AfterMs  float64 `json:"after_ms"`
	// ChangeMs is what it adds to the difference.
	ChangeMs float64 `json:"change_ms"`
}

// parts of the end-to-end latency, by column; those with first belong to the time to first token too.
var parts = []struct {
	column, name string
	first        bool
}{
	{"mean_queue_time_ms", "queueing", true},
	{"mean_prefill_time_ms", "prefill", true},
	{"mean_transfer_time_ms", "transfer", false},
	{"mean_decode_time_ms", "decode", false},
	{"mean_stall_time_ms", "stalls", false},
}

// Explain splits the differences of the mean end-to-end latency and of the mean time to first token between two rows. It is
// empty for tables without the breakdown of the time. The time to first token is split only where queueing and prefill are
// all of it at both points.
func Explain(before *results.Table, rowBefore int, after *results.Table, rowAfter int) []Explanation {
	out := []Explanation{}
	for _, whole := range []struct {
		metric string
		first  bool
	}{{"mean_e2e_latency_ms", false}, {"mean_ttft_ms", true}} {
		e := Explanation{Metric: whole.metric, BeforeMs: figureOf(before, whole.metric, rowBefore), AfterMs: figureOf(after, whole.metric, rowAfter)}
		sumBefore, sumAfter := 0.0, 0.0
		for _, p := range parts {
			if whole.first && !p.first {
				continue
			}
			c := PartChange{Part: p.name, BeforeMs: figureOf(before, p.column, rowBefore), AfterMs: figureOf(after, p.column, rowAfter)}
			c.ChangeMs = c.AfterMs - c.BeforeMs
			sumBefore, sumAfter = sumBefore+c.BeforeMs, sumAfter+c.AfterMs
			e.Parts = append(e.Parts, c)
		}
		if !near(sumBefore, e.BeforeMs) || !near(sumAfter, e.AfterMs) {
			continue // some part is missing
		}
		slices.SortStableFunc(e.Parts, func(a, b PartChange) int { return cmp.Compare(math.Abs(b.ChangeMs), math.Abs(a.ChangeMs)) })
		out = append(out, e)
	}
	return out
}

// near reports whether parts add up to a whole; it is false for NaN.
func near(sum, whole float64) bool { return math.Abs(sum-whole) <= 1e-6*math.Abs(whole) }

// figureOf is a number of a row, NaN where there is none.
func figureOf(t *results.Table, column string, row int) float64 {
	c := t.Column(column)
	if c == nil {
		return math.NaN()
	}
	v, ok := c.Value(row)
	if !ok {
		return math.NaN()
	}
	return v.Float64()
}

// leastPart is the share of the largest change from which on a part is worth a word.
const leastPart = 0.02

// Text says in words which parts changed: "mean_e2e_latency_ms is 412 ms lower (1,200 to 788): 380 ms less queueing, 40 ms less
// prefill, 8 ms more decode".
func (e *Explanation) Text() string {
	change := e.AfterMs - e.BeforeMs
	if change == 0 {
		return e.Metric + " is the same"
	}
	text := fmt.Sprintf("%s is %s ms %s (%s to %s)", e.Metric, milliseconds(change), word(change, "higher", "lower"), milliseconds(e.BeforeMs), milliseconds(e.AfterMs))
	var said []string
	for _, p := range e.Parts {
		if p.ChangeMs != 0 && math.Abs(p.ChangeMs) >= leastPart*math.Abs(e.Parts[0].ChangeMs) {
			said = append(said, fmt.Sprintf("%s ms %s %s", milliseconds(p.ChangeMs), word(p.ChangeMs, "more", "less"), p.Part))
		}
	}
	if len(said) > 0 {
		text += ": " + strings.Join(said, ", ")
	}
	return text
}

func word(change float64, more, less string) string {
	if change > 0 {
		return more
	}
	return less
}

// milliseconds shows three digits of a duration, all before the point.
func milliseconds(ms float64) string {
	ms = math.Abs(ms)
	digits := 0
	for v := ms; v < 100 && v > 0 && digits < 4; v *= 10 {
		digits++
	}
	return strconv.FormatFloat(ms, 'f', digits, 64)
}

// Reasons says in sentences what is behind the differences of two rows, as far as the tables know: the parts of the time, the reuse
// of prefixes, and what limits. A metric asks for the latency that it belongs to; an empty one for all.
func Reasons(before *results.Table, rowBefore int, after *results.Table, rowAfter int, metric string) []string {
	out := []string{}
	for _, e := range Explain(before, rowBefore, after, rowAfter) {
		asked := metric == "" || strings.Contains(metric, "ttft") == strings.Contains(e.Metric, "ttft")
		if asked && e.BeforeMs != e.AfterMs {
			out = append(out, e.Text())
		}
	}
	for _, f := range []struct {
		column, name string
		least        float64 // change of the ratio that is worth a word
	}{
		{"prefix_cache_reused_ratio", "of the prompt tokens are reused", .01},
		{"decode_worker_utilisation", "of the time of workers that decode is spent in passes", .05},
	} {
		a, b := figureOf(before, f.column, rowBefore), figureOf(after, f.column, rowAfter)
		if math.Abs(a-b) >= f.least { // never for NaN
			out = append(out, fmt.Sprintf("%s %s, not %s", results.WholePercent(b), f.name, results.WholePercent(a)))
		}
	}
	if a, b := limit(before, rowBefore), limit(after, rowAfter); a != "" && b != "" && a != b {
		out = append(out, fmt.Sprintf("what limits is %s, not %s", b, a))
	}
	return out
}

// limit names what keeps requests waiting at a point; empty where the table does not say.
func limit(t *results.Table, row int) string {
	c := t.Column("limiting_resource")
	if c == nil || c.Null[row] {
		return ""
	}
	return map[string]string{
		"none": "the load", "compute": "the token budget of a pass", "batch_slots": "the number of requests in a batch",
		"kv_memory": "KV memory", "transfer": "KV transfer", "router": "the router",
	}[c.Text(row)]
}
