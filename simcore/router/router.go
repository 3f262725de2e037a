// Package router decides which worker gets a request, and when.
//
// Read config.go for the policies and their settings, router.go for what a runtime sees, kv.go for the KV router's
// cost of a worker, load.go and blocks.go for what it knows of workers, queue.go and classes.go for requests that
// have to wait, simple.go for the other policies.
package router

import (
	"math/rand/v2"

	"github.com/servegrid/servegrid/simcore/kvcache"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Router decides for one pool of workers. It hears of each request when it arrives, when its first token came out, and
// when it is over; times are simulated ms and never go back. Requests are known by their number in the workload.
type Router interface {
	// Arrive routes a request, or keeps it: the worker is then [Queued]. The error is a [*LimitError].
	Arrive(nowMs float64, request int32) (worker int32, err error)
	// PrefillDone tells that a request's prompt is computed, and Ended that it is completed or was rejected; a request
	// that is rejected has no PrefillDone. They return the kept requests that go now, in order, valid until the next
	// call.
	PrefillDone(nowMs float64, request int32) []Dispatch
	Ended(nowMs float64, request int32) []Dispatch
	// Overlap returns how many tokens of a routed request's prompt its worker had in the KV cache when it arrived, as far
	// as the policy looks at that.
	Overlap(request int32) int32
	// Waiting is the number of requests that the router keeps.
	Waiting() int
	// Withdraw takes out a request that the router keeps, which will not go to any worker. It is false for one that it does
	// not keep.
	Withdraw(request int32) bool
	// Join makes another worker take requests, whose id is above all others'. It returns the kept requests that go now, as
	// Ended does.
	Join(nowMs float64, m Member) []Dispatch
	// Leave makes a worker take no more requests; the router goes on hearing of those that it has. There must be a worker
	// left, or another one join, before the next request arrives.
	Leave(worker int32)
}

// Queued is the worker of a request that the router keeps.
const Queued = -1

// Dispatch sends a request that was kept to a worker.
type Dispatch struct{ Request, Worker int32 }

// Stage says which part of a request's life the workers of a pool are for.
type Stage int8

// The stages.
const (
	// Aggregated workers compute prompts and decode.
	Aggregated Stage = iota
	// Prefill and Decode workers do one of both: a prefill worker decodes nothing that would cost, a decode worker has no
	// prompts ahead, reuses nothing and never makes a request wait (spec/engine.md §12.3).
	Prefill
	Decode
)

// Environment is what a router knows of its pool and of the requests.
type Environment struct {
	// Workers is the number of workers at the start, Stage what they do. Their ids and seats count from 0.
	Workers int
	Stage   Stage
	// MaxNumBatchedTokens is the token budget of a worker's pass; 0 means no limit.
	MaxNumBatchedTokens int
	// Workload holds the requests, Blocks their KV blocks, those that are shared named alike, and Sessions the session of each.
	Workload *workload.Workload
	Blocks   *workload.BlockTable
	Sessions []int32
	// Index says which blocks the workers hold; nil when they tell nobody.
	Index *kvcache.Index
	// Tiers says what the memory tiers below the workers' GPUs have; nil when there are none.
	Tiers LowerTiers
	// PrefillMs predicts how long a prompt takes of which some tokens are cached; only a prefill load model asks.
	PrefillMs func(uncached, cached int) float64
}

// LowerTiers is what memory tiers below those of GPUs tell a router.
type LowerTiers interface {
	// Overlap returns how many blocks of a sequence from one (inclusive) to another (exclusive) are in a worker's host
	// memory, and how many only below that, on disk or in an object store, up to the first one that is nowhere.
	Overlap(worker int, nowMs float64, s kvcache.Sequence, from, to int) (host, below int)
}

// New returns the router that a valid configuration selects.
func New(c Config, env Environment) Router {
	rng := rand.New(rand.NewPCG(c.Seed, uint64(env.Stage)))
	switch c.Policy {
	case PolicyKVRouter:
		return newKV(c, env, rng)
	case PolicyLeastLoaded:
		return &leastLoaded{newCounter(env, rng)}
	case PolicyPowerOfTwo:
		return &powerOfTwo{newCounter(env, rng)}
	case PolicySessionAffinity:
		return newSessionAffinity(env, rng)
	case PolicyPrefixAffinity:
		return newPrefixAffinity(c, env)
	}
	return &roundRobin{immediate: immediate{roster: newRoster(env.Workers)}}
}

// UsesIndex reports whether a router with this configuration looks at what workers hold, so that they have to tell.
func (c Config) UsesIndex() bool { return c.Policy == PolicyKVRouter }

// sequence returns the block identities of a request and the number of its full prompt blocks.
func (env *Environment) sequence(request int32) (kvcache.Sequence, int) {
	return kvcache.SequenceOf(env.Blocks, request), env.input(request) / env.Blocks.BlockSize
}

// input is the prompt length of a request, in tokens.
func (env *Environment) input(request int32) int { return int(env.Workload.Input[request]) }
