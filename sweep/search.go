package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep/search"
)

// SearchOptions configure a search besides the sweep that it is.
type SearchOptions struct {
	Options
	// Batch is the number of trials that are asked for at a time. What a search asks for depends on it, and not on
	// Options.Jobs.
	Batch int
	// Budget bounds the trials; one at half the fidelity counts half. 0 means no bound.
	Budget float64
	// Expected is about how many trials the search will take, for those who watch it; 0 means as many as the budget.
	Expected float64
	// Patience ends the search when so many batches one after another did not improve the frontier; 0 means never.
	Patience int
	// Measure returns the figures of a configuration, whose replicates that are ok the rows are, as [search.Result] has
	// them.
	Measure func(rows []results.Row) (objectives, margins []float64)
	// Told is called after each batch, unless it is nil, from the goroutine that called Search.
	Told func(Round)
}

// Round is one batch of a search, as it was told.
type Round struct {
	// Number counts the rounds from 1.
	Number int
	// Trials is the number of trials so far, Cost the same with each counted by its fidelity.
	Trials int
	Cost   float64
	// Whole is the number of trials so far on all of the workload. Just these are on frontiers.
	Whole int
	// Frontier is the number of trials on the frontiers so far, Gain the share of their hypervolume that the round
	// brought; see [search.Front].
	Frontier int
	Gain     float64
	// Share is the hypervolume of the frontier after the round as a share of that at the end of the search, the mean over
	// all traffic; it is known at the end.
	Share float64
}

// The reasons why a search ends.
const (
	// StopBudget: all trials of the budget were asked for.
	StopBudget = "budget"
	// StopPatience: several rounds brought nothing.
	StopPatience = "patience"
	// StopDone: the strategy has nothing more to ask.
	StopDone = "done"
)

// SearchOutcome is what a search leaves.
type SearchOutcome struct {
	Outcome
	// Rounds holds every round.
	Rounds []Round
	// Trials is the number of different configurations that were asked for, on how much of the workload ever.
	Trials int
	// Stopped says why the search ended; it is empty when it was interrupted.
	Stopped string
}

// Search simulates the points that a strategy asks for, in batches, and returns the rows of those at full fidelity in
// the order in which they were asked for, those of `include` first. Everything else is as in [Run]: also a search that
// was interrupted goes on when it is called again, since the strategy then asks for the same trials.
func Search(ctx context.Context, space *gridspec.Space, strategy search.Strategy, opt SearchOptions) (SearchOutcome, error) {
	var err error
	if opt.Options, err = opt.Options.withDefaults(); err != nil {
		return SearchOutcome{}, err
	}
	if opt.Batch < 1 || opt.Measure == nil {
		return SearchOutcome{}, errors.New("search: give a batch of 1 or more and say how results are measured")
	}
	included, err := space.Included()
	if err != nil {
		return SearchOutcome{}, err
	}
	f, err := openFolder(&opt.Options)
	if err != nil {
		return SearchOutcome{}, err
	}
	out, err := runSearch(ctx, space, strategy, included, f, &opt)
	return out, errors.Join(err, f.close())
}

func runSearch(ctx context.Context, space *gridspec.Space, strategy search.Strategy, included []gridspec.Point, f *folder, opt *SearchOptions) (SearchOutcome, error) {
	loads := newLoadCache(&opt.Options)
	opt.Load, opt.Stdin = loads.load, nil
	total := math.Min(cmp.Or(opt.Expected, opt.Budget), math.MaxInt32) * float64(max(1, space.Replicates()))
	s := startSession(ctx, f, &opt.Options, int(total)+len(included))
	defer s.notify.close()
	r := &searcher{session: s, space: space, strategy: strategy, opt: opt, known: map[string]int{}, configurations: map[string]bool{}, front: newFronts(space)}
	loadErr := r.include(included)
	stopped := ""
	var problem error
	for loadErr == nil && problem == nil && stopped == "" && s.ctx.Err() == nil {
		stopped, loadErr, problem = r.round()
	}
	if s.ctx.Err() == nil {
		s.publish.resolved()
	}
	r.front.shares(r.rounds)
	out, err := s.conclude(loadErr)
	if ctx.Err() != nil && stopped == "" {
		out.Interrupted = true
	}
	return SearchOutcome{Outcome: out, Rounds: r.rounds, Trials: len(r.configurations), Stopped: stopped}, errors.Join(problem, err)
}

// searcher is a search that is going on.
type searcher struct {
	*session
	space    *gridspec.Space
	strategy search.Strategy
	opt      *SearchOptions

	rounds []Round
	cost   float64
	trials int
	whole  int
	// known holds the trial of each configuration, tried what was told of each.
	known map[string]int
	tried []search.Result
	// configurations are those that were asked for, on how much of the workload ever.
	configurations map[string]bool
	front          *fronts
	idle           int
	// loaded says that a workload could be loaded.
	loaded bool
}

// asked is a trial of a batch.
type asked struct {
	search.Trial
	// from and to are its points in the ledger.
	from, to int
	// known is its number among the different configurations, and again whether it was asked for before.
	known int
	again bool
}

// include simulates the points that the spec adds by hand.
func (r *searcher) include(points []gridspec.Point) error {
	if len(points) == 0 {
		return nil
	}
	r.add(points, 0, true)
	return r.simulate(0)
}

// add puts points into the ledger and says in which round they were asked for.
func (r *searcher) add(points []gridspec.Point, round int, shown bool) {
	at := len(r.ledger.points)
	for i := range points {
		points[i].Index = at + i
		points[i].Axes = append(slices.Clip(points[i].Axes), gridspec.AxisValue{
			Column: gridspec.SearchRound, Path: gridspec.SearchRound, Value: gridspec.Value{Kind: gridspec.KindInt, Int: int64(round)},
		})
	}
	r.ledger.extend(points, shown)
}

// simulate runs the points of the ledger from an index on.
func (r *searcher) simulate(from int) error {
	d := r.dispatcher()
	d.loaded = r.loaded
	err := d.run(r.ctx, from)
	r.commit.flush()
	r.loaded = r.loaded || d.loaded
	if r.ledger.simulatedAny() {
		r.publish.resolved() // the journal of an earlier run has nothing more to give
	}
	return err
}

// round asks for a batch, simulates it and tells what came of it. Stopped is set when it was the last.
func (r *searcher) round() (stopped string, loadErr, problem error) {
	trials := r.strategy.Ask(r.opt.Batch)
	if len(trials) == 0 {
		return StopDone, nil, nil
	}
	from := len(r.ledger.points)
	batch := make([]asked, 0, len(trials))
	for _, t := range trials {
		if r.opt.Budget > 0 && r.cost+t.Fidelity > r.opt.Budget+1e-9 {
			stopped = StopBudget
			break
		}
		a, err := r.take(t)
		if err != nil {
			return "", nil, err
		}
		r.cost += t.Fidelity
		batch = append(batch, a)
	}
	if len(batch) == 0 {
		return StopBudget, nil, nil
	}
	if loadErr = r.simulate(from); loadErr != nil || r.ctx.Err() != nil {
		return "", loadErr, nil
	}
	told := make([]search.Result, len(batch))
	for i, a := range batch {
		told[i] = r.result(a)
	}
	r.strategy.Tell(told)
	r.note(told)
	if stopped == "" && r.opt.Patience > 0 && r.idle >= r.opt.Patience {
		stopped = StopPatience
	}
	return stopped, nil, nil
}

// take puts the points of a trial into the ledger, unless an equal configuration is there.
func (r *searcher) take(t search.Trial) (asked, error) {
	a := asked{Trial: t}
	points, err := r.space.Points(t.Place)
	if err != nil {
		return a, err
	}
	if len(points) == 0 {
		return a, fmt.Errorf("search: the strategy asked for %v, which exclude drops", t.Place)
	}
	key := configurationOf(points)
	r.configurations[key] = true
	if t.Fidelity < 1 {
		for i := range points {
			points[i].Workload.ShortenTo(t.Fidelity)
		}
		key = configurationOf(points)
	}
	at, again := r.known[key]
	if a.again = again; again {
		a.known = at
		return a, nil
	}
	a.known = len(r.tried)
	r.known[key] = a.known
	r.tried = append(r.tried, search.Result{})
	a.from = len(r.ledger.points)
	r.add(points, len(r.rounds)+1, t.Fidelity == 1)
	a.to = len(r.ledger.points)
	return a, nil
}

// configurationOf is what the replicates of a candidate are equal in to those of another: everything but names.
func configurationOf(points []gridspec.Point) string {
	w := points[0].Workload
	w.Name = ""
	return points[0].ContentID("") + specText(w)
}

// result is what a trial gave.
func (r *searcher) result(a asked) search.Result {
	if a.again {
		out := r.tried[a.known]
		out.Trial = a.Trial
		return out
	}
	rows := r.ledger.some(a.from, a.to)
	out := search.Result{Trial: a.Trial}
	stopped := slices.DeleteFunc(slices.Clone(rows), func(row results.Row) bool { return row.Status != results.StatusStopped })
	ok := slices.DeleteFunc(rows, func(row results.Row) bool { return row.Status != results.StatusOK })
	switch {
	case len(stopped) > 0: // its SLA is lost, by how much nobody knows
		out.OK = true
		out.Objectives, out.Margins = r.opt.Measure(stopped)
	case len(ok) > 0:
		out.OK = true
		out.Objectives, out.Margins = r.opt.Measure(ok)
	}
	r.tried[a.known] = out
	return out
}

// note adds a round to the history.
func (r *searcher) note(told []search.Result) {
	r.trials += len(told)
	before := r.whole
	for _, t := range told {
		if t.Fidelity == 1 {
			r.whole++
		}
	}
	gain := r.front.add(told)
	switch {
	case gain > IdleGain:
		r.idle = 0
	case r.whole > before: // shortened workloads cannot improve the frontier
		r.idle++
	}
	round := Round{Number: len(r.rounds) + 1, Trials: r.trials, Cost: r.cost, Whole: r.whole, Frontier: r.front.size(), Gain: gain}
	r.rounds = append(r.rounds, round)
	if r.opt.Told != nil {
		r.opt.Told(round)
	}
}

// IdleGain is the share of the hypervolume up to which a round counts as having brought nothing.
const IdleGain = 1e-3

// SearchSpace is the lattice as strategies see it. It has just the combinations that `exclude` leaves and whose
// configuration is possible.
func SearchSpace(space *gridspec.Space) search.Space {
	out := search.Space{Allowed: func(place []int) bool {
		points, err := space.Points(place)
		return err != nil || len(points) > 0 && points[0].SkipReason == ""
	}}
	for _, d := range space.Dimensions {
		out.Dimensions = append(out.Dimensions, search.Dimension{Name: d.Name, Values: d.Values, Size: d.Size})
	}
	return out
}

// fronts holds the frontier of each traffic.
type fronts struct {
	along   []int // the dimensions of the traffic
	byPlace map[string]*trafficFront
	inOrder []*trafficFront
	rounds  int
}

// trafficFront is the frontier of one traffic and what came to it in which round.
type trafficFront struct {
	search.Front
	came []arrival
}

type arrival struct {
	round      int
	objectives []float64
}

func newFronts(space *gridspec.Space) *fronts {
	return &fronts{along: TrafficOf(space), byPlace: map[string]*trafficFront{}}
}

// TrafficOf lists the dimensions of a space that say what is served. Each of their combinations has a frontier of its own.
func TrafficOf(space *gridspec.Space) []int {
	var out []int
	for i, d := range space.Dimensions {
		if d.Traffic {
			out = append(out, i)
		}
	}
	return out
}

// add adds the results of a round and returns the largest share of a frontier that is new.
func (f *fronts) add(told []search.Result) (gain float64) {
	f.rounds++
	groups := map[*trafficFront][]search.Result{}
	var order []*trafficFront
	for _, t := range told {
		if t.Fidelity < 1 {
			continue
		}
		front := f.of(t.Place)
		if groups[front] == nil {
			order = append(order, front)
		}
		groups[front] = append(groups[front], t)
		if t.Feasible() {
			front.came = append(front.came, arrival{f.rounds, t.Objectives})
		}
	}
	for _, front := range order {
		gain = max(gain, front.Add(groups[front]))
	}
	return gain
}

// of returns the frontier of a place's traffic.
func (f *fronts) of(place []int) *trafficFront {
	var b strings.Builder
	for _, d := range f.along {
		fmt.Fprintf(&b, "%d ", place[d])
	}
	front := f.byPlace[b.String()]
	if front == nil {
		front = &trafficFront{}
		f.byPlace[b.String()] = front
		f.inOrder = append(f.inOrder, front)
	}
	return front
}

func (f *fronts) size() int {
	n := 0
	for _, front := range f.inOrder {
		n += front.Size()
	}
	return n
}

// shares fills in the shares of the rounds. Frontiers without a member do not count.
func (f *fronts) shares(rounds []Round) {
	counted := 0.0
	for _, front := range f.inOrder {
		var final, sofar [][]float64
		for _, m := range front.Members() {
			final = append(final, m.Objectives)
		}
		if len(final) == 0 {
			continue
		}
		counted++
		box := search.BoxOf(final)
		all, share, next := box.Volume(final), 0.0, 0
		for i := range rounds {
			before := next
			for next < len(front.came) && front.came[next].round <= i+1 {
				sofar = append(sofar, front.came[next].objectives)
				next++
			}
			if next > before {
				share = box.Volume(sofar) / all
			}
			rounds[i].Share += share
		}
	}
	for i := range rounds {
		rounds[i].Share /= max(counted, 1)
	}
}
