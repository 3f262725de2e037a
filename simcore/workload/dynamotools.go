package workload

import (
	"cmp"
	"slices"
)

// toolWaits returns how much of the time before each request its session's tools took, in ms: the union of their spans
// after the last request that it waits for had ended (spec/workloads.md §2.3). The rest of the gap is the harness's own.
// Both are one delay in a replay; people want to tell them apart.
func (c *dynamoCapture) toolWaits(links *dynamoLinks) []float64 {
	waited := make([]float64, len(c.requests))
	var waits []dynamoWait
	for i := range c.sessions {
		session := &c.sessions[i]
		slices.SortStableFunc(session.tools, func(a, b int32) int { return cmp.Compare(c.tools[a].toMs, c.tools[b].toMs) })
		tools := session.tools
		for j, r := range session.requests {
			if j == 0 {
				continue
			}
			after, start := c.requests[session.requests[j-1]].startMs, c.requests[r].startMs
			for len(tools) > 0 && c.tools[tools[0]].toMs <= after {
				tools = tools[1:]
			}
			n := 0
			for n < len(tools) && c.tools[tools[n]].toMs <= start {
				n++
			}
			if n == 0 {
				continue
			}
			waits = links.waits(waits[:0], r)
			var from uint64
			for _, w := range waits {
				from = max(from, c.requests[w.from].endMs)
			}
			waited[r] = c.spansMs(tools[:n], from, start, c.requests[r].id)
		}
	}
	return waited
}

// spansMs is the length of the union of tools' spans between two times. Tools in the background do not count, unless the
// request consumes what they made.
func (c *dynamoCapture) spansMs(tools []int32, from, to uint64, consumer string) float64 {
	// Tools are in order of their ends; going back from the last, what is not covered yet ends where the last one began.
	total, open := 0.0, to
	for i := len(tools) - 1; i >= 0; i-- {
		tool := &c.tools[tools[i]]
		if tool.inverted || tool.background && tool.consumer != consumer {
			continue
		}
		begin, end := max(tool.fromMs, from), min(tool.toMs, open)
		if begin < end {
			total += float64(end - begin)
			open = begin
		}
	}
	return total
}
