package simcore

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// released is what decides when requests are released, apart from when others end.
type released struct {
	cfg      Config
	workload *workload.Workload
	scenario *agentXRun // nil without one
	stop     float64    // nothing begins at this time or later
}

// Releases says when the requests of a workload are to be sent to a deployment that is not simulated here, by the same rules by
// which simulated ones get them: with their times, at a rate, so many sessions at a time, what waits for what, and the AgentX
// scenario. It has no clock: the caller says when requests ended. It is not safe for concurrent use.
type Releases struct {
	released
	driver   driver
	agentX   *agentXDriver // nil without the scenario
	base     *workload.Workload
	sessions []int32 // of the base's requests
	requests int
	blocks   *workload.BlockTable // made when first asked for
}

// Release is a request that is to be sent.
type Release struct {
	// Number is unique in a run.
	Number int32
	// Request and Session are the numbers in the workload; in the AgentX scenario conversations repeat, and so do they.
	Request, Session int32
	// Turn is the number of the request in its session, from 0.
	Turn int
	// ReadyMs is when it is to be sent, in ms from the beginning; of those with the same time that with the lowest Order first, and
	// of those with the same Order that which was popped first.
	ReadyMs float64
	Order   int32
	// Input and Output are the lengths in tokens.
	Input, Output int
	// WarmUp says that it only warms the cache up for the AgentX scenario.
	WarmUp bool
	// Play numbers the plays of the AgentX scenario in the order in which users start them, and is the same for what warms up
	// for one; -1 without the scenario.
	Play int
	// Salt names what its prompt shares text with: only releases with an equal one do. 0 is the workload's own text.
	Salt uint64
}

// Window is a part of a workload by its own times, in ms from the first one. The zero value is all of it.
type Window struct {
	// FromMs is the time that becomes 0, ToMs the last one.
	FromMs, ToMs float64
}

// Set reports whether it is a part only.
func (w Window) Set() bool { return w != Window{} }

func (w Window) holds(ms float64) bool { return !w.Set() || ms >= w.FromMs && ms <= w.ToMs }

// NewReleases returns the schedule of a workload under the load of a resolved configuration. Of a window only sessions that
// start in it are released, and of a graph the plays that do. Errors: the load does not suit the workload, or the window does
// not suit the load or is empty.
func NewReleases(ctx context.Context, cfg Config, w *workload.Workload, window Window) (*Releases, error) {
	set, err := rules.For(cfg.Compat)
	if err != nil {
		return nil, err
	}
	if err := cfg.suits(w, set); err != nil {
		return nil, err
	}
	if window.Set() && (cfg.Load.Mode != LoadTrace || cfg.AgentX.Enabled()) {
		return nil, fmt.Errorf("window: only a workload that is replayed at its own times has one, and load.mode is %s", cfg.Load.Mode)
	}
	r := &Releases{released: released{cfg: cfg, workload: w, stop: math.Inf(1)}, base: w, requests: w.Requests()}
	r.sessions = r.sessionOfRequests()
	if cfg.AgentX.Enabled() {
		return r, r.startAgentX(ctx)
	}
	r.driver = r.newDriver()
	if window.Set() {
		if r.cut(window); r.requests == 0 {
			return nil, fmt.Errorf("window: nothing of %s starts between %g and %g s", w.Name, window.FromMs/1000, window.ToMs/1000)
		}
	}
	return r, nil
}

// startAgentX expands the conversations to those of the scenario. What its users play after that is added when it is needed.
func (r *Releases) startAgentX(ctx context.Context) error {
	if r.base.Graph == nil {
		return errNoGraph
	}
	plan := r.cfg.agentXPlan()
	scenario, err := workload.AgentX(ctx, r.base, plan)
	if err != nil {
		return err
	}
	r.scenario = &agentXRun{AgentXScenario: *scenario, base: r.base, cfg: r.cfg.AgentX.Filled()}
	r.workload = scenario.Workload
	r.agentX = newAgentXDriver(&r.released)
	r.agentX.more = func() bool {
		r.blocks = nil
		return !r.scenario.Cut && r.agentX.grow(ctx, &plan)
	}
	r.driver = r.agentX
	return nil
}

// grow adds as many plays to the scenario as there are. It is false when that is not possible.
func (d *agentXDriver) grow(ctx context.Context, plan *workload.AgentXPlan) bool {
	plan.Plays = max(2*plan.Plays, plan.Users)
	scenario, err := workload.AgentX(ctx, d.run.base, *plan)
	if err != nil || scenario.Workload.Graph.Plays() <= d.waiting {
		return false
	}
	for play := range d.waiting { // the plays so far are the first ones of the larger scenario
		scenario.Begin(play, int(d.userOf[play]))
	}
	d.run.AgentXScenario, d.s.workload = *scenario, scenario.Workload
	d.graph, d.delayMs = scenario.Workload.Graph, scenario.Workload.DelayMs
	requests, plays := scenario.Workload.Requests(), d.graph.Plays()
	d.waits = append(d.waits, make([]int32, requests-len(d.waits))...)
	d.readyMs = append(d.readyMs, make([]float64, requests-len(d.readyMs))...)
	d.order = append(d.order, d.graph.Rank[len(d.order):]...)
	d.extend(plays)
	unended := d.unended
	d.groupByPlay()
	copy(d.unended, unended)
	return true
}

// cut leaves only what starts in a window, and moves its beginning to 0.
func (r *Releases) cut(window Window) {
	from, speedup := window.FromMs/r.cfg.Load.Speedup, r.cfg.Load.Speedup
	switch d := r.driver.(type) {
	case *sessionDriver:
		r.requests = 0
		kept := d.ready[:0]
		for _, start := range d.ready {
			if window.holds(start.atMs * speedup) {
				r.requests += int(r.base.SessionStart[start.id+1] - r.base.SessionStart[start.id])
				start.atMs -= from
				kept = append(kept, start)
			}
		}
		d.ready = kept
	case *graphDriver:
		r.requests = 0
		plays := newPlays(&r.released)
		for i := range plays.graph.Plays() {
			if window.holds(plays.zero(i)) {
				r.requests += len(plays.play(i))
				plays.start(i, -from)
			}
		}
		r.driver = plays
	}
}

// Requests is how many requests there are to release; of the AgentX scenario, how many are known of so far.
func (r *Releases) Requests() int {
	if r.agentX != nil {
		return r.workload.Requests()
	}
	return r.requests
}

// PeekMs is when the next request is to be sent, in ms; +Inf when nothing is before something else has ended.
func (r *Releases) PeekMs() float64 { return r.driver.peek() }

// Pop returns the next request. There must be one.
func (r *Releases) Pop() Release {
	number, ready := r.driver.pop()
	out := Release{
		Number: number, Request: number, ReadyMs: ready, Play: -1, Input: int(r.workload.Input[number]), Output: int(r.workload.Output[number]),
	}
	if r.agentX != nil {
		r.ofPlay(&out)
	}
	out.Session = r.sessions[out.Request]
	out.Order = out.Session
	if d, ok := r.driver.(interface{ orderOf(request int32) int32 }); ok {
		out.Order = d.orderOf(number)
	}
	out.Turn = int(out.Request - r.base.SessionStart[out.Session])
	return out
}

// ofPlay says what a request is in the scenario.
func (r *Releases) ofPlay(out *Release) {
	play := int(r.workload.Graph.Play[out.Number])
	instance := r.scenario.Instance(play)
	out.Request, out.WarmUp, out.Play = r.scenario.Base[out.Number], r.scenario.WarmUp(int32(play)), instance
	switch r.scenario.cfg.Salt {
	case workload.SaltPlay:
		out.Salt = uint64(instance) + 1
	case workload.SaltUser:
		out.Salt = uint64(r.agentX.userOf[play]) + 1
	}
}

// Ended tells that a request ended, in whatever way, at a time in ms.
func (r *Releases) Ended(number int32, nowMs float64) {
	session := int32(0)
	if r.agentX == nil {
		session = r.sessions[number]
	}
	r.driver.ended(number, session, nowMs)
}

// WindowMs is the measured window of the AgentX scenario. ok is false before it began, and without the scenario.
func (r *Releases) WindowMs() (start, end float64, ok bool) {
	if r.agentX == nil || math.IsNaN(r.scenario.startMs) {
		return 0, 0, false
	}
	return r.scenario.startMs, r.scenario.cutoffMs, true
}

// Scenario is how the AgentX scenario went so far; nil before its window began, and without it.
func (r *Releases) Scenario() *Scenario {
	if _, _, ok := r.WindowMs(); !ok {
		return nil
	}
	return &Scenario{r.scenario, r.workload}
}

// StopMs is when what is under way is to be cancelled; +Inf for never.
func (r *Releases) StopMs() float64 { return r.stop }

var errExhausted = errors.New("agentx: the users played more conversations than can be held; take fewer users or a shorter window")

// Err says why the schedule ended before its time; nil if it did not.
func (r *Releases) Err() error {
	if r.scenario != nil && r.scenario.exhausted() {
		return errExhausted
	}
	return nil
}

// AppendBlocks appends what [OnlineRequest] says of the KV blocks of a request: those of its prompt, and of its answer where
// the workload states it.
func (r *Releases) AppendBlocks(blocks []uint64, number int32) ([]uint64, error) {
	if r.blocks == nil {
		set, err := rules.For(r.cfg.Compat)
		if err != nil {
			return nil, err
		}
		engine := r.cfg.Stages()[0].Engine
		if r.blocks, err = r.workload.Blocks(engine.BlockSize, engine.SharesPrefixes(set)); err != nil {
			return nil, err
		}
	}
	for _, segment := range r.blocks.Segments(int(number)) {
		for id := segment.Start; id < segment.Start+segment.Len; id++ {
			blocks = append(blocks, uint64(id)+1)
		}
	}
	return blocks, nil
}
