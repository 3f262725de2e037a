package simcore

import (
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/engine"
)

// This file is how requests come to prefill and decode workers, and go, one by one. See [Online].

func (d *disaggregated) life(request int32) *engine.Request { return &d.decode.Requests[request] }

func (d *disaggregated) reused(request int32) int32 {
	job := &d.prefill.Requests[request]
	return min(max(job.Reused, d.decode.Requests[request].Reused), job.Input)
}

// recordOf says what became of a request.
func (d *disaggregated) recordOf(request int32, record *RequestRecord, handoff *Handoff) {
	record.Life, *handoff = d.decode.Requests[request], d.handoffs[request]
	d.mergeJob(&record.Life, handoff)
	record.Handoff, record.Parts = handoff, handoff.parts
}

// settled reports whether neither side of a hand-off holds anything.
func (d *disaggregated) settled(request int32) bool {
	h := &d.handoffs[request]
	source := h.SourceHeldMs == engine.Never || h.SourceReleasedMs != engine.Never
	return source && (h.DestinationReservedMs == engine.Never || h.ActivatedMs != engine.Never || h.cancelled)
}

func (d *disaggregated) kept() int {
	return d.prefillRouter.Waiting() + d.decodeRouter.Waiting() + d.held()
}

func (d *disaggregated) seatOf(request int32) int {
	if d.handoffs[request].DestinationReservedMs == engine.Never {
		return -1
	}
	return int(d.seats[d.decodeID(request)])
}

func (d *disaggregated) forgetSession(session int32) {
	forgetSession(d.prefillRouter, session)
	forgetSession(d.decodeRouter, session)
}

// refuse ends a request that goes to no prefill worker. It may have room on a decode worker.
func (d *disaggregated) refuse(r int32, reserved bool, now float64) {
	d.open--
	d.prefill.Requests[r].State = engine.Rejected
	if reserved {
		d.actions.push(action{actCancel, r})
	}
	d.driver.ended(r, d.sessions[r], now)
}

// giveUp gives up both sides of a request's hand-off, each as soon as its worker is idle.
func (d *disaggregated) giveUp(r int32, state engine.State, now float64) bool {
	slot := &d.online.slots[r]
	if d.prefill.Requests[r].State == engine.Rejected || d.decode.Requests[r].State == engine.Failed {
		return false // it ends right now
	}
	d.stay(r, now)
	slot.noSource = slot.noSource || d.giveUpSource(r, now)
	slot.noDestination = slot.noDestination || d.giveUpDestination(r, now)
	if !slot.noSource || !slot.noDestination {
		return false
	}
	d.open--
	d.decode.Requests[r].State = state
	d.driver.ended(r, d.sessions[r], now)
	return true
}

// stay takes back that a request goes on.
func (d *disaggregated) stay(r int32, now float64) {
	goesOn := func(a action) bool {
		return a.request == r && (a.kind == actReserve || a.kind == actPrefill || a.kind == actActivate)
	}
	d.actions.actions = append(d.actions.actions[:d.actions.next], slices.DeleteFunc(d.actions.actions[d.actions.next:], goesOn)...)
	if h := &d.handoffs[r]; h.DestinationReservedMs == engine.Never || h.ActivatedMs != engine.Never {
		return
	}
	id := d.decodeID(r)
	d.deferred[id] = slices.DeleteFunc(d.deferred[id], goesOn)
	if at := slices.IndexFunc(d.transfers, func(t timed) bool { return t.id == r }); at >= 0 {
		d.transfers.remove(at)
		d.decodeWorkers[d.decode.Requests[r].Worker].Arriving(-1, now)
	}
}

// giveUpSource gives up what a prefill worker has of a request, and reports whether it has, or will when it is idle.
func (d *disaggregated) giveUpSource(r int32, now float64) bool {
	job, h := &d.prefill.Requests[r], &d.handoffs[r]
	switch {
	case job.RoutedMs == engine.Never:
		if !takeOut(&d.heldPrompts, r) && d.prefillRouter.Withdraw(r) {
			d.prefill.Kept.Add(-1, now)
		}
		return true
	case h.SourceHeldMs == engine.Never:
		id := d.places[0][job.Worker]
		if d.due.has(id) || !d.workers[id].Abort(r) {
			return false
		}
		d.requests[id]--
		d.touch(id)
		d.dispatch(d.prefillRouter.Ended(now, r), now)
		return true
	case h.ActivatedMs == engine.Never && !d.unreserved: // otherwise it is released anyway
		d.actions.push(action{actRelease, r})
	}
	return true
}

// giveUpDestination gives up what a decode worker has of a request, or will have, and reports whether it has, or will when it
// is idle.
func (d *disaggregated) giveUpDestination(r int32, now float64) bool {
	q, h := &d.decode.Requests[r], &d.handoffs[r]
	switch {
	case h.DestinationReservedMs == engine.Never:
		d.giveUpReservation(r, now)
		return true
	case h.ActivatedMs == engine.Never:
		d.actions.push(action{actCancel, r})
		return true
	}
	id := d.places[1][q.Worker]
	if d.due.has(id) || !d.workers[id].Abort(r) {
		return false
	}
	d.requests[id]--
	d.touch(id)
	d.decodeRouter.Ended(now, r)
	d.tryReserve(id, now)
	return true
}

// giveUpReservation takes a request out of those that wait for room on a decode worker, if it does.
func (d *disaggregated) giveUpReservation(r int32, now float64) {
	if takeOut(&d.heldReservations, r) {
		return
	}
	worker := d.decode.Requests[r].Worker
	q := &d.reservations[worker]
	at := slices.Index(q.waiting, r)
	if at < 0 {
		return
	}
	id := d.places[1][worker]
	q.waiting = slices.Delete(q.waiting, at, at+1)
	d.decodeWorkers[worker].Await(r, false)
	d.requests[id]--
	d.decodeRouter.Ended(now, r)
	if at == 0 {
		q.failed = false
	}
	if !d.due.has(id) {
		d.touch(id)
		d.tryReserve(id, now)
	}
}

// stuck returns a request that keeps a worker from starting anything. Prompts that are held as the source of transfers may be
// about to give a prefill worker room. What a decode worker waits for may come with any other request.
func (d *disaggregated) stuck(now float64) (request int32, found bool) {
	if id, request, found := d.takeFailure(); found {
		d.finish(id, now)
		return request, true
	}
	if len(d.stalled) == 0 || d.actions.len() > 0 || !math.IsInf(min(d.tiers.NextWake(), d.driver.peek()), 1) {
		return 0, false
	}
	held := map[int32]bool{}
	for r := range d.handoffs {
		if h := &d.handoffs[r]; d.online.slots[r].taken && h.SourceHeldMs != engine.Never && h.SourceReleasedMs == engine.Never {
			held[d.places[0][d.prefill.Requests[r].Worker]] = true
		}
	}
	return d.stuckAmong(now, func(id int32) bool { return !d.decodes(id) && !held[id] })
}

func (d *disaggregated) idleFor() error {
	if d.held() > 0 {
		return nil // the next tick may bring a worker
	}
	return d.checkDone(d.now)
}

func (d *disaggregated) resume() error {
	_, err := d.proceed(d.now)
	d.scaling.dismiss(d.now, d)
	return err
}

func (d *disaggregated) latestMs() float64 { return d.now }
