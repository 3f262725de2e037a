package sweep

import (
	"context"
	"fmt"
	"maps"
	"slices"
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

	// idle is signalled when nothing runs any more.
	idle *sync.Cond
	// arrived holds the rows that an executor delivered and that are not on the disk yet.
	arrived map[string]result
	// unasked holds the IDs of rows that nobody waited for when they came: as many as there are points, or mostUnasked.
	unasked     map[string]struct{}
	mostUnasked int
	// conflicts holds the IDs of points that had two results with different figures.
	conflicts map[string]bool

	simulated, reused, keptFailed int
}

// defaultUnasked is how many rows of points that are not known yet are kept at least: a search, and a sweep that begins, has none.
const defaultUnasked = 100_000

func newLedger(earlier map[string]stored, opt *Options, n *notifier, onChange func()) *ledger {
	l := &ledger{
		opt: opt, notify: n, onChange: onChange, hidden: map[int]bool{},
		running: map[string][]int{}, done: map[string]int{},
		journal: earlier, older: map[int]results.Row{}, conflicts: map[string]bool{},
		arrived: map[string]result{}, unasked: map[string]struct{}{}, mostUnasked: defaultUnasked,
	}
	l.idle = sync.NewCond(&l.mu)
	return l
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
	if l.points == nil {
		l.points = slices.Clip(points) // of most sweeps these are all, and the caller's are as good as a copy
	} else {
		l.points = append(l.points, points...)
	}
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
			if s.Status == results.StatusFailed {
				l.keptFailed++
			}
			l.done[id] = point
			l.settle(point, s.row(&l.points[point]), false)
			s.Metrics = nil // the row has them
			l.journal[id] = s
			return false
		}
		if s.usable(l.opt.semanticVersion) {
			row := s.row(&l.points[point])
			row.SetCost()
			l.older[point] = row
		}
	}
	l.running[id] = []int{point}
	return true
}

// maxTried bounds how many names of points digestsOf makes.
const maxTried = 100_000

// digestsOf finds the digests that the workload of some points may have, without it, among those of earlier results.
func (l *ledger) digestsOf(points []int, otherThan map[string]bool) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	digests := map[string]bool{}
	for _, s := range l.journal {
		if !otherThan[s.WorkloadDigest] {
			digests[s.WorkloadDigest] = true
		}
	}
	var found []string
	tried := 0
	for _, digest := range slices.Sorted(maps.Keys(digests)) {
		for _, point := range points {
			if tried++; tried > maxTried {
				return found
			}
			if _, ok := l.journal[l.opt.ContentID(l.points[point], digest)]; ok {
				found = append(found, digest)
				break
			}
		}
	}
	return found
}

// wants reports whether a row that an executor delivered is news. It is not when its point has one already.
func (l *ledger) wants(row *results.Row) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := resultOf(row)
	if first, ok := l.arrived[row.ID]; ok {
		return l.better(&first, &now)
	}
	if _, running := l.running[row.ID]; running {
		l.arrived[row.ID] = now
		return true
	}
	known, ok := l.journal[row.ID]
	ok = ok && known.usable(l.opt.semanticVersion)
	if at, done := l.done[row.ID]; done {
		known.result, ok = resultOf(&l.rows[at]), true
	}
	if ok {
		return l.better(&known.result, &now)
	}
	// It is of an earlier session, and its point may come. Whoever can send rows must not be able to fill the disk with them.
	if len(l.unasked) >= max(len(l.points), l.mostUnasked) {
		return false
	}
	l.unasked[row.ID] = struct{}{}
	l.arrived[row.ID] = now
	return true
}

// better reports whether a result takes the place of an earlier one of its point, and notes when they differ. The caller
// holds the lock.
func (l *ledger) better(known, now *result) bool {
	if known.contradicts(now) {
		l.conflicts[now.ID] = true
	}
	if now.finality() <= known.finality() {
		return false
	}
	l.arrived[now.ID] = *now
	return true
}

// runs reports whether a point is still to be simulated.
func (l *ledger) runs(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.running[id]
	return ok
}

// awaitIdle waits until nothing runs any more.
func (l *ledger) awaitIdle(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.idle.Broadcast()
	})
	defer stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.running) > 0 && ctx.Err() == nil {
		l.idle.Wait()
	}
}

// durable records rows that came out of a simulation and are on the disk. Those that nobody waits for yet are as if the
// journal had had them.
func (l *ledger) durable(batch []results.Row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, row := range batch {
		delete(l.arrived, row.ID)
		if _, done := l.done[row.ID]; done {
			l.replace(row)
			continue
		}
		now := stored{result: resultOf(&row), simulator: l.opt.semanticVersion, complete: true}
		if before, ok := l.journal[row.ID]; ok && !before.givesWayTo(now) {
			row = before.row(nil) // as the next sweep reads it
		} else if _, awaited := l.running[row.ID]; !awaited {
			l.journal[row.ID] = now
		}
		for i, point := range l.running[row.ID] {
			if i == 0 {
				l.done[row.ID] = point
				l.simulated++
			}
			l.settle(point, row, i == 0)
		}
		delete(l.running, row.ID)
	}
	if len(l.running) == 0 {
		l.idle.Broadcast()
	}
}

// replace gives all points of an ID a better result than they had. Observers counted them before. The caller holds the lock.
func (l *ledger) replace(row results.Row) {
	for i := range l.rows {
		if l.settled[i] && l.rows[i].ID == row.ID {
			row.Point = &l.points[i]
			row.SetCost()
			l.rows[i] = row
		}
	}
	l.onChange()
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
	row.Point = &l.points[point]
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

// forget gives up what is of no use once the last rows are taken, so that the results file is made with less in memory.
func (l *ledger) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows, l.older, l.journal, l.done, l.arrived, l.unasked = nil, nil, nil, nil, nil, nil
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

// contradictions lists the IDs of points that had two results with different figures.
func (l *ledger) contradictions() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.conflicts))
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
	failed := s.Status == results.StatusFailed
	switch {
	case s.simulator != opt.semanticVersion:
		return false, fmt.Sprintf("its result is of simulator version %s, this is %s", s.simulator, opt.semanticVersion)
	case !s.complete:
		return false, "its result lacks metrics of this version"
	case opt.Retry == RetryAll:
		return false, "it has a result and runs again"
	case failed && opt.Retry == RetryFailed:
		return false, fmt.Sprintf("it failed before (%s) and runs again", s.Reason)
	case s.Status == results.StatusStopped && opt.endsAt(p, s.Lost):
		return true, fmt.Sprintf("it was stopped before: %s cannot hold", s.Lost)
	case s.Status == results.StatusStopped:
		return false, fmt.Sprintf("it was stopped because %s cannot hold, and now runs to its end", s.Lost)
	case failed:
		return true, fmt.Sprintf("it failed before (%s); retry failed points to run it again", s.Reason)
	}
	return true, "it has a result"
}
