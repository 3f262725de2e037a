package timelines

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/htmlpage/pagetest"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
)

// request is a completed request.
func request(arrival, admitted, first, last float64) simcore.RequestRecord {
	return simcore.RequestRecord{Life: engine.Request{
		State: engine.Completed, Input: 10, Output: 3, Tokens: 3, ArrivalMs: arrival, AdmittedMs: admitted, FirstTokenMs: first, LastTokenMs: last,
	}}
}

func column(t *testing.T, table *results.Table, name string) []float64 {
	t.Helper()
	c, err := table.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	values, err := c.Float64s()
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// TestFigures checks every figure of a timeline of three windows of a second, the last one short.
func TestFigures(t *testing.T) {
	const end = 240_000*2 + 1000 // so that windows have 5 s
	pending := simcore.RequestRecord{Life: engine.Request{State: engine.Waiting, ArrivalMs: 10_000, AdmittedMs: engine.Never, FirstTokenMs: engine.Never, LastTokenMs: engine.Never}}
	rejected := simcore.RequestRecord{Life: engine.Request{State: engine.Rejected, ArrivalMs: 1000, AdmittedMs: engine.Never, FirstTokenMs: engine.Never, LastTokenMs: engine.Never}}
	late := request(end-500, end-500, end, end)
	warm := request(0, 0, 1, 2)
	warm.WarmUp = true
	table := Table("a", Source{
		Records: []simcore.RequestRecord{request(0, 2500, 3000, 5000), request(1000, 1000, 6000, 7000), warm, rejected, pending, late},
		Events: []simcore.ScalingEvent{
			{AtMs: 2500, Kind: simcore.WorkerRequested, Worker: 1}, {AtMs: 7500, Kind: simcore.WorkerReady, Worker: 1},
			{AtMs: 10_000, Kind: simcore.WorkerDraining, Worker: 1}, {AtMs: 12_500, Kind: simcore.WorkerRemoved, Worker: 1},
		},
		Pools: []Pool{{Name: "agg", Workers: 1, GPUsPerWorker: 2}}, SLA: simcore.SLA{TTFTMs: 4000},
	})
	if table.Rows() != 97 {
		t.Fatalf("%d windows", table.Rows())
	}
	for _, test := range []struct {
		name string
		want []float64
	}{
		{"at_ms", []float64{0, 5000, 10_000}}, {"window_ms", []float64{5000, 5000, 5000}},
		{"arrived", []float64{3, 0, 1}}, {"completed", []float64{0, 2, 0}},
		{"waiting", []float64{.5, 0, 1}}, {"in_flight", []float64{1.8, .4, 1}},
		{"mean_ttft_ms", []float64{4000, math.NaN(), math.NaN()}}, {"p90_ttft_ms", []float64{5000, math.NaN(), math.NaN()}},
		{"mean_tpot_ms", []float64{750, math.NaN(), math.NaN()}}, {"sla_attainment", []float64{1. / 3, math.NaN(), 0}},
		{"gpus", []float64{3, 4, 3}}, {"ready_workers", []float64{1, 1.5, 1}}, {"starting_workers", []float64{.5, .5, 0}}, {"draining_workers", []float64{0, 0, .5}},
	} {
		got := column(t, table, test.name)[:3]
		for i := range got {
			if math.Abs(got[i]-test.want[i]) > 1e-12 || math.IsNaN(got[i]) != math.IsNaN(test.want[i]) {
				t.Errorf("%s: %v; want %v", test.name, got, test.want)
				break
			}
		}
	}
	if last := column(t, table, "window_ms")[96]; last != 1000 {
		t.Errorf("the last window is %v ms long", last)
	}
}

// TestTotals: whatever the requests, the windows sum up to them.
func TestTotals(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		end := rapid.Float64Range(1, 1e6).Draw(r, "end")
		var records []simcore.RequestRecord
		waited, stayed := 0.0, 0.0
		for range rapid.IntRange(0, 30).Draw(r, "n") {
			at := func(from float64, name string) float64 { return rapid.Float64Range(from, end).Draw(r, name) }
			arrival := at(0, "arrival")
			admitted := at(arrival, "admitted")
			first := at(admitted, "first")
			last := at(first, "last")
			records = append(records, request(arrival, admitted, first, last))
			waited, stayed = waited+admitted-arrival, stayed+last-arrival
		}
		table := Table("a", Source{Records: records, Pools: []Pool{{Workers: 1, GPUsPerWorker: 1}}, Events: []simcore.ScalingEvent{{AtMs: end, Kind: simcore.WorkerRequested, Worker: 1}}})
		if table.Rows() > mostWindows {
			r.Fatalf("%d windows", table.Rows())
		}
		length := column(t, table, "window_ms")
		total := func(name string, weighted bool) float64 {
			sum := 0.0
			for i, v := range column(t, table, name) {
				if weighted {
					v *= length[i]
				}
				sum += v
			}
			return sum
		}
		for _, check := range []struct {
			name      string
			got, want float64
		}{
			{"arrived", total("arrived", false), float64(len(records))}, {"completed", total("completed", false), float64(len(records))},
			{"waiting", total("waiting", true), waited}, {"in_flight", total("in_flight", true), stayed}, {"ready", total("ready_workers", true), end},
		} {
			if math.Abs(check.got-check.want) > 1e-6*max(1, check.want) {
				r.Fatalf("%s: %v; want %v", check.name, check.got, check.want)
			}
		}
	})
}

func madeUpCurves(t *testing.T, n int) []Curve {
	t.Helper()
	var curves []Curve
	for i := range n {
		var records []simcore.RequestRecord
		for k := range 100 {
			at := float64(1000 * k)
			records = append(records, request(at, at+float64(100*i), at+float64(200*(i+1)), at+5000))
		}
		table := Table(fmt.Sprint(i), Source{Records: records, Pools: []Pool{{"prefill", 1, 1}, {"decode", 2, 1}}, SLA: simcore.SLA{TTFTMs: 500},
			Events: []simcore.ScalingEvent{{AtMs: 5e4, Pool: 1, Worker: 2}, {AtMs: 6e4, Pool: 1, Worker: 2, Kind: simcore.WorkerReady}}})
		path := filepath.Join(t.TempDir(), "t.parquet")
		if err := results.WriteFile(path, func(w io.Writer) error { return results.WriteParquet(w, table) }); err != nil {
			t.Fatal(err)
		}
		read, err := results.ReadTable(path)
		if err != nil {
			t.Fatal(err)
		}
		curves = append(curves, Curve{fmt.Sprintf("startup_time %d", 10*i), read})
	}
	return curves
}

func TestPageInBrowser(t *testing.T) {
	sla, err := results.ParseConstraints("p99_ttft_ms <= 500")
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	curves := madeUpCurves(t, 3)
	curves[2].Label = `</script><img src=x onerror="alert(1)">`
	if err := WritePage(&page, "Cold start", sla, curves); err != nil {
		t.Fatal(err)
	}
	if page.Len() > 100_000 {
		t.Errorf("the page has %d bytes", page.Len())
	}
	b := pagetest.Open(t, page.String())
	heads := pagetest.Eval[string](b, `[...document.querySelectorAll("#plots h2")].map((h) => h.firstChild.textContent).join("; ")`)
	const want = "Ready prefill workers; Ready decode workers; Starting decode workers; Requests; Queue; In flight; Time to first token, p90; Time to first token, mean; Time per output token, mean; SLA attainment; GPUs"
	if heads != want {
		t.Errorf("got  %s\nwant %s", heads, want)
	}
	if n := pagetest.Eval[int](b, `document.querySelectorAll("img").length`); n != 0 {
		t.Errorf("%d elements came out of a label", n)
	}
	lines := `document.querySelectorAll("#plots .line").length`
	all := pagetest.Eval[int](b, lines)
	b.Do(chromedp.Click(chromedp.CSS("#plots .keys button")))
	if left := pagetest.Eval[int](b, lines); all != 33 || left != 22 {
		t.Errorf("hiding one of three points leaves %d of %d lines", left, all)
	}
	b.ShowEverywhere()
	b.ExpectNoComplaints()
}

func TestTooManyCurves(t *testing.T) {
	err := WritePage(&bytes.Buffer{}, "x", nil, make([]Curve, MostCurves+1))
	if err == nil || !strings.Contains(err.Error(), "choose at most 8") {
		t.Errorf("error %v", err)
	}
}
