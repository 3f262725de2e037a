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
	// DelayMs is the wait between the end of a turn and the next turn of its session, in ms.
	DelayMs Distribution `json:"delay_ms"`
	// Arrivals is nil when the workload does not say when each session starts.
	Arrivals *ArrivalStatistics `json:"arrivals,omitempty"`
	// Reuse is nil when the workload has no hash ids.
	Reuse *ReuseStatistics `json:"reuse,omitempty"`
}

// ArrivalStatistics describes when sessions start. A session of one request starts when the request arrives.
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

// ReuseStatistics says which part of the prompts an earlier prompt already had. Only full blocks of
// [Workload.BlockSize] tokens count, and a block is a hit only when all blocks before it in its prompt are.
// Requests are taken in order of start, as if service took no time.
type ReuseStatistics struct {
	// Blocks is the number of full prompt blocks; UniqueBlocks counts equal ones once.
	Blocks       int `json:"blocks"`
	UniqueBlocks int `json:"unique_blocks"`
	// Ideal is the share of the blocks that a cache without limit would hit.
	Ideal float64 `json:"ideal"`
	// LRU holds the hit ratio of caches of limited size, in the order asked for.
	LRU []CacheReuse `json:"lru,omitempty"`
}

// CacheReuse is the share of prompt blocks that hit in a cache of a given size that evicts the least recently
// used block, the last block of a prompt first.
type CacheReuse struct {
	CacheBlocks int     `json:"cache_blocks"`
	HitRatio    float64 `json:"hit_ratio"`
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

// Stats measures a workload. For each of cacheBlocks it also replays the prompts through an LRU cache of that
// many blocks; sizes below 1 give a hit ratio of 0.
func Stats(w *Workload, cacheBlocks ...int) Statistics {
	s := Statistics{
		Requests:     w.Requests(),
		Sessions:     w.Sessions(),
		InputTokens:  distributionOf(w.Input),
		OutputTokens: distributionOf(w.Output),
	}
	turns := make([]int32, w.Sessions())
	var delays []float64
	for i := range turns {
		first, end := w.SessionStart[i], w.SessionStart[i+1]
		turns[i] = end - first
		if turns[i] > 1 {
			s.MultiTurnSessions++
			delays = append(delays, w.DelayMs[first+1:end]...)
		}
	}
	s.Turns, s.DelayMs = distributionOf(turns), distributionOf(delays)
	if ok, _ := w.HasArrivals(); ok {
		s.Arrivals = arrivalStatistics(w)
	}
	if len(w.hashes) > 0 && w.BlockSize > 0 {
		s.Reuse = reuseStatistics(w, cacheBlocks)
	}
	return s
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

func arrivalStatistics(w *Workload) *ArrivalStatistics {
	starts := make([]float64, w.Sessions())
	for i := range starts {
		starts[i] = w.ArrivalMs[w.SessionStart[i]]
	}
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

func reuseStatistics(w *Workload, cacheBlocks []int) *ReuseStatistics {
	chains := w.chains()
	order := startOrder(w)
	r := &ReuseStatistics{}
	seen := make([]bool, chains.nodes)
	hits := 0
	var nodes []uint32
	for _, request := range order {
		nodes = chains.fullBlocks(nodes[:0], w, request)
		r.Blocks += len(nodes)
		for _, node := range nodes {
			if seen[node] {
				hits++
			} else {
				seen[node] = true
				r.UniqueBlocks++
			}
		}
	}
	r.Ideal = ratio(hits, r.Blocks)
	for _, size := range cacheBlocks {
		cache := newLRU(int(chains.nodes), size)
		hits := 0
		for _, request := range order {
			nodes = chains.fullBlocks(nodes[:0], w, request)
			hits += cache.leadingHits(nodes)
			cache.touch(nodes)
		}
		r.LRU = append(r.LRU, CacheReuse{CacheBlocks: size, HitRatio: ratio(hits, r.Blocks)})
	}
	return r
}

func ratio(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// startOrder lists the requests by start time, with service taking no time and sessions without a start at 0.
func startOrder(w *Workload) []int {
	order := make([]int, w.Requests())
	start := make([]float64, w.Requests())
	for s := range w.Sessions() {
		at := w.ArrivalMs[w.SessionStart[s]]
		if math.IsNaN(at) {
			at = 0
		}
		for i := w.SessionStart[s]; i < w.SessionStart[s+1]; i++ {
			at += w.DelayMs[i]
			order[i], start[i] = int(i), at
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case start[a] < start[b]:
			return -1
		case start[a] > start[b]:
			return 1
		}
		return 0
	})
	return order
}

// fullBlocks appends the chain nodes of a request's full prompt blocks.
func (c *chainIndex) fullBlocks(nodes []uint32, w *Workload, request int) []uint32 {
	left := w.Input[request] / int32(w.BlockSize)
	for _, run := range c.runs[c.runStart[request]:c.runStart[request+1]] {
		for k := uint32(0); k < run.Len && left > 0; k++ {
			nodes = append(nodes, run.Start+k)
			left--
		}
	}
	return nodes
}

// lru is a cache of chain nodes: a ring of resident nodes, the most recently used behind the sentinel.
type lru struct {
	next, prev []uint32 // next[node] == node means not resident
	sentinel   uint32
	resident   int
	size       int
}

func newLRU(nodes, size int) *lru {
	c := &lru{next: make([]uint32, nodes+1), prev: make([]uint32, nodes+1), sentinel: uint32(nodes), size: size}
	for i := range c.next {
		c.next[i], c.prev[i] = uint32(i), uint32(i)
	}
	return c
}

// leadingHits counts the resident nodes before the first that is not.
func (c *lru) leadingHits(nodes []uint32) int {
	for i, node := range nodes {
		if c.next[node] == node {
			return i
		}
	}
	return len(nodes)
}

// touch makes the nodes of a prompt the most recently used, its first block last, and evicts what is too much.
func (c *lru) touch(nodes []uint32) {
	for _, node := range slices.Backward(nodes) {
		if c.next[node] != node {
			c.unlink(node)
		}
		first := c.next[c.sentinel]
		c.next[c.sentinel], c.prev[node] = node, c.sentinel
		c.next[node], c.prev[first] = first, node
		c.resident++
	}
	for c.resident > max(c.size, 0) {
		c.unlink(c.prev[c.sentinel])
	}
}

func (c *lru) unlink(node uint32) {
	c.next[c.prev[node]], c.prev[c.next[node]] = c.next[node], c.prev[node]
	c.next[node], c.prev[node] = node, node
	c.resident--
}
