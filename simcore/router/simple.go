package router

import "math/rand/v2"

// immediate is the part of a router that never keeps a request and looks at no cache.
type immediate struct{}

// PrefillDone, Ended, Overlap and Waiting have nothing to tell.
func (immediate) PrefillDone(float64, int32) []Dispatch { return nil }
func (immediate) Ended(float64, int32) []Dispatch       { return nil }
func (immediate) Overlap(int32) int32                   { return 0 }
func (immediate) Waiting() int                          { return 0 }

// roundRobin hands requests to the workers in turn.
type roundRobin struct {
	immediate
	workers, next int32
}

// Arrive picks the next worker.
func (r *roundRobin) Arrive(float64, int32) (int32, error) {
	w := r.next
	if r.next++; r.next == r.workers {
		r.next = 0
	}
	return w, nil
}

// counter counts each worker's unfinished requests.
type counter struct {
	immediate
	rng        *rand.Rand
	unfinished []int32 // by worker
	workerOf   []int32 // by request
}

func newCounter(env Environment, rng *rand.Rand) counter {
	return counter{rng: rng, unfinished: make([]int32, env.Workers), workerOf: make([]int32, env.Workload.Requests())}
}

func (c *counter) give(request, worker int32) (int32, error) {
	c.unfinished[worker]++
	c.workerOf[request] = worker
	return worker, nil
}

// Ended takes the request off its worker's count.
func (c *counter) Ended(_ float64, request int32) []Dispatch {
	c.unfinished[c.workerOf[request]]--
	return nil
}

// least returns the worker with the fewest unfinished requests, any of them when several have.
func (c *counter) least() int32 {
	best, equal := 0, 0
	for w, n := range c.unfinished {
		switch {
		case n < c.unfinished[best] || equal == 0:
			best, equal = w, 1
		case n == c.unfinished[best]:
			if equal++; c.rng.IntN(equal) == 0 {
				best = w
			}
		}
	}
	return int32(best)
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
	n := len(p.unfinished)
	first := p.rng.IntN(n)
	if n == 1 {
		return p.give(request, 0)
	}
	second := p.rng.IntN(n - 1)
	if second >= first {
		second++
	}
	if p.unfinished[second] < p.unfinished[first] {
		first = second
	}
	return p.give(request, int32(first))
}

// sessionAffinity keeps each session on one worker.
type sessionAffinity struct {
	counter
	sessionOf []int32 // by request
	workers   []int32 // by session; Queued before its first turn
}

func newSessionAffinity(env Environment, rng *rand.Rand) *sessionAffinity {
	w := env.Workload
	s := &sessionAffinity{counter: newCounter(env, rng), sessionOf: make([]int32, w.Requests()), workers: make([]int32, w.Sessions())}
	for session := range s.workers {
		s.workers[session] = Queued
		for r := w.SessionStart[session]; r < w.SessionStart[session+1]; r++ {
			s.sessionOf[r] = int32(session)
		}
	}
	return s
}

// Arrive picks the worker of the session's earlier turns.
func (s *sessionAffinity) Arrive(_ float64, request int32) (int32, error) {
	worker := &s.workers[s.sessionOf[request]]
	if *worker == Queued {
		*worker = s.least()
	}
	return s.give(request, *worker)
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
	return &prefixAffinity{env: env, seed: c.Seed, blocks: (c.PrefixAffinityTokens + size - 1) / size}
}

// Arrive picks the worker by the id of the last leading block, which stands for everything up to it. A prompt without
// a full block is like no other.
func (p *prefixAffinity) Arrive(_ float64, request int32) (int32, error) {
	sequence, full := p.env.sequence(request)
	key := sequence.Private
	if n := min(p.blocks, full); n > 0 {
		key = sequence.At(n - 1)
	}
	return jumpHash(mix(p.seed^mix(uint64(key))), p.env.Workers), nil
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
