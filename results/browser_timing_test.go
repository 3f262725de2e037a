package results

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results/htmlpage/pagetest"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// onGPU returns made-up rows of a model on a GPU, whose passes lie outside of the data by a share.
func onGPU(t testing.TB, gpu string, extrapolated float64) []Row {
	t.Helper()
	rows := madeUpRows(uint64(len(gpu)))[156:195]
	at := slices.IndexFunc(metrics.Fields(), func(f metrics.Field) bool { return f.Name == extrapolatedColumn })
	for i := range rows {
		c := &rows[i].Point.Config
		c.Timing.Source, c.Timing.GPU, c.Timing.Model = "auto", gpu, "llama-3.1-8b"
		resolved, problems := c.Resolve()
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		*c = resolved
		if rows[i].Status == StatusOK {
			rows[i].Metrics[at] = extrapolated
		}
		rows[i].Point.Axes = append([]gridspec.AxisValue{{Column: "gpu", Path: "timing.gpu", Value: text(resolved.Timing.GPU)}}, rows[i].Point.Axes...)
	}
	return rows
}

// frontierMark is a mark of the frontier on the page.
type frontierMark struct {
	Row  int  `json:"row"`
	Hole bool `json:"hole"`
}

func frontierMarks(b *pagetest.Browser) []frontierMark {
	b.T.Helper()
	return pagetest.Eval[[]frontierMark](b, `[...document.querySelectorAll(".mark-frontier")].map((m) => ({ row: Number(m.dataset.row), hole: m.getAttribute("d").match(/z/g).length > 1 }))`)
}

// checkHoles checks that just the marks of analytic rows have a hole, and that there are both kinds where there should be.
func checkHoles(t *testing.T, b *pagetest.Browser, table *Table, analytic, others bool) {
	t.Helper()
	found := map[bool]int{}
	for _, m := range frontierMarks(b) {
		want := table.Column("timing_source").Text(m.Row) == "analytic"
		found[want]++
		if m.Hole != want {
			t.Errorf("row %d: analytic is %v, its mark has a hole: %v", m.Row, want, m.Hole)
		}
	}
	if (found[true] > 0) != analytic || (found[false] > 0) != others {
		t.Fatalf("%d analytic marks and %d others", found[true], found[false])
	}
}

// hoverOver points at the first mark of the frontier whose row a test accepts, and returns its place and what is shown.
func hoverOver(b *pagetest.Browser, accept func(row int) bool) (x, y float64, tip string) {
	b.T.Helper()
	marks := frontierMarks(b)
	i := slices.IndexFunc(marks, func(m frontierMark) bool { return accept(m.Row) })
	if i < 0 {
		b.T.Fatal("no mark of the frontier is acceptable")
	}
	x, y = b.Center(fmt.Sprintf(`.mark-frontier[data-row="%d"]`, marks[i].Row))
	b.Do(chromedp.MouseEvent("mouseMoved", x, y))
	return x, y, textOf(b, ".tooltip")
}

func textOf(b *pagetest.Browser, selector string) string {
	b.T.Helper()
	b.Settle()
	return pagetest.Eval[string](b, `document.querySelector("`+selector+`").innerText`)
}

func expectIn(t *testing.T, where, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%s lacks %q:\n%s", where, w, got)
		}
	}
}

// TestReportTellsAnalyticPointsApart checks marks, legend, hover text and table of a sweep over GPUs with and without
// tables.
func TestReportTellsAnalyticPointsApart(t *testing.T) {
	table := NewTable(slices.Concat(onGPU(t, "h200_sxm", 0), onGPU(t, "mi300x", 0)), Metadata{})
	for i, gpu := range table.Column("gpu").Strings {
		if analytic := table.Column("timing_source").Strings[i] == "analytic"; analytic != (gpu == "mi300x") {
			t.Fatalf("%s is analytic: %v", gpu, analytic)
		}
	}
	b := openReport(t, ReportData{Title: "GPUs", Table: table, Analysis: Analysis{By: []string{"gpu"}}})
	checkHoles(t, b, table, true, true)
	analytic := func(row int) bool { return table.Column("timing_source").Strings[row] == "analytic" }
	expectIn(t, "the legend", textOf(b, "#legend"), "analytic: ±40 % prefill, ±40 % decode")
	_, _, tip := hoverOver(b, analytic)
	expectIn(t, "an analytic point", tip, "analytic · roofline of mi300x", "±40 % prefill, ±40 % decode")
	_, _, tip = hoverOver(b, func(row int) bool { return !analytic(row) })
	expectIn(t, "a point with tables", tip, "table · vllm 0.24.0 on h200_sxm", "within ", " % (decode) of aiconfigurator-core")
	if strings.Contains(tip, "outside of the data") || strings.Contains(tip, "suspect") {
		t.Errorf("a point within sound data is warned of:\n%s", tip)
	}
	if header := pagetest.Eval[bool](b, `document.querySelector('#table th[data-column="timing_source"]') !== null`); !header {
		t.Error("the table has no column timing_source")
	}
	b.ExpectNoComplaints()
}

// TestReportTellsSourcesApart checks that the table says which points were measured where others were simulated.
func TestReportTellsSourcesApart(t *testing.T) {
	for _, mixed := range []bool{true, false} {
		rows := onGPU(t, "h200_sxm", 0)
		if mixed {
			rows[0].Source = SourceLive
		}
		b := openReport(t, ReportData{Title: "Sources", Table: NewTable(rows, Metadata{})})
		if header := pagetest.Eval[bool](b, `document.querySelector('#table th[data-column="source"]') !== null`); header != mixed {
			t.Errorf("mixed %v: the table has a column source: %v", mixed, header)
		}
		b.ExpectNoComplaints()
	}
}

// TestReportWarnsOfData checks the notes about passes outside of the data and about suspect tables.
func TestReportWarnsOfData(t *testing.T) {
	table := NewTable(onGPU(t, "h200_sxm", .0312), Metadata{})
	anomaly := table.Column("timing_anomaly")
	for i := range anomaly.Bools {
		anomaly.Bools[i] = i%2 == 0
	}
	b := openReport(t, ReportData{Title: "Suspect", Table: table})
	expectIn(t, "the legend", textOf(b, "#legend"), "⚠", "from suspect tables")
	if legend := textOf(b, "#legend"); strings.Contains(legend, "analytic") {
		t.Errorf("the legend explains marks that are not there:\n%s", legend)
	}
	_, _, tip := hoverOver(b, func(row int) bool { return !anomaly.Bools[row] })
	expectIn(t, "a sound point", tip, "3 % of the passes")
	if strings.Contains(tip, "suspect") {
		t.Errorf("a sound point is called suspect:\n%s", tip)
	}
	x, y, tip := hoverOver(b, func(row int) bool { return anomaly.Bools[row] })
	expectIn(t, "a suspect point", tip, "outside of the data", "3 % of the passes", "more than twice as long as on the best backend")
	b.Do(chromedp.MouseClickXY(x, y))
	expectIn(t, "the details", textOf(b, "#details"), "⚠", "table · vllm", "3 % of the passes")
	b.ExpectNoComplaints()
}

// TestReportOfOneTiming checks a sweep whose points all have the same timing: what is equal stands among the constants
// and is shown with each point all the same.
func TestReportOfOneTiming(t *testing.T) {
	table := NewTable(onGPU(t, "mi300x", 0), Metadata{})
	b := openReport(t, ReportData{Title: "AMD", Table: table})
	checkHoles(t, b, table, true, false)
	expectIn(t, "the legend", textOf(b, "#legend"), "analytic: ±40 % prefill, ±40 % decode")
	_, _, tip := hoverOver(b, func(int) bool { return true })
	expectIn(t, "a point", tip, "analytic · roofline of mi300x", "±40 % prefill")
	expectIn(t, "the footer", textOf(b, "#footer"), "analytic timing")
	b.ExpectNoComplaints()
	madeUp := madeUpReport(t)
	plain := openReport(t, madeUp)
	checkHoles(t, plain, madeUp.Table, false, true)
	if _, _, tip := hoverOver(plain, func(int) bool { return true }); strings.Contains(tip, "timing") {
		t.Errorf("the polynomial has no data to tell of:\n%s", tip)
	}
	plain.ExpectNoComplaints()
}

// TestReportWarnsOfRejections checks the caution above the plot, the warning of a point and the column of the table.
func TestReportWarnsOfRejections(t *testing.T) {
	rows := onGPU(t, "h200_sxm", 0)
	at := slices.IndexFunc(metrics.Fields(), func(f metrics.Field) bool { return f.Name == rejectedColumn })
	for i := range rows {
		if rows[i].Status == StatusOK {
			rows[i].Metrics[at] = 12
		}
	}
	b := openReport(t, ReportData{Title: "Rejections", Table: NewTable(rows, Metadata{})})
	expectIn(t, "the page", textOf(b, "#cautions"), "⚠ Requests are rejected at ", " of them on the frontier (up to 12 of 2000: ")
	const warning = "⚠ Rejects 12 of 2,000 requests: prompts longer than the context or the KV pool."
	_, _, tip := hoverOver(b, func(int) bool { return true })
	expectIn(t, "a point", tip, warning)
	expectIn(t, "the details", textOf(b, "#details"), warning)
	if header := pagetest.Eval[bool](b, `document.querySelector('#table th[data-column="rejected_requests"]') !== null`); !header {
		t.Error("the table has no column rejected_requests")
	}
	b.ExpectNoComplaints()
	plain := openReport(t, madeUpReport(t))
	if text := textOf(plain, "#cautions"); text != "" || strings.Contains(textOf(plain, "#details"), "⚠") {
		t.Errorf("a sound report cautions:\n%s", text)
	}
	plain.ExpectNoComplaints()
}

// TestReportOfMisses checks that points that miss the SLA are crosses, inside a ring where they are analytic as well,
// and that an analytic suggestion is cautioned of.
func TestReportOfMisses(t *testing.T) {
	for gpu, want := range map[string]struct {
		rings, keys int // rings of a cross, and lines of the legend about them
		caution     bool
	}{
		"h200_sxm": {0, 0, false},
		"mi300x":   {1, 1, true},
	} {
		table := NewTable(onGPU(t, gpu, 0), Metadata{})
		bounds := mustParse(t, "p99_ttft_ms <= 1200")
		b := openReport(t, ReportData{Title: gpu, Table: table, Analysis: Analysis{Constraints: bounds}})
		d := pagetest.Eval[string](b, `[...document.querySelectorAll(".chart .infeasible")].map((p) => p.getAttribute("d")).join("")`)
		strokes, rings := strings.Count(d, "l"), strings.Count(d, "z")
		if strokes == 0 || 2*rings != strokes*want.rings {
			t.Errorf("%s: %d strokes and %d rings", gpu, strokes, rings)
		}
		legend := textOf(b, "#legend")
		if strings.Count(legend, "analytic and misses a limit") != want.keys {
			t.Errorf("%s: the legend is\n%s", gpu, legend)
		}
		if details := textOf(b, "#details"); strings.Contains(details, "⚠ Its timing is analytic, a roofline: ±40 % prefill") != want.caution {
			t.Errorf("%s: the details of the suggestion are\n%s", gpu, details)
		}
		b.ExpectNoComplaints()
	}
}

// TestWordsAreNotCut checks that the names of GPUs, whose letters are wide, fit into their column.
func TestWordsAreNotCut(t *testing.T) {
	b := openReport(t, ReportData{Title: "Words", Table: NewTable(slices.Concat(onGPU(t, "b200_sxm", 0), onGPU(t, "mi300x", 0)), Metadata{})})
	if cut := pagetest.Eval[[]string](b, `[...document.querySelectorAll("#table td.text")].filter((td) => td.scrollWidth > td.clientWidth).map((td) => td.textContent)`); len(cut) > 0 {
		t.Errorf("cells are cut: %q", cut)
	}
	b.ExpectNoComplaints()
}

// TestExtrapolationIsAlwaysShown checks that a share that is equal at all points is not left out as uninteresting.
func TestExtrapolationIsAlwaysShown(t *testing.T) {
	for _, share := range []float64{0, 1} {
		rows := slices.DeleteFunc(onGPU(t, "h200_sxm", share), func(r Row) bool { return r.Status != StatusOK })
		p, err := newReportPayload(ReportData{Table: NewTable(rows, Metadata{})})
		if err != nil {
			t.Fatal(err)
		}
		shown := slices.ContainsFunc(p.columns, func(c *Column) bool { return c.Name == extrapolatedColumn })
		if shown != (share > 0) {
			t.Errorf("with a share of %g the column is there: %v", share, shown)
		}
	}
}
