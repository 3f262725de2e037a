package simcore

import (
	"math"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/router"
)

// This file is how the workers of a disaggregated deployment come and go.

// hire, retire and dismiss let workers come and go. See [staff].
func (d *disaggregated) hire(pool int, m router.Member, now float64) {
	d.addWorker(pool, m)
	if pool == 0 {
		d.dispatch(d.prefillRouter.Join(now, m), now)
	} else {
		d.decodeRouter.Join(now, m) // it keeps none
	}
}

func (d *disaggregated) retire(pool int, worker int32) {
	if pool == 0 {
		d.prefillRouter.Leave(worker)
	} else {
		d.decodeRouter.Leave(worker)
	}
}

func (d *disaggregated) hasWork(pool int, worker int32) bool {
	return d.occupied(d.places[pool][worker])
}

func (d *disaggregated) dismiss(pool int, m router.Member) {
	d.remove(d.places[pool][m.Worker])
	if pool == 1 {
		d.decodeWorkers[m.Worker] = nil
		return
	}
	d.prefillWorkers[m.Worker] = nil
	if d.prefill.Index != nil {
		d.prefill.Index.Clear(int(m.Seat))
	}
}

// done reports whether all requests have come and ended, and nothing is under way.
func (d *disaggregated) done() bool {
	return d.open == 0 && d.due.len() == 0 && math.IsInf(d.transfers.soonest(), 1) && math.IsInf(d.driver.peek(), 1)
}

// tick lets the autoscaler decide, after the last event and before the next one, which is at a time. until is how far time
// goes for now.
func (d *disaggregated) tick(next, until float64) error {
	if math.IsInf(next, 1) && d.held() == 0 {
		if err := d.checkDone(d.now); err != nil {
			return err
		}
	}
	now := d.scaling.tick(d.scaling.nextMs, d.now, d)
	d.now = now
	d.passesBegan = true
	if err := d.scaling.goesOn(!math.IsInf(next, 1) || d.online.goesOnAfter(until), d.waiting, now); err != nil {
		return err
	}
	if err := d.routeHeld(now); err != nil {
		return err
	}
	if _, err := d.proceed(now); err != nil {
		return err
	}
	d.scaling.dismiss(now, d)
	return nil
}

// held is how many requests wait because a pool has no worker to take them.
func (d *disaggregated) held() int { return len(d.heldPrompts) + len(d.heldReservations) }

// routeHeld lets go on what waited because a pool had no worker to take it, once that has one.
func (d *disaggregated) routeHeld(now float64) error {
	if len(d.heldPrompts) > 0 && !d.scaling.none(0) {
		held := d.heldPrompts
		d.heldPrompts = nil
		for _, r := range held {
			if err := d.route(r, now, now); err != nil {
				return err
			}
		}
	}
	if len(d.heldReservations) > 0 && !d.scaling.none(1) {
		for _, r := range d.heldReservations {
			d.actions.push(action{actReserve, r})
		}
		d.heldReservations = d.heldReservations[:0]
	}
	return nil
}

// waiting returns the number of a request that has not ended, for explanations.
func (d *disaggregated) waiting() int32 {
	for _, held := range [][]int32{d.heldPrompts, d.heldReservations} {
		if len(held) > 0 {
			return d.decode.Requests[held[0]].Number
		}
	}
	for i := range d.decode.Requests {
		if r := &d.decode.Requests[i]; r.State == engine.Waiting || r.State == engine.Running || r.State == engine.Preempted {
			return r.Number
		}
	}
	return 0
}
