package recommend

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/tabletest"
)

// cluster is a small study: GPUs of two kinds, one to four workers, a knob that does little.
func cluster() *results.Table {
	return &results.Table{Columns: []*results.Column{
		tabletest.Column("id", results.RolePoint, "a1", "a1k", "a2", "a4", "b1", "b2", "bad"),
		tabletest.Column("status", results.RolePoint, "ok", "ok", "ok", "ok", "ok", "ok", "failed"),
		tabletest.Column("gpu", results.RoleAxis, "h100", "h100", "h100", "h100", "b200", "b200", "b200"),
		tabletest.Column("workers", results.RoleAxis, 1, 1, 2, 4, 1, 2, 4),
		tabletest.Column("max_num_seqs", results.RoleAxis, 256, 512, 256, 256, 256, 256, 256),
		tabletest.Column("gpus", results.RolePoint, 1, 1, 2, 4, 1, 2, 4),
		tabletest.Column("gpu_hours", results.RoleMetric, .5, .5, 1., 2., .5, 1., nil),
		tabletest.Column("mean_gpus", results.RoleMetric, 1., 1., 2., 4., 1., 2., nil),
		tabletest.Column("cost_usd", results.RoleMetric, 1., 1., 2., 4., 2.5, 5., nil),
		tabletest.Column("cost_usd_per_mtok_output", results.RoleMetric, 10., 10., 20., 40., 25., 50., nil),
		tabletest.Column("p99_ttft_ms", results.RoleMetric, 3000., 2990., 900., 400., 800., 300., nil),
		tabletest.Column("rejected_requests", results.RoleMetric, 0, 0, 0, 0, 0, 0, nil),
		tabletest.Column("limiting_resource", results.RolePoint, "compute", "compute", "none", "none", "kv_memory", "none", nil),
	}}
}

func bounds(t testing.TB, expressions ...string) []results.Constraint {
	t.Helper()
	var out []results.Constraint
	for _, e := range expressions {
		c, err := results.ParseConstraints(e)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c...)
	}
	return out
}

func cheapest(t testing.TB, limits ...string) Request {
	return Request{
		Objective: results.Objective{Name: "cost_usd_per_mtok_output"}, Limits: bounds(t, limits...), RunnersUp: 3, Tolerance: DefaultTolerance,
	}
}

func ask(t testing.TB, table *results.Table, r Request) Answer {
	t.Helper()
	got, err := For(table, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(got); err != nil {
		t.Fatal(err)
	}
	if len(got.Answers) != 1 {
		t.Fatalf("%d answers; one is expected", len(got.Answers))
	}
	return got.Answers[0]
}

func ids(alternatives []Alternative) (out []string) {
	for _, a := range alternatives {
		out = append(out, a.ID)
	}
	return out
}

func TestTheCheapestThatKeepsTheLimit(t *testing.T) {
	a := ask(t, cluster(), cheapest(t, "p99_ttft_ms <= 1000"))
	if a.Best == nil || a.Best.ID != "a2" || a.Feasible != 4 || a.Simulated != 6 || a.Configurations != 7 {
		t.Fatalf("got %+v", a)
	}
	if got, want := ids(a.RunnersUp), []string{"b1", "a4", "b2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("runners-up %v; want %v", got, want)
	}
	limit := a.Best.Limits[a.Best.Binding]
	if limit.Value != 900 || math.Abs(limit.Headroom-.1) > 1e-12 || a.Best.LimitedBy != "none" {
		t.Errorf("the best has %+v, limited by %q", limit, a.Best.LimitedBy)
	}
	if hourly, ok := a.Best.Figure(HourlyCostColumn); !ok || hourly.Value != 4 {
		t.Errorf("costs %+v an hour; want 4 USD", hourly)
	}
	if a.Next == nil || a.Next.ID != "a4" {
		t.Errorf("next number of GPUs: %+v; want a4, of the same kind", a.Next)
	}
	if len(a.Relaxed) != 0 {
		t.Errorf("relaxed: %+v; what is three times as slow is no alternative", a.Relaxed)
	}
	a = ask(t, cluster(), cheapest(t, "p99_ttft_ms <= 1500"))
	if len(a.Relaxed) != 1 || a.Relaxed[0].Choice.ID != "a1k" || a.Relaxed[0].Needed != 2990 || math.Abs(a.Relaxed[0].Gain-.5) > 1e-12 {
		t.Errorf("relaxed: %+v; with twice the time a1k costs half", a.Relaxed)
	}
}

func TestBudgetsAreSetAsideToSayWhatTheyForbid(t *testing.T) {
	r := cheapest(t)
	r.Objective, r.Budget = results.Objective{Name: "p99_ttft_ms"}, bounds(t, "gpus <= 2", "usd_per_hour <= 9")
	a := ask(t, cluster(), r)
	if a.Best == nil || a.Best.ID != "b1" && a.Best.ID != "a2" {
		t.Fatalf("best: %+v", a.Best)
	}
	if a.Best.ID != "b1" {
		t.Errorf("best is %s; b1 is the fastest at 5 USD/h", a.Best.ID)
	}
	if a.Next == nil || a.Next.ID != "b2" || !a.Next.OverBudget {
		t.Errorf("next: %+v; want b2, beyond the budget", a.Next)
	}
	var relaxed []string
	for _, x := range a.Relaxed {
		relaxed = append(relaxed, x.Constraint.Column+" "+x.Choice.ID)
	}
	if want := []string{"usd_per_hour b2", "gpus a4"}; !reflect.DeepEqual(relaxed, want) {
		t.Errorf("relaxed %v; want %v, the greater gain first", relaxed, want)
	}
}

func TestNothingFeasible(t *testing.T) {
	a := ask(t, cluster(), cheapest(t, "p99_ttft_ms <= 250"))
	if a.Best != nil || a.Closest == nil || a.Closest.ID != "b2" || math.Abs(a.Closest.Limits[0].Headroom+.2) > 1e-12 {
		t.Fatalf("got %+v, closest %+v", a, a.Closest)
	}
	if len(a.Relaxed) != 1 || a.Relaxed[0].Choice.ID != "b2" || a.Relaxed[0].Needed != 300 {
		t.Errorf("relaxed: %+v; b2 needs the least", a.Relaxed)
	}
	r := cheapest(t, "p99_ttft_ms <= 350", "gpu == h100")
	if a := ask(t, cluster(), r); a.Best != nil || a.Closest.ID != "a4" {
		t.Errorf("closest %+v; what selects rows is kept", a.Closest)
	}
}

func TestWhoDropsRequestsIsNotChosen(t *testing.T) {
	table := cluster()
	table.Add(tabletest.Column("rejected_requests", results.RoleMetric, 5, 5, 0, 0, 0, 0, nil))
	r := cheapest(t)
	if a := ask(t, table, r); a.Best.ID != "a2" {
		t.Errorf("best is %s, which drops requests", a.Best.ID)
	}
	r.AllowRejected = true
	if a := ask(t, table, r); a.Best.ID != "a1" {
		t.Errorf("best is %s; the cheapest was allowed", a.Best.ID)
	}
	table.Add(tabletest.Column("rejected_requests", results.RoleMetric, 5, 5, 5, 5, 5, 5, nil))
	if a := ask(t, table, cheapest(t)); a.Best.ID != "a1" {
		t.Errorf("best is %s; all drop the same", a.Best.ID)
	}
}

func TestKnobsAreRunnersUpOnlyWhenTheyMatter(t *testing.T) {
	table := cluster().Select([]int{0, 1})
	if a := ask(t, table, cheapest(t, "p99_ttft_ms <= 5000")); len(a.RunnersUp) != 0 {
		t.Errorf("runners-up %v; 0.3 %% of TTFT are no difference", ids(a.RunnersUp))
	}
	table.Add(tabletest.Column("p99_ttft_ms", results.RoleMetric, 3000., 2000.))
	if a := ask(t, table, cheapest(t, "p99_ttft_ms <= 5000")); a.Best.ID != "a1k" || len(a.RunnersUp) != 1 {
		t.Errorf("best %s, runners-up %v; the knob matters", a.Best.ID, ids(a.RunnersUp))
	}
}

func TestReplicatesSayWhatIsChance(t *testing.T) {
	table := &results.Table{Columns: []*results.Column{
		tabletest.Column("status", results.RolePoint, "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok"),
		tabletest.Column("workers", results.RoleAxis, 1, 1, 1, 2, 2, 2, 4, 4, 4),
		tabletest.Column("replicate", results.RolePoint, 0, 1, 2, 0, 1, 2, 0, 1, 2),
		tabletest.Column("gpu_hours", results.RoleMetric, 10., 14., 12., 10.5, 13.5, 12.6, 20., 24., 22.),
		tabletest.Column("p99_ttft_ms", results.RoleMetric, 90., 120., 80., 50., 60., 55., 20., 20., 20.),
	}}
	r := Request{Objective: results.Objective{Name: "gpu_hours"}, Limits: bounds(t, "p99_ttft_ms <= 100"), RunnersUp: 2}
	a := ask(t, table, r)
	if l := a.Best.Limits[0]; l.Kept != 2 || l.Runs != 3 {
		t.Errorf("the best keeps its limit in %d of %d runs; want 2 of 3", l.Kept, l.Runs)
	}
	if !a.RunnersUp[0].WithinNoise || a.RunnersUp[1].WithinNoise {
		t.Errorf("within noise: %v, %v; 12.2 GPU-hours are, 22 are not", a.RunnersUp[0].WithinNoise, a.RunnersUp[1].WithinNoise)
	}
	// 1 worker: mean 12, sample deviation 2, t(2) = 4.302653.
	if f, _ := a.Best.Figure("gpu_hours"); math.Abs(f.HalfWidth-4.302653*2/math.Sqrt(3)) > 1e-9 {
		t.Errorf("half width %v", f.HalfWidth)
	}
}

func TestEachTrafficHasItsAnswer(t *testing.T) {
	table := cluster()
	r := cheapest(t)
	r.By = []string{"gpu"}
	got, err := For(table, r)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Answers) != 2 || got.Answers[0].Traffic[0].Value != "h100" || got.Answers[1].Best.ID != "b1" {
		t.Errorf("got %+v", got.Answers)
	}
}

func TestRefusals(t *testing.T) {
	r := cheapest(t, "p99_tft_ms <= 1", "gpus <= two")
	r.By = []string{"workloat"}
	r.Objective.Name = "gpu"
	_, err := For(cluster(), r)
	for _, want := range []string{"p99_tft_ms", "did you mean p99_ttft_ms?", "column gpus holds numbers", "workloat", "column gpu holds text"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
	r = cheapest(t)
	r.Tolerance = math.NaN()
	if _, err := For(cluster(), r); err == nil {
		t.Error("a tolerance that is no number was taken")
	}
}

func TestTablesWithNothingToChooseFrom(t *testing.T) {
	for name, table := range map[string]*results.Table{
		"empty":      cluster().Select(nil),
		"all failed": cluster().Select([]int{6}),
		"no numbers": {Columns: []*results.Column{
			tabletest.Column("status", results.RolePoint, "ok"), tabletest.Column("cost_usd_per_mtok_output", results.RoleMetric, math.Inf(1)),
			tabletest.Column("p99_ttft_ms", results.RoleMetric, math.NaN()),
		}},
	} {
		r := cheapest(t, "p99_ttft_ms <= 1000")
		got, err := For(table, r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, a := range got.Answers {
			if a.Best != nil || a.Closest != nil || a.Feasible != 0 {
				t.Errorf("%s: got %+v", name, a)
			}
		}
		if _, err := json.Marshal(got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFindObjective(t *testing.T) {
	for word, want := range map[string]results.Objective{
		"cost":             {Name: "cost_usd_per_mtok_output"},
		"min:workers":      {Name: "workers"},
		"max:workers":      {Name: "workers", Maximize: true},
		"p99_ttft_ms":      {Name: "p99_ttft_ms"},
		"usd_per_hour":     {Name: "usd_per_hour"},
		"output_tokens_th": {},
		"workers":          {},
	} {
		got, err := FindObjective(cluster(), word)
		if (err != nil) != (want.Name == "") || got != want {
			t.Errorf("%s: got %v, %v", word, got, err)
		}
	}
	if got, _ := FindObjective(&results.Table{Columns: []*results.Column{tabletest.Column("gpus", results.RolePoint, 1, 2)}}, "cost"); got.Name != "gpus" {
		t.Errorf("without prices cost is %v; want gpus", got)
	}
}

// randomTable draws a table with nulls, infinities, failures, ties and replicates.
func randomTable(t *rapid.T) *results.Table {
	n := rapid.IntRange(1, 25).Draw(t, "rows")
	figure := rapid.SampledFrom([]any{nil, math.Inf(1), math.NaN(), 0., 1., 1.001, 2., 3., 1e308, -1.})
	draw := func(name string, role results.Role, g *rapid.Generator[any]) *results.Column {
		values := make([]any, n)
		for i := range values {
			values[i] = g.Draw(t, name)
		}
		return tabletest.Column(name, role, values...)
	}
	anyOf := func(values ...any) *rapid.Generator[any] { return rapid.SampledFrom(values) }
	idOf := make([]any, n)
	for i := range idOf {
		idOf[i] = string(rune('a' + i))
	}
	cost := draw("cost_usd_per_mtok_output", results.RoleMetric, figure)
	ttft := draw("p99_ttft_ms", results.RoleMetric, figure)
	return &results.Table{Columns: []*results.Column{
		tabletest.Column("id", results.RolePoint, idOf...),
		draw("status", results.RolePoint, anyOf("ok", "ok", "ok", "failed")),
		draw("gpu", results.RoleAxis, anyOf("x", "y")),
		draw("workers", results.RoleAxis, anyOf(1, 2, 3)),
		draw("knob", results.RoleAxis, anyOf(1, 2, 3, 4, 5, 6, 7)),
		draw("gpus", results.RolePoint, anyOf(1, 2, 3, 4)),
		draw("gpu_hours", results.RoleMetric, anyOf(1., 2.)),
		draw("cost_usd", results.RoleMetric, anyOf(1., 2., nil)),
		draw("rejected_requests", results.RoleMetric, anyOf(0, 0, 3)),
		cost, ttft,
	}}
}

// TestTheBestIsFeasibleAndNoneIsBetter checks the promise of a recommendation against every row.
func TestTheBestIsFeasibleAndNoneIsBetter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := randomTable(t)
		limit := rapid.SampledFrom([]string{"p99_ttft_ms <= 2", "p99_ttft_ms < 1", "p99_ttft_ms >= 0"}).Draw(t, "limit")
		c, _ := results.ParseConstraints(limit)
		budget, _ := results.ParseConstraints("gpus <= 3")
		r := Request{Objective: results.Objective{Name: "cost_usd_per_mtok_output"}, Limits: c, Budget: budget, RunnersUp: 4,
			Tolerance: rapid.SampledFrom([]float64{0, .01}).Draw(t, "tolerance"), AllowRejected: true}
		got, err := For(table, r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Fatal(err)
		}
		a := got.Answers[0]
		feasible, err := results.Feasible(table, append(c, budget...))
		if err != nil {
			t.Fatal(err)
		}
		costs, _ := table.Column("cost_usd_per_mtok_output").Float64s()
		least, some := math.Inf(1), 0
		for row, ok := range feasible {
			if ok && table.Column("status").Text(row) == "ok" && !math.IsInf(costs[row], 0) && !math.IsNaN(costs[row]) {
				least, some = min(least, costs[row]), some+1
			}
		}
		if (a.Best == nil) != (some == 0) || a.Feasible != some {
			t.Fatalf("%d feasible, %d counted, best %+v", some, a.Feasible, a.Best)
		}
		if a.Best == nil {
			return
		}
		if row := a.Best.Row; !feasible[row] || costs[row] > least+r.Tolerance*math.Abs(least) {
			t.Errorf("best has cost %v, feasible %v; the least is %v", costs[row], feasible[row], least)
		}
		for i, alternative := range a.RunnersUp {
			if !feasible[alternative.Row] || alternative.Row == a.Best.Row {
				t.Errorf("runner-up %d is row %d, feasible %v", i, alternative.Row, feasible[alternative.Row])
			}
		}
	})
}

// TestTheOrderOfRowsDoesNotMatter permutes the rows and expects the same answer, twice.
func TestTheOrderOfRowsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := randomTable(t)
		limits, _ := results.ParseConstraints("p99_ttft_ms <= 2")
		r := Request{Objective: results.Objective{Name: "cost_usd_per_mtok_output"}, Limits: limits, RunnersUp: 3, Tolerance: .01}
		order := make([]int, table.Rows())
		for i := range order {
			order[i] = i
		}
		permuted := table.Select(rapid.Permutation(order).Draw(t, "order"))
		var texts [3]string
		for i, table := range []*results.Table{table, table, permuted} {
			got, err := For(table, r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(got.Answers) // cautions name things in the order of the rows
			if err != nil {
				t.Fatal(err)
			}
			texts[i] = string(text)
		}
		if texts[0] != texts[1] || texts[0] != texts[2] {
			t.Errorf("answers differ:\n%s", cmp.Diff(texts[0], texts[2]))
		}
	})
}

func TestTheBudgetIsOnThePeakWhereThatDiffers(t *testing.T) {
	table := cluster()
	if got := GPUBudget(table, 4); got.String() != "gpus <= 4" {
		t.Errorf("got %s", got)
	}
	table.Add(tabletest.Column("peak_gpus", results.RoleMetric, 1, 1, 2, 4, 1, 2, nil))
	if got := GPUBudget(table, 4); got.String() != "gpus <= 4" {
		t.Errorf("got %s though nothing scales", got)
	}
	table.Add(tabletest.Column("peak_gpus", results.RoleMetric, 1, 1, 6, 4, 1, 2, nil))
	if got := GPUBudget(table, 4); got.String() != "peak_gpus <= 4" {
		t.Errorf("got %s though the planner added workers", got)
	}
}

func TestSeveralLoadsAreACaution(t *testing.T) {
	table := cluster()
	table.Add(tabletest.Column("concurrency", results.RoleAxis, 8, 8, 8, 8, 16, 16, nil))
	for limit, want := range map[string]int{"gpus >= 1": 1, "concurrency == 8": 0, "concurrency <= 8": 0} {
		got, err := For(table, cheapest(t, limit))
		if err != nil {
			t.Fatal(err)
		}
		loads := slices.DeleteFunc(got.Cautions, func(c string) bool { return !strings.HasPrefix(c, "Loads differ (concurrency)") })
		if len(loads) != want {
			t.Errorf("%s: cautions %q", limit, got.Cautions)
		}
	}
}

// BenchmarkFor answers from 100,000 rows with eight axes.
func BenchmarkFor(b *testing.B) {
	const n = 100_000
	numbers := func(name string, role results.Role, of func(i int) any) *results.Column {
		values := make([]any, n)
		for i := range values {
			values[i] = of(i)
		}
		return tabletest.Column(name, role, values...)
	}
	columns := []*results.Column{
		numbers("id", results.RolePoint, func(i int) any { return strconv.Itoa(i) }),
		numbers("gpus", results.RolePoint, func(i int) any { return 1 + i%8 }),
		numbers("cost_usd_per_mtok_output", results.RoleMetric, func(i int) any { return float64(i*7919%n) + 1 }),
		numbers("p99_ttft_ms", results.RoleMetric, func(i int) any { return float64(i * 104729 % n) }),
	}
	for axis := range 8 {
		columns = append(columns, numbers("axis"+strconv.Itoa(axis), results.RoleAxis, func(i int) any { return i >> (2 * axis) & 3 }))
	}
	table, r := &results.Table{Columns: columns}, cheapest(b, "p99_ttft_ms <= 50000")
	for b.Loop() {
		if _, err := For(table, r); err != nil {
			b.Fatal(err)
		}
	}
}

// A bound from below gives way to half of it, and a share of those served only until twice as many are missed.
func TestRelaxedFromBelow(t *testing.T) {
	table := &results.Table{Columns: []*results.Column{
		tabletest.Column("id", results.RolePoint, "all", "some", "few"),
		tabletest.Column("workers", results.RoleAxis, 4, 2, 1),
		tabletest.Column("usd", results.RoleMetric, 40., 20., 10.),
		tabletest.Column("attainment", results.RoleMetric, .97, .91, .2),
		tabletest.Column("throughput", results.RoleMetric, 400., 210., 100.),
	}}
	for limit, want := range map[string]string{
		"attainment >= 0.95": "some", "attainment >= 0.96": "", "throughput >= 400": "some", "throughput >= 220": "some",
	} {
		limits, err := results.ParseConstraints(limit)
		if err != nil {
			t.Fatal(err)
		}
		r, err := For(table, Request{Objective: results.Objective{Name: "usd"}, Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, x := range r.Answers[0].Relaxed {
			got += x.Choice.ID
		}
		if got != want {
			t.Errorf("%s: relaxed to %q; want %q", limit, got, want)
		}
	}
}

// Configurations without a value in the objective were simulated; they are counted apart.
func TestWithoutObjective(t *testing.T) {
	table := &results.Table{Columns: []*results.Column{
		tabletest.Column("status", results.RolePoint, "ok", "ok", "failed", "ok"),
		tabletest.Column("gpu", results.RoleAxis, "h100", "gb300", "l40s", "b200"),
		tabletest.Column("usd", results.RoleMetric, 40., nil, nil, 20.),
	}}
	r, err := For(table, Request{Objective: results.Objective{Name: "usd"}})
	if err != nil {
		t.Fatal(err)
	}
	if a := r.Answers[0]; a.Configurations != 4 || a.Simulated != 3 || a.WithoutObjective != 1 || a.Feasible != 2 {
		t.Errorf("%d configurations, %d simulated, %d without objective, %d feasible", a.Configurations, a.Simulated, a.WithoutObjective, a.Feasible)
	}
}

// A choice that a roofline prices is no measured result, and the cautions say how far it may be off.
func TestAnalyticCaution(t *testing.T) {
	table := &results.Table{Columns: []*results.Column{
		tabletest.Column("gpu", results.RoleAxis, "mi300x", "h200", "l40s"),
		tabletest.Column("usd", results.RoleMetric, 10., 20., 30.),
		tabletest.Column("timing_source", results.RolePoint, "analytic", "table", "analytic"),
		tabletest.Column("timing_prefill_error_pct", results.RolePoint, 40., .2, 40.),
		tabletest.Column("timing_decode_error_pct", results.RolePoint, 35., .8, nil),
	}}
	r, err := For(table, Request{Objective: results.Objective{Name: "usd"}, RunnersUp: 2})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(r.Cautions, "\n")
	for _, want := range []string{"The best configuration is priced by a roofline (analytic timing), ±40 % in prefill, ±35 % in decode", "Runner-up 2 is priced by a roofline (analytic timing), ±40 % in prefill, ±? % in decode"} {
		if !strings.Contains(got, want) {
			t.Errorf("cautions:\n%s\nwant %q", got, want)
		}
	}
	if strings.Contains(got, "Runner-up 1") {
		t.Errorf("cautions about what was measured:\n%s", got)
	}
}
