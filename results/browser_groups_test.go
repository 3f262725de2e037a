package results

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results/htmlpage/pagetest"
	"github.com/servegrid/servegrid/simcore/workload"
)

// replicatedRows returns made-up rows of two workloads with two replicates each.
func replicatedRows() []Row {
	var rows []Row
	for _, traffic := range []string{"chat", "code"} {
		for i := range 39 {
			for n := range 2 {
				row := madeUpRows(uint64(len(traffic) + n))[i+156]
				row.Point.Workload = workload.Spec{Name: traffic}
				row.Point.Axes = append([]gridspec.AxisValue{{Column: "workload", Path: "workload", Value: text(traffic)}}, row.Point.Axes...)
				rows = append(rows, replicateAxis(row, n))
			}
		}
	}
	return rows
}

// Each traffic has its own frontier, also for a pair chosen in the page, and replicates are one mark.
func TestReportOfTrafficAndReplicates(t *testing.T) {
	table := NewTable(replicatedRows(), Metadata{})
	table.Metadata.Constraints = mustParse(t, "p99_ttft_ms <= 2000")
	b := openReport(t, ReportData{Title: "Traffic", Table: table, Analysis: table.Analysis()})
	for _, pair := range [][]Objective{DefaultObjectives(), {DefaultObjectives()[0], {Name: "mean_ttft_ms"}}} {
		pagetest.Eval[bool](b, `(() => { const s = document.querySelector('select[aria-label="X"]'); s.value = "`+pair[1].Name+`"; s.dispatchEvent(new Event("change")); return true; })()`)
		b.Settle()
		want := firstMarked(t, table, Analysis{Objectives: pair, Constraints: table.Metadata.Constraints, By: []string{"workload"}})
		got := pagetest.Eval[[]int](b, `[...document.querySelectorAll(".mark-frontier")].map((m) => Number(m.dataset.row))`)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("marks by %s (-want +got):\n%s", pair[1].Name, diff)
		}
		if n := pagetest.Eval[int](b, `document.querySelectorAll(".frontier-line").length`); n != 2 {
			t.Errorf("%d frontier lines for two workloads", n)
		}
	}
	summary := pagetest.Eval[string](b, `document.querySelector("#summary").innerText`)
	if !strings.Contains(summary, "78 points") || strings.Contains(summary, "replicate,") {
		t.Errorf("the summary takes replicates for points or for an axis: %s", summary)
	}
	if heading := pagetest.Eval[string](b, `document.querySelector("#plot-heading").innerText`); !strings.Contains(heading, "chat ") || !strings.Contains(heading, "code ") {
		t.Errorf("the heading does not count for each workload: %s", heading)
	}
	checkReplicateDetails(t, b)
	b.ExpectNoComplaints()
}

// firstMarked lists the first row of every candidate on the frontier.
func firstMarked(t *testing.T, table *Table, a Analysis) []int {
	t.Helper()
	marked := *table
	if err := MarkFrontier(&marked, a); err != nil {
		t.Fatal(err)
	}
	var rows []int
	for i, on := range marked.Candidates().Table.Column(FrontierColumn).Bools {
		if on {
			rows = append(rows, marked.Candidates().Rows[i][0])
		}
	}
	if len(rows) < 5 {
		t.Fatalf("a frontier of %d points shows little", len(rows))
	}
	return rows
}

func checkReplicateDetails(t *testing.T, b *pagetest.Browser) {
	details := `document.querySelector("#details").innerText`
	if got := pagetest.Eval[string](b, details); !strings.Contains(got, "Suggested point (knee of the frontier of chat)") {
		t.Errorf("no suggestion:\n%s", got)
	}
	setFilter(b, "replicate=1 p99_ttft_ms>2500")
	b.Do(chromedp.Click(chromedp.CSS("#table tbody tr[data-row]")))
	b.Settle()
	got := pagetest.Eval[string](b, details)
	for _, want := range []string{"Chosen point", "replicate 2 of 2", " ± ", "misses a limit", "> 2,000 ms (+"} {
		if !strings.Contains(got, want) {
			t.Errorf("the details lack %q:\n%s", want, got)
		}
	}
}

// Without a feasible point the page suggests the one that misses by least.
func TestReportOfAnEmptyFrontier(t *testing.T) {
	table := NewTable(madeUpRows(1), Metadata{})
	b := openReport(t, ReportData{Title: "Empty", Table: table, Analysis: Analysis{Constraints: mustParse(t, "p99_ttft_ms <= 1")}})
	if got := pagetest.Eval[string](b, `document.querySelector("#tiles").innerText`); !strings.Contains(got, "p99_ttft_ms ") || !strings.Contains(got, " > 1") {
		t.Errorf("no near miss:\n%s", got)
	}
	if got := pagetest.Eval[string](b, `document.querySelector("#details").innerText`); !strings.Contains(got, "closest to the bounds") {
		t.Errorf("no suggestion:\n%s", got)
	}
	b.ExpectNoComplaints()
}

// A traffic without a frontier is named beside those that have one.
func TestReportOfOneEmptyFrontier(t *testing.T) {
	rows := replicatedRows()
	for i := range rows {
		if rows[i].Point.Workload.Name == "code" {
			rows[i].Point.Config.Timing.TP = 4 // two GPUs more than the bound allows
		}
	}
	table := NewTable(rows, Metadata{})
	b := openReport(t, ReportData{Title: "Half", Table: table, Analysis: Analysis{Constraints: mustParse(t, "gpus <= 8"), By: table.Metadata.FrontierBy}})
	tiles := pagetest.Eval[string](b, `document.querySelector("#tiles").innerText`)
	if !strings.Contains(tiles, "Closest to the bounds of code") || !strings.Contains(tiles, "gpus 16 > 8") || strings.Contains(tiles, "bounds of chat") {
		t.Errorf("the tiles are:\n%s", tiles)
	}
	b.ExpectNoComplaints()
}

// On a phone only the table and the small multiples scroll sideways.
func TestReportFitsAPhone(t *testing.T) {
	b := openReport(t, madeUpReport(t))
	b.Do(chromedp.EmulateViewport(420, 900), chromedp.Reload())
	if width := pagetest.Eval[int](b, `document.documentElement.scrollWidth`); width > 420 {
		t.Errorf("the page is %d wide on a screen of 420", width)
	}
	b.ExpectNoComplaints()
}
