package telemetry

import (
	"time"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/sweep"
)

// Observers returns one observer that tells all of them, one after another. It is a [sweep.JournalObserver], for those
// that are.
func Observers(all ...sweep.Observer) sweep.Observer { return observers(all) }

type observers []sweep.Observer

func (all observers) SweepStarted(total int) {
	for _, o := range all {
		o.SweepStarted(total)
	}
}

func (all observers) WorkloadLoading(label string) {
	for _, o := range all {
		o.WorkloadLoading(label)
	}
}

func (all observers) PointStarted(p gridspec.Point) {
	for _, o := range all {
		o.PointStarted(p)
	}
}

func (all observers) PointFinished(f sweep.Finished) {
	for _, o := range all {
		o.PointFinished(f)
	}
}

func (all observers) JournalCommitted(rows int, bytes int64, took time.Duration) {
	for _, o := range all {
		if j, ok := o.(sweep.JournalObserver); ok {
			j.JournalCommitted(rows, bytes, took)
		}
	}
}
