package workload

import (
	"math"
	"slices"
)

// Statistics describes a workload by the figures that decide how hard it is to serve: how much arrives, how
// unevenly, how long prompts and answers are, and how much of the prompts a prefix cache could reuse.
type Statistics struct {
	// Requests and Sessions count the work; MultiTurnSessions are the sessions of two or more requests.
	Requests          int `json:"requests"`
	Sessions          int `json:"sessions"`
	MultiTurnSessions int `json:"multi_turn_sessions"`
	// InputTokens and OutputTokens are the lengths of requests.
	InputTokens  Distribution `json:"input_tokens"`
	OutputTokens Distribution `json:"output_tokens"`
	// Turns is the number of requests of a session.
	Turns Distribution `json:"turns"`
	// DelayMs is the gap between the end of a turn and the next turn of its session, in ms.
	DelayMs Distribution `json:"delay_ms"`
	// Agents is nil when sessions do not depend on each other.
	Agents *AgentStatistics `json:"agents,omitempty"`
	// Arrivals is nil when the workload does not say when each session starts.
	Arrivals *ArrivalStatistics `json:"arrivals,omitempty"`
	// Reuse is nil when the workload has no hash ids.
	Reuse *ReuseStatistics `json:"reuse,omitempty"`
}

// ArrivalStatistics describes when sessions start, or plays when sessions depend on each other. A session of one request
// starts when the request arrives.
type ArrivalStatistics struct {
	// SpanMs is the time from the first start to the last, in ms.
	SpanMs float64 `json:"span_ms"`
	// Rate is the number of starts per second of the span; 0 when the span is 0.
	Rate float64 `json:"rate"`
	// IntervalMs is the time between neighbouring starts, in ms.
	IntervalMs Distribution `json:"interval_ms"`
	// IntervalCV is the coefficient of variation of the intervals: 0 for a clock, 1 for a Poisson process.
	IntervalCV float64 `json:"interval_cv"`
	// Dispersion10s and Dispersion60s are the variance of the number of starts in a window of 10 s and of 60 s,
	// divided by its mean: 1 for a Poisson process, more for bursts. They are 0 with fewer than two windows.
	Dispersion10s float64 `json:"dispersion_10s"`
	Dispersion60s float64 `json:"dispersion_60s"`
}

// AgentStatistics describes requests that wait for each other across sessions.
type AgentStatistics struct {
	// Plays is the number of sets of requests without edges between them; Edges counts the edges by relation.
	Plays int            `json:"plays"`
	Edges map[string]int `json:"edges"`
	// Subagents is the number of sessions that another one spawned, Depth how deep they are nested.
	Subagents int `json:"subagents"`
	Depth     int `json:"depth"`
	// SubagentRequests and SubagentInputTokens are their work; Joined counts those that a later request waits for.
	SubagentRequests    int `json:"subagent_requests"`
	SubagentInputTokens int `json:"subagent_input_tokens"`
	Joined              int `json:"joined"`
	// PerPlay is the number of subagents of a play.
	PerPlay Distribution `json:"per_play"`
	// Models counts the requests by model, where the source names it.
	Models map[string]int `json:"models,omitempty"`
}

// Distribution summarises a set of values. Percentiles are nearest-rank. All fields are zero when Count is.
type Distribution struct {
	Count  int     `json:"count"`
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"std_dev"` // of the population
	Min    float64 `json:"min"`
	P10    float64 `json:"p10"`
	P25    float64 `json:"p25"`
	P50    float64 `json:"p50"`
	P75    float64 `json:"p75"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// Stats measures a workload. For each of cacheBlocks it also says what an LRU cache of that many blocks would hit; sizes
// below 1 give a hit ratio of 0.
func Stats(w *Workload, cacheBlocks ...int) Statistics {
	s := Statistics{
		Requests:     w.Requests(),
		Sessions:     w.Sessions(),
		InputTokens:  distributionOf(w.Input),
		OutputTokens: distributionOf(w.Output),
	}
	turns := make([]int32, w.Sessions())
	for i := range turns {
		if turns[i] = w.SessionStart[i+1] - w.SessionStart[i]; turns[i] > 1 {
			s.MultiTurnSessions++
		}
	}
	s.Turns, s.DelayMs = distributionOf(turns), distributionOf(gaps(w))
	if starts := startsOf(w); len(starts) > 0 {
		s.Arrivals = arrivalStatistics(starts)
	}
	if w.Graph != nil {
		s.Agents = agentStatistics(w)
	}
	if (len(w.runs) > 0 || w.transcripts != nil) && w.BlockSize > 0 {
		s.Reuse = reuseStatistics(w, cacheBlocks)
	}
	return s
}

// gaps lists the waits between the end of a turn and the next turn of its session.
func gaps(w *Workload) []float64 {
	var out []float64
	for s := range w.Sessions() {
		for i := w.SessionStart[s] + 1; i < w.SessionStart[s+1]; i++ {
			if w.Graph == nil {
				out = append(out, w.DelayMs[i])
				continue
			}
			for _, e := range w.Graph.Edges(i) {
				if e.Relation == Sequence && e.Trigger == OnCompletion {
					out = append(out, e.DelayMs+w.DelayMs[i])
				}
			}
		}
	}
	return out
}

// startsOf lists when sessions or plays start, in ms; nothing unless the workload says it of all of them.
func startsOf(w *Workload) []float64 {
	if w.Graph == nil {
		if ok, _ := w.HasArrivals(); !ok {
			return nil
		}
		starts := make([]float64, w.Sessions())
		for i := range starts {
			starts[i] = w.ArrivalMs[w.SessionStart[i]]
		}
		return starts
	}
	starts := make([]float64, w.Graph.Plays())
	for i := range starts {
		starts[i] = math.Inf(1)
	}
	for i := range w.Requests() {
		if floor := w.Graph.NotBeforeMs[i]; len(w.Graph.Edges(int32(i))) == 0 {
			play := w.Graph.Play[i]
			starts[play] = min(starts[play], floor)
		}
	}
	if slices.ContainsFunc(starts, func(at float64) bool { return math.IsInf(at, 0) }) {
		return nil
	}
	return starts
}

func agentStatistics(w *Workload) *AgentStatistics {
	g := w.Graph
	a := &AgentStatistics{Plays: g.Plays(), Edges: map[string]int{}}
	joined := make([]bool, w.Sessions())
	perPlay := make([]int32, g.Plays())
	for s := range w.Sessions() {
		first, end := w.SessionStart[s], w.SessionStart[s+1]
		sub := g.Parent[s] >= 0
		if sub {
			a.Subagents++
			perPlay[g.Play[first]]++
			a.SubagentRequests += int(end - first)
			a.Depth = max(a.Depth, depthOf(g, int32(s)))
		}
		for i := first; i < end; i++ {
			if sub {
				a.SubagentInputTokens += int(w.Input[i])
			}
			for _, e := range g.Edges(i) {
				a.Edges[e.Relation.String()]++
			}
			for _, e := range g.Dependants(i) {
				joined[s] = joined[s] || sub && e.Relation == Join
			}
			if m := g.Model[i]; m >= 0 {
				if a.Models == nil {
					a.Models = map[string]int{}
				}
				a.Models[g.ModelNames[m]]++
			}
		}
		if joined[s] {
			a.Joined++
		}
	}
	a.PerPlay = distributionOf(perPlay)
	return a
}

// depthOf says how many sessions a session was spawned through. What names itself as its own ancestor, which only a
// damaged source does, ends there.
func depthOf(g *Graph, session int32) int {
	depth := 0
	for at := g.Parent[session]; at >= 0 && depth < len(g.Parent); at = g.Parent[at] {
		depth++
	}
	return depth
}

func distributionOf[T int32 | float64](values []T) Distribution {
	n := len(values)
	if n == 0 {
		return Distribution{}
	}
	sorted := make([]float64, n)
	var sum float64
	for i, v := range values {
		sorted[i] = float64(v)
		sum += float64(v)
	}
	slices.Sort(sorted)
	mean := sum / float64(n)
	var squares float64
	for _, v := range sorted {
		squares += (v - mean) * (v - mean)
	}
	at := func(percent int) float64 { return sorted[max((percent*n+99)/100-1, 0)] }
	return Distribution{
		Count: n, Mean: mean, StdDev: math.Sqrt(squares / float64(n)), Min: sorted[0],
		P10: at(10), P25: at(25), P50: at(50), P75: at(75), P90: at(90), P99: at(99), Max: sorted[n-1],
	}
}

func arrivalStatistics(starts []float64) *ArrivalStatistics {
	slices.Sort(starts)
	intervals := make([]float64, len(starts)-1)
	for i := range intervals {
		intervals[i] = starts[i+1] - starts[i]
	}
	a := &ArrivalStatistics{
		SpanMs:        starts[len(starts)-1] - starts[0],
		IntervalMs:    distributionOf(intervals),
		Dispersion10s: dispersion(starts, 10_000),
		Dispersion60s: dispersion(starts, 60_000),
	}
	if a.SpanMs > 0 {
		a.Rate = float64(len(intervals)) / a.SpanMs * 1000
		a.IntervalCV = a.IntervalMs.StdDev / a.IntervalMs.Mean
	}
	return a
}

// dispersion is the index of dispersion of the counts in the whole windows that fit between the first and the
// last of the sorted times.
func dispersion(times []float64, windowMs float64) float64 {
	windows := math.Floor((times[len(times)-1] - times[0]) / windowMs)
	if windows < 2 {
		return 0
	}
	var counted, squares float64
	for i := 0; i < len(times); {
		window := math.Floor((times[i] - times[0]) / windowMs)
		if window >= windows {
			break
		}
		n := 0.0
		for ; i < len(times) && math.Floor((times[i]-times[0])/windowMs) == window; i++ {
			n++
		}
		counted += n
		squares += n * n
	}
	mean := counted / windows
	return (squares/windows - mean*mean) / mean
}
