package engine

// PassLoad is what a pass does, and what waits for a later one, in requests and tokens (planner specification §4.1).
type PassLoad struct {
	// PrefillRequests is the number of requests of which prompt tokens are computed, PrefillTokens the number of these
	// tokens, and of output that is computed again with them. PrefillKVTokens counts their prompts' tokens that were cached or computed before, and PrefillVariance is the
	// population variance of their prompts' lengths.
	PrefillRequests int
	PrefillTokens   int64
	PrefillKVTokens int64
	PrefillVariance float64
	// DecodeRequests is the number of requests that only decode, DecodeKVTokens the sum of their lengths, and
	// DecodeVariance the population variance of these.
	DecodeRequests int
	DecodeKVTokens int64
	DecodeVariance float64
	// QueuedPrefills is the number of waiting requests that were never scheduled, QueuedPrefillTokens the sum of their
	// prompts' lengths. On a decode worker whose requests come with their prompts computed there are none.
	QueuedPrefills      int
	QueuedPrefillTokens int64
	// QueuedDecodes is the number of preempted requests that wait, and on such a decode worker of those that wait for room,
	// QueuedDecodeKVTokens the sum of their lengths.
	QueuedDecodes        int
	QueuedDecodeKVTokens int64
}

// PassMetrics is what an engine publishes about a pass: the forward-pass metrics of Dynamo (planner specification §4.1).
type PassMetrics struct {
	// Pool is the number of the worker's pool in the deployment, Worker its id there.
	Pool   int
	Worker int32
	PassLoad
	// StartMs and EndMs are when the pass begins and ends.
	StartMs, EndMs float64
	// WallSeconds is how long it takes.
	WallSeconds float64
}

// queued counts the requests of a worker that wait.
type queued struct {
	prefills, decodes             int
	prefillTokens, decodeKVTokens int64
	awaited                       int // of the latter, those that a decode worker has no room for yet
}

// add counts a request that begins to wait, remove one that no longer does, by the state that it waits in.
func (q *queued) add(r *Request)    { q.count(r, 1) }
func (q *queued) remove(r *Request) { q.count(r, -1) }

func (q *queued) count(r *Request, n int) {
	if r.State == Preempted || r.handedOver {
		q.decodes += n
		q.decodeKVTokens += int64(n) * int64(r.length())
		return
	}
	q.prefills += n
	q.prefillTokens += int64(n) * int64(r.Input)
}

// await counts a request that waits for room on a decode worker, or no longer does.
func (q *queued) await(r *Request, waits bool) {
	n := 1
	if !waits {
		n = -1
	}
	q.awaited += n
	q.decodes += n
	q.decodeKVTokens += int64(n) * int64(r.Input)
}

// setQueue sets what waits.
func (l *PassLoad) setQueue(q queued) {
	l.QueuedPrefills, l.QueuedPrefillTokens = q.prefills, q.prefillTokens
	l.QueuedDecodes, l.QueuedDecodeKVTokens = q.decodes, q.decodeKVTokens
}

// spread adds lengths up for their variance. It counts from the first one, so that nothing is lost to cancellation.
type spread struct {
	n, first, sum, squares int64
}

func (s *spread) add(length int32) {
	if s.n == 0 {
		s.first = int64(length)
	}
	d := int64(length) - s.first
	s.n++
	s.sum += d
	s.squares += d * d
}

// total is the sum of the lengths.
func (s *spread) total() int64 { return s.sum + s.n*s.first }

// variance is the population variance.
func (s *spread) variance() float64 {
	if s.n < 2 {
		return 0
	}
	n := float64(s.n)
	return (float64(s.squares) - float64(s.sum)*float64(s.sum)/n) / n
}

// loadCounter works out what a pass does, request by request.
type loadCounter struct {
	prompts, decoding spread
	tokens, before    int64
}

// prompt adds a request of which tokens from one (inclusive) to another (exclusive) are computed, the first of which is of its
// prompt. After a preemption there may be output among them.
func (c *loadCounter) prompt(r *Request, before, after int32) {
	c.prompts.add(r.Input)
	c.tokens += int64(after - before)
	c.before += int64(before)
}

// decode adds a request of the given length that only decodes.
func (c *loadCounter) decode(length int32) { c.decoding.add(length) }

// load is what was added, with what waits meanwhile.
func (c *loadCounter) load(q queued) PassLoad {
	l := PassLoad{
		PrefillRequests: int(c.prompts.n), PrefillTokens: c.tokens, PrefillKVTokens: c.before, PrefillVariance: c.prompts.variance(),
		DecodeRequests: int(c.decoding.n), DecodeKVTokens: c.decoding.total(), DecodeVariance: c.decoding.variance(),
	}
	l.setQueue(q)
	return l
}
