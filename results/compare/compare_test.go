package compare

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/results"
)

// read makes a table of CSV text, in which the first n columns besides id, status and replicate are axes.
func read(t testing.TB, content string, axes ...string) *results.Table {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made.csv")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := results.ReadTable(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range table.Columns {
		switch {
		case slices.Contains(axes, c.Name):
			c.Role = results.RoleAxis
		case c.Role == results.RoleAxis:
			c.Role = results.RoleMetric
		}
	}
	return table
}

const broken = `id,workers,mean_e2e_latency_ms,mean_ttft_ms,mean_queue_time_ms,mean_prefill_time_ms,mean_transfer_time_ms,mean_decode_time_ms,mean_stall_time_ms,prefix_cache_reused_ratio,limiting_resource
a1,4,1200,500,400,100,0,650,50,0.12,kv_memory
a2,8,788,80,20,60,0,658,50,0.45,none
`

func TestExplain(t *testing.T) {
	table := read(t, broken, "workers")
	want := []string{
		"mean_e2e_latency_ms is 412 ms lower (1200 to 788): 380 ms less queueing, 40.0 ms less prefill, 8.00 ms more decode",
		"mean_ttft_ms is 420 ms lower (500 to 80.0): 380 ms less queueing, 40.0 ms less prefill",
		"45 % of the prompt tokens are reused, not 12 %",
		"what limits is the load, not KV memory",
	}
	if diff := cmp.Diff(want, Reasons(table, 0, table, 1, "")); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	if got := Reasons(table, 1, table, 1, ""); len(got) != 0 {
		t.Errorf("a point differs from itself: %q", got)
	}
	for metric, want := range map[string]string{"p99_ttft_ms": want[1], "output_throughput_tok_s": want[0]} {
		if got := Reasons(table, 0, table, 1, metric); len(got) != 3 || got[0] != want {
			t.Errorf("%s is explained by %q", metric, got)
		}
	}
	without := read(t, strings.ReplaceAll(broken, "mean_decode_time_ms", "other"), "workers")
	for _, e := range Explain(without, 0, without, 1) {
		if e.Metric == "mean_e2e_latency_ms" {
			t.Errorf("without decode times it explains %+v", e)
		}
	}
}

// The parts of an explanation add up to the difference, whatever the times.
func TestPartsAddUp(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var lines [2]string
		for i := range lines {
			sum, cells := 0.0, ""
			for range parts {
				v := rapid.Float64Range(0, 1e6).Draw(r, "ms")
				sum += v
				cells += fmt.Sprintf(",%v", v)
			}
			lines[i] = fmt.Sprintf("%v%s", sum, cells)
		}
		header := "mean_e2e_latency_ms"
		for _, p := range parts {
			header += "," + p.column
		}
		table := read(t, header+"\n"+lines[0]+"\n"+lines[1]+"\n")
		for _, e := range Explain(table, 0, table, 1) {
			sum := 0.0
			for i, p := range e.Parts {
				sum += p.ChangeMs
				if i > 0 && math.Abs(p.ChangeMs) > math.Abs(e.Parts[i-1].ChangeMs) {
					r.Fatalf("%v is not in order", e.Parts)
				}
			}
			if math.Abs(sum-(e.AfterMs-e.BeforeMs)) > 1e-6*max(e.BeforeMs, e.AfterMs) {
				r.Fatalf("parts add up to %v, not %v", sum, e.AfterMs-e.BeforeMs)
			}
		}
	})
}

func TestTables(t *testing.T) {
	before := read(t, "id,status,workers,rate\na,ok,1,10\nb,ok,2,20\nc,ok,4,30\nd,failed,8,\n", "workers")
	after := read(t, "id,status,workers,rate\na,ok,1,10\nx,ok,2,25\ny,ok,8.0,40\nz,ok,16,50\n", "workers")
	for _, table := range []*results.Table{before, after} {
		table.Metadata.Objectives = []results.Objective{{Name: "rate", Maximize: true}}
	}
	before.Metadata.Constants = map[string]any{"engine.block_size": 64.0, "gone": true}
	after.Metadata.Constants = map[string]any{"engine.block_size": int64(32), "timing.tp": 1.0}
	after.Metadata.Versions = map[string]string{"simulator": "5"}
	d, err := Tables(before, after, Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantSettings := []Setting{{"engine.block_size", "64", "32"}, {"gone", "true", ""}, {"timing.tp", "", "1"}, {"version of simulator", "", "5"}}
	if diff := cmp.Diff(wantSettings, d.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if d.ByID != 1 || d.ByAxes != 2 {
		t.Errorf("%d by ID, %d by axes; want 1 and 2", d.ByID, d.ByAxes)
	}
	if diff := cmp.Diff([]Point{{Row: 2, ID: "c", Axes: "workers=4"}}, d.OnlyBefore); diff != "" {
		t.Errorf("only before (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Point{{Row: 3, ID: "z", Axes: "workers=16"}}, d.OnlyAfter); diff != "" {
		t.Errorf("only after (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]StatusChange{{Point{Row: 2, ID: "y", Axes: "workers=8"}, "failed", "ok"}}, d.Statuses); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	twenty, twentyFive, forty, quarter := 20.0, 25.0, 40.0, 0.25
	wantChanges := []FigureChange{
		{Point: Point{Row: 2, ID: "y", Axes: "workers=8"}, After: &forty},
		{Point: Point{Row: 1, ID: "x", Axes: "workers=2"}, Before: &twenty, After: &twentyFive, Relative: &quarter},
	}
	if len(d.Metrics) != 1 || d.Metrics[0].MeanRelative != 0.125 {
		t.Fatalf("metrics %+v", d.Metrics)
	}
	if diff := cmp.Diff(wantChanges, d.Metrics[0].Changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if len(d.Entered) != 1 || d.Entered[0].ID != "z" || len(d.Left) != 1 || d.Left[0].ID != "c" {
		t.Errorf("entered %v, left %v", d.Entered, d.Left)
	}
	tolerant, err := Tables(before, after, Options{Tolerance: 0.3, Metrics: []string{"rate"}})
	if err != nil || tolerant.Metrics[0].Changed != 1 {
		t.Errorf("within 30 %%: %+v, %v", tolerant.Metrics, err)
	}
	if _, err := Tables(before, after, Options{Metrics: []string{"ratio", "speed"}}); err == nil || strings.Count(err.Error(), "unknown column") != 2 {
		t.Errorf("unknown metrics: error %v; want one with both", err)
	}
}

// An axis of one table is paired with the constant that the other has for it.
func TestAxisAgainstConstant(t *testing.T) {
	before := read(t, "workers,depth,rate\n1,2,10\n4,2,20\n", "workers")
	after := read(t, "depth,rate\n1,30\n2,40\n", "depth")
	before.Metadata.Constants = map[string]any{"engine.depth": 2.0}
	after.Metadata.Constants = map[string]any{"prefill.deployment.workers": 9.0, "deployment.workers": 4.0}
	d, err := Tables(before, after, Options{Metrics: []string{"rate"}})
	if err != nil {
		t.Fatal(err)
	}
	if d.ByAxes != 1 || len(d.OnlyBefore) != 1 || len(d.OnlyAfter) != 1 || *d.Metrics[0].Changes[0].Before != 20 || *d.Metrics[0].Changes[0].After != 40 {
		t.Errorf("%+v", d)
	}
	if s := d.Settings; len(s) != 3 || s[0] != (Setting{"deployment.workers", varied, "4"}) {
		t.Errorf("settings %v", s)
	}
}

func TestPoints(t *testing.T) {
	table := read(t, broken, "workers")
	d, err := Points(table, 0, table, 1, Options{Metrics: []string{"mean_ttft_ms"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Setting{{"workers", "4", "8"}}, d.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if m := d.Metrics[0]; *m.Before != 500 || *m.After != 80 || *m.Relative != -0.84 || !m.Differs {
		t.Errorf("%+v", m)
	}
	if d.Same() || len(d.Explanations) != 2 {
		t.Errorf("%+v", d)
	}
	if same, err := Points(table, 0, table, 0, Options{}); err != nil || !same.Same() {
		t.Errorf("a point differs from itself: %+v, %v", same, err)
	}
}

// A table is the same as itself in any order, and what one lacks the other has.
func TestTablesProperties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rows := func(name string) []string {
			return rapid.SliceOfNDistinct(rapid.Custom(func(r *rapid.T) string {
				return fmt.Sprintf("%d,%s", rapid.IntRange(0, 9).Draw(r, "workers"), rapid.SampledFrom([]string{"", "1.5", "-3", "0", "1e300"}).Draw(r, "rate"))
			}), 1, 8, func(line string) string { return line[:1] }).Draw(r, name)
		}
		table := func(lines []string) *results.Table {
			return read(t, "workers,rate\n"+strings.Join(lines, "\n")+"\n", "workers")
		}
		opt := Options{Metrics: []string{"rate"}}
		a, b := rows("a"), rows("b")
		shuffled := rapid.Permutation(a).Draw(r, "shuffled")
		if d, err := Tables(table(a), table(shuffled), opt); err == nil && !d.Same() {
			r.Fatalf("%q differs from %q: %+v", a, shuffled, d)
		}
		there, err := Tables(table(a), table(b), opt)
		if err != nil {
			r.Skip("a column of text")
		}
		back, err := Tables(table(b), table(a), opt)
		if err != nil {
			r.Fatal(err)
		}
		if len(there.OnlyBefore) != len(back.OnlyAfter) || len(there.OnlyAfter) != len(back.OnlyBefore) || there.ByAxes != back.ByAxes {
			r.Fatalf("there %+v, back %+v", there, back)
		}
		if there.ByAxes+len(there.OnlyBefore) != len(a) || there.ByAxes+len(there.OnlyAfter) != len(b) {
			r.Fatalf("points are lost: %+v", there)
		}
	})
}

func TestFindPoint(t *testing.T) {
	withIDs := read(t, "id,rate\nabc1,1\nabc2,2\nabc,3\nd,4\n")
	for name, want := range map[string]int{"abc1": 0, "abc": 2, "d": 3} {
		if row, err := FindPoint(withIDs, name); err != nil || row != want {
			t.Errorf("%s is row %d, %v; want %d", name, row, err, want)
		}
	}
	for name, want := range map[string]string{"ab": "3 IDs begin with \"ab\": abc1, abc2, abc; give more of it", "x": `no point's ID begins with "x"`, "": `no point's ID begins with ""`} {
		if _, err := FindPoint(withIDs, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v; want %q", name, err, want)
		}
	}
	withoutIDs := read(t, "workers,rate\n1,1\n2,2\n")
	if row, err := FindPoint(withoutIDs, "2"); err != nil || row != 1 {
		t.Errorf("the second row is %d, %v", row, err)
	}
	for _, name := range []string{"0", "3", "a", "-1", ""} {
		if _, err := FindPoint(withoutIDs, name); err == nil {
			t.Errorf("%q is a row", name)
		}
	}
}

// FuzzFindPoint: whatever is asked for, the answer is a row that begins so, or an error.
func FuzzFindPoint(f *testing.F) {
	f.Add("abc", "ab\x00abc")
	f.Add("", "")
	f.Add("\xff", "\xff\xfe\x00é")
	f.Fuzz(func(t *testing.T, prefix, ids string) {
		list := strings.Split(ids, "\x00")
		row, err := uniquePrefix(list, prefix)
		if err == nil && !strings.HasPrefix(list[row], prefix) {
			t.Errorf("%q is row %d of %q", prefix, row, list)
		}
	})
}

func BenchmarkTables(b *testing.B) {
	var csv strings.Builder
	csv.WriteString("id,workers,policy,rate,latency\n")
	for i := range 20_000 {
		fmt.Fprintf(&csv, "%06x,%d,p%d,%d,%d\n", i, i/10, i%10, i, i*i)
	}
	table := read(b, csv.String(), "workers", "policy")
	for b.Loop() {
		if _, err := Tables(table, table, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
