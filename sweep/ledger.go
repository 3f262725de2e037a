package sweep

import (
	"fmt"
	"sync"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// ledger knows the state of every point. A row in it is final: it is on the disk, or can be made again without a
// simulation.
type ledger struct {
	opt      *Options
	points   []gridspec.Point
	notify   *notifier
	onChange func()

	mu      sync.Mutex
	rows    []results.Row
	settled []bool
	left    int
	// hidden are the points whose rows are for whoever asked for them, and not among the results.
	hidden map[int]bool
	// running holds, for each ID that is being simulated, the points that wait for it.
	running map[string][]int
	// done holds a settled point for each ID.
	done map[string]int
	// journal has the earlier results; older those of points that are to run again, which count until they have.
	journal map[string]stored
	older   map[int]results.Row

	simulated, reused, keptFailed int
}

func newLedger(earlier map[string]stored, opt *Options, n *notifier, onChange func()) *ledger {
	return &ledger{
		opt: opt, notify: n, onChange: onChange, hidden: map[int]bool{},
		running: map[string][]int{}, done: map[string]int{},
		journal: earlier, older: map[int]results.Row{},
	}
}

// extend adds points. Their rows are among the results if they are shown. Nothing may run meanwhile.
func (l *ledger) extend(points []gridspec.Point, shown bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range points {
		if !shown {
			l.hidden[len(l.points)+i] = true
		}
	}
	l.points = append(l.points, points...)
	l.rows = append(l.rows, make([]results.Row, len(points))...)
	l.settled = append(l.settled, make([]bool, len(points))...)
	l.left += len(points)
}

// claim looks for a result of a point. It returns true when the caller must simulate the point, and false when it
// has its row or another point of the same ID is on the way.
func (l *ledger) claim(point int, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if equal, ok := l.done[id]; ok {
		l.settle(point, l.rows[equal], false)
		return false
	}
	if waiting, ok := l.running[id]; ok {
		l.running[id] = append(waiting, point)
		return false
	}
	if s, ok := l.journal[id]; ok {
		reuse, _ := decide(s, l.points[point], l.opt)
		if reuse {
			l.reused++
			if s.row.Status == results.StatusFailed {
				l.keptFailed++
			}
			l.done[id] = point
			l.settle(point, s.row, false)
			return false
		}
		if s.usable(l.opt.semanticVersion) {
			row := s.row
			row.Point = l.points[point]
			row.SetCost()
			l.older[point] = row
		}
	}
	l.running[id] = []int{point}
	return true
}

// durable records rows that came out of a simulation and are on the disk.
func (l *ledger) durable(batch []results.Row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, row := range batch {
		for i, point := range l.running[row.ID] {
			if i == 0 {
				l.done[row.ID] = point
				l.simulated++
			}
			l.settle(point, row, i == 0)
		}
		delete(l.running, row.ID)
	}
}

// finish records rows that need no simulation.
func (l *ledger) finish(points []int, row func(gridspec.Point) results.Row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, point := range points {
		l.settle(point, row(l.points[point]), false)
	}
}

// settle gives a point its row. The caller holds the lock.
func (l *ledger) settle(point int, row results.Row, simulated bool) {
	row.Point = l.points[point]
	row.SetCost()
	l.rows[point], l.settled[point] = row, true
	l.left--
	delete(l.older, point)
	hidden := l.hidden[point]
	l.notify.push(func(o Observer) { o.PointFinished(Finished{Row: row, Simulated: simulated, Shortened: hidden}) })
	l.onChange()
}

// snapshot returns the rows that there are, in the order of the expansion.
func (l *ledger) snapshot() []results.Row {
	l.mu.Lock()
	defer l.mu.Unlock()
	rows := make([]results.Row, 0, len(l.rows)-l.left+len(l.older))
	for i := range l.rows {
		if l.hidden[i] {
			continue
		}
		if l.settled[i] {
			rows = append(rows, l.rows[i])
		} else if row, ok := l.older[i]; ok {
			rows = append(rows, row)
		}
	}
	return rows
}

// isShortened reports whether a point is not among the results.
func (l *ledger) isShortened(point int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hidden[point]
}

// shortened returns the rows that there are of the points that are not among the results.
func (l *ledger) shortened() []results.Row {
	l.mu.Lock()
	defer l.mu.Unlock()
	var rows []results.Row
	for i := range l.rows {
		if l.hidden[i] && l.settled[i] {
			rows = append(rows, l.rows[i])
		}
	}
	return rows
}

// some returns the rows that there are of the points from an index up to another.
func (l *ledger) some(from, to int) []results.Row {
	l.mu.Lock()
	defer l.mu.Unlock()
	var rows []results.Row
	for i := from; i < to; i++ {
		if l.settled[i] {
			rows = append(rows, l.rows[i])
		}
	}
	return rows
}

// simulatedAny reports whether a point was simulated.
func (l *ledger) simulatedAny() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.simulated > 0
}

// unsettled is the number of points that are still to run.
func (l *ledger) unsettled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}

// counts sums up the rows of a snapshot.
func (l *ledger) counts(rows []results.Row) Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := countRows(rows, len(l.points)-len(l.hidden))
	c.Simulated, c.Reused, c.KeptFailed = l.simulated, l.reused+len(l.older), l.keptFailed
	for i, settled := range l.settled {
		if settled && l.hidden[i] {
			c.Shortened++
		}
	}
	return c
}

// decide says whether an earlier result of a point stands, and why.
func decide(s stored, p gridspec.Point, opt *Options) (reuse bool, why string) {
	failed := s.row.Status == results.StatusFailed
	switch {
	case s.simulator != opt.semanticVersion:
		return false, fmt.Sprintf("its result is of simulator version %s, this is %s", s.simulator, opt.semanticVersion)
	case !s.complete:
		return false, "its result lacks metrics of this version"
	case opt.Retry == RetryAll:
		return false, "it has a result and runs again"
	case failed && opt.Retry == RetryFailed:
		return false, fmt.Sprintf("it failed before (%s) and runs again", s.row.Reason)
	case s.row.Status == results.StatusStopped && opt.endsAt(p, s.row.Lost):
		return true, fmt.Sprintf("it was stopped before: %s cannot hold", s.row.Lost)
	case s.row.Status == results.StatusStopped:
		return false, fmt.Sprintf("it was stopped because %s cannot hold, and now runs to its end", s.row.Lost)
	case failed:
		return true, fmt.Sprintf("it failed before (%s); retry failed points to run it again", s.row.Reason)
	}
	return true, "it has a result"
}
