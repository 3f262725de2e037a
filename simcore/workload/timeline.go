package workload

import (
	"cmp"
	"math"
	"slices"
)

// ServiceRates say how fast requests are assumed to be served where a trace does not say how long they took.
type ServiceRates struct {
	// PrefillTokensPerSecond is the rate at which a prompt is computed, DecodeTokensPerSecond that of one request's answer.
	PrefillTokensPerSecond, DecodeTokensPerSecond float64
}

// Timeline says what happens in a workload over time, in windows of equal length from its first request on.
type Timeline struct {
	// WindowMs is the length of a window, in ms.
	WindowMs float64 `json:"window_ms"`
	// Recorded is the share of the requests whose duration the trace states; the others' is assumed.
	Recorded float64 `json:"recorded"`
	// Windows are in order; the last one may reach beyond the end.
	Windows []Window `json:"windows"`
	// PeakRequests and PeakTokens are the most requests in flight at once, and the most tokens that they hold.
	PeakRequests int `json:"peak_requests"`
	PeakTokens   int `json:"peak_tokens"`
}

// Window is what happens in one window of a timeline.
type Window struct {
	// Starts counts the requests that start, InputTokens and OutputTokens are theirs.
	Starts       int `json:"starts"`
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
	// Requests is the mean number of requests in flight, Tokens how many tokens they hold, prompts and answers as if
	// those were there from the start.
	Requests float64 `json:"requests_in_flight"`
	Tokens   float64 `json:"tokens_in_flight"`
	// Sessions is the mean number of sessions between their first request's start and their last one's end.
	Sessions float64 `json:"sessions_open"`
}

// NewTimeline divides a workload's time into at most windows windows of a round length. A request takes the time that
// the trace states, else what rates give; the next turn of a session comes after it and its delay.
func NewTimeline(w *Workload, rates ServiceRates, windows int) Timeline {
	recorded := 0
	took := make([]float64, w.Requests())
	for i := range took {
		if took[i] = w.recordedService(i); took[i] > 0 {
			recorded++
		} else {
			took[i] = rates.ms(int(w.Input[i]), int(w.Output[i]))
		}
	}
	starts := w.nominalStarts(func(request int) float64 { return took[request] })
	first, last := math.Inf(1), math.Inf(-1)
	for i, at := range starts {
		first, last = min(first, at), max(last, at+took[i])
	}
	t := Timeline{WindowMs: windowLength(last-first, windows), Recorded: ratio(recorded, w.Requests())}
	t.Windows = make([]Window, int((last-first)/t.WindowMs)+1)
	t.fill(w, starts, took, first)
	t.PeakRequests, t.PeakTokens = peaks(w, starts, took)
	return t
}

func (r ServiceRates) ms(input, output int) float64 {
	ms := 0.0
	if r.PrefillTokensPerSecond > 0 {
		ms += float64(input) / r.PrefillTokensPerSecond * 1000
	}
	if r.DecodeTokensPerSecond > 0 {
		ms += float64(output) / r.DecodeTokensPerSecond * 1000
	}
	return ms
}

// windowLength is the least round length, of 1, 2 or 5 times a power of ten ms or a round number of seconds, minutes or
// hours, that makes at most so many windows of a span.
func windowLength(spanMs float64, windows int) float64 {
	least := spanMs / float64(max(windows, 1))
	for unit := 1.0; unit <= 1000; unit *= 10 {
		for _, n := range [...]float64{1, 2, 5} {
			if n*unit >= least && n*unit < 1000 {
				return n * unit
			}
		}
	}
	for _, seconds := range [...]float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200} {
		if seconds*1000 >= least {
			return seconds * 1000
		}
	}
	const day = 86_400_000
	return day * math.Exp2(math.Ceil(math.Log2(max(least/day, 1))))
}

// fill adds up what happens in each window.
func (t *Timeline) fill(w *Workload, starts, took []float64, first float64) {
	window := func(at float64) int { return min(int((at-first)/t.WindowMs), len(t.Windows)-1) }
	// spread adds to the windows that a time span covers, each as much of it as lies there.
	spread := func(from, to float64, add func(v *Window, share float64)) {
		for k, end := window(from), window(to); k <= end; k++ {
			begin := first + float64(k)*t.WindowMs
			if within := min(to, begin+t.WindowMs) - max(from, begin); within > 0 {
				add(&t.Windows[k], within/t.WindowMs)
			}
		}
	}
	for s := range w.Sessions() {
		open, end := math.Inf(1), math.Inf(-1)
		for i := w.SessionStart[s]; i < w.SessionStart[s+1]; i++ {
			at := &t.Windows[window(starts[i])]
			at.Starts++
			at.InputTokens += int(w.Input[i])
			at.OutputTokens += int(w.Output[i])
			tokens := float64(w.Input[i]) + float64(w.Output[i])
			spread(starts[i], starts[i]+took[i], func(v *Window, share float64) {
				v.Requests += share
				v.Tokens += share * tokens
			})
			open, end = min(open, starts[i]), max(end, starts[i]+took[i])
		}
		spread(open, end, func(v *Window, share float64) { v.Sessions += share })
	}
}

// peaks goes through starts and ends in order of time, ends first.
func peaks(w *Workload, starts, took []float64) (requests, tokens int) {
	type event struct {
		at     float64
		change int // 1 for a start, -1 for an end
		tokens int
	}
	events := make([]event, 0, 2*len(starts))
	for i, at := range starts {
		if took[i] > 0 {
			held := int(w.Input[i]) + int(w.Output[i])
			events = append(events, event{at, 1, held}, event{at + took[i], -1, -held})
		}
	}
	slices.SortFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.change, b.change))
	})
	inFlight, held := 0, 0
	for _, e := range events {
		inFlight += e.change
		held += e.tokens
		requests, tokens = max(requests, inFlight), max(tokens, held)
	}
	return requests, tokens
}
