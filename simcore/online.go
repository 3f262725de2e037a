package simcore

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Online is a deployment to which requests come one by one while it simulates: every engine, router and topology that Run
// has. It has no clock and starts no goroutine: the caller says how far time has gone. It is deterministic: the same calls give
// the same tokens at the same times, and requests that come when those of a workload do fare as in Run. It is not safe for
// concurrent use.
//
// Its memory does not grow with the requests that it has served. A request that can make no progress fails, and the others go on.
type Online struct {
	deployment onlineDeployment
	events     func(OnlineEvent)
	blocks     *workload.Slots
	rules      rules.Set
	pools      []Pool

	slots     []onlineSlot
	free      []int32
	arrivals  timeHeap // requests that have not arrived, by their order and then as they were submitted
	submitted int32

	cancels    timeHeap // requests by when they are given up, in order of generation
	cancelling []int32  // requests that are being given up

	scaling *scaling // nil when the number of workers does not change
	numbers []OnlinePool

	workers []OnlineWorker
	record  RequestRecord
	handoff Handoff
}

// onlineDeployment is a runtime whose requests come one by one.
type onlineDeployment interface {
	nextMs() float64
	advance(until float64) error
	// prepare makes a slot ready for a request that has not arrived.
	prepare(request int32)
	// forgetSession makes the number of a session that of another one.
	forgetSession(session int32)
	// life is what is known of a request, recordOf what is told of one in the end.
	life(request int32) *engine.Request
	// seatOf is the seat of the worker that makes a request's tokens, or -1 as long as there is none.
	seatOf(request int32) int
	// reused is how many tokens of a request's prompt were cached.
	reused(request int32) int32
	recordOf(request int32, record *RequestRecord, handoff *Handoff)
	// giveUp gives a request up as far as that can be at a time, which then has the given state. It is true when that is done,
	// and the driver has been told.
	giveUp(request int32, state engine.State, now float64) bool
	// settled reports whether nothing is left of a request that has ended.
	settled(request int32) bool
	// stuck returns a request that can make no progress and keeps a worker from starting anything.
	stuck(now float64) (request int32, found bool)
	// idleFor says why the workers do nothing; nil when they have no requests. It is asked when nothing happens any more, at
	// latestMs. resume lets them start what they can.
	idleFor() error
	latestMs() float64
	resume() error
	kept() int
	occupancy(into []OnlineWorker) []OnlineWorker
}

// onlineSlot is what is known of the request in a slot beside its life.
type onlineSlot struct {
	generation int32 // counts the requests that the slot has had
	told       int32 // tokens
	taken      bool
	arrived    bool
	ended      bool         // and told, but parts of it are still held
	cancelling engine.State // what it will be when it is given up; Pending unless it is being
	// The sides of a hand-off that have been given up.
	noSource, noDestination bool
}

// OnlineRequest is one request to an [Online] deployment.
type OnlineRequest struct {
	// Input and Output are the lengths in tokens. What is out of bounds, or has no room on any worker, is rejected.
	Input, Output int
	// Blocks identify the full KV blocks of the prompt and, behind them, of the answer where that is known beforehand: a hash
	// a block that stands for the block and all before it. Without them the prompt shares nothing with any other.
	Blocks []uint64
	// Session names the session, for routers that look at it; "" stands alone.
	Session string
	// Hints are what it tells the router.
	Hints workload.Hints
	// Order says which of the requests that arrive at the same time comes first: that with the lowest, and with equal ones the one
	// that was submitted first. [Release.Order] is what a simulation goes by.
	Order int32
}

// OnlineEvent says what became of a request at a time.
type OnlineEvent struct {
	// Request is the number that Submit returned. It may be used again after the request has ended.
	Request int32
	// AtMs is the simulated time.
	AtMs float64
	// Tokens counts the output tokens that came at that time, Cached the prompt tokens that were in the prefix cache.
	Tokens, Cached int32
	// Seat is that of the worker that makes the tokens, or -1 as long as there is none. See [OnlineWorker].
	Seat int
	// Life is what is known of the request by then, valid during the call.
	Life *engine.Request
	// Ended says that nothing more comes: Life.State is completed, rejected, failed or cancelled. Record then says all that is
	// known, its Request, Session and Turn without meaning. It is valid during the call.
	Ended  bool
	Record *RequestRecord
}

// OnlineWorker is the state of one worker that is ready or drains.
type OnlineWorker struct {
	// Pool and Worker are the place of its pool in [Config.Stages] and its id there, which no other worker ever has. Seat is a
	// number there that another worker may have once it is gone; those of the first workers are their ids.
	Pool, Worker, Seat int
	// Running and Waiting count requests; HeldBlocks, CachedBlocks and TotalBlocks KV blocks: those that requests hold, those
	// that nobody holds and that may be reused, and all.
	Running, Waiting                      int
	HeldBlocks, CachedBlocks, TotalBlocks int
	// Preemptions and Passes are counted since the beginning, those of workers included that had the seat before.
	Preemptions, Passes int64
}

// OnlinePool is how many workers of a pool take requests, start, and finish what they have.
type OnlinePool struct{ Ready, Starting, Draining int }

// OnlineOptions are what an [Online] deployment may do besides serving.
type OnlineOptions struct {
	// Autoscaler, when set, changes how many workers there are. It decides as long as time goes on, even when there are no
	// requests.
	Autoscaler Autoscaler
	// ScalingEvents, when set, hears of each worker that comes or goes, from within Advance.
	ScalingEvents func(ScalingEvent)
}

// NewOnline returns an idle deployment at time 0 that holds up to maxRequests requests at once, of at least 1. events hears of
// tokens and ends in order of time, from within Advance; it may call Submit and Cancel. What the configuration says of load,
// time cap and SLA does not count. An invalid configuration is a [problem.List].
func NewOnline(cfg Config, maxRequests int, events func(OnlineEvent), opt OnlineOptions) (*Online, error) {
	return newOnline(cfg, maxRequests, events, Options{Autoscaler: opt.Autoscaler, ScalingEvents: opt.ScalingEvents})
}

func newOnline(cfg Config, maxRequests int, events func(OnlineEvent), opt Options) (*Online, error) {
	cfg, problems := cfg.Resolve()
	if cfg.AgentX.Enabled() {
		problems.Add("agentx.preset", cfg.AgentX.Preset, "the scenario is about who sends requests, and here they come from outside; leave it out")
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	set, err := rules.For(cfg.Compat)
	if err != nil {
		return nil, err
	}
	maxRequests = max(1, maxRequests)
	o := &Online{events: events, blocks: workload.NewSlots(maxRequests), rules: set, pools: cfg.Stages(), slots: make([]onlineSlot, maxRequests)}
	for i := range maxRequests {
		o.free = append(o.free, int32(maxRequests-1-i))
	}
	s := &simulation{
		released: released{cfg: cfg, workload: o.blocks.Workload(), stop: math.Inf(1)},
		ctx:      context.Background(), rules: set, opt: opt, overheadMs: cfg.RequestOverheadMs(), online: o,
	}
	s.scaling = s.newScaling()
	o.scaling = s.scaling
	return o, o.deploy(s)
}

// deploy makes the workers.
func (o *Online) deploy(s *simulation) error {
	if s.cfg.Deployment.Mode == ModeDisaggregated {
		d, err := s.newDisaggregated((*onlineDriver)(o), o.blocks.Sessions())
		if err != nil {
			return err
		}
		d.survives, o.deployment = true, d
		return nil
	}
	var err error
	if s.env, err = s.environment(Stage{s.cfg.Engine, s.cfg.Timing}, engine.Aggregated); err != nil {
		return err
	}
	s.newTiers(s.cfg.Deployment.Workers, &s.env)
	c, err := s.newCluster((*onlineDriver)(o), o.blocks.Sessions())
	if err != nil {
		return err
	}
	c.survives, o.deployment = true, c
	return nil
}

// hold keeps blocks that a holder remembers from being named anew.
func (o *Online) hold(t *workload.BlockTable, holder workload.BlockHolder) {
	if o != nil {
		o.blocks.Hold(t, holder)
	}
}

// noGaps records no gaps between tokens, of which there is no end.
type noGaps struct{}

// RecordGaps does nothing.
func (noGaps) RecordGaps(perfmodel.Nanoseconds, int64) {}

// Submit lets a request arrive at a time, and returns its number. When something has happened since that time it arrives with
// the last of what has. ok is false when there are maxRequests already.
func (o *Online) Submit(atMs float64, r OnlineRequest) (request int32, ok bool) {
	if len(o.free) == 0 {
		return 0, false
	}
	request = o.free[len(o.free)-1]
	fresh, ok := o.blocks.Take(request, workload.SlotRequest{
		Input: min(max(r.Input, 0), workload.MaxTokens), Output: min(max(r.Output, 0), workload.MaxTokens),
		Blocks: r.Blocks, Session: r.Session, Hints: r.Hints,
	})
	if !ok {
		return 0, false
	}
	o.free = o.free[:len(o.free)-1]
	if fresh {
		o.deployment.forgetSession(o.blocks.Sessions()[request])
	}
	o.slots[request] = onlineSlot{generation: o.slots[request].generation + 1, taken: true}
	o.deployment.prepare(request)
	if len(o.arrivals) == 0 {
		o.submitted = 0
	}
	o.arrivals.push(timed{o.notPast(atMs), int64(r.Order)<<32 | int64(o.submitted), request})
	o.submitted++
	return request, true
}

// notPast is a time, or that of the last thing that has happened if that is later.
func (o *Online) notPast(atMs float64) float64 { return max(atMs, o.deployment.latestMs()) }

// Cancel ends a request whose client has gone, at the given time or as soon after it as Submit could: at the end of the pass that
// is under way its KV blocks are given up, and nothing more is told of it but its end. A request that has ended, or ends until then,
// stays as it is.
func (o *Online) Cancel(atMs float64, request int32) {
	if int(request) >= len(o.slots) || request < 0 {
		return
	}
	if slot := &o.slots[request]; slot.taken && !slot.ended {
		o.cancels.push(timed{o.notPast(atMs), int64(slot.generation), request})
	}
}

// NextMs is when something happens next without further requests, or the autoscaler decides; +Inf when nothing will.
func (o *Online) NextMs() float64 {
	next := o.deployment.nextMs()
	if o.scaling != nil {
		next = min(next, o.scaling.nextMs)
	}
	return next
}

// goesOnAfter reports whether more requests may come after a time up to which it is simulated, so that the autoscaler decides
// until then whatever there is to do.
func (o *Online) goesOnAfter(ms float64) bool { return o != nil && !math.IsInf(ms, 1) }

// Advance simulates everything up to the given time and including it; the autoscaler decides at that time, too, after all else.
// With an autoscaler, +Inf is until all requests have ended.
func (o *Online) Advance(toMs float64) error {
	for {
		if err := o.deployment.advance(toMs); err != nil {
			return err
		}
		if !math.IsInf(o.deployment.nextMs(), 1) {
			break
		}
		if again, err := o.leaveDeadEnd(); err != nil {
			return err
		} else if !again {
			break
		}
	}
	if len(o.cancelling) > 0 {
		o.cancelling = slices.DeleteFunc(o.cancelling, func(request int32) bool { return o.slots[request].cancelling == engine.Pending })
	}
	return nil
}

// leaveDeadEnd fails a request without which others may go on, when nothing happens any more.
func (o *Online) leaveDeadEnd() (again bool, err error) {
	var stuck *StuckError
	if err := o.deployment.idleFor(); err == nil || !errors.As(err, &stuck) {
		return false, err
	}
	request := int32(stuck.Request)
	o.slots[request].cancelling = engine.Failed
	if !o.deployment.giveUp(request, engine.Failed, o.deployment.latestMs()) {
		return false, stuck
	}
	return true, o.deployment.resume()
}

// Workers says how the workers are at the time that Advance has reached, in the order of their pools; the slice is valid until
// the next call.
func (o *Online) Workers() []OnlineWorker {
	o.workers = o.deployment.occupancy(o.workers[:0])
	return o.workers
}

// Pools says how many workers there are at that time, in the order of [Config.Stages]; the slice is valid until the next call.
func (o *Online) Pools() []OnlinePool {
	o.numbers = o.numbers[:0]
	for i, p := range o.pools {
		n := OnlinePool{Ready: p.Workers}
		if o.scaling != nil {
			w := &o.scaling.pools[i]
			n = OnlinePool{Ready: len(w.ready), Starting: len(w.starting), Draining: len(w.draining)}
		}
		o.numbers = append(o.numbers, n)
	}
	return o.numbers
}

// Kept is the number of requests that wait in a router, or for a worker to be there at all.
func (o *Online) Kept() int { return o.deployment.kept() }

// onlineDriver is the requests that are submitted as a driver.
type onlineDriver Online

func (o *onlineDriver) peek() float64 { return o.arrivals.soonest() }

func (o *onlineDriver) pop() (request int32, readyMs float64) {
	next := o.arrivals.pop()
	o.slots[next.id].arrived = true
	return next.id, next.atMs
}

func (o *onlineDriver) ended(request, _ int32, now float64) { (*Online)(o).end(request, now) }

func (o *onlineDriver) closed() bool { return false }

// tokens tells of the tokens of a pass that has ended, but for those of requests that end with it, which are told of then.
func (o *Online) tokens(now float64, w engine.Worker, requests []engine.Request) {
	if o == nil {
		return
	}
	for _, id := range w.Emitted() {
		slot, r := &o.slots[id], &requests[id]
		if r.State == engine.Completed {
			continue
		}
		n := r.Tokens - slot.told
		slot.told = r.Tokens
		if n > 0 && slot.cancelling == engine.Pending {
			o.events(OnlineEvent{Request: id, AtMs: now, Tokens: n, Cached: o.deployment.reused(id), Seat: o.deployment.seatOf(id), Life: r})
		}
	}
}

// end tells the end of a request. Its slot serves another one from then on, unless parts of it are still held.
func (o *Online) end(request int32, now float64) {
	slot := &o.slots[request]
	o.record = RequestRecord{Request: int(request), Play: -1}
	o.deployment.recordOf(request, &o.record, &o.handoff)
	tokens, seat := o.record.Life.Tokens-slot.told, o.deployment.seatOf(request)
	if slot.cancelling != engine.Pending && o.record.Life.State == slot.cancelling {
		tokens = 0
	}
	slot.ended, slot.cancelling = true, engine.Pending
	o.settle(request)
	life := &o.record.Life
	o.events(OnlineEvent{Request: request, AtMs: now, Tokens: tokens, Cached: min(life.Reused, life.Input), Seat: seat, Life: life, Ended: true, Record: &o.record})
}

// settle frees the slot of a request that has ended, if nothing is left of it.
func (o *Online) settle(request int32) {
	if o == nil {
		return
	}
	if slot := &o.slots[request]; slot.taken && slot.ended && o.deployment.settled(request) {
		slot.taken = false
		o.blocks.Free(request)
		o.free = append(o.free, request)
	}
}

// nextCancel is when a request is given up next; +Inf when none is.
func (o *Online) nextCancel() float64 {
	if o == nil {
		return math.Inf(1)
	}
	return o.cancels.soonest()
}

// cancelDue gives up the requests that are cancelled by now, as far as that can be.
func (o *Online) cancelDue(now float64) {
	if o == nil {
		return
	}
	for o.cancels.soonest() <= now {
		c := o.cancels.pop()
		if slot := &o.slots[c.id]; slot.taken && !slot.ended && int64(slot.generation) == c.order && slot.cancelling == engine.Pending {
			slot.cancelling = engine.Cancelled
			o.cancelling = append(o.cancelling, c.id)
		}
	}
	if len(o.cancelling) == 0 {
		return
	}
	o.cancelling = slices.DeleteFunc(o.cancelling, func(request int32) bool {
		slot := &o.slots[request]
		switch {
		case slot.cancelling == engine.Pending: // it has ended
			return true
		case !slot.arrived:
			o.withdraw(request, now)
			return true
		}
		return o.deployment.giveUp(request, slot.cancelling, now)
	})
}

// withdraw ends a request that has not arrived.
func (o *Online) withdraw(request int32, now float64) {
	life := o.deployment.life(request)
	life.State = engine.Cancelled
	at := slices.IndexFunc(o.arrivals, func(a timed) bool { return a.id == request })
	if ready := o.arrivals[at].atMs; ready <= now {
		life.ArrivalMs = ready // it is on its way to the router
	}
	o.arrivals.remove(at)
	o.end(request, now)
}

// dropStuck fails requests that can make no progress and keep workers from starting anything. It reports whether workers may
// start something now.
func (o *Online) dropStuck(now float64) (again bool) {
	if o == nil {
		return false
	}
	for {
		request, found := o.deployment.stuck(now)
		if !found || o.slots[request].cancelling != engine.Pending {
			return again
		}
		o.slots[request].cancelling = engine.Failed
		if !o.deployment.giveUp(request, engine.Failed, now) {
			o.cancelling = append(o.cancelling, request)
		}
		again = true
	}
}

// refuses reports whether a request that has arrived can never be served, where engines would find that out late or never:
// TensorRT-LLM looks before it admits, and where blocks are taken at emission it depends on others.
func (o *Online) refuses(r *engine.Request) bool {
	if o == nil {
		return false
	}
	first, last := o.pools[0].Engine, o.pools[len(o.pools)-1].Engine
	if r.Input < 1 || r.Input == workload.MaxTokens || r.Output == workload.MaxTokens {
		return true
	}
	if int(r.Input) > first.NumGPUBlocks*first.BlockSize || first.ContextLength > 0 && int(r.Input) >= first.ContextLength {
		return false // engines reject it
	}
	room := last.NumGPUBlocks * last.BlockSize
	whole := int(r.Input) + int(r.Output) - 1 // the last token is not computed
	tooLong := int(r.Input) <= room && whole > room && last.Type != engine.TypeTensorRTLLM && !o.rules.BlocksAtEmission
	return r.Output == 0 && o.rules.OutputZeroNeverEnds || tooLong
}
