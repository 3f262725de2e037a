package results

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results/htmlpage/pagetest"
)

// TestChartsInBrowser uses the charts beside the plot as people do, and compares what they choose and show with figures
// computed here.
func TestChartsInBrowser(t *testing.T) {
	data := chartsReport(t)
	b := openReport(t, data)
	t.Run("parallel by keyboard", func(t *testing.T) { checkParallelKeyboard(t, b, data) })
	t.Run("parallel by drag", func(t *testing.T) { checkParallelDrag(t, b, data) })
	t.Run("parallel axes", func(t *testing.T) { checkParallelAxes(t, b) })
	t.Run("heat map", func(t *testing.T) { checkHeatMap(t, b, data) })
	t.Run("multiples", func(t *testing.T) { checkMultiples(t, b, data) })
	t.Run("breakdown", func(t *testing.T) { checkBreakdown(t, b, data) })
	t.Run("timelines", func(t *testing.T) { checkTimelines(t, b, data) })
	b.ShowEverywhere()
	b.ExpectNoComplaints()
}

// chartsReport is a made-up report with where the time of requests goes, and with what happened over time at two points.
func chartsReport(t *testing.T) ReportData {
	data := madeUpReport(t)
	table := *data.Table
	data.Table = &table
	rows := table.Rows()
	var shares [3]*Column
	for i, name := range []string{"queue_time_share", "prefill_time_share", "decode_time_share"} {
		table.deleteColumns(name)
		shares[i] = NewColumn(name, gridspec.KindFloat, rows)
		shares[i].Role, shares[i].Unit = RoleMetric, "ratio"
		table.Add(shares[i])
	}
	table.deleteColumns("limiting_resource", "transfer_time_share", "stall_time_share")
	limit := NewColumn("limiting_resource", gridspec.KindString, rows)
	limit.Role = RoleMetric
	table.Add(limit)
	throughput := table.Column("output_throughput_tok_s")
	for row := range rows {
		if throughput.Null[row] {
			continue
		}
		queue := float64(row%7) / 10
		shares[0].Set(row, float(queue))
		shares[1].Set(row, float(.1))
		shares[2].Set(row, float(.9-queue))
		limit.Set(row, text([]string{"none", "kv_memory"}[row%2]))
	}
	for _, row := range frontierOf(t, data)[:2] {
		data.Timelines = append(data.Timelines, ReportTimeline{
			Row: row, EndSeconds: 30, AtSeconds: []float64{0, 10, 20},
			Figures: []TimelineFigure{{Name: "waiting", Title: "Queue", Unit: "requests", Note: "mean", Values: []float64{float64(row), math.NaN(), 7}}},
		})
	}
	return data
}

// chosen is the number of rows that the table is left with.
func chosen(b *pagetest.Browser) int {
	b.T.Helper()
	b.Settle()
	return pagetest.Eval[int](b, `Number(document.querySelector("#table table").getAttribute("aria-rowcount")) - 1`)
}

// clearSelection presses Escape.
func clearSelection(b *pagetest.Browser, all int) {
	b.T.Helper()
	b.Do(chromedp.KeyEvent(kb.Escape))
	if n := chosen(b); n != all {
		b.T.Fatalf("%d rows are left after Escape; want %d", n, all)
	}
}

// see scrolls to an element: charts are drawn when they are seen.
func see(b *pagetest.Browser, selector string) {
	b.T.Helper()
	b.Center(selector)
	b.Settle()
}

// seeAll scrolls through the page.
func seeAll(b *pagetest.Browser) {
	b.T.Helper()
	for _, id := range pagetest.Eval[[]string](b, `[...document.querySelectorAll("main > section[id]:not([hidden])")].map((e) => "#" + e.id)`) {
		see(b, id)
	}
}

// rowsOf counts the rows that a rule accepts.
func rowsOf(d ReportData, accept func(row int) bool) int {
	n := 0
	for row := range d.Table.Rows() {
		if accept(row) {
			n++
		}
	}
	return n
}

func ints(d ReportData, name string) []int64 { return d.Table.Column(name).Ints }

func checkParallelKeyboard(t *testing.T, b *pagetest.Browser, d ReportData) {
	see(b, "#parallel")
	b.Do(chromedp.Focus(chromedp.CSS(`[data-handle="workers 0"]`)), chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(kb.ArrowUp))
	workers := ints(d, "workers")
	if n, want := chosen(b), rowsOf(d, func(row int) bool { return workers[row] >= 4 }); n != want {
		t.Errorf("two steps up from workers 1 choose %d rows; want the %d with 4 and more", n, want)
	}
	if text := pagetest.Eval[string](b, `document.activeElement.getAttribute("aria-valuetext")`); text != "4 workers" {
		t.Errorf("the handle says %q", text)
	}
	b.Do(chromedp.Focus(chromedp.CSS(`[data-handle="router_policy 1"]`)), chromedp.KeyEvent(kb.ArrowDown))
	policy := d.Table.Column("router_policy")
	if n, want := chosen(b), rowsOf(d, func(row int) bool { return workers[row] >= 4 && policy.Strings[row] == policy.Strings[0] }); n != want {
		t.Errorf("with one policy %d rows are left; want %d", n, want)
	}
	clearSelection(b, d.Table.Rows())
	if n := pagetest.Eval[int](b, `document.querySelectorAll(".brushed").length`); n != 0 {
		t.Errorf("%d brushes are left after Escape", n)
	}
}

func checkParallelDrag(t *testing.T, b *pagetest.Browser, d ReportData) {
	b.Center("#parallel svg")
	at := pagetest.Eval[[3]float64](b, `(() => { const axis = [...document.querySelectorAll(".parallel-head")].findIndex((h) => h.dataset.column === "concurrency");
		const r = document.querySelectorAll(".parallel-axis line")[axis].getBoundingClientRect(); return [r.x, r.top, r.bottom]; })()`)
	drag := func(from, to float64) {
		b.Do(chromedp.MouseEvent("mousePressed", at[0], from, chromedp.ButtonLeft, chromedp.ClickCount(1)), chromedp.MouseEvent("mouseMoved", at[0], (from+to)/2, chromedp.ButtonLeft),
			chromedp.MouseEvent("mouseMoved", at[0], to, chromedp.ButtonLeft), chromedp.MouseEvent("mouseReleased", at[0], to, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	}
	concurrency := ints(d, "concurrency")
	top := slices.Max(concurrency)
	drag(at[1]-5, at[1]+6) // the values stand at even distances, so just the highest is inside
	if n, want := chosen(b), rowsOf(d, func(row int) bool { return concurrency[row] == top }); n != want {
		t.Errorf("a drag over the highest concurrency chooses %d rows; want %d", n, want)
	}
	if n := pagetest.Eval[int](b, `Number(document.getElementById("parallel").dataset.lines)`); n == 0 || n > d.Table.Rows()/10 {
		t.Errorf("%d lines are drawn as chosen", n)
	}
	drag(at[1]+100, at[1]+100) // a click takes the brush away
	if n := chosen(b); n != d.Table.Rows() {
		t.Errorf("%d rows after a click on the axis; want all", n)
	}
}

func checkParallelAxes(t *testing.T, b *pagetest.Browser) {
	const heads = `[...document.querySelectorAll(".parallel-head")].map((h) => h.dataset.column)`
	before := pagetest.Eval[[]string](b, heads)
	b.Do(chromedp.Focus(chromedp.CSS(".parallel-head")), chromedp.KeyEvent(kb.ArrowRight))
	want := slices.Clone(before)
	want[0], want[1] = want[1], want[0]
	if diff := cmp.Diff(want, pagetest.Eval[[]string](b, heads)); diff != "" {
		t.Errorf("axes after the arrow key (-want +got):\n%s", diff)
	}
	pagetest.Eval[bool](b, `(() => { for (const name of ["p99_itl_ms", "`+before[0]+`"]) document.querySelector('#parallel-controls input[value="' + name + '"]').click(); return true; })()`)
	want = append(slices.Delete(want, 1, 2), "p99_itl_ms")
	if diff := cmp.Diff(want, pagetest.Eval[[]string](b, heads)); diff != "" {
		t.Errorf("axes after the menu (-want +got):\n%s", diff)
	}
}

// heatBest is what a cell of the map must show.
func heatBest(t *testing.T, d ReportData, workers, concurrency int64) (best float64, points, kept int) {
	t.Helper()
	feasible, err := Feasible(d.Table, d.Constraints)
	if err != nil {
		t.Fatal(err)
	}
	goal, status := d.Table.Column(DefaultObjectives()[0].Name), d.Table.Column("status")
	bestKept := math.Inf(-1)
	best = bestKept
	for row := range d.Table.Rows() {
		if ints(d, "workers")[row] != workers || ints(d, "concurrency")[row] != concurrency || status.Strings[row] != string(StatusOK) {
			continue
		}
		points++
		best = max(best, goal.Floats[row])
		if feasible[row] {
			kept++
			bestKept = max(bestKept, goal.Floats[row])
		}
	}
	if kept > 0 {
		best = bestKept
	}
	return best, points, kept
}

// heatCell is a cell of the map on the page.
type heatCell struct {
	Label  string `json:"label"`
	Misses bool   `json:"misses"`
}

func checkHeatMap(t *testing.T, b *pagetest.Browser, d ReportData) {
	see(b, "#heatmap")
	cells := pagetest.Eval[[]heatCell](b, `[...document.querySelectorAll("#heatmap td[data-cell]")].map((td) => ({ label: td.getAttribute("aria-label"), misses: td.classList.contains("misses") }))`)
	if len(cells) != 4*13 {
		t.Fatalf("%d cells; want 4 workers by 13 concurrencies", len(cells))
	}
	seen := map[bool]int{}
	for _, c := range cells {
		var workers, concurrency int64
		var shown string
		var n int
		if _, err := fmt.Sscanf(strings.ReplaceAll(c.Label, ":", ""), "concurrency %d, workers %d %s %d", &concurrency, &workers, &shown, &n); err != nil {
			t.Fatalf("%q: %v", c.Label, err)
		}
		best, points, kept := heatBest(t, d, workers, concurrency)
		got, err := strconv.ParseFloat(strings.NewReplacer(",", "").Replace(shown), 64)
		if err != nil || math.Abs(got/best-1) > .006 || n != points || c.Misses != (kept == 0) {
			t.Errorf("the map says %q, misses %v; want %.4g of %d points, %d of which keep the bounds", c.Label, c.Misses, best, points, kept)
		}
		seen[c.Misses]++
	}
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("the map should have cells of both kinds: %v", seen)
	}
	checkHeatKeys(t, b, d)
}

// checkHeatKeys walks over the map and chooses a cell.
func checkHeatKeys(t *testing.T, b *pagetest.Browser, d ReportData) {
	b.Do(chromedp.Focus(chromedp.CSS(`#heatmap td[tabindex="0"]`)), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	workers, concurrency := ints(d, "workers"), ints(d, "concurrency")
	status := d.Table.Column("status")
	in := func(row int) bool {
		return workers[row] == 4 && concurrency[row] == 2 && status.Strings[row] == string(StatusOK)
	}
	if n, want := chosen(b), rowsOf(d, in); n != want {
		label := pagetest.Eval[string](b, `document.activeElement.getAttribute("aria-label")`)
		t.Errorf("the cell of workers 4 and concurrency 2 (%s) chooses %d rows; want %d", label, n, want)
	}
	if tip := pagetest.Eval[string](b, `document.querySelector("#heatmap .tooltip").innerText`); !strings.Contains(tip, "workers\n4") || !strings.Contains(tip, "Best:") {
		t.Errorf("the tooltip says:\n%s", tip)
	}
	if n := pagetest.Eval[int](b, `document.querySelectorAll('#heatmap td[aria-selected="true"]').length`); n != 1 {
		t.Errorf("%d cells are marked as chosen", n)
	}
	clearSelection(b, d.Table.Rows())
}

func checkMultiples(t *testing.T, b *pagetest.Browser, d ReportData) {
	see(b, "#multiples")
	b.Do(chromedp.Focus(chromedp.CSS(`.value-band[data-value^="workers "]`)), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.Enter))
	workers, throughput := ints(d, "workers"), d.Table.Column(DefaultObjectives()[0].Name)
	want := rowsOf(d, func(row int) bool { return workers[row] == 2 && !throughput.Null[row] })
	if n := chosen(b); n != want {
		t.Errorf("the value workers 2 chooses %d rows; want %d", n, want)
	}
	if note := pagetest.Eval[string](b, `document.getElementById("multiples-note").textContent`); !strings.Contains(note, "chosen points that keep the bounds") {
		t.Errorf("the note says %q", note)
	}
	if focused := pagetest.Eval[string](b, `document.activeElement.getAttribute("aria-label") || ""`); focused != "Choose the points with workers 2" {
		t.Errorf("the focus went to %q", focused)
	}
	b.Do(chromedp.KeyEvent(kb.Enter))
	if n := chosen(b); n != d.Table.Rows() {
		t.Errorf("%d rows after a second Enter; want all", n)
	}
}

func checkBreakdown(t *testing.T, b *pagetest.Browser, d ReportData) {
	see(b, "#breakdown")
	rows := pagetest.Eval[[]int](b, `[...document.querySelectorAll(".bar-row")].map((r) => Number(r.dataset.row))`)
	if len(rows) < 5 || len(rows) > 21 {
		t.Fatalf("%d bars", len(rows))
	}
	frontier := frontierOf(t, d)
	for _, row := range rows {
		if !slices.Contains(frontier, row) {
			t.Errorf("row %d has a bar and is not on the frontier", row)
		}
		label := pagetest.Eval[string](b, fmt.Sprintf(`document.querySelector('.bar-row[data-row="%d"]').getAttribute("aria-label")`, row))
		want := fmt.Sprintf("prefill 10 %%, decode %d %%; limited by %s", 90-row%7*10, []string{"load", "KV memory"}[row%2])
		if !strings.Contains(label, want) || row%7 > 0 && !strings.Contains(label, fmt.Sprintf("queue %d %%", row%7*10)) {
			t.Errorf("the bar of row %d says %q; want %q", row, label, want)
		}
	}
	last := rows[len(rows)-1]
	pagetest.Eval[bool](b, fmt.Sprintf(`(() => { document.querySelector('.bar-row[data-row="%d"]').click(); return true; })()`, last))
	b.Settle()
	if command := pagetest.Eval[string](b, `document.querySelector("#details pre").textContent`); command != commandOf(d, last) {
		t.Errorf("a click on the bar of row %d chose %q", last, command)
	}
}

func checkTimelines(t *testing.T, b *pagetest.Browser, d ReportData) {
	see(b, "#timelines")
	if n := pagetest.Eval[int](b, `document.querySelectorAll(".timeline-line").length`); n != 2 {
		t.Fatalf("%d lines; want one a point", n)
	}
	b.Do(chromedp.Focus(chromedp.CSS(".timeline")), chromedp.KeyEvent(kb.ArrowRight))
	first := fmt.Sprintf("0 s %d %d", d.Timelines[0].Row, d.Timelines[1].Row)
	for _, want := range []string{first, "10 s", "20 s 7 7"} {
		if got := strings.Join(strings.Fields(pagetest.Eval[string](b, `[...document.querySelector(".timeline-values").children].map((c) => c.textContent).join(" ")`)), " "); got != want {
			t.Errorf("the figures are %q; want %q", got, want)
		}
		b.Do(chromedp.KeyEvent(kb.ArrowRight))
	}
	b.Do(chromedp.Click(chromedp.CSS(".timeline-keys button")))
	b.Settle()
	if command := pagetest.Eval[string](b, `document.querySelector("#details pre").textContent`); command != commandOf(d, d.Timelines[0].Row) {
		t.Errorf("the key of a timeline chose %q", command)
	}
	if lit := pagetest.Eval[int](b, `document.querySelectorAll(".timeline-line.lit").length`); lit != 1 {
		t.Errorf("%d timelines are lit", lit)
	}
}

// TestReportTimelines refuses what a page cannot show.
func TestReportTimelines(t *testing.T) {
	one := ReportTimeline{AtSeconds: []float64{0, 1}, Figures: []TimelineFigure{{Name: "waiting", Values: []float64{1}}}}
	for want, timelines := range map[string][]ReportTimeline{
		"waiting has 1 values for 2 windows": {one},
		"row 3: the table has 3 rows":        {{Row: 3}},
		"at most 8":                          make([]ReportTimeline, 9),
	} {
		if _, err := newReportTimelines(timelines, 3); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
	long := ReportTimeline{AtSeconds: make([]float64, 10_000), Figures: []TimelineFigure{{Values: make([]float64, 10_000)}}}
	out, err := newReportTimelines([]ReportTimeline{long}, 1)
	if err != nil || len(out[0].At) != MostTimelineWindows || len(out[0].Figures[0].Values) != MostTimelineWindows {
		t.Errorf("10,000 windows are not thinned: %d, %v", len(out[0].At), err)
	}
}
