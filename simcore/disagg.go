package simcore

import (
	"fmt"
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/router"
)

// disaggregated simulates a pool of workers that compute prompts and one that decodes, with the hand-off of each prompt's
// KV cache between them (engine specification §12). Both pools are one crew.
type disaggregated struct {
	*simulation
	crew
	driver driver

	prefill, decode             engine.Environment
	prefillRouter, decodeRouter router.Router
	prefillWorkers              []engine.PrefillWorker // by id in their pool; nil where there is none
	decodeWorkers               []engine.DecodeWorker

	actions      actionQueue
	deferred     [][]action     // actions of each worker of the crew that wait until it is idle
	ended        []int32        // workers that are done at this time
	passesBegan  bool           // passes have begun at this time, those within runs included
	reservations []reservations // of each decode worker
	transfers    timeHeap       // requests by the end of their transfer, then by when they asked for room
	asked        int32          // requests that have asked for room on a decode worker
	handoffs     []Handoff
	now          float64 // when the latest event was
	step         int
	sessions     []int32 // the session of each request
	open         int     // requests that have arrived and not ended
	// What waits because a pool has no worker that takes requests: prompts, and requests for room on a decode worker.
	heldPrompts, heldReservations []int32

	// destinationFirst reserves room on a decode worker before the prompt is computed, as SGLang does. Otherwise that
	// follows.
	destinationFirst bool
	// unreserved says that prompts are sent without room for them, and their source is given up at once. See
	// [rules.Set].HandoffPaysBudget.
	unreserved bool
}

// Handoff is how a request went from prefill to decode. Times are simulated ms, or [engine.Never].
type Handoff struct {
	// PrefillWorker computed the prompt; the decode worker is that of the request.
	PrefillWorker int32
	// SourceHeldMs is when the prompt was computed, DestinationReservedMs when a decode worker had room for it, ActivatedMs
	// when it had arrived there, DecodeAdmittedMs when its decoding began, and SourceReleasedMs when the prefill worker
	// gave up its KV blocks.
	SourceHeldMs, DestinationReservedMs, ActivatedMs, DecodeAdmittedMs, SourceReleasedMs float64
	// PrefillReused counts prompt tokens that the prefill worker had in its cache.
	PrefillReused int32
	// DecodeReused counts prompt tokens that the decode worker had in its cache when it computed the prompt again, after a
	// preemption.
	DecodeReused int32
	// DecodeRouteOverlap is the router's view of the prompt tokens in the decode worker's cache.
	DecodeRouteOverlap int32

	parts LatencyParts
	fresh int // tokens that the decode worker did not have
	// cancelled says that the room on the decode worker was given up before the prompt arrived.
	cancelled bool
	asked     int32 // place among the requests that have asked for room on a decode worker
}

// reservations are the requests that wait for room on a decode worker, first come first served.
type reservations struct {
	waiting []int32
	// failed says that the first one found no room when the worker had given up blocks so many times.
	failed   bool
	released int64
}

// triedInVain reports that the first request found no room, and that the worker has given up none since.
func (q *reservations) triedInVain(worker engine.DecodeWorker) bool {
	return q.failed && q.released == worker.Released()
}

// actionKind is a step of a hand-off.
type actionKind int8

const (
	actReserve  actionKind = iota // look for room on a decode worker
	actPrefill                    // compute the prompt
	actActivate                   // the prompt has arrived
	actRelease                    // give up the source
	actCancel                     // give up the room for a prompt that was rejected
	actDrop                       // the request is over without output
)

type action struct {
	kind    actionKind
	request int32
}

func (s *simulation) runDisaggregated() error {
	d, err := s.newDisaggregated(s.newDriver(), s.sessionOfRequests())
	if err != nil {
		return err
	}
	if err := d.advance(math.Inf(1)); err != nil {
		return err
	}
	s.countWorkers(&d.crew)
	d.recycle()
	for i := range d.handoffs {
		d.mergeJob(&d.decode.Requests[i], &d.handoffs[i])
	}
	s.handoffs = d.handoffs
	s.collect(&d.decode)
	return nil
}

// newDisaggregated returns idle pools whose requests a driver releases, which are of the given sessions.
func (s *simulation) newDisaggregated(released driver, sessions []int32) (*disaggregated, error) {
	cfg := &s.cfg
	p, n := cfg.Deployment.PrefillWorkers, cfg.Deployment.DecodeWorkers
	d := &disaggregated{
		simulation:       s,
		driver:           s.afterOverhead(released),
		sessions:         sessions,
		handoffs:         make([]Handoff, s.workload.Requests()),
		destinationFirst: cfg.Prefill.Engine.Type == engine.TypeSGLang,
		unreserved:       s.rules.HandoffPaysBudget && cfg.Prefill.Engine.Type != engine.TypeSGLang,
	}
	var err error
	if d.prefill, err = s.environment(cfg.Prefill, engine.Prefill); err != nil {
		return nil, err
	}
	if d.decode, err = s.environment(cfg.Decode, engine.Decode); err != nil {
		return nil, err
	}
	if cfg.Tiers.DecodeOffload {
		s.newTiers(p+n, &d.prefill)
		s.connectTiers(&d.decode)
	} else {
		s.newTiers(p, &d.prefill)
	}
	d.prefill.Requests = make([]engine.Request, s.workload.Requests())
	d.decode.Requests = make([]engine.Request, s.workload.Requests())
	for i := range d.decode.Requests {
		d.prepare(int32(i))
	}
	if d.prefillRouter, err = s.newRouter(&d.prefill, p, router.Prefill, sessions); err != nil {
		return nil, err
	}
	if d.decodeRouter, err = s.newRouter(&d.decode, n, router.Decode, sessions); err != nil {
		return nil, err
	}
	for i := range int32(p) {
		d.addWorker(0, router.Member{Worker: i, Seat: i, Tier: i})
	}
	for i := range int32(n) {
		d.addWorker(1, router.Member{Worker: i, Seat: i, Tier: int32(p) + i})
	}
	return d, nil
}

// prepare prepares the life of a request before it arrives.
func (d *disaggregated) prepare(r int32) {
	d.decode.Requests[r] = d.newRequest(r, &d.cfg.Decode.Engine)
	job := d.newRequest(r, &d.cfg.Prefill.Engine)
	job.Output, job.Truncated = 1, false
	d.prefill.Requests[r] = job
	d.handoffs[r] = Handoff{SourceHeldMs: engine.Never, DestinationReservedMs: engine.Never,
		ActivatedMs: engine.Never, DecodeAdmittedMs: engine.Never, SourceReleasedMs: engine.Never}
}

// addWorker adds a worker to a pool that is ready.
func (d *disaggregated) addWorker(pool int, m router.Member) {
	env := &d.prefill
	if pool == 1 {
		env = &d.decode
	}
	if env.Index != nil {
		env.Index.Grow(int(m.Seat) + 1)
	}
	w := d.newWorker(env, pool, m, d.online)
	d.add(w, pool, m)
	d.deferred = append(d.deferred, nil)
	if pool == 0 {
		d.prefillWorkers = append(d.prefillWorkers, make([]engine.PrefillWorker, int(m.Worker)+1-len(d.prefillWorkers))...)
		d.prefillWorkers[m.Worker] = w.(engine.PrefillWorker)
		return
	}
	d.decodeWorkers = append(d.decodeWorkers, make([]engine.DecodeWorker, int(m.Worker)+1-len(d.decodeWorkers))...)
	d.decodeWorkers[m.Worker] = w.(engine.DecodeWorker)
	d.reservations = append(d.reservations, make([]reservations, int(m.Worker)+1-len(d.reservations))...)
}

// nextMs is when something happens next, but for what an autoscaler does.
func (d *disaggregated) nextMs() float64 {
	return min(d.due.soonest(), d.transfers.soonest(), d.driver.peek(), d.tiers.NextWake(), d.scaling.nextStart(), d.online.nextCancel())
}

// advance moves the clock from event to event, up to the given time and including it; infinity is until nothing happens any
// more. At one time, passes end first, then transfers, then hand-offs go on and passes start, then requests arrive (or, by
// [rules.Set].ArrivalsBeforePasses, before passes start), and passes start with them; that repeats until nothing more happens at
// that time.
func (d *disaggregated) advance(until float64) error {
	for ; ; d.step++ {
		if d.step%checkEvery == 0 && d.ctx.Err() != nil {
			return d.ctx.Err()
		}
		if d.watch.due(d.step) {
			if err := d.watch.look(d.decode.Requests, d.now); err != nil {
				return err
			}
		}
		next := d.nextMs()
		if d.scaling != nil {
			if d.done() && !d.online.goesOnAfter(until) {
				return nil
			}
			if at := d.scaling.nextMs; at < min(next, d.stop) && at <= until {
				if d.online != nil && math.IsInf(next, 1) && d.idleFor() != nil {
					return nil // which comes before the tick
				}
				if err := d.tick(next, until); err != nil {
					return err
				}
				continue
			}
		}
		switch {
		case next > until || math.IsInf(next, 1) && d.online != nil:
			return nil
		case math.IsInf(next, 1):
			return d.checkDone(d.now)
		case next >= d.stop:
			// Passes that started before the cap count whole.
			d.endMs = max(d.endMs, d.endAll())
			return nil
		}
		if err := d.happen(next); err != nil {
			return err
		}
	}
}

// happen does what happens at a time.
func (d *disaggregated) happen(now float64) error {
	d.passesBegan = d.passesBegan && now == d.now
	d.now = now
	d.endMs = max(d.endMs, now)
	d.finishAll(now)
	d.scaling.start(now, d)
	if err := d.routeHeld(now); err != nil {
		return err
	}
	for d.transfers.soonest() <= now {
		d.arrive(d.transfers.pop().id, now)
	}
	d.wake(d.tiers.TakeLoaded(now), now)
	d.online.cancelDue(now)
	if !d.rules.ArrivalsBeforePasses {
		if again, err := d.proceed(now); err != nil || again {
			return err
		}
	}
	if err := d.release(now); err != nil {
		return err
	}
	if _, err := d.proceed(now); err != nil {
		return err
	}
	d.scaling.dismiss(now, d)
	return nil
}

// proceed lets hand-offs go on and passes start. It reports whether some of those take no time, so that they end right now.
func (d *disaggregated) proceed(now float64) (passesEnd bool, err error) {
	for again := true; again; {
		for d.actions.len() > 0 {
			if err := d.perform(d.actions.pop(), now); err != nil {
				return false, err
			}
		}
		if err := d.start(now, func(id int32) float64 { return d.stopOf(id, now) }); err != nil {
			return false, err
		}
		d.passesBegan = true
		again = !d.rules.StalledWorkersWait && d.reserveForStalled(now)
		again = d.online.dropStuck(now) || again
	}
	return d.due.soonest() <= now, nil
}

// reserveForStalled looks for room on decode workers whose requests cannot go on, as if passes had ended, until there is
// none. It reports whether it found some.
func (d *disaggregated) reserveForStalled(now float64) (found bool) {
	for _, id := range d.stalled {
		for d.decodes(id) && d.tryReserve(id, now) {
			d.touch(id)
			found = true
		}
	}
	return found
}

// decodes reports whether a worker of the crew is a decode worker.
func (d *disaggregated) decodes(id int32) bool { return d.order[id]>>32 == 1 }

// indexOf is the id of a worker of the crew in its pool.
func (d *disaggregated) indexOf(id int32) int32 { return int32(d.order[id]) }

// finishAll ends what workers did until now. First what waited for them to be idle goes on, then their requests take their
// next steps.
func (d *disaggregated) finishAll(now float64) {
	d.ended = d.ended[:0]
	for d.due.soonest() <= now {
		id := d.end()
		d.ended = append(d.ended, id)
		for _, a := range d.deferred[id] {
			d.actions.push(a)
		}
		d.deferred[id] = d.deferred[id][:0]
	}
	for _, id := range d.ended {
		d.finish(id, now)
	}
}

// finish lets the requests of a worker take their next steps after what it did.
func (d *disaggregated) finish(id int32, now float64) {
	signals := d.workers[id].Finish()
	if !d.decodes(id) {
		for _, signal := range signals {
			d.prefilled(id, signal, now)
		}
		return
	}
	d.online.tokens(now, d.workers[id], d.decode.Requests)
	for _, signal := range signals {
		if signal.First {
			d.decodeRouter.PrefillDone(now, signal.Request)
		}
		if signal.Ended {
			d.open--
			d.requests[id]--
			d.scaling.completed(now, &d.decode.Requests[signal.Request])
			d.decodeRouter.Ended(now, signal.Request)
			d.driver.ended(signal.Request, d.sessions[signal.Request], now)
		}
	}
	d.tryReserve(id, now)
}

// prefilled takes a prompt that is computed to its next step, or drops one that was rejected.
func (d *disaggregated) prefilled(id int32, signal engine.Signal, now float64) {
	r := signal.Request
	if signal.First {
		d.dispatch(d.prefillRouter.PrefillDone(now, r), now)
	}
	switch {
	case d.prefill.Requests[r].State == engine.Rejected:
		d.requests[id]--
		if d.destinationFirst {
			d.actions.push(action{actCancel, r})
		}
		d.actions.push(action{actDrop, r})
	case signal.Ended:
		d.handoffs[r].SourceHeldMs = now
		if d.unreserved {
			d.actions.push(action{actRelease, r})
		}
		switch {
		case !d.destinationFirst:
			d.actions.push(action{actReserve, r})
		case !d.handoffs[r].cancelled: // otherwise the decode worker may be gone
			d.transfer(r, now)
		}
	}
}

// release takes in all requests that are ready.
func (d *disaggregated) release(now float64) error {
	for d.driver.peek() <= now {
		r, ready := d.driver.pop()
		for _, env := range []*engine.Environment{&d.prefill, &d.decode} {
			env.Requests[r].ArrivalMs, env.Requests[r].State = ready, engine.Waiting
		}
		d.arrived++
		d.open++
		d.scaling.arrived(now, &d.decode.Requests[r])
		if d.online.refuses(&d.decode.Requests[r]) {
			d.refuse(r, false, now)
		} else if d.destinationFirst {
			d.actions.push(action{actReserve, r})
		} else if err := d.route(r, ready+d.overheadMs, now); err != nil {
			return err
		}
	}
	return nil
}

// route hands a request to a prefill worker, unless the router keeps it.
func (d *disaggregated) route(r int32, routed, now float64) error {
	if d.scaling.none(0) {
		d.heldPrompts = append(d.heldPrompts, r)
		return nil
	}
	worker, err := d.prefillRouter.Arrive(now, r)
	switch {
	case err != nil && d.online != nil:
		d.refuse(r, d.destinationFirst, now)
		return nil
	case err != nil:
		return err
	case worker == router.Queued:
		d.prefill.Kept.Add(1, now)
		return nil
	}
	d.submit(r, worker, routed, now)
	return nil
}

// dispatch hands requests that waited in the router to their prefill workers.
func (d *disaggregated) dispatch(kept []router.Dispatch, now float64) {
	d.prefill.Kept.Add(-len(kept), now)
	for _, k := range kept {
		d.submit(k.Request, k.Worker, now, now)
	}
}

func (d *disaggregated) submit(r, worker int32, routed, now float64) {
	job := &d.prefill.Requests[r]
	job.RoutedMs, job.RouteOverlap = routed, d.prefillRouter.Overlap(r)
	if d.cfg.Router.UsesIndex() {
		d.scaling.routed(now, job.RouteOverlap, job.Input, d.prefill.Config.BlockSize)
	}
	id := d.places[0][worker]
	if !d.due.has(id) {
		d.touch(id)
	}
	d.requests[id]++
	d.prefillWorkers[worker].Submit(r)
}

// perform does one step of a hand-off.
func (d *disaggregated) perform(a action, now float64) error {
	switch a.kind {
	case actReserve:
		return d.reserve(a.request, now)
	case actPrefill:
		return d.route(a.request, now, now)
	case actActivate:
		d.activate(a, now)
	case actRelease:
		d.releaseSource(a, now)
	case actCancel:
		d.cancel(a, now)
	case actDrop:
		d.open--
		if d.prefill.Requests[a.request].RoutedMs != engine.Never { // no router of prompts has heard of it otherwise
			d.dispatch(d.prefillRouter.Ended(now, a.request), now)
		}
		d.driver.ended(a.request, d.sessions[a.request], now)
	}
	return nil
}

// decodeID is the place in the crew of the decode worker that a request goes to.
func (d *disaggregated) decodeID(r int32) int32 { return d.places[1][d.decode.Requests[r].Worker] }

// reserve lets a request wait for room on the decode worker that the router names.
func (d *disaggregated) reserve(r int32, now float64) error {
	if d.scaling.none(1) {
		d.heldReservations = append(d.heldReservations, r)
		return nil
	}
	worker, err := d.decodeRouter.Arrive(now, r)
	if err != nil {
		return err
	}
	d.decode.Requests[r].Worker = worker
	d.handoffs[r].DecodeRouteOverlap = d.decodeRouter.Overlap(r)
	if c := &d.cfg.Decode.Engine; int(d.decode.Requests[r].Input) > c.NumGPUBlocks*c.BlockSize {
		d.decodeRouter.Ended(now, r) // it fails at once, whatever waits before it, and no worker is the busier for it
		d.fail(r)
		return nil
	}
	d.handoffs[r].asked = d.asked
	d.asked++
	if d.unreserved {
		d.requests[d.decodeID(r)]++
		fresh, _, _ := d.decodeWorkers[worker].Reserve(r)
		d.reserved(r, fresh, now)
		return nil
	}
	q := &d.reservations[worker]
	q.waiting = append(q.waiting, r)
	id := d.decodeID(r)
	d.requests[id]++
	d.decodeWorkers[worker].Await(r, true)
	if d.due.has(id) && !d.cutShort(id, now) {
		return nil
	}
	d.touch(id)
	d.tryReserve(id, now)
	return nil
}

// cutShort makes a busy decode worker end its run with the pass that is under way. It reports whether that ends right now,
// so that the worker is idle.
func (d *disaggregated) cutShort(id int32, now float64) (idle bool) {
	at := now
	if d.passesBegan {
		at = math.Nextafter(now, math.Inf(1)) // not with the one before
	}
	end := d.decodeWorkers[d.indexOf(id)].CutShort(at)
	if end >= d.due.end[id] {
		return false
	}
	d.due.set(id, end)
	if end > now {
		return false
	}
	d.finish(d.end(), now) // nothing else is due now: passes that end now have ended, and none has begun
	return true
}

// tryReserve looks for room on a decode worker for the first request that waits for it. One that has failed is not
// tried again before the worker has given up some. It reports whether there was room.
func (d *disaggregated) tryReserve(id int32, now float64) bool {
	index := d.indexOf(id)
	worker, q := d.decodeWorkers[index], &d.reservations[index]
	for len(q.waiting) > 0 {
		if q.triedInVain(worker) {
			return false
		}
		r := q.waiting[0]
		fresh, ok, never := worker.Reserve(r)
		if !ok && !never {
			q.failed, q.released = true, worker.Released()
			return false
		}
		q.failed = false
		q.waiting = slices.Delete(q.waiting, 0, 1)
		worker.Await(r, false)
		if ok {
			d.reserved(r, fresh, now)
			return true
		}
		d.requests[id]--
		d.fail(r)
	}
	return false
}

// reserved takes a request with room on a decode worker to its next step.
func (d *disaggregated) reserved(r int32, fresh int, now float64) {
	d.handoffs[r].DestinationReservedMs, d.handoffs[r].fresh = now, fresh
	if d.destinationFirst {
		d.actions.push(action{actPrefill, r})
	} else {
		d.transfer(r, now)
	}
}

// fail gives up a request that no decode worker has room for.
func (d *disaggregated) fail(r int32) {
	d.decode.Requests[r].State = engine.Failed
	if !d.destinationFirst && !d.unreserved {
		d.actions.push(action{actRelease, r})
	}
	d.actions.push(action{actDrop, r})
}

// transfer sends a prompt's KV cache to the decode worker.
func (d *disaggregated) transfer(r int32, now float64) {
	c := &d.cfg.Prefill.Engine
	tokens := int(d.decode.Requests[r].Input)
	if c.KVTransferTimingMode == engine.TransferDestinationMissing {
		tokens = d.handoffs[r].fresh
	}
	if c.KVTransferBandwidth == 0 || c.KVBytesPerToken == 0 || tokens == 0 {
		d.actions.push(action{actActivate, r})
		return
	}
	ms := float64(tokens) * float64(c.KVBytesPerToken) / (c.KVTransferBandwidth * 1e9) * 1000
	d.decodeWorkers[d.decode.Requests[r].Worker].Arriving(1, now)
	d.transfers.push(timed{now + ms, int64(d.handoffs[r].asked), r})
}

// arrive lets a request whose prompt has arrived go on as soon as its decode worker is idle.
func (d *disaggregated) arrive(r int32, now float64) {
	d.decodeWorkers[d.decode.Requests[r].Worker].Arriving(-1, now)
	d.actions.push(action{actActivate, r})
}

// activate lets a request whose prompt has arrived wait for its decode passes.
func (d *disaggregated) activate(a action, now float64) {
	r := a.request
	id := d.decodeID(r)
	if d.due.has(id) && !d.cutShort(id, now) {
		d.deferred[id] = append(d.deferred[id], a)
		return
	}
	index := d.decode.Requests[r].Worker
	if d.decodeWorkers[index].Activate(r) {
		d.reservations[index].failed = false
	}
	d.handoffs[r].ActivatedMs = now
	d.touch(id)
	if !d.unreserved {
		d.actions.push(action{actRelease, r})
	}
	d.tryReserve(id, now)
}

// cancel gives up the room on a decode worker for a prompt that was rejected.
func (d *disaggregated) cancel(a action, now float64) {
	r := a.request
	id := d.decodeID(r)
	if d.due.has(id) && !d.cutShort(id, now) {
		d.deferred[id] = append(d.deferred[id], a)
		return
	}
	index := d.decode.Requests[r].Worker
	d.decodeWorkers[index].Cancel(r)
	d.handoffs[r].cancelled = true
	d.reservations[index].failed = false
	d.decodeRouter.Ended(now, r)
	d.requests[id]--
	d.touch(id)
	d.tryReserve(id, now)
	d.online.settle(r)
}

// releaseSource gives up the source of a request's prompt.
func (d *disaggregated) releaseSource(a action, now float64) {
	r := a.request
	worker := d.prefill.Requests[r].Worker
	id := d.places[0][worker]
	if d.due.has(id) {
		d.deferred[id] = append(d.deferred[id], a)
		return
	}
	d.requests[id]--
	d.prefillWorkers[worker].ReleaseSource(r)
	d.handoffs[r].SourceReleasedMs = now
	d.touch(id)
	if d.decode.Requests[r].State != engine.Failed {
		d.dispatch(d.prefillRouter.Ended(now, r), now)
	}
	d.online.settle(r)
}

// stopOf is the time at which a worker that starts now starts no further pass: one request is tried for room at the
// end of each pass.
func (d *disaggregated) stopOf(id int32, now float64) float64 {
	if index := d.indexOf(id); d.decodes(id) {
		if q := &d.reservations[index]; len(q.waiting) > 0 && !q.triedInVain(d.decodeWorkers[index]) {
			return math.Nextafter(now, math.Inf(1))
		}
	}
	return d.stop
}

// checkDone reports a dead end when requests are left.
func (d *disaggregated) checkDone(now float64) error {
	if err := d.deadEnd(now); err != nil {
		return err
	}
	if d.held() > 0 {
		return d.scaling.noWorker(d.waiting(), now)
	}
	for i := range d.reservations {
		if q := &d.reservations[i]; len(q.waiting) > 0 {
			r := &d.decode.Requests[q.waiting[0]]
			return &StuckError{Request: int(r.Number), TimeMs: now, Why: fmt.Sprintf(
				"its %d input tokens wait for room on decode worker %d, which has none (decode.engine.num_gpu_blocks, decode.engine.max_num_seqs)", r.Input, i)}
		}
	}
	return nil
}

// mergeJob adds to a request what became of its prompt.
func (d *disaggregated) mergeJob(r *engine.Request, h *Handoff) {
	job := &d.prefill.Requests[r.Number]
	h.parts = latencyPartsOf(r, job, h)
	h.PrefillWorker, h.PrefillReused, h.DecodeAdmittedMs, h.DecodeReused = job.Worker, job.Reused, r.AdmittedMs, r.Reused
	r.AdmittedMs, r.RoutedMs, r.RouteOverlap = job.AdmittedMs, job.RoutedMs, job.RouteOverlap
	r.ReusedFirst, r.Reused = job.ReusedFirst, max(job.Reused, r.Reused)
	r.LoadedTokens, r.LoadWaitMs = r.LoadedTokens+job.LoadedTokens, r.LoadWaitMs+job.LoadWaitMs
	if job.State == engine.Rejected {
		r.State = engine.Rejected
	}
}

// actionQueue holds actions in order.
type actionQueue struct {
	actions []action
	next    int
}

func (q *actionQueue) len() int { return len(q.actions) - q.next }

func (q *actionQueue) push(a action) { q.actions = append(q.actions, a) }

func (q *actionQueue) pop() action {
	a := q.actions[q.next]
	if q.next++; q.next == len(q.actions) {
		q.actions, q.next = q.actions[:0], 0
	}
	return a
}
