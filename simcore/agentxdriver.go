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
	endedMs float64 // when a request last ended: rounding must not let one that waits for it start before that

	flying      int     // requests that were released and have not ended
	flyingOf    []int32 // those of each play
	userOf      []int32 // who began each play
	globalCapMs float64
	treeCapMs   float64
	idleUntilMs float64     // when something has to be released if nothing is under way; +Inf if something is
	restUntilMs []float64   // when a play of which nothing is under way has to go on; NaN for one that is at work
	resting     []rest      // in order of time; plays that have gone on since are among them
	more        func() bool // adds plays; nil when there are only those that were planned
}

// rest is the longest time that a play may do nothing.
type rest struct {
	play    int32
	untilMs float64
}

func newAgentXDriver(s *released) *agentXDriver {
	d := &agentXDriver{graphDriver: newPlays(s), run: s.scenario, s: s, warming: s.scenario.WarmUps}
	d.lanes, d.speedup = true, 1
	d.run.startMs, d.run.exhaustedMs = math.NaN(), math.Inf(1)
	d.extend(d.graph.Plays())
	d.idleUntilMs = math.Inf(1)
	d.globalCapMs, d.treeCapMs = capMs(d.run.cfg.GlobalIdleCapS), capMs(d.run.cfg.TreeIdleCapS)
	for play := range d.warming {
		if user := d.run.User(play); play == 0 || user != d.run.User(play-1) {
			d.beginPlay(play, user, 0)
		}
	}
	d.waiting = d.warming
	if d.warming == 0 {
		d.begin(0)
	}
	return d
}

// extend makes room for what is known of plays.
func (d *agentXDriver) extend(plays int) {
	more := plays - len(d.userOf)
	d.flyingOf, d.userOf = append(d.flyingOf, make([]int32, more)...), append(d.userOf, make([]int32, more)...)
	d.restUntilMs = append(d.restUntilMs, make([]float64, more)...)
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
	d.idle(now)
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
	d.rest(int32(d.waiting), zero-d.ahead)
	d.waiting++
	d.run.started++
}

func (d *agentXDriver) peek() float64 {
	next := max(d.endedMs, min(d.ready.soonest()-d.ahead, d.longestRest().untilMs, d.idleUntilMs))
	if next >= d.run.cutoffMs && !math.IsNaN(d.run.startMs) {
		return math.Inf(1)
	}
	return next
}

func (d *agentXDriver) pop() (request int32, readyMs float64) {
	d.cutIdle()
	next := d.ready.pop()
	play := d.graph.Play[next.id]
	d.flying++
	d.flyingOf[play]++
	d.idleUntilMs, d.restUntilMs[play] = math.Inf(1), math.NaN()
	d.trigger(next.id, workload.OnDispatch, next.atMs)
	return next.id, max(d.endedMs, next.atMs-d.ahead)
}

func (d *agentXDriver) ended(request, _ int32, now float64) {
	play := d.graph.Play[request]
	d.endedMs = now
	d.flying--
	d.flyingOf[play]--
	d.unended[play]--
	d.trigger(request, workload.OnCompletion, now+d.ahead)
	switch {
	case d.unended[play] > 0:
		d.rest(play, now)
	case d.run.WarmUp(play):
		d.warmedUp(int(play), now)
		return
	default:
		d.run.completed++
		d.next(int(d.userOf[play]), now)
	}
	d.idle(now)
}

// warmedUp lets a user go on warming up, and the window begin when all have.
func (d *agentXDriver) warmedUp(play int, now float64) {
	d.warming--
	if next := play + 1; d.run.WarmUp(int32(next)) && d.run.User(next) == d.run.User(play) {
		d.beginPlay(next, d.run.User(play), now)
	}
	if d.warming == 0 {
		d.begin(now)
	}
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

// rest notes that a play does nothing from now on, if that is so and bounded.
func (d *agentXDriver) rest(play int32, now float64) {
	if d.flyingOf[play] > 0 || math.IsInf(d.treeCapMs, 1) || d.run.WarmUp(play) {
		return
	}
	d.restUntilMs[play] = now + d.treeCapMs
	d.resting = append(d.resting, rest{play, now + d.treeCapMs})
}

// longestRest is that of the play which has to go on first.
func (d *agentXDriver) longestRest() rest {
	for len(d.resting) > 0 && d.restUntilMs[d.resting[0].play] != d.resting[0].untilMs {
		d.resting = d.resting[1:]
	}
	if len(d.resting) == 0 {
		return rest{untilMs: math.Inf(1)}
	}
	return d.resting[0]
}

// idle notes that nothing is under way from now on, if that is so in the window.
func (d *agentXDriver) idle(now float64) {
	if d.flying == 0 && len(d.ready) > 0 && !math.IsNaN(d.run.startMs) {
		d.idleUntilMs = now + d.globalCapMs
	}
}

// cutIdle moves timers nearer if the next of them is further away than allowed: those of the play that has to go on, or all of them.
func (d *agentXDriver) cutIdle() {
	soonest, longest := d.ready.soonest()-d.ahead, d.longestRest()
	switch {
	case longest.untilMs < soonest && longest.untilMs <= d.idleUntilMs:
		d.cutRest(longest.play, longest.untilMs)
	case d.idleUntilMs < soonest:
		d.ahead += soonest - d.idleUntilMs
		d.run.shifts++
		d.run.shiftedMs += soonest - d.idleUntilMs
	}
}

// cutRest moves the timers of a play nearer, so that it goes on at a given time.
func (d *agentXDriver) cutRest(play int32, untilMs float64) {
	next := math.Inf(1)
	for _, t := range d.ready {
		if d.graph.Play[t.id] == play {
			next = min(next, t.atMs)
		}
	}
	by := next - d.ahead - untilMs
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
