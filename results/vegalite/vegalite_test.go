package vegalite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/tabletest"
)

// every has data for every chart: two workers by three loads on two GPUs; the highest load misses the bound with one worker.
func every() results.ReportData {
	t := &results.Table{}
	var gpu, load, workers, throughput, user, ttft, queue, prefill, decode, limit []any
	for _, g := range []string{"h200", "b200"} {
		for w := 1; w <= 2; w++ {
			for _, l := range []int{1, 8, 64} {
				gpu, load, workers = append(gpu, g), append(load, l), append(workers, w)
				throughput, user = append(throughput, float64(l*100/w)), append(user, 200/(1+float64(l)/float64(w)))
				ttft = append(ttft, float64(l*100)/float64(w))
				queue, prefill, decode = append(queue, .25), append(prefill, .25), append(decode, .5)
				limit = append(limit, "compute")
			}
		}
	}
	for _, c := range []*results.Column{
		tabletest.Column("gpu", results.RoleAxis, gpu...), tabletest.Column("workers", results.RoleAxis, workers...), tabletest.Column("concurrency", results.RoleAxis, load...),
		tabletest.Column("throughput", results.RoleMetric, throughput...), tabletest.Column("per.user", results.RoleMetric, user...), tabletest.Column("ttft", results.RoleMetric, ttft...),
		tabletest.Column("queue_time_share", results.RoleMetric, queue...), tabletest.Column("prefill_time_share", results.RoleMetric, prefill...), tabletest.Column("decode_time_share", results.RoleMetric, decode...),
		tabletest.Column("limiting_resource", results.RoleMetric, limit...),
	} {
		t.Add(c)
	}
	bound, err := results.ParseConstraints("ttft <= 4000")
	if err != nil {
		panic(err) // a constant
	}
	return results.ReportData{
		Title: "every", Table: t,
		Analysis:  results.Analysis{Objectives: []results.Objective{{Name: "throughput", Maximize: true}, {Name: "per.user", Maximize: true}}, Constraints: bound},
		Timelines: []results.ReportTimeline{{Row: 0, EndSeconds: 2, AtSeconds: []float64{0, 1}, Figures: []results.TimelineFigure{{Name: "waiting", Title: "Queue", Values: []float64{1, math.NaN()}}}}},
	}
}

// specs decodes charts by their names.
func specs(t *testing.T, d results.ReportData) map[string]map[string]any {
	t.Helper()
	charts, err := Charts(d)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	for _, c := range charts {
		var spec map[string]any
		if err := json.Unmarshal(c.Spec, &spec); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if spec["$schema"] != Schema {
			t.Errorf("%s follows %v", c.Name, spec["$schema"])
		}
		out[c.Name] = spec
	}
	return out
}

// at follows keys and places into a decoded document.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			v = v.(map[string]any)[step]
		case int:
			v = v.([]any)[step]
		}
	}
	return v
}

func TestEveryChart(t *testing.T) {
	charts := specs(t, every())
	for _, b := range builders {
		if charts[b.name] == nil {
			t.Errorf("there is no chart %s", b.name)
		}
	}
	points := at(t, charts["pareto"], "data", "values").([]any)
	if len(points) != 12 || at(t, points[0], "per_user") != 100.0 || at(t, points[2], "feasible") != false || at(t, points[0], "on_frontier") != true {
		t.Errorf("the points of the frontier are %v", points)
	}
	if field := at(t, charts["pareto"], "encoding", "x", "field"); field != "per_user" {
		t.Errorf("x shows %v; a dot in a field's name would be a path", field)
	}
	if n := len(at(t, charts["parallel"], "layer", 0, "data", "values").([]any)); n != 12 {
		t.Errorf("%d lines of 12 points", n)
	}
	if shares := at(t, charts["breakdown"], "data", "values").([]any); at(t, shares[0], "share") != .25 || at(t, shares[0], "limiting_resource") != "compute" {
		t.Errorf("the first share is %v", shares[0])
	}
	if windows := at(t, charts["timelines"], "data", "values").([]any); at(t, windows[0], "waiting") != 1.0 || at(t, windows[1], "waiting") != nil {
		t.Errorf("the windows are %v", windows)
	}
	if rows := len(at(t, charts["multiples"], "vconcat").([]any)); rows != 2 {
		t.Errorf("%d rows of multiples for 2 objectives", rows)
	}
	outcomes := fmt.Sprint(at(t, charts["cliffs"], "concat"))
	if !strings.Contains(outcomes, "outcome:lost") || !strings.Contains(outcomes, "outcome:kept") {
		t.Errorf("the cliffs are %s", outcomes)
	}
}

// TestCells checks the heat map against the rows: the best of those that keep the bound, else the best of all.
func TestCells(t *testing.T) {
	type shown struct{ best, points, kept float64 }
	got := map[string]shown{}
	for _, c := range at(t, specs(t, every())["heatmap"], "data", "values").([]any) {
		got[fmt.Sprint(at(t, c, "x"), " ", at(t, c, "y"))] = shown{at(t, c, "value").(float64), at(t, c, "points").(float64), at(t, c, "kept").(float64)}
	}
	want := map[string]shown{
		"1 1": {100, 2, 2}, "8 1": {800, 2, 2}, "64 1": {6400, 2, 0}, "1 2": {50, 2, 2}, "8 2": {400, 2, 2}, "64 2": {3200, 2, 2},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("cells %v; want %v", got, want)
	}
}

// TestChartsOfLittle asks for the charts of tables that have hardly anything.
func TestChartsOfLittle(t *testing.T) {
	goals := []results.Objective{{Name: "a", Maximize: true}, {Name: "b"}}
	two := results.Table{Columns: []*results.Column{tabletest.Column("a", results.RoleMetric, 1.0, math.NaN()), tabletest.Column("b", results.RoleMetric, 0.0, 3.0)}}
	for name, test := range map[string]struct {
		table results.Table
		goals []results.Objective
		want  string
	}{
		"no rows":          {results.Table{Columns: []*results.Column{results.NewColumn("a", gridspec.KindFloat, 0), results.NewColumn("b", gridspec.KindFloat, 0)}}, goals, "[]"},
		"no axes":          {two, goals, "[pareto]"},
		"one objective":    {two, goals[:1], "[]"},
		"the same twice":   {two, []results.Objective{goals[0], goals[0]}, "[]"},
		"an axis of words": {results.Table{Columns: append(slices.Clone(two.Columns), tabletest.Column("gpu", results.RoleAxis, "x", "y"))}, goals, "[pareto parallel multiples]"},
	} {
		charts, err := Charts(results.ReportData{Table: &test.table, Analysis: results.Analysis{Objectives: test.goals}})
		names := []string{}
		for _, c := range charts {
			names = append(names, c.Name)
		}
		if err != nil || fmt.Sprint(names) != test.want {
			t.Errorf("%s: %v, %v; want %s", name, names, err, test.want)
		}
	}
	if _, err := Charts(results.ReportData{Table: &two, Analysis: results.Analysis{Objectives: []results.Objective{{Name: "none"}}}}); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("an unknown objective: %v", err)
	}
}

// hostile has names and values that could break out of a field, an expression or a line, and are the names that charts use.
func hostile() results.ReportData {
	d := every()
	names := []string{`a.b[0]`, `it's "quoted"\`, "line", "axis 1", "axis", "position", "datum", "", "__proto__", "line\u2028break\n"}
	rows := d.Table.Rows()
	for i, name := range names {
		values := make([]any, rows)
		for row := range values {
			values[row] = names[(row+i)%len(names)]
		}
		d.Table.Add(tabletest.Column(name, results.RoleAxis, values...))
	}
	d.Title = `</script>'"`
	return d
}

// TestKeysAreDistinct looks for two columns with one key.
func TestKeysAreDistinct(t *testing.T) {
	d := hostile()
	d.Table.Add(tabletest.Column("a_b_0_", results.RoleAxis, make12("x")...))
	s, err := newStudy(d)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, c := range s.table.Columns {
		key := s.keys[c]
		if other, known := seen[key]; known || key == "" || strings.ContainsAny(key, `.[]'"\`+"\n") {
			t.Errorf("column %q has the key %q, as %q has", c.Name, key, other)
		}
		seen[key] = c.Name
	}
}

func make12(v string) []any {
	out := make([]any, 12)
	for i := range out {
		out[i] = fmt.Sprint(v, i%2)
	}
	return out
}

// TestLargeStudiesAreThinned keeps the frontier whole.
func TestLargeStudiesAreThinned(t *testing.T) {
	const n = 3 * mostRows
	x, a, b := make([]any, n), make([]any, n), make([]any, n)
	for i := range n {
		x[i], a[i], b[i] = i, float64(i%97), float64((i*7919)%n)
	}
	table := results.Table{Columns: []*results.Column{tabletest.Column("x", results.RoleAxis, x...), tabletest.Column("a", results.RoleMetric, a...), tabletest.Column("b", results.RoleMetric, b...)}}
	d := results.ReportData{Table: &table, Analysis: results.Analysis{Objectives: []results.Objective{{Name: "a"}, {Name: "b"}}}}
	marked := table
	if err := results.MarkFrontier(&marked, d.Analysis); err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, on := range marked.Column(results.FrontierColumn).Bools {
		if on {
			want++
		}
	}
	points := at(t, specs(t, d)["pareto"], "data", "values").([]any)
	got := 0
	for _, p := range points {
		if at(t, p, "on_frontier") == true {
			got++
		}
	}
	if len(points) != mostRows || got != want || want == 0 {
		t.Errorf("%d points with %d of %d on the frontier", len(points), got, want)
	}
}

func TestEqualDataGivesEqualBytes(t *testing.T) {
	for range 3 {
		first, err := Charts(hostile())
		if err != nil {
			t.Fatal(err)
		}
		second, err := Charts(hostile())
		if err != nil {
			t.Fatal(err)
		}
		for i := range first {
			if !bytes.Equal(first[i].Spec, second[i].Spec) {
				t.Errorf("%s differs between two calls", first[i].Name)
			}
		}
	}
}

// TestSchema validates every chart against the schema that Vega-Lite publishes, whose file VEGA_LITE_SCHEMA names; the
// checks of this repository install it.
func TestSchema(t *testing.T) {
	path := os.Getenv("VEGA_LITE_SCHEMA")
	if path == "" {
		t.Skip("VEGA_LITE_SCHEMA names no file: the charts are not validated against Vega-Lite's schema")
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft7)
	schema, err := compiler.Compile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]results.ReportData{"every": every(), "hostile": hostile()} {
		charts, err := Charts(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range charts {
			document, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.Spec))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(document); err != nil {
				t.Errorf("%s of %s: %v", c.Name, name, err)
			}
			document.(map[string]any)["mark"] = "scribble" // so that a schema that accepts everything is noticed
			if schema.Validate(document) == nil {
				t.Errorf("%s of %s: a mark that there is not passes", c.Name, name)
			}
		}
	}
}
