package sweep

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/sweep/search"
)

// searchSpec has 240 combinations, some of which are excluded, and one that fails.
const searchSpec = `
workload: {synthetic: {input_tokens: 100, output_tokens: 10, requests: 5}}
grid:
  deployment.workers: {range: [1, 20, 1]}
  engine.block_size: [16, 32, 64]
  router.policy: [round_robin, kv_router]
  engine.max_num_seqs: [8, 16]
exclude: ["deployment.workers == 20"]
`

func searchSpace(t *testing.T, text string) *gridspec.Space {
	t.Helper()
	spec, err := gridspec.Load(gridspec.Source{Data: []byte(text), Dir: "."})
	if err != nil {
		t.Fatal(err)
	}
	space, err := spec.Space()
	if err != nil {
		t.Fatal(err)
	}
	return space
}

// searchSimulate trades throughput for the first token; one configuration fails.
func searchSimulate(ctx context.Context, job Job) (*simcore.Report, error) {
	c := job.Point.Config
	x := float64(c.Deployment.Workers)
	if x == 7 {
		return nil, errors.New("seven workers are too many")
	}
	report, err := testSimulate(ctx, job)
	if err != nil {
		return nil, err
	}
	report.OutputThroughputTokS = 100*x - float64(c.Engine.BlockSize) - float64(job.Point.Replicate)
	report.CompletedRequests, report.TTFT.Mean = 5, x*x+float64(c.Engine.MaxNumSeqs)
	return report, nil
}

func searchOptions(dir string) SearchOptions {
	a := results.Analysis{
		Objectives:  []results.Objective{{Name: "output_throughput_tok_s", Maximize: true}, {Name: "mean_ttft_ms"}},
		Constraints: []results.Constraint{{Column: "mean_ttft_ms", Operator: "<=", Bound: gridspec.Value{Kind: gridspec.KindFloat, Float: 200}}},
	}
	opt := SearchOptions{Options: testOptions(dir), Batch: 8, Budget: 60, Measure: a.Figures}
	opt.Simulate = searchSimulate
	opt.ContentID = gridspec.Point.ContentID
	return opt
}

func refine(space *gridspec.Space) search.Strategy {
	return search.NewRefine(SearchSpace(space), search.RefineOptions{Points: 60}, 1)
}

func mustSearch(t *testing.T, text string, opt SearchOptions) SearchOutcome {
	t.Helper()
	space := searchSpace(t, text)
	out, err := Search(t.Context(), space, refine(space), opt)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSearch checks that a search keeps to its budget, numbers its rounds, leaves rows in the order of its asks and finds
// the frontier that is easy to see.
func TestSearch(t *testing.T) {
	dir := t.TempDir()
	out := mustSearch(t, searchSpec, searchOptions(dir))
	if out.Trials != 60 || len(out.Rows) != 60 || out.Stopped != StopBudget || out.Counts.Simulated != 60 {
		t.Errorf("%d trials, %d rows, stopped by %q, %+v", out.Trials, len(out.Rows), out.Stopped, out.Counts)
	}
	best := 0
	for i, row := range out.Rows {
		round := row.Point.Axes[len(row.Point.Axes)-1]
		if row.Point.Index != i || round.Column != gridspec.SearchRound || round.Value.Int < 1 || int(round.Value.Int) > len(out.Rounds) {
			t.Fatalf("row %d is of point %d, round %v", i, row.Point.Index, round)
		}
		if row.Point.Config.Deployment.Workers == 20 {
			t.Error("an excluded point was simulated")
		}
		if row.Status == results.StatusOK && row.Point.Config.Engine.BlockSize == 16 && row.Point.Config.Engine.MaxNumSeqs == 8 {
			best = max(best, row.Point.Config.Deployment.Workers)
		}
	}
	if best < 13 {
		t.Errorf("the best one has %d workers; 13 keep the constraint", best)
	}
	last := out.Rounds[len(out.Rounds)-1]
	if last.Trials != 60 || math.Abs(last.Share-1) > 1e-9 || last.Frontier < 5 {
		t.Errorf("the last round is %+v", last)
	}
	if file, err := readTestFile(dir + "/" + ResultsFile); err != nil || file.Rows != 60 {
		t.Errorf("the results file has %d rows: %v", file.Rows, err)
	}
}

// TestSearchDoesNotDependOnJobs checks that the same points are asked for whatever the parallelism.
func TestSearchDoesNotDependOnJobs(t *testing.T) {
	want := mustSearch(t, searchSpec, searchOptions(t.TempDir()))
	one := searchOptions(t.TempDir())
	one.Jobs = 1
	got := mustSearch(t, searchSpec, one)
	if diff := sameRows(want.Rows, got.Rows); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want.Rounds, got.Rounds); diff != "" {
		t.Error(diff)
	}
}

// TestSearchResumes interrupts a search again and again; in the end it has the rows of one that was not, and no point was
// simulated twice.
func TestSearchResumes(t *testing.T) {
	want := mustSearch(t, searchSpec, searchOptions(t.TempDir()))
	dir := t.TempDir()
	total := 0
	for try := 0; ; try++ {
		if try > 20 {
			t.Fatal("the search never ends")
		}
		ctx, cancel := context.WithCancel(t.Context())
		var simulated atomic.Int32
		opt := searchOptions(dir)
		opt.Simulate = func(ctx context.Context, job Job) (*simcore.Report, error) {
			if simulated.Add(1) > 13 {
				cancel()
			}
			return searchSimulate(ctx, job)
		}
		space := searchSpace(t, searchSpec)
		out, err := Search(ctx, space, refine(space), opt)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		total += out.Counts.Simulated
		if out.Interrupted {
			continue
		}
		if try == 0 {
			t.Error("it was not interrupted")
		}
		if diff := sameRows(want.Rows, out.Rows); diff != "" {
			t.Error(diff)
		}
		if total != 60 {
			t.Errorf("%d points were simulated, want 60", total)
		}
		return
	}
}

// TestSearchOfEqualPoints checks that combinations which are the same configuration are simulated and listed once.
func TestSearchOfEqualPoints(t *testing.T) {
	out := mustSearch(t, strings.Replace(searchSpec, "exclude:", "zip: {timing.gpu: [h200, h200_sxm]}\ntiming: {model: llama-3.1-8b}\nexclude:", 1), func() SearchOptions {
		opt := searchOptions(t.TempDir())
		opt.Budget = 0
		return opt
	}())
	seen := map[string]bool{}
	for _, row := range out.Rows {
		if seen[row.ID] {
			t.Fatalf("%s is there twice", row.ID)
		}
		seen[row.ID] = true
	}
	if len(out.Rows) != 228 || out.Stopped != StopDone {
		t.Errorf("%d rows, stopped by %s; want 228 when all are tried", len(out.Rows), out.Stopped)
	}
}

// TestSearchEnds checks the other ends of a search, and that include and replicates count.
func TestSearchEnds(t *testing.T) {
	opt := searchOptions(t.TempDir())
	opt.Patience = 2
	out := mustSearch(t, searchSpec+"include: [{deployment.workers: 3, engine.block_size: 128}]\nexecution: {replicates: 2}\n", opt)
	if out.Stopped == StopPatience && len(out.Rounds) < 3 || out.Stopped == "" {
		t.Errorf("stopped by %q after %d rounds", out.Stopped, len(out.Rounds))
	}
	if len(out.Rows) != 2*out.Trials+2 {
		t.Errorf("%d rows of %d trials and an included point with 2 replicates each", len(out.Rows), out.Trials)
	}
	if first := out.Rows[0].Point; first.Config.Engine.BlockSize != 128 || first.Axes[len(first.Axes)-1].Value.Int != 0 {
		t.Errorf("the first row is %+v", first.Axes)
	}
}

// TestSearchByFidelity checks that trials on a part of the workload are no rows and cost their share.
func TestSearchByFidelity(t *testing.T) {
	space := searchSpace(t, strings.Replace(searchSpec, "requests: 5", "requests: 300", 1))
	opt := searchOptions(t.TempDir())
	opt.Load = nil
	out, err := Search(t.Context(), space, search.NewHalving(SearchSpace(space), search.HalvingOptions{Cost: 20}, 1), opt)
	if err != nil {
		t.Fatal(err)
	}
	cost := out.Rounds[len(out.Rounds)-1].Cost
	if cost > 25 || out.Trials <= len(out.Rows) || len(out.Rows) == 0 {
		t.Errorf("%d trials of cost %v have %d rows", out.Trials, cost, len(out.Rows))
	}
	for _, row := range out.Rows {
		if row.Point.Workload.Share != 0 && row.Point.Workload.Share != 1 {
			t.Errorf("a row is of a share of %v", row.Point.Workload.Share)
		}
	}
}

// TestSearchErrors checks what is refused, and that what was found before is kept.
func TestSearchErrors(t *testing.T) {
	space := searchSpace(t, searchSpec)
	opt := searchOptions(t.TempDir())
	opt.Batch = 0
	if _, err := Search(t.Context(), space, refine(space), opt); err == nil {
		t.Error("a batch of 0 is accepted")
	}
	opt = searchOptions(t.TempDir())
	opt.Load = nil
	space = searchSpace(t, strings.Replace(searchSpec, "{synthetic: {input_tokens: 100, output_tokens: 10, requests: 5}}", "{trace: {path: missing.jsonl}}", 1))
	if _, err := Search(t.Context(), space, refine(space), opt); err == nil || !strings.Contains(err.Error(), "missing.jsonl") {
		t.Errorf("a missing trace: %v", err)
	}
	opt = searchOptions(t.TempDir())
	space = searchSpace(t, strings.Replace(searchSpec, "[16, 32, 64]", "[16, 32, -1]", 1))
	out, err := Search(t.Context(), space, fixed{{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 2, 0, 0}}.one(), opt)
	if err == nil || !strings.Contains(err.Error(), "engine.block_size") || len(out.Rows) != 2 {
		t.Errorf("an impossible combination: %d rows, %v", len(out.Rows), err)
	}
}

// fixed asks for places one at a time.
type fixed [][]int

func (f fixed) one() search.Strategy { return &fixedStrategy{f} }

type fixedStrategy struct{ left fixed }

func (f *fixedStrategy) Ask(int) []search.Trial {
	if len(f.left) == 0 {
		return nil
	}
	place := slices.Clone(f.left[0])
	f.left = f.left[1:]
	return []search.Trial{{Place: place, Fidelity: 1}}
}

func (f *fixedStrategy) Tell([]search.Result) {}

// finishedPoints counts what an observer hears.
type finishedPoints struct {
	NopObserver
	total int
	heard []Finished
}

func (f *finishedPoints) SweepStarted(total int)   { f.total = total }
func (f *finishedPoints) PointFinished(p Finished) { f.heard = append(f.heard, p) }

// TestSearchOnShortenedWorkloads checks that rounds on a part of the workload count apart: neither patience nor the
// results nor the best one so far see them, and whoever watches knows how many points to expect.
func TestSearchOnShortenedWorkloads(t *testing.T) {
	dir := t.TempDir()
	space := searchSpace(t, searchSpec)
	halving := search.NewHalving(SearchSpace(space), search.HalvingOptions{Cost: 20}, 1)
	var heard finishedPoints
	opt := searchOptions(dir)
	opt.Budget, opt.Expected, opt.Patience, opt.Observer = 20, float64(halving.Trials()), 1, &heard
	out, err := Search(t.Context(), space, halving, opt)
	if err != nil {
		t.Fatal(err)
	}
	shortened := 0
	tracker := NewTracker(heard.total, Objective{Metric: "output_throughput_tok_s"}, time.Now)
	for _, f := range heard.heard {
		if f.Shortened {
			shortened++
			f.Row.Metrics = slices.Repeat([]float64{1e9}, len(f.Row.Metrics)) // would be the best
		}
		tracker.Finished(f)
	}
	p := tracker.Progress()
	if len(out.Rows) == 0 || shortened == 0 || len(heard.heard) != len(out.Rows)+shortened || len(heard.heard) > heard.total {
		t.Errorf("%d rows and %d shortened points of %d; %d were expected", len(out.Rows), shortened, len(heard.heard), heard.total)
	}
	if p.Shortened != shortened || out.Counts.Shortened != shortened || p.Best == nil || p.BestValue == 1e9 {
		t.Errorf("%d shortened points are %d in the progress, whose best is %v, and %d in the counts", shortened, p.Shortened, p.BestValue, out.Counts.Shortened)
	}
	if last := out.Rounds[len(out.Rounds)-1]; last.Whole != len(out.Rows) || out.Rounds[0].Whole != 0 {
		t.Errorf("%d rows, but the rounds are %+v", len(out.Rows), out.Rounds)
	}
	again, err := Search(t.Context(), space, search.NewHalving(SearchSpace(space), search.HalvingOptions{Cost: 20}, 1), opt)
	if err != nil || again.Counts.Simulated != 0 || again.Journal.Unused != 0 {
		t.Errorf("again: %+v, %+v, %v", again.Counts, again.Journal, err)
	}
}
