package simcore

import (
	"cmp"
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/workload"
)

// agentXRun is the AgentX scenario of one simulation, and how it went.
type agentXRun struct {
	workload.AgentXScenario
	base *workload.Workload
	cfg  AgentX

	startMs     float64 // when the measured window began; NaN before
	cutoffMs    float64 // when it ends
	started     int     // plays that users started
	completed   int     // of them
	exhaustedMs float64 // when a user wanted more plays than there were; +Inf if none did
	shifts      int     // idle times that were cut short
	shiftedMs   float64
}

// exhausted reports whether there were too few plays.
func (r *agentXRun) exhausted() bool { return !math.IsInf(r.exhaustedMs, 1) }

// agentXDriver releases the requests of the scenario: first those that warm the cache up, and when all of them have ended
// those of the users, each of whom starts the next play when one has settled. Nothing starts after the window.
//
// Its timers run on a clock of their own, which is ahead of the simulation's by all idle time that was cut short.
type agentXDriver struct {
	*graphDriver
	run     *agentXRun
	s       *released
	warming int     // warm-ups that have not ended
	ahead   float64 // of the simulation's clock, in ms

	flying      int     // requests that were released and have not ended
	flyingOf    []int32 // those of each play
	userOf      []int32 // who began each play
	globalCapMs float64
	treeCapMs   float64
	more        func() bool // adds plays; nil when there are only those that were planned
}

func newAgentXDriver(s *released) *agentXDriver {
	d := &agentXDriver{graphDriver: newPlays(s), run: s.scenario, s: s, warming: s.scenario.WarmUps}
	d.lanes, d.speedup = true, 1
	d.run.startMs, d.run.exhaustedMs = math.NaN(), math.Inf(1)
	d.flyingOf, d.userOf = make([]int32, d.graph.Plays()), make([]int32, d.graph.Plays())
	d.globalCapMs, d.treeCapMs = capMs(d.run.cfg.GlobalIdleCapS), capMs(d.run.cfg.TreeIdleCapS)
	for play := range d.warming {
		d.beginPlay(play, d.run.Owner(play), 0)
	}
	d.waiting = d.warming
	if d.warming == 0 {
		d.begin(0)
	}
	return d
}

// capMs is a bound in ms; 0 s is none.
func capMs(seconds float64) float64 {
	if seconds == 0 {
		return math.Inf(1)
	}
	return seconds * 1000
}

// begin starts the measured window and the users' first plays.
func (d *agentXDriver) begin(now float64) {
	d.run.startMs, d.run.cutoffMs = now, now+d.run.cfg.DurationS*1000
	d.s.stop = math.Nextafter(d.run.cutoffMs+d.run.cfg.GraceS*1000, math.Inf(1))
	for user := range d.run.Users {
		d.beginNext(user, now)
	}
	d.cutIdle(now)
}

// beginPlay lets a user start a play.
func (d *agentXDriver) beginPlay(play, user int, zero float64) {
	d.userOf[play] = int32(user)
	d.run.Begin(play, user)
	d.start(play, zero)
}

// beginNext lets a user start the next play in turn.
func (d *agentXDriver) beginNext(user int, zero float64) {
	d.beginPlay(d.waiting, user, zero)
	d.waiting++
	d.run.started++
}

func (d *agentXDriver) peek() float64 {
	next := d.ready.soonest() - d.ahead
	if next >= d.run.cutoffMs && !math.IsNaN(d.run.startMs) {
		return math.Inf(1)
	}
	return next
}

func (d *agentXDriver) pop() (request int32, readyMs float64) {
	next := d.ready.pop()
	d.flying++
	d.flyingOf[d.graph.Play[next.id]]++
	d.trigger(next.id, workload.OnDispatch, next.atMs)
	return next.id, next.atMs - d.ahead
}

func (d *agentXDriver) ended(request, _ int32, now float64) {
	play := d.graph.Play[request]
	d.flying--
	d.flyingOf[play]--
	d.unended[play]--
	d.trigger(request, workload.OnCompletion, now+d.ahead)
	switch {
	case d.unended[play] > 0:
		d.cutIdleOf(play, now)
	case d.run.WarmUp(play):
		if d.warming--; d.warming == 0 {
			d.begin(now)
		}
		return
	default:
		d.run.completed++
		d.next(int(d.userOf[play]), now)
	}
	d.cutIdle(now)
}

// next lets a user go on after a play. When there are no more and none can be added, the run ends: a simulation starts again
// with more of them.
func (d *agentXDriver) next(user int, now float64) {
	switch {
	case now >= d.run.cutoffMs:
	case d.waiting == d.graph.Plays() && (d.more == nil || !d.more()):
		d.run.exhaustedMs, d.s.stop = min(d.run.exhaustedMs, now), now
	default:
		d.beginNext(user, now+d.ahead)
	}
}

// cutIdleOf moves the timers of a play nearer when nothing of it is under way and the next of them is further away than
// allowed.
func (d *agentXDriver) cutIdleOf(play int32, now float64) {
	if d.flyingOf[play] > 0 || math.IsInf(d.treeCapMs, 1) || d.run.WarmUp(play) {
		return
	}
	next := math.Inf(1)
	for _, t := range d.ready {
		if d.graph.Play[t.id] == play {
			next = min(next, t.atMs)
		}
	}
	by := next - d.ahead - now - d.treeCapMs
	if !(by > 0) || math.IsInf(by, 1) {
		return
	}
	d.run.shifts++
	d.run.shiftedMs += by
	for _, r := range d.play(int(play)) {
		d.readyMs[r] -= by
	}
	for i := range d.ready {
		if d.graph.Play[d.ready[i].id] == play {
			d.ready[i].atMs -= by
		}
	}
	slices.SortFunc(d.ready, func(a, b timed) int { return cmp.Or(cmp.Compare(a.atMs, b.atMs), cmp.Compare(a.order, b.order)) })
}

// cutIdle moves all timers nearer when nothing is under way and the next of them is further away than allowed.
func (d *agentXDriver) cutIdle(now float64) {
	if d.flying > 0 || math.IsNaN(d.run.startMs) {
		return
	}
	if idle := d.ready.soonest() - d.ahead - now; idle > d.globalCapMs && !math.IsInf(idle, 1) {
		d.ahead += idle - d.globalCapMs
		d.run.shifts++
		d.run.shiftedMs += idle - d.globalCapMs
	}
}
