package router

import "math/rand/v2"

// immediate is the part of a router that never keeps a request and looks at no cache.
type immediate struct{ roster }

// PrefillDone, Ended, Overlap, Waiting and Withdraw have nothing to tell.
func (*immediate) PrefillDone(float64, int32) []Dispatch { return nil }
func (*immediate) Ended(float64, int32) []Dispatch       { return nil }
func (*immediate) Overlap(int32) int32                   { return 0 }
func (*immediate) Waiting() int                          { return 0 }
func (*immediate) Withdraw(int32) bool                   { return false }

// Join adds a worker to those that take requests, and Leave takes one away.
func (i *immediate) Join(_ float64, m Member) []Dispatch {
	i.join(m)
	return nil
}
func (i *immediate) Leave(worker int32) { i.leave(worker) }

// roundRobin hands requests to the workers in turn.
type roundRobin struct {
	immediate
	next int
}

// Arrive picks the next worker.
func (r *roundRobin) Arrive(float64, int32) (int32, error) {
	r.next %= len(r.ready)
	seat := r.ready[r.next]
	r.next++
	return r.at[seat].Worker, nil
}

// counter counts each worker's unfinished requests.
type counter struct {
	immediate
	rng        *rand.Rand
	unfinished []int32 // by seat
	seatOf     []int32 // by request
}

func newCounter(env Environment, rng *rand.Rand) counter {
	return counter{
		immediate: immediate{newRoster(env.Workers)}, rng: rng,
		unfinished: make([]int32, env.Workers), seatOf: make([]int32, env.Workload.Requests()),
	}
}

// Join adds a worker, which has no requests yet.
func (c *counter) Join(now float64, m Member) []Dispatch {
	c.unfinished = grown(c.unfinished, int(m.Seat)+1)
	return c.immediate.Join(now, m)
}

func (c *counter) give(request, seat int32) (int32, error) {
	c.unfinished[seat]++
	c.seatOf[request] = seat
	return c.at[seat].Worker, nil
}

// Ended takes the request off its worker's count.
func (c *counter) Ended(_ float64, request int32) []Dispatch {
	c.unfinished[c.seatOf[request]]--
	return nil
}

// least returns the seat with the fewest unfinished requests, any of them when several have.
func (c *counter) least() int32 {
	best, equal := int32(0), 0
	for _, seat := range c.ready {
		n := c.unfinished[seat]
		switch {
		case equal == 0 || n < c.unfinished[best]:
			best, equal = seat, 1
		case n == c.unfinished[best]:
			if equal++; c.rng.IntN(equal) == 0 {
				best = seat
			}
		}
	}
	return best
}

// leastLoaded picks the worker with the fewest unfinished requests.
type leastLoaded struct{ counter }

// Arrive picks the worker with the fewest unfinished requests.
func (l *leastLoaded) Arrive(_ float64, request int32) (int32, error) {
	return l.give(request, l.least())
}

// powerOfTwo compares two workers at random (Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 2001).
type powerOfTwo struct{ counter }

// Arrive picks the less loaded of two random workers.
func (p *powerOfTwo) Arrive(_ float64, request int32) (int32, error) {
	n := len(p.ready)
	i := p.rng.IntN(n)
	if n == 1 {
		return p.give(request, p.ready[0])
	}
	k := p.rng.IntN(n - 1)
	if k >= i {
		k++
	}
	first, second := p.ready[i], p.ready[k]
	if p.unfinished[second] < p.unfinished[first] {
		first = second
	}
	return p.give(request, first)
}

// sessionAffinity keeps each session on one worker, as long as that takes requests.
type sessionAffinity struct {
	counter
	sessionOf []int32  // by request, changed by the runtime where requests come one by one
	members   []Member // by session; the worker is Queued before its first turn
}

func newSessionAffinity(env Environment, rng *rand.Rand) *sessionAffinity {
	s := &sessionAffinity{counter: newCounter(env, rng), sessionOf: env.Sessions, members: make([]Member, env.Workload.Sessions())}
	for session := range s.members {
		s.members[session].Worker = Queued
	}
	return s
}

// Forgetter is a router that remembers sessions.
type Forgetter interface {
	// Forget makes the number of a session that of another one, of which there were no requests so far.
	Forget(session int32)
}

// Forget lets the next request of a session go to any worker. See [Forgetter].
func (s *sessionAffinity) Forget(session int32) { s.members[session].Worker = Queued }

// Arrive picks the worker of the session's earlier turns.
func (s *sessionAffinity) Arrive(_ float64, request int32) (int32, error) {
	member := &s.members[s.sessionOf[request]]
	if member.Worker == Queued || !s.takes[member.Seat] || s.at[member.Seat].Worker != member.Worker {
		*member = s.at[s.least()]
	}
	return s.give(request, member.Seat)
}

// prefixAffinity sends prompts with the same leading tokens to the same worker.
type prefixAffinity struct {
	immediate
	env    Environment
	seed   uint64
	blocks int
}

func newPrefixAffinity(c Config, env Environment) *prefixAffinity {
	size := env.Blocks.BlockSize
	return &prefixAffinity{immediate: immediate{newRoster(env.Workers)}, env: env, seed: c.Seed, blocks: (c.PrefixAffinityTokens + size - 1) / size}
}

// Arrive picks the worker by the key of the last leading block, which stands for everything up to it. A prompt without
// a full block is like no other.
func (p *prefixAffinity) Arrive(_ float64, request int32) (int32, error) {
	sequence, full := p.env.sequence(request)
	last := sequence.Private
	if n := min(p.blocks, full); n > 0 {
		last = sequence.At(n - 1)
	}
	return p.at[p.ready[jumpHash(mix(p.seed^mix(p.env.Blocks.Key(last))), len(p.ready))]].Worker, nil
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014): it spreads neighbouring numbers over all 64 bits.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// jumpHash gives a key one of n buckets; of n+1 buckets, only the new one takes keys from others (Lamping, Veach 2014).
func jumpHash(key uint64, n int) int32 {
	bucket, next := int64(0), int64(0)
	for next < int64(n) {
		bucket = next
		key = key*2862933555777941757 + 1
		next = int64(float64(bucket+1) * (float64(1<<31) / float64(key>>33+1)))
	}
	return int32(bucket)
}
