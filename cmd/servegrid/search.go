package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/search"
)

// searchFlags turn a sweep into a search.
type searchFlags struct{ method, points string }

func (f *searchFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.method, "search", "", "search instead of simulating all points: refine, bayes, evolve, random, halving, saturation; same as --set search.method=…")
	fs.StringVar(&f.points, "search-points", "", "combinations a search may simulate, such as 500 or 15%; same as --set search.points=…")
}

// overrides are the flags as keys of the spec.
func (f *searchFlags) overrides() []string {
	var out []string
	if f.method != "" {
		out = append(out, "search.method="+f.method)
	}
	if f.points != "" {
		out = append(out, "search.points="+f.points)
	}
	return out
}

const (
	// maxParts bounds the searches that run side by side, one for each traffic.
	maxParts = 10_000
	// A batch of a search is this share of its points, within limits: large enough for many cores, small enough to learn.
	batchesOfSearch          = 30
	minOfBatch, maxOfBatch   = 4, 64
	saturationsAtTheSameTime = 64
)

// searchJob is the search of a sweep.
type searchJob struct {
	spec     gridspec.Search
	space    *gridspec.Space
	checked  gridspec.Checked
	strategy search.Strategy
	// saturation is the strategy when it looks for edges.
	saturation *search.Saturation
	// edges are those that it found, at the end.
	edges *edges
	// budget is how many combinations may be simulated; 0 means as many as it takes.
	budget, batch int
	// expected is about how many trials it takes when that is not the budget.
	expected float64
	seed     uint64
	// outcome is known at the end.
	outcome sweep.SearchOutcome
}

// newSearchJob checks the space of a spec and sets the search up.
func newSearchJob(spec *gridspec.Spec) (*searchJob, error) {
	s := &searchJob{spec: spec.Search, seed: spec.Search.Seed}
	if s.seed == 0 {
		s.seed = spec.Execution.Seed
	}
	var err error
	if s.space, err = spec.Space(); err != nil {
		return nil, err
	}
	if s.checked, err = s.space.Check(); err != nil {
		return nil, err
	}
	if n := countSkipped(s.checked.Points); n > 0 && n == len(s.checked.Points) && !s.checked.All {
		return nil, fmt.Errorf("search: none of %s that were tried is possible, the first because %s", plural(s.checked.Looked, "combination"), s.checked.Points[0].SkipMessage)
	}
	if err := s.plan(); err != nil {
		return nil, err
	}
	s.strategy, err = s.newStrategy()
	return s, err
}

// maxByShare bounds how many combinations a share of a space may be: who wants more gives their number.
const maxByShare = 1_000_000

// plan decides how many combinations are simulated, and how many of them at a time.
func (s *searchJob) plan() error {
	if share, ok := s.spec.Points.Share(); ok && share*float64(s.combinations()) > maxByShare {
		return fmt.Errorf("search.points: %g %% of %d combinations are %.3g, too many to mean it; give a number, such as 1000", 100*share, s.combinations(), share*float64(s.combinations()))
	}
	s.budget = s.spec.Points.Of(s.combinations())
	s.batch = min(max(s.budget/batchesOfSearch, minOfBatch), maxOfBatch)
	if s.spec.Method == gridspec.SearchSaturation {
		s.batch = saturationsAtTheSameTime
		if s.spec.Points == 0 {
			s.budget = 0
		}
	}
	if s.spec.Batch > 0 {
		s.batch = s.spec.Batch
	}
	return nil
}

// combinations is the number of combinations that exist and are possible, as far as it is known.
func (s *searchJob) combinations() uint64 {
	if s.checked.All {
		return uint64(len(s.checked.Points)/s.space.Replicates() - s.impossible())
	}
	return s.space.Count()
}

// impossible is the number of combinations that `on_invalid: skip` leaves out, when all were looked at.
func (s *searchJob) impossible() int {
	if !s.checked.All {
		return 0
	}
	return countSkipped(s.checked.Points) / s.space.Replicates()
}

// whole describes what is searched, with further remarks.
func (s *searchJob) whole(remarks ...string) string {
	text := plural(int(min(s.combinations(), math.MaxInt)), "combination")
	if n := s.impossible(); n > 0 {
		remarks = append(remarks, fmt.Sprintf("%d more are impossible and left out", n))
	}
	if len(remarks) > 0 {
		text += " (" + strings.Join(remarks, "; ") + ")"
	}
	return text
}

// newStrategy returns the strategy of the spec. Every traffic is searched by itself.
func (s *searchJob) newStrategy() (search.Strategy, error) {
	space := sweep.SearchSpace(s.space)
	if s.spec.Method == gridspec.SearchSaturation {
		for _, d := range s.space.Dimensions {
			if i := indexOfAxis(d, s.spec.Axis); i >= 0 {
				s.saturation = search.NewSaturation(space, search.SaturationOptions{
					Axis: d.Name, Smallest: s.spec.Smallest, Tolerance: s.spec.Tolerance, Checks: s.spec.Checks,
				}, s.seed)
				return s.saturation, nil
			}
		}
		return nil, fmt.Errorf("search.axis: %s is no axis of the search", s.spec.Axis)
	}
	traffic := sweep.TrafficOf(s.space)
	parts := space.Parts(traffic)
	if parts > maxParts {
		return nil, fmt.Errorf("search: the axes of the workload and the model have %.0f combinations, and each needs a search of its own; give at most %d", parts, maxParts)
	}
	if len(traffic) == len(space.Dimensions) {
		return nil, errors.New("search: all axes are of the workload or the model, and each of their combinations has a frontier of its own; there is nothing to search")
	}
	points := max(1, s.budget/int(parts))
	return search.NewSplit(space, traffic, func(space search.Space, part int) search.Strategy {
		return s.ofPart(space, points, s.seed+uint64(part))
	}), nil
}

// indexOfAxis returns the place of an axis, by path or column, among those of a dimension; -1 when it is none of them.
func indexOfAxis(d gridspec.Dimension, axis string) int {
	for i, path := range d.Paths {
		if path == axis {
			return i
		}
	}
	for i, name := range strings.Split(d.Name, "+") {
		if name == axis {
			return i
		}
	}
	return -1
}

func (s *searchJob) ofPart(space search.Space, points int, seed uint64) search.Strategy {
	switch s.spec.Method {
	case gridspec.SearchBayes:
		return search.NewBayes(space, search.BayesOptions{Points: points}, seed)
	case gridspec.SearchEvolve:
		return search.NewEvolve(space, search.EvolveOptions{Points: points, Population: s.spec.Population}, seed)
	case gridspec.SearchRandom:
		return search.NewRandom(space, seed)
	case gridspec.SearchHalving:
		h := search.NewHalving(space, search.HalvingOptions{Cost: float64(points), Eta: s.spec.Eta, MinFidelity: s.spec.MinFidelity}, seed)
		s.expected += float64(h.Trials())
		return h
	}
	return search.NewRefine(space, search.RefineOptions{Points: points}, seed)
}

// loadSearch reads the spec's search and checks its space.
func (f *specFlags) loadSearch(spec *gridspec.Spec, path string) (*searchJob, error) {
	s, err := newSearchJob(spec)
	if err == nil {
		err = s.checkMost(f.maxPoints)
	}
	if err == nil {
		err = errors.Join(spec.CheckTraces(s.checked.Points), checkStdin(path, s.checked.Points))
	}
	return s, err
}

// checkMost refuses a search that may simulate more points than so many; 0 allows any number.
func (s *searchJob) checkMost(points int) error {
	if n := cmp.Or(float64(s.budget), s.expectedTrials()) * float64(s.space.Replicates()); points > 0 && n > float64(points) {
		return fmt.Errorf("--max-points: the search may simulate %.0f points and %d are allowed; give fewer search.points, or raise --max-points", n, points)
	}
	return nil
}

// validateSearch says whether a spec that searches is sound.
func (f *specFlags) validateSearch(st *state, spec *gridspec.Spec, path string) error {
	s, err := f.loadSearch(spec, path)
	if err != nil {
		return err
	}
	f.warn(st, spec)
	looked := ""
	if !s.checked.All {
		looked = fmt.Sprintf("; %s looked at", plural(s.checked.Looked, "combination"))
	}
	return printText(st.stdout, "%s is valid: %s%s\n", path, s.headline(), looked)
}

// maxEstimated bounds the points of which the time of a search is estimated.
const maxEstimated = 20_000

// estimateSearch estimates the time of a search by that of as many points, spread over its space.
func (f *specFlags) estimateSearch(cmd *cobra.Command, st *state, spec *gridspec.Spec, path string, cluster *clusterFlags) error {
	s, err := f.loadSearch(spec, path)
	if err != nil {
		return err
	}
	f.warn(st, spec)
	possible := slices.DeleteFunc(slices.Clone(s.checked.Points), func(p gridspec.Point) bool { return p.SkipReason != "" })
	if len(possible) == 0 {
		return printText(st.stdout, "%s: nothing is simulated, since all combinations are impossible\n", s.headline())
	}
	n := int(min(cmp.Or(float64(s.budget), s.expectedTrials())*float64(s.space.Replicates()), maxEstimated))
	points := make([]gridspec.Point, n)
	for i := range points {
		points[i] = possible[i*len(possible)/n]
	}
	if err := printText(cluster.text(st), "%s\n", s.headline()); err != nil {
		return err
	}
	return printEstimate(cmd, st, spec, points, cluster)
}

// runSearch is a sweep of a spec that searches.
func runSearch(ctx context.Context, j *sweepJob) error {
	var err error
	if j.search, err = j.flags.loadSearch(j.spec, j.specPath); err != nil {
		return err
	}
	if j.search.checked.All && j.search.combinations() == 0 { // rows that say why are all that there is to have
		j.search = nil
		return runPoints(ctx, j)
	}
	if err := j.checkPartitions(j.search.checked.Points); err != nil {
		return err
	}
	failOn, err := j.constraints(j.search.checked.Points)
	if err != nil {
		return err
	}
	opt, err := j.searchOptions()
	if err != nil {
		return err
	}
	if j.flags.dryRun {
		return printText(j.state.stdout, "%s\nnothing is simulated with --dry-run\n", j.search.headline())
	}
	progress := newProgress(j.state, j.flags, j.searchAnalysis().Objectives)
	_, err = j.withQueue(ctx, &opt.Options, func() (sweep.Outcome, error) {
		j.telemetry.observe(j, &opt.Options, progress)
		var err error
		j.search.outcome, err = sweep.Search(ctx, j.search.space, j.search.strategy, opt)
		return j.search.outcome.Outcome, err
	})
	j.telemetry.ended(ctx, j.search.outcome.Outcome, err)
	lost := progress.close()
	if err == nil && len(j.search.outcome.Rows) == 0 && !j.search.outcome.Interrupted {
		err = errors.New("search: no combination was found that exists and is possible, so nothing was simulated; loosen exclude or the values of the axes")
	}
	if err == nil {
		err = j.findEdges()
	}
	if err == nil {
		err = j.conclude(j.search.outcome.Outcome, failOn)
	}
	if lost != nil {
		return &exitError{exitRefused, errors.Join(err, fmt.Errorf("--json: %w", lost))}
	}
	return err
}

// searchAnalysis is what the search goes after: the objectives and the SLA of the spec, unless a command aims at something else.
func (j *sweepJob) searchAnalysis() results.Analysis {
	points := j.search.checked.Points
	a := results.Analysis{Objectives: j.objectives(), Constraints: results.CommonConstraints(points, j.objectives())}
	if j.flags.aim != nil {
		a = j.flags.aim(a, points)
	}
	return a
}

func (j *sweepJob) searchOptions() (sweep.SearchOptions, error) {
	s := j.search
	a := j.searchAnalysis()
	opt := sweep.SearchOptions{
		Options: j.options(), Batch: s.batch, Budget: float64(s.budget), Patience: s.spec.Patience, Measure: a.Figures, Expected: s.expected,
	}
	if s.saturation == nil {
		return opt, nil
	}
	// Every configuration has an SLA of its own, and just whether it is kept is asked for.
	opt.StopLost, opt.Expected = true, s.expectedTrials()
	opt.Measure = func(rows []results.Row) (objectives, margins []float64) {
		own := a
		own.Constraints = results.SLAConstraints(rows[0].Point.Config.SLA)
		return own.Figures(rows)
	}
	for _, p := range s.checked.Points {
		if !p.Config.SLA.Set() {
			return opt, errors.New("search.method: saturation needs an SLA to keep; give sla.ttft_ms, sla.itl_ms or sla.e2e_ms")
		}
	}
	return opt, nil
}

// headline says what a search is about to do.
func (s *searchJob) headline() string {
	text := fmt.Sprintf("search by %s, seed %d: ", s.spec.Method, s.seed)
	if s.budget == 0 {
		return text + fmt.Sprintf("as many of %s as it takes, %d at a time", s.whole(), s.batch)
	}
	return text + fmt.Sprintf("up to %d of %s, %d at a time", s.budget, s.whole(shareOfAll(float64(s.budget), float64(s.combinations()))), s.batch)
}

// shareOfAll is a share of the whole with three digits.
func shareOfAll(part, whole float64) string {
	return fmt.Sprintf("%.3g %%", 100*part/max(whole, 1))
}

// print says what a search cost and how its frontier grew.
func (s *searchJob) print(w io.Writer) error {
	out := s.outcome
	if len(out.Rounds) == 0 {
		return nil
	}
	last := out.Rounds[len(out.Rounds)-1]
	cost := fmt.Sprintf("%d", out.Trials)
	if last.Cost != float64(last.Trials) {
		cost += fmt.Sprintf(" (some on a part of the workload: the cost of %.4g whole ones)", last.Cost)
	}
	all := s.combinations()
	text := fmt.Sprintf("Search by %s: simulated %s of %s in %s: %s of the work of all.",
		s.spec.Method, cost, s.whole(), plural(len(out.Rounds), "round"), shareOfAll(last.Cost, float64(all)))
	switch {
	case out.Stopped == sweep.StopPatience:
		text += fmt.Sprintf(" It stopped since %s brought nothing new.", plural(s.spec.Patience, "round"))
	case out.Stopped == sweep.StopDone && s.spec.Method == gridspec.SearchHalving && uint64(out.Trials) < all:
		text += " With more search.points, more combinations begin."
	case out.Stopped == sweep.StopDone:
		text += " It has nothing more to try."
	}
	if s.saturation == nil {
		text += "\n" + s.growth()
	}
	return printText(w, "%s\n", text)
}

// growth says how the frontier grew.
func (s *searchJob) growth() string {
	rounds := wholeRounds(s.outcome.Rounds)
	n := len(rounds)
	switch {
	case n == 0:
		return "No combination has replayed all of the workload, so there is no frontier yet."
	case rounds[n-1].Share == 0 && s.checked.Points[0].Config.SLA.Set():
		return "No combination keeps the SLA."
	case rounds[n-1].Share == 0:
		return "No combination has figures for all objectives."
	}
	var parts []string
	told := ""
	for _, quarter := range []int{1, 2, 3} {
		r := rounds[max(0, n*quarter/4-1)]
		if share := fmt.Sprintf("%.1f %%", 100*r.Share); share != told && r.Whole < rounds[n-1].Whole {
			told = share
			parts = append(parts, fmt.Sprintf("%s after %d", share, r.Whole))
		}
	}
	parts = append(parts, fmt.Sprintf("100 %% after %d", rounds[n-1].Whole))
	text := "Hypervolume of its frontier"
	if last := s.outcome.Rounds[len(s.outcome.Rounds)-1]; last.Whole < last.Trials {
		text += ", of combinations on all of the workload"
	}
	return text + ": " + strings.Join(parts, ", ") + "." + s.ending(rounds)
}

// wholeRounds are the rounds that replayed all of the workload: the others bring nothing to the frontier.
func wholeRounds(rounds []sweep.Round) []sweep.Round {
	var out []sweep.Round
	before := 0
	for _, r := range rounds {
		if r.Whole > before {
			out = append(out, r)
		}
		before = r.Whole
	}
	return out
}

// ending says what the last rounds brought, and whether more points may bring more.
func (s *searchJob) ending(rounds []sweep.Round) string {
	idle := 0
	for i := len(rounds) - 1; i >= 0 && rounds[i].Gain <= sweep.IdleGain; i-- {
		idle++
	}
	switch {
	case idle == 1:
		return " The last round added less than 0.1 %."
	case idle > 1:
		return fmt.Sprintf(" The last %s added less than 0.1 %%.", plural(idle, "round"))
	case uint64(s.outcome.Trials) >= s.combinations() && rounds[len(rounds)-1].Whole >= s.outcome.Trials:
		return " All combinations were simulated."
	case s.outcome.Stopped == sweep.StopDone:
		return ""
	}
	return " It still grew in the last round; more points may find more."
}
