package results

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/workload"
	"pgregory.net/rapid"
)

// rowOf returns an ok row with one figure, the throughput.
func rowOf(throughput float64, axes ...gridspec.AxisValue) Row {
	row := point(axes...)
	row.Status = StatusOK
	row.Metrics = make([]float64, len(metrics.Fields()))
	for i, f := range metrics.Fields() {
		row.Metrics[i] = math.NaN()
		if f.Name == "request_throughput_rps" {
			row.Metrics[i] = throughput
		}
	}
	return row
}

func replicateAxis(row Row, n int) Row {
	point := *row.Point
	point.Replicate, point.Axes = n, append(slices.Clip(point.Axes), intAxis(replicateColumn, replicateColumn, n))
	row.Point = &point
	return row
}

var maxRate = []Objective{{Name: "request_throughput_rps", Maximize: true}}

// Two configurations with three replicates: the second is better on average although the best row is of the first.
func TestReplicatesAreOneCandidate(t *testing.T) {
	var rows []Row
	for n, rate := range []float64{90, 10, 20} {
		rows = append(rows, replicateAxis(rowOf(rate, intAxis("workers", "deployment.workers", 1)), n))
	}
	for n, rate := range []float64{50, 55, 1e9} {
		rows = append(rows, replicateAxis(rowOf(rate, intAxis("workers", "deployment.workers", 2)), n))
	}
	rows[5].Status, rows[5].Metrics = StatusFailed, nil // a failed replicate does not count
	table := NewTable(rows, Metadata{})
	if c := table.Column(replicateColumn); c == nil || c.Role != RolePoint {
		t.Errorf("replicate is %+v; want a column that is no axis", c)
	}
	if err := MarkFrontier(table, Analysis{Objectives: maxRate, Constraints: mustParse(t, "request_throughput_rps >= 41")}); err != nil {
		t.Fatal(err)
	}
	want := []bool{false, false, false, true, true, true}
	if diff := cmp.Diff(want, table.Column(FrontierColumn).Bools); diff != "" {
		t.Errorf("frontier (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, table.Column(FeasibleColumn).Bools); diff != "" {
		t.Errorf("feasible (-want +got):\n%s", diff)
	}
	if err := MarkFrontier(table, Analysis{Objectives: maxRate, Constraints: mustParse(t, "replicate == 0")}); err == nil {
		t.Error("a bound on the replicate is accepted, but it has no meaning")
	}
	c := table.Candidates()
	if got := c.Table.Column("request_throughput_rps").Floats; !slices.Equal(got, []float64{40, 52.5}) {
		t.Errorf("means %v", got)
	}
	if got, want := c.Interval(table.Column("request_throughput_rps"), 1), 12.706205*2.5; math.Abs(got-want) > 1e-9 {
		t.Errorf("interval %v; want %v", got, want)
	}
}

// A file whose columns do not tell the configurations apart must not merge them.
// A configuration of which a replicate was stopped has lost the SLA, whatever the others have.
func TestStoppedReplicatesCount(t *testing.T) {
	var rows []Row
	for n := range 2 {
		rows = append(rows, replicateAxis(rowOf(10, intAxis("workers", "deployment.workers", 1)), n))
		rows = append(rows, replicateAxis(rowOf(90, intAxis("workers", "deployment.workers", 2)), n))
	}
	rows[3].Status, rows[3].Reason, rows[3].Metrics = StatusStopped, "sla_lost", nil
	table := NewTable(rows, Metadata{Objectives: maxRate})
	if err := MarkFrontier(table, table.Analysis()); err != nil {
		t.Fatal(err)
	}
	if on := table.Column(FrontierColumn).Bools; !slices.Equal(on, []bool{true, false, true, false}) {
		t.Errorf("on the frontier: %v", on)
	}
	if c := table.Candidates(); c.Table.Column("status").Strings[1] != string(StatusStopped) {
		t.Errorf("the configuration is %s", c.Table.Column("status").Strings[1])
	}
}

func TestUnclearReplicatesStandAlone(t *testing.T) {
	table := readContent(t, "replicate,rate\n0,1.5\n1,2.5\n0,3.5\n1,4.5\n")
	if c := table.Candidates(); c.Replicated() || c.Table != table {
		t.Error("rows without anything that tells them apart were averaged")
	}
}

func TestMeanOfEqualValuesIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64().Draw(t, "value")
		rows := []int{0, 1, 2, 3, 4, 5, 6}
		if got := meanOf(slices.Repeat([]float64{v}, len(rows)), rows); got != v && !math.IsNaN(v) {
			t.Errorf("the mean of %v is %v", v, got)
		}
	})
}

// Axes of the workload are traffic, those of the load and of the deployment are choices.
func TestTrafficHasFrontiersOfItsOwn(t *testing.T) {
	var rows []Row
	for _, traffic := range []string{"short", "long"} {
		for _, concurrency := range []int{1, 2} {
			rate := float64(concurrency)
			if traffic == "short" {
				rate += 100
			}
			row := rowOf(rate,
				gridspec.AxisValue{Column: "workload", Path: "workload", Value: text(traffic)},
				intAxis("preset_rate", "workload.preset.rate", 3),
				intAxis("concurrency", "load.concurrency", concurrency),
				intAxis("per_worker", "per_worker", concurrency))
			row.Point.Workload = workload.Spec{Name: traffic}
			rows = append(rows, row)
		}
	}
	table := NewTable(rows, Metadata{Objectives: maxRate})
	if diff := cmp.Diff([]string{"workload"}, table.Metadata.FrontierBy); diff != "" {
		t.Errorf("traffic (-want +got):\n%s", diff)
	}
	if role := table.Column("per_worker").Role; role != RoleDerived {
		t.Errorf("a derived value has the role %s", role)
	}
	if err := MarkFrontier(table, table.Analysis()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bool{false, true, false, true}, table.Column(FrontierColumn).Bools); diff != "" {
		t.Errorf("frontiers (-want +got):\n%s", diff)
	}
	if err := MarkFrontier(table, Analysis{Objectives: maxRate}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bool{false, true, false, false}, table.Column(FrontierColumn).Bools); diff != "" {
		t.Errorf("one frontier (-want +got):\n%s", diff)
	}
}

// Cases are traffic only when they change the workload.
func TestCasesThatChangeTheWorkloadAreTraffic(t *testing.T) {
	for _, changes := range []bool{false, true} {
		var rows []Row
		for i, name := range []string{"a", "b"} {
			row := rowOf(1, gridspec.AxisValue{Column: "case", Path: "case", Value: text(name)})
			row.Point.Workload = workload.Spec{Preset: &workload.PresetSpec{Name: "chat"}}
			if changes {
				row.Point.Workload.Preset.Requests = i
			}
			rows = append(rows, row)
		}
		if got := len(NewTable(rows, Metadata{}).Metadata.FrontierBy) > 0; got != changes {
			t.Errorf("cases are traffic: %v; want %v", got, changes)
		}
	}
}

// A model is what is served, a GPU or a dtype how. So are cases that change the model, as far as they say which.
func TestModelsHaveFrontiersOfTheirOwn(t *testing.T) {
	for _, test := range []struct {
		path   string
		models [2]string
		want   []string
	}{
		{"timing.model", [2]string{"llama-3.1-8b", "qwen3-32b"}, []string{"column"}},
		{"timing.model", [2]string{"llama-3.1-8b", "llama-3.1-8b"}, nil},
		{"timing.gpu", [2]string{"llama-3.1-8b", "llama-3.1-8b"}, nil},
		{"timing.dtype", [2]string{"llama-3.1-8b", "llama-3.1-8b"}, nil},
		{"case", [2]string{"llama-3.1-8b", "qwen3-32b"}, []string{"column"}},
		{"case", [2]string{"llama-3.1-8b", ""}, nil},
	} {
		var rows []Row
		for i, model := range test.models {
			value := map[bool]string{true: model, false: []string{"a", "b"}[i]}[test.path == "timing.model"]
			row := rowOf(1, gridspec.AxisValue{Column: "column", Path: test.path, Value: text(value)})
			row.Point.Config.Timing.Model = model
			rows = append(rows, row)
		}
		if diff := cmp.Diff(test.want, NewTable(rows, Metadata{}).Metadata.FrontierBy); diff != "" {
			t.Errorf("%s of %v (-want +got):\n%s", test.path, test.models, diff)
		}
	}
}

// The SLA that all points share bounds the frontier and survives in the file.
func TestMetadataKeepsTheAnalysis(t *testing.T) {
	row := rowOf(1)
	row.Point.Config.SLA.TTFTMs = 1500
	table := NewTable([]Row{row}, Metadata{Objectives: maxRate})
	table.AddCommands(func(int) string { return "servegrid replay" })
	table.Metadata.FrontierBy = []string{"workload"}
	if err := MarkFrontier(table, table.Analysis()); err != nil {
		t.Fatal(err)
	}
	var pairs []KeyValue
	pairs, err := table.KeyValues()
	if err != nil {
		t.Fatal(err)
	}
	read := &Table{}
	read.applyKeyValues(func(key string) (string, bool) {
		i := slices.IndexFunc(pairs, func(kv KeyValue) bool { return kv.Key == key })
		if i < 0 {
			return "", false
		}
		return pairs[i].Value, true
	})
	want := Analysis{Objectives: maxRate, Constraints: []Constraint{{"p99_ttft_ms", "<=", integer(1500)}}, By: []string{"workload"}}
	if diff := cmp.Diff(want, read.Analysis()); diff != "" {
		t.Errorf("analysis (-want +got):\n%s", diff)
	}
	if len(read.Notes) > 0 {
		t.Errorf("notes %q", read.Notes)
	}
}

func TestClosest(t *testing.T) {
	table := readContent(t, "name,rate,p99\na,5,2000\nb,4,1200\nc,3,\nd,,1001\ne,1,9000\n")
	a := Analysis{Objectives: []Objective{{Name: "rate", Maximize: true}}, Constraints: mustParse(t, "p99 <= 1000 && rate > 2")}
	row, misses := a.Closest(table, []int{0, 1, 2, 3, 4})
	if got := JoinMisses(misses); row != 1 || got != "p99 1200 > 1000" {
		t.Errorf("closest is row %d: %s", row, got)
	}
	if _, misses := a.Closest(table, []int{2, 3}); misses != nil {
		t.Errorf("rows without values are close: %v", misses)
	}
	near := Miss{Constraint: mustParse(t, "p99 <= 1000")[0], Value: 1000.25}
	if got := near.String(); got != "p99 1000.25 > 1000" {
		t.Errorf("a narrow miss is %q", got)
	}
}

func TestKeepsSLA(t *testing.T) {
	at := slices.IndexFunc(metrics.Fields(), func(f metrics.Field) bool { return f.Name == "p99_ttft_ms" })
	row := rowOf(1)
	for _, c := range []struct {
		bound, value float64
		want         bool
	}{{0, math.NaN(), true}, {100, 100, true}, {100, 101, false}, {100, math.NaN(), false}} {
		row.Point.Config.SLA.TTFTMs, row.Metrics[at] = c.bound, c.value
		if got := row.KeepsSLA(); got != c.want {
			t.Errorf("%v of %v: %v", c.value, c.bound, got)
		}
	}
}

func mustParse(t *testing.T, expression string) []Constraint {
	t.Helper()
	constraints, err := ParseConstraints(expression)
	if err != nil {
		t.Fatal(err)
	}
	return constraints
}
