package router

import (
	"math"
	"math/rand/v2"
)

// unlimitedBudget is the token budget of a pass where there is no limit, for thresholds that are a share of it.
const unlimitedBudget = 10_000_000

// kvRouter sends each request to the worker with the least cost (spec/engine.md §11): the prompt tokens that the worker
// has to compute before the first token is out, less those in its cache, and the KV blocks of all that it decodes. It
// keeps requests while every worker has too many prompt tokens to compute.
type kvRouter struct {
	roster
	env  Environment
	rng  *rand.Rand
	cost costWeights
	// uniqueBlocks counts the blocks of each request apart; predicts lets prompts count less as time goes by.
	tracksPrefill, tracksBlocks, uniqueBlocks, predicts bool
	budget                                              float64

	prefills []prefillLoad // by seat
	blocks   *activeBlocks
	routes   []route // by request

	classes *profile
	queue   queue
	now     float64
	maySend func(*Class) bool

	held       holdings  // of the request that is looked at
	active     []int32   // by seat, the worker's blocks that others use
	loads      []int64   // of the ready workers, prompt tokens to compute
	costs      []float64 // of the ready workers
	dispatched []Dispatch
	spare      []holdings // memory for those of kept requests
}

// costWeights says how the parts of a worker's cost are weighed.
type costWeights struct{ scale, credit, decay, temperature, host, below float64 }

// holdings is what workers have of a prompt.
type holdings struct {
	device []int32 // full blocks in the GPU's memory, by seat
	// lower is what the blocks after those count that are in lower memory tiers, by seat: each less than one on the GPU.
	// It is empty where there are no tiers.
	lower []float64
}

func newHoldings(seats int, tiers LowerTiers) holdings {
	h := holdings{device: make([]int32, seats)}
	if tiers != nil {
		h.lower = make([]float64, seats)
	}
	return h
}

// seat makes room for a seat, whose worker has nothing.
func (h *holdings) seat(seat int32, tiers LowerTiers) {
	h.device = grown(h.device, int(seat)+1)
	h.device[seat] = 0
	if tiers != nil {
		h.lower = grown(h.lower, int(seat)+1)
		h.lower[seat] = 0
	}
}

// blocks is how many blocks of the GPU's memory a worker's count as.
func (h holdings) blocks(seat int32) float64 {
	if len(h.lower) == 0 {
		return float64(h.device[seat])
	}
	return float64(h.device[seat]) + h.lower[seat]
}

// tokens is the number of tokens that need not be computed for that.
func (h holdings) tokens(seat int32, blockSize int) int {
	return int(h.blocks(seat) * float64(blockSize))
}

// route is what the router remembers of a request.
type route struct {
	seat    int32
	overlap int32 // blocks of its prompt in the worker's GPU memory when it arrived
	prefill int32 // prompt tokens that count as the worker's load
	active  bool  // its blocks count
}

func newKV(c Config, env Environment, rng *rand.Rand) *kvRouter {
	k := &kvRouter{
		roster: newRoster(env.Workers), env: env, rng: rng,
		tracksPrefill: c.RouterTrackPrefillTokens && env.Stage != Decode,
		tracksBlocks:  c.RouterTrackActiveBlocks && env.Stage != Prefill,
		uniqueBlocks:  !c.RouterAssumeKVReuse || env.Stage == Decode,
		predicts:      c.RouterPrefillLoadModel == PrefillLoadAIC && env.Stage != Decode,
		budget:        float64(env.MaxNumBatchedTokens),
		prefills:      make([]prefillLoad, env.Workers),
		routes:        make([]route, env.Workload.Requests()),
		held:          newHoldings(env.Workers, env.Tiers),
		active:        make([]int32, env.Workers),
		loads:         make([]int64, env.Workers),
		costs:         make([]float64, env.Workers),
	}
	k.cost.scale, k.cost.credit = c.scaleAndCredit()
	k.cost.decay, k.cost.temperature = c.OverlapScoreCreditDecay, c.RouterTemperature
	k.cost.host, k.cost.below = c.HostCacheHitWeight, c.DiskCacheHitWeight
	if env.Stage == Decode {
		k.cost.credit = 0
	}
	if env.MaxNumBatchedTokens == 0 {
		k.budget = unlimitedBudget
	}
	shared := env.Blocks.Shared
	if !k.tracksBlocks || k.uniqueBlocks {
		shared = 0
	}
	k.blocks = newActiveBlocks(env.Workers, shared)
	k.classes = c.profile()
	k.queue = newQueue(k.classes.classes)
	k.maySend = func(c *Class) bool { return !k.allBusy(c) }
	return k
}

// Arrive routes the request, unless requests of its class wait or all workers are too busy for them.
func (k *kvRouter) Arrive(now float64, request int32) (int32, error) {
	k.now = now
	k.lookUp(request)
	class, entry := k.classify(request)
	c := &k.queue.classes[class]
	if !c.queues() || !k.tracksPrefill || len(c.heap) == 0 && !k.allBusy(&c.Class) {
		return k.at[k.send(request, k.held)].Worker, nil
	}
	if err := c.full(len(k.ready)); err != nil {
		err.Request, err.TimeMs = int(request), now
		return Queued, err
	}
	entry.held = k.keep(k.held)
	k.queue.push(class, entry, k.env.Workload.Hints(int(request)).Priority, now/1000)
	return Queued, nil
}

// lookUp finds what the workers have of a request's prompt.
func (k *kvRouter) lookUp(request int32) {
	if k.env.Index == nil || k.env.Stage == Decode {
		clear(k.held.device)
		return
	}
	sequence, full := k.env.sequence(request)
	k.env.Index.Overlaps(sequence, full, k.held.device)
	if k.env.Tiers == nil {
		return
	}
	for _, w := range k.ready {
		host, below := k.env.Tiers.Overlap(int(k.at[w].Tier), k.now, sequence, int(k.held.device[w]), full)
		k.held.lower[w] = k.cost.host*float64(host) + k.cost.below*float64(below)
	}
}

// classify returns the class of a request and how it would wait there.
func (k *kvRouter) classify(request int32) (class int, entry kept) {
	best := 0
	for _, w := range k.ready {
		best = max(best, k.held.tokens(w, k.env.Blocks.BlockSize))
	}
	entry = kept{request: request, raw: int64(k.env.input(request))}
	entry.cached = min(entry.raw, int64(best))
	hints := k.env.Workload.Hints(int(request))
	entry.strict = hints.StrictPriority
	return k.classes.classOf(hints.PolicyClass, entry.raw-entry.cached), entry
}

// allBusy reports whether every worker has too many prompt tokens to compute for a class.
func (k *kvRouter) allBusy(c *Class) bool {
	for _, w := range k.ready {
		if !c.busy(k.load(w), k.budget) {
			return false
		}
	}
	return true
}

// load is the prompt tokens that a worker has to compute.
func (k *kvRouter) load(seat int32) int64 {
	if k.predicts {
		return k.prefills[seat].at(k.now)
	}
	return k.prefills[seat].tokens
}

// send picks the seat of a request's worker, given what the workers had of it, and counts it as its load.
func (k *kvRouter) send(request int32, held holdings) (seat int32) {
	sequence, full := k.env.sequence(request)
	if k.tracksBlocks && !k.uniqueBlocks {
		k.blocks.overlaps(sequence, full, k.active)
	}
	w := k.choose(k.env.input(request), full, held)
	r := &k.routes[request]
	*r = route{seat: w, overlap: held.device[w]}
	if fresh := k.env.input(request) - held.tokens(w, k.env.Blocks.BlockSize); k.tracksPrefill && fresh > 0 {
		r.prefill = int32(fresh)
		p := prompt{request: request, tokens: int64(fresh)}
		if k.predicts {
			p.durationMs = k.env.PrefillMs(fresh, k.env.input(request)-fresh)
			k.prefills[w].addPredicted(k.now, p)
		} else {
			k.prefills[w].tokens += p.tokens
		}
	}
	if k.tracksBlocks {
		r.active = true
		if k.uniqueBlocks {
			k.blocks.total[w] += int64(full)
		} else {
			k.blocks.add(w, sequence, full, int(k.active[w]))
		}
	}
	return w
}

// choose returns the seat of the worker with the least cost for a prompt of so many tokens and full blocks; equal ones by chance.
func (k *kvRouter) choose(input, full int, held holdings) int32 {
	blockSize := float64(k.env.Blocks.BlockSize)
	leastLoad := int64(math.MaxInt64)
	if k.tracksPrefill {
		for i, w := range k.ready {
			k.loads[i] = k.load(w)
			leastLoad = min(leastLoad, k.loads[i])
		}
	}
	best, equal := 0, 0
	for i, w := range k.ready {
		cost := 0.0
		if k.tracksPrefill {
			credit := k.cost.credit
			if k.cost.decay > 0 {
				ahead := float64(k.loads[i]-leastLoad) / blockSize
				credit *= 1 / (1 + k.cost.decay*ahead/math.Ceil(float64(input)/blockSize))
			}
			cost = k.cost.scale * max(0, float64(k.loads[i]+int64(input))/blockSize-credit*held.blocks(w))
		}
		if k.tracksBlocks {
			cost += float64(k.blocks.total[w] + int64(full) - int64(k.active[w]))
		}
		k.costs[i] = cost
		switch {
		case equal == 0 || cost < k.costs[best]:
			best, equal = i, 1
		case cost == k.costs[best]:
			equal++
		}
	}
	switch {
	case k.cost.temperature > 0:
		best = k.draw(k.costs[best])
	case equal > 1:
		best = k.anyOf(k.costs[best], k.rng.IntN(equal))
	}
	return k.ready[best]
}

// anyOf returns the place among the ready workers of the n-th one of a cost, from 0.
func (k *kvRouter) anyOf(cost float64, n int) int {
	for i, c := range k.costs[:len(k.ready)] {
		if c == cost {
			if n == 0 {
				return i
			}
			n--
		}
	}
	return 0
}

// draw picks the place of a ready worker with probabilities that fall exponentially with its cost, on a scale from the least
// to the highest.
func (k *kvRouter) draw(least float64) int {
	costs := k.costs[:len(k.ready)]
	highest := least
	for _, c := range costs {
		highest = max(highest, c)
	}
	if highest == least {
		return k.rng.IntN(len(costs))
	}
	sum := 0.0
	for i, c := range costs {
		sum += math.Exp(-(c - least) / ((highest - least) * k.cost.temperature))
		costs[i] = sum
	}
	at := k.rng.Float64() * sum
	for i, c := range costs {
		if at < c {
			return i
		}
	}
	return len(costs) - 1
}

// Join makes another worker take requests, which has nothing of those that wait.
func (k *kvRouter) Join(now float64, m Member) []Dispatch {
	k.now = now
	k.join(m)
	seats := k.seats()
	k.prefills, k.active = grown(k.prefills, seats), grown(k.active, seats)
	k.loads, k.costs = grown(k.loads, seats), grown(k.costs, seats)
	k.blocks.grow(seats)
	k.held.seat(m.Seat, k.env.Tiers)
	for _, class := range k.queue.classes {
		for i := range class.heap {
			class.heap[i].held.seat(m.Seat, k.env.Tiers)
		}
	}
	return k.drain()
}

// Leave makes a worker take no more requests.
func (k *kvRouter) Leave(worker int32) { k.leave(worker) }

// PrefillDone takes the request's prompt off its worker's load.
func (k *kvRouter) PrefillDone(now float64, request int32) []Dispatch {
	k.now = now
	k.prefillOver(request)
	return k.drain()
}

// Ended takes all of the request off its worker's load.
func (k *kvRouter) Ended(now float64, request int32) []Dispatch {
	k.now = now
	k.prefillOver(request)
	if r := &k.routes[request]; r.active {
		r.active = false
		sequence, full := k.env.sequence(request)
		if k.uniqueBlocks {
			k.blocks.total[r.seat] -= int64(full)
		} else {
			k.blocks.remove(r.seat, sequence, full)
		}
	}
	return k.drain()
}

func (k *kvRouter) prefillOver(request int32) {
	r := &k.routes[request]
	if r.prefill == 0 {
		return
	}
	if k.predicts {
		k.prefills[r.seat].removePredicted(k.now, request)
	} else {
		k.prefills[r.seat].tokens -= int64(r.prefill)
	}
	r.prefill = 0
}

// drain sends requests that wait, while some worker is not too busy for them.
func (k *kvRouter) drain() []Dispatch {
	k.dispatched = k.dispatched[:0]
	for k.queue.waiting > 0 && len(k.ready) > 0 {
		next, ok := k.queue.pop(k.maySend)
		if !ok {
			break
		}
		k.dispatched = append(k.dispatched, Dispatch{next.request, k.at[k.send(next.request, next.held)].Worker})
		k.spare = append(k.spare, next.held)
	}
	return k.dispatched
}

// Withdraw takes out a request that waits.
func (k *kvRouter) Withdraw(request int32) bool {
	out, ok := k.queue.withdraw(request)
	if ok {
		k.spare = append(k.spare, out.held)
	}
	return ok
}

// MarkPages and GrowIDs are for blocks whose ids are used again. See [workload.BlockHolder].
func (k *kvRouter) MarkPages(pages []uint64) { k.blocks.index.MarkPages(pages) }
func (k *kvRouter) GrowIDs(ids uint32)       { k.blocks.index.GrowIDs(ids) }

// keep copies the holdings of a request that has to wait.
func (k *kvRouter) keep(held holdings) holdings {
	var kept holdings
	if n := len(k.spare); n > 0 {
		kept = k.spare[n-1]
		k.spare = k.spare[:n-1]
	}
	return holdings{append(kept.device[:0], held.device...), append(kept.lower[:0], held.lower...)}
}

// Overlap returns how many tokens of a routed request's prompt its worker had in GPU memory when it arrived.
func (k *kvRouter) Overlap(request int32) int32 {
	return k.routes[request].overlap * int32(k.env.Blocks.BlockSize)
}

// Waiting is the number of requests that the router keeps.
func (k *kvRouter) Waiting() int { return k.queue.waiting }
