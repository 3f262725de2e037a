package engine

import (
	"fmt"

	"github.com/servegrid/servegrid/simcore/kvcache"
	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// SGLang is a worker with the SGLang-style scheduler (engine specification §8): each pass forms a batch of waiting
// prompts as long as there is room for them and for the output that is expected of all, then decodes. A radix tree
// shares prefixes; the pool counts tokens. When memory runs out, running requests are retracted.
//
// Read onePass for one pass, sglangprefill.go and sglangdecode.go for its two halves, sglangrun.go for how passes in
// which nothing but decoding happens are simulated at once, sglanghandoff.go for disaggregated deployments.
type SGLang struct {
	env     *Environment
	index   int32
	page    int32
	maxSeqs int
	limits  sglangLimits
	caching bool

	tree    kvcache.Radix
	free    int // tokens of the pool that nobody holds and nothing is cached in
	total   int
	running []int32
	waiting queue
	joined  int64 // how many requests have joined running so far
	reserve reserveRatio
	handoff sglangHandoff
	tiers   *tierAccess // nil without lower memory tiers

	pass        sglangPass
	speculation speculation
	pricer      pricer
	run         run
	signals     []Signal
	emitted     []int32
	queued      queued
	constraint  constraint
	latest      PassLoad // of the latest pass that was begun, while passes are collected
	joinsMs     float64  // when the next request comes that is submitted
	idle        int      // passes in a row that led to nothing
	barren      int      // passes in a row that gave no request a token

	order lpmOrder

	preemptions int64
}

// sglangPass is what one pass accumulates.
type sglangPass struct {
	number    int64 // counts passes, those of runs included
	prefill   prefillWork
	batch     []int32 // the requests whose prompts it computes
	retracted []int32
	outOfRoom bool  // a prompt did not get the room that there seemed to be
	limit     Limit // of the prompts that it computes
	full      bool  // it has as many requests as a pass may have
	progress  bool
	outside   int // accesses to the tree since it began that belong to no pass
}

// sglangLimits are the settings in tokens, defaults filled in.
type sglangLimits struct {
	maxPrefill, chunk, clip int32
	lpm                     bool
}

// NewSGLang returns an idle worker.
func NewSGLang(env *Environment, p Place) *SGLang {
	c := env.Config
	s := &SGLang{
		env:         env,
		page:        int32(c.BlockSize),
		maxSeqs:     limitOr(c.MaxNumSeqs),
		limits:      newSGLangLimits(c),
		caching:     c.SharesPrefixes(env.Rules),
		speculation: newSpeculation(c),
		pricer:      pricer{env: env, chargesContext: true},
		reserve:     newReserveRatio(c.SGLang.ScheduleConservativeness),
		tree:        kvcache.Radix{PageWise: !env.Rules.WholeNodesGo},
		tiers:       newTierAccess(env),
	}
	s.Reset(p)
	return s
}

func newSGLangLimits(c Config) sglangLimits {
	return sglangLimits{
		maxPrefill: sizeOr(c.SGLang.MaxPrefillTokens, defaultMaxPrefillTokens),
		chunk:      sizeOr(c.SGLang.ChunkedPrefillSize, defaultChunkedPrefillSize),
		clip:       sizeOr(c.SGLang.ClipMaxNewTokens, defaultClipMaxNewTokens),
		lpm:        c.SGLang.SchedulePolicy == PolicyLPM,
	}
}

func sizeOr(size, otherwise int) int32 {
	if size == 0 {
		size = otherwise
	}
	return int32(min(size, unlimited))
}

// Reset makes the worker idle with an empty cache, as another worker. Its memory is kept, and it goes on counting.
func (s *SGLang) Reset(p Place) {
	s.index = int32(p.Worker)
	s.total = s.env.Config.NumGPUBlocks * int(s.page)
	s.free = s.total
	s.tree.Reset(s.env.Blocks.IDs)
	if s.env.Index != nil {
		s.tree.Watch(s.env.Index, p.Seat)
	}
	s.running, s.waiting, s.queued = s.running[:0], queue{ring: s.waiting.ring}, queued{}
	s.pass = sglangPass{batch: s.pass.batch[:0], retracted: s.pass.retracted[:0]}
	s.reserve.reset()
	s.handoff = sglangHandoff{arrived: queue{ring: s.handoff.arrived.ring}}
	s.run.active, s.run.steady = false, false
	s.constraint.restart(s.env.Kept)
	s.speculation.start(s.index)
	if s.tiers.reset(p.Tier) {
		s.tree.NoteChanges()
	}
}

// Recycle leaves the memory of the tree to later workers.
func (s *SGLang) Recycle() { s.tree.Recycle() }

// Preemptions counts how often a running request was retracted since the worker was made.
func (s *SGLang) Preemptions() int64 { return s.preemptions }

// Passes counts the passes since the worker was made, and those of them that lie outside of the data behind the timing
// model.
func (s *SGLang) Passes() (all, extrapolated int64) { return s.pricer.passes, s.pricer.extrapolated }

// HasWork reports whether any request waits or runs.
func (s *SGLang) HasWork() bool {
	return len(s.running) > 0 || s.waiting.len() > 0 || s.handoff.arrived.len() > 0 || s.tiers.holding()
}

// Submit adds a request to the waiting queue.
func (s *SGLang) Submit(request int32) {
	r := &s.env.Requests[request]
	r.Worker, r.State = s.index, Waiting
	s.waiting.pushBack(request)
	s.queued.add(r)
	s.constraint.waits(r.RoutedMs)
	if s.env.Passes != nil && s.run.active {
		s.env.Passes.queueChanged(s.env.Pool, s.index, s.joinsMs, s.queued)
	}
}

// Start begins what comes next at the given time: a pass, or a run of passes in which nothing but decoding happens. See
// [Worker].
func (s *SGLang) Start(now, arrival, stop float64) (end float64, progress bool, err error) {
	if s.arrivalsMatter() {
		stop = min(stop, arrival)
	}
	if s.run.steady && !s.env.EveryPass && s.startRun(now, stop) {
		end, progress = s.run.end, true
		s.limitOfRun()
	} else {
		end, progress, err = s.onePass(now)
		s.tellEvicted(now)
	}
	s.constraint.begin(s.pass.limit, s.pass.full, now, end)
	if progress && s.env.Passes != nil {
		s.env.Passes.begin(s.env.Pool, s.index, s.latest, &s.run.timeline)
	}
	return end, progress, err
}

// onePass computes a whole pass at its start; its tokens carry its end.
func (s *SGLang) onePass(now float64) (end float64, progress bool, err error) {
	s.leaveRun()
	s.signals, s.emitted = s.signals[:0], s.emitted[:0]
	s.pass = sglangPass{number: s.pass.number + 1, batch: s.pass.batch[:0], retracted: s.pass.retracted[:0]}
	s.admitArrived(now)
	s.prefill(now)
	s.limitOfPass()
	s.makeRoomForFirst()
	if err := s.cachePrompts(now); err != nil {
		return now, false, err
	}
	var prefill, decode perfmodel.Nanoseconds
	if len(s.pass.batch) == 0 || s.env.Rules.DecodeInPrefillPass {
		s.makeRoomToDecode(now)
		s.noteLoad(s.running)
		prefill, decode = s.price(s.running)
		s.decode()
		s.requeueRetracted()
	} else {
		s.noteLoad(nil)
		prefill, decode = s.price(nil)
		s.emitFirst()
	}
	end = now + prefill.Ms() + decode.Ms()
	s.signals = s.env.recordTokens(s.emitted, now, end, prefill+decode, s.signals)
	s.enterRun(end)
	s.run.single(now, end)
	if len(s.emitted) > 0 || len(s.signals) > 0 {
		s.idle, s.barren = 0, 0
		return end, true, nil
	}
	return s.noToken(now, end)
}

// noteLoad notes what the pass does, in which the given requests may decode, when passes are collected.
func (s *SGLang) noteLoad(decoding []int32) {
	if s.env.Passes == nil {
		return
	}
	var c loadCounter
	for _, id := range s.pass.batch {
		if r := &s.env.Requests[id]; min(r.after, r.Input) > r.before {
			c.prompt(r, r.before, r.after)
		}
	}
	for _, id := range decoding {
		if r := &s.env.Requests[id]; r.pass != s.pass.number {
			c.decode(r.length())
		}
	}
	s.latest = c.load(s.queued)
}

// noToken judges a pass that gave no request anything.
func (s *SGLang) noToken(now, end float64) (_ float64, progress bool, err error) {
	s.idle++
	s.barren++
	if len(s.pass.batch) > 0 || s.tiers.holding() {
		s.idle = 0
	}
	switch {
	case s.env.Role == Aggregated && s.idle > maxIdlePasses, s.barren > maxBarrenPasses:
		return now, false, s.Stuck(now)
	case s.idle > maxIdlePasses:
		s.idle = 0
		return end, false, nil // hand-offs will make room
	}
	return end, end > now || s.pass.progress, nil
}

// maxIdlePasses is how many passes in a row may lead to nothing.
const maxIdlePasses = 1024

// maxBarrenPasses is how many passes in a row may give no request a token. Prompts of many chunks can take a
// while.
const maxBarrenPasses = 1 << 20

// sequence returns the page identities of a request.
func (s *SGLang) sequence(id int32) kvcache.Sequence { return s.env.sequence(id) }

// roundUp returns the least number of tokens in whole pages that is not below the given one.
func (s *SGLang) roundUp(tokens int32) int32 { return ceilDiv(tokens, s.page) * s.page }

// allocated is the room in the pool that so many tokens take.
func (s *SGLang) allocated(tokens int32) int32 {
	if s.env.Rules.TokenPool {
		return tokens
	}
	return s.roundUp(tokens)
}

// growth is the room in the pool that a request takes for more tokens.
func (s *SGLang) growth(r *Request, tokens int32) int32 {
	return s.allocated(r.computed+tokens) - s.allocated(r.computed)
}

// available is the number of tokens that are free or can be made so by eviction.
func (s *SGLang) available() int { return s.free + s.tree.Evictable()*int(s.page) }

// evict makes a number of tokens free as far as possible.
func (s *SGLang) evict(tokens int) {
	if missing := tokens - s.free; missing > 0 {
		s.free += s.tree.Evict((missing+int(s.page)-1)/int(s.page)) * int(s.page)
	}
}

// slack is the room that running requests have not taken in pages that they have begun. Waiting ones have computed whole
// pages or nothing.
func (s *SGLang) slack() int {
	sum := int32(0)
	if s.env.Rules.TokenPool {
		for _, id := range s.running {
			computed := s.env.Requests[id].computed
			sum += s.roundUp(computed) - computed
		}
	}
	return int(sum)
}

// The order of accesses to the tree: in each pass prompts come first, then tokens, then what happens before the next one.
const (
	accessDecode  = 1 << 31
	accessOutside = 3 << 30
	accessKinds   = 1 << 30
)

// prefillAccess is the place of the i-th access for prompts of this pass in the order of accesses to the tree.
func (s *SGLang) prefillAccess(i int) uint64 { return uint64(s.pass.number)<<32 + uint64(i) }

// decodeAccess is the place of a running request's token of the pass with the given number in that order.
func decodeAccess(r *Request, number int64) uint64 {
	return uint64(number)<<32 + accessDecode + uint64(r.joined)%accessKinds
}

// outsideAccess is the place of what now happens between two passes in that order.
func (s *SGLang) outsideAccess() uint64 {
	s.pass.outside++
	return uint64(s.pass.number)<<32 + accessOutside + uint64(s.pass.outside)
}

// Stuck explains, when the worker has requests but nothing will ever happen, which one is to blame and why. It returns
// nil for a worker without requests.
func (s *SGLang) Stuck(now float64) error {
	if len(s.running) > 0 {
		r := &s.env.Requests[s.running[0]]
		return &StuckError{int(r.Number), now, fmt.Sprintf(
			"its %d input tokens and %d of %d output tokens leave no room for the next one in a pool of %d tokens (engine.num_gpu_blocks)",
			r.Input, r.Tokens, r.Output, s.total)}
	}
	if s.waiting.len() == 0 {
		return nil
	}
	r := &s.env.Requests[s.waiting.front()]
	return &StuckError{int(r.Number), now, fmt.Sprintf(
		"it waits for room for %d tokens and up to %d tokens of output, and the pool has %d, of which %d are free or evictable (engine.num_gpu_blocks, engine.sglang)",
		r.length()-r.computed, min(r.Output-r.Tokens, s.limits.clip), s.total, s.available())}
}
