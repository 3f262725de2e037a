package results

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/gridspec"
)

// liveRow is a live run of a made-up point: its settings are no axes, and it does not know what only a simulation does.
func liveRow(like Row, unknown bool) Row {
	like.Source, like.DeploymentUnknown, like.ID = SourceLive, unknown, "live-"+like.ID
	point := *like.Point
	point.Axes, like.Point = nil, &point
	like.Metrics = slices.Clone(like.Metrics)
	return like
}

// stored writes a table and reads it again, as commands do.
func stored(t testing.TB, name string, table *Table) Named {
	t.Helper()
	var b bytes.Buffer
	if err := WriteParquet(&b, table); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "results.parquet")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := ReadTable(path)
	if err != nil {
		t.Fatal(err)
	}
	return Named{name, read}
}

func firstOK(rows []Row) Row {
	return rows[slices.IndexFunc(rows, func(r Row) bool { return r.Status == StatusOK })]
}

// TestCombine puts a sweep and two live runs together.
func TestCombine(t *testing.T) {
	rows := madeUpRows(1)
	simulated := firstOK(rows)
	stated, unknown := liveRow(simulated, false), liveRow(simulated, true)
	both, err := Combine([]Named{
		stored(t, "sweep", NewTable(rows, Metadata{})), stored(t, "live", NewTable([]Row{stated}, Metadata{})), stored(t, "somewhere", NewTable([]Row{unknown}, Metadata{})),
	})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(rows, func(r Row) bool { return r.ID == simulated.ID })
	get := func(row int, names ...string) string {
		var out []string
		for _, name := range names {
			c := both.Column(name)
			if c == nil {
				t.Fatalf("there is no column %s", name)
			}
			out = append(out, c.Text(row))
		}
		return strings.Join(out, " ")
	}
	axes := []string{"workers", "router_policy", "max_num_batched_tokens", "concurrency"}
	for row, want := range map[int]string{at: "sweep simulated", len(rows): "live live", len(rows) + 1: "somewhere live"} {
		if got := get(row, RunColumn, SourceColumn); got != want {
			t.Errorf("row %d is of %s, want %s", row, got, want)
		}
		if a, b := get(at, "mean_ttft_ms", "output_throughput_tok_s_per_gpu"), get(row, "mean_ttft_ms", "output_throughput_tok_s_per_gpu"); a != b {
			t.Errorf("row %d has the figures %s, want %s", row, b, a)
		}
	}
	// What a live run states is the same setting as the sweep's axis, and not how it would be simulated. The policy of a router
	// that has one worker concerns nothing, and so is none of its settings.
	if a, b := get(at, axes[0], axes[2], axes[3], "gpus"), get(len(rows), axes[0], axes[2], axes[3], "gpus"); a != b {
		t.Errorf("the live run has %q, its simulation %q", b, a)
	}
	if got := strings.TrimSpace(get(len(rows), "timing_source", "simulator_version")); got != "" {
		t.Errorf("the live run has a timing source or simulator: %q", got)
	}
	if got := strings.TrimSpace(get(len(rows)+1, "workers", "gpus")); got != "" {
		t.Errorf("an unknown deployment has %q", got)
	}
	if both.Metadata.Constants["timing.tp"] == nil || both.Metadata.Constants["deployment.workers"] != nil {
		t.Errorf("constants: %v", both.Metadata.Constants)
	}
	if err := MarkFrontier(both, both.Analysis()); err != nil {
		t.Fatal(err)
	}
	on := both.Column(FrontierColumn).Bools
	if on[at] != on[len(rows)] {
		t.Errorf("the simulated point is on the frontier: %v, the live run with the same figures: %v", on[at], on[len(rows)])
	}
}

// TestCombineTraffic checks that live runs stand beside the points that served the same.
func TestCombineTraffic(t *testing.T) {
	row := func(id, digest, path string) Row {
		r := firstOK(madeUpRows(1))
		r.ID, r.WorkloadDigest = id, digest
		if r.Point.Axes = nil; path != "" {
			r.Point.Axes = []gridspec.AxisValue{{Column: "path", Path: "workload.trace.path", Value: text(path)}}
		}
		return r
	}
	table := func(rows ...Row) *Table { return NewTable(rows, Metadata{}) }
	for _, test := range []struct {
		name  string
		parts []*Table
		by    []string
		want  []string
	}{
		{"the same workload", []*Table{table(row("a", "d1", "")), table(liveRow(row("b", "d1", ""), true))}, nil, nil},
		{"an axis of the workload", []*Table{table(row("a", "d1", "x"), row("b", "d2", "y")), table(liveRow(row("c", "d2", ""), true))}, []string{"path"}, []string{"x", "y", "y"}},
		{"other workloads", []*Table{table(row("a", "d1", "")), table(liveRow(row("b", "d2", ""), true))}, []string{"workload_digest"}, []string{"d1", "d2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var parts []Named
			for i, p := range test.parts {
				parts = append(parts, Named{string(rune('a' + i)), p})
			}
			both, err := Combine(parts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.by, both.Metadata.FrontierBy); diff != "" {
				t.Error(diff)
			}
			for _, name := range test.by {
				if diff := cmp.Diff(test.want, both.Column(name).Strings); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestCombineNotes checks that other objectives and another SLA are said, and those of the first count.
func TestCombineNotes(t *testing.T) {
	cost := []Objective{{Name: "cost_usd"}}
	a := NewTable(madeUpRows(1), Metadata{Objectives: DefaultObjectives()})
	b := NewTable(madeUpRows(2), Metadata{Objectives: cost})
	a.Metadata.Constraints = []Constraint{{Column: "p99_ttft_ms", Operator: "<=", Bound: float(100)}}
	b.Metadata.Constraints = []Constraint{{Column: "p99_ttft_ms", Operator: "<=", Bound: float(200)}}
	both, err := Combine([]Named{{"a", a}, {"b", b}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"b has other objectives than a, whose count; --maximize and --minimize choose others.",
		"b has another SLA than a, whose counts; --no-sla and --where choose another.",
	}
	if diff := cmp.Diff(want, both.Notes); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(both.Metadata.Objectives, DefaultObjectives()) || both.Metadata.Constraints[0].Bound.Float != 100 {
		t.Errorf("objectives %v, constraints %v", both.Metadata.Objectives, both.Metadata.Constraints)
	}
}

// TestCombineKeepsEveryValue splits a sweep at random, and checks that putting it together again loses and changes nothing.
func TestCombineKeepsEveryValue(t *testing.T) {
	rows := madeUpRows(3)[:40]
	whole := NewTable(rows, Metadata{})
	rapid.Check(t, func(rt *rapid.T) {
		cut := rapid.IntRange(1, len(rows)-1).Draw(rt, "cut")
		both, err := Combine([]Named{{"a", NewTable(rows[:cut], Metadata{})}, {"b", NewTable(rows[cut:], Metadata{})}})
		if err != nil {
			rt.Fatal(err)
		}
		for _, want := range whole.Columns {
			got := both.Column(want.Name)
			if got == nil {
				rt.Fatalf("%s is missing", want.Name)
			}
			if got.Role != want.Role || got.Unit != want.Unit {
				rt.Errorf("%s: role %s, unit %s", want.Name, got.Role, got.Unit)
			}
			for row := range rows {
				if a, b := want.Text(row), got.Text(row); a != b {
					rt.Errorf("%s of row %d: %q, want %q", want.Name, row, b, a)
				}
			}
		}
	})
}

// TestOldResultsAreSimulated checks that files that do not say their source read as simulated, and those of others do not.
func TestOldResultsAreSimulated(t *testing.T) {
	old := NewTable(madeUpRows(1)[:3], Metadata{})
	old.deleteColumns(SourceColumn)
	if got := stored(t, "old", old).Table.Column(SourceColumn); got == nil || got.Text(2) != "simulated" {
		t.Errorf("got %v", got)
	}
	foreign := &Table{}
	c := NewColumn("mean_ttft_ms", gridspec.KindFloat, 1)
	c.Set(0, float(1))
	foreign.Add(c)
	if got := stored(t, "foreign", foreign).Table.Column(SourceColumn); got != nil {
		t.Errorf("a file of others has a source")
	}
}
