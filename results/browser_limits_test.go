package results

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	"github.com/servegrid/servegrid/results/htmlpage/pagetest"
)

// setLimit types a bound into the number beside a slider, or none when it is empty.
func setLimit(b *pagetest.Browser, name, value string) {
	b.T.Helper()
	pagetest.Eval[bool](b, fmt.Sprintf(`(() => { const n = document.querySelector('[role=group][aria-label=%q] input[type=number]'); n.value = %q; n.dispatchEvent(new Event("input")); return true; })()`, name, value))
	b.Settle()
}

// chooseFigure chooses which figure a limit bounds.
func chooseFigure(b *pagetest.Browser, limit, column string) {
	b.T.Helper()
	pagetest.Eval[bool](b, fmt.Sprintf(`(() => { const s = document.querySelector('[role=group][aria-label=%q] select'); s.value = %q; s.dispatchEvent(new Event("change")); return true; })()`, limit, column))
	b.Settle()
}

// marksInPage are the rows with a mark in the table's first column, whatever part of it is in view.
func marksInPage(b *pagetest.Browser, mark string) []int {
	b.T.Helper()
	return pagetest.Eval[[]int](b, `(() => { const out = new Set(), t = document.getElementById("table"); const words = document.querySelector("#filter").value;
		for (let y = 0; y <= t.scrollHeight; y += 300) { t.scrollTop = y; t.dispatchEvent(new Event("redraw")); for (const tr of t.querySelectorAll("tr[data-row]")) if (tr.cells[0].textContent === "`+mark+`") out.add(Number(tr.dataset.row)); }
		t.scrollTop = 0; return [...out].sort((a, b) => a - b); })()`)
}

// frontierInPage are the marks of the plot.
const frontierInPage = `[...document.querySelectorAll(".mark-frontier")].map((m) => Number(m.dataset.row)).sort((a, b) => a - b)`

// The page must find the frontier that the program finds for the same bounds, and say which command that is.
func TestLimitsInBrowser(t *testing.T) {
	table := NewTable(replicatedRows(), Metadata{})
	table.Metadata.Constraints = mustParse(t, "p99_ttft_ms <= 2000 && workload != \"none\"")
	own := table.Analysis()
	data := ReportData{Title: "Limits", Table: table, Analysis: own, Own: &own, Sources: []string{"runs/it's"}}
	b := openReport(t, data)
	check := func(name string, bounds ...string) {
		t.Helper()
		a := own
		a.Constraints = mustParse(t, strings.Join(append(bounds, `workload != "none"`), " && "))
		marked := *table
		if err := MarkFrontier(&marked, a); err != nil {
			t.Fatal(err)
		}
		c := marked.Candidates()
		var frontier []int
		feasible, near := 0, 0
		for i := range c.Rows {
			if c.Table.Column(FrontierColumn).Bools[i] {
				frontier = append(frontier, c.Rows[i][0])
			} else if c.Table.Column(NoiseColumn).Bools[i] {
				near++
			}
			if c.Table.Column(FeasibleColumn).Bools[i] {
				feasible++
			}
		}
		if len(frontier) < 3 {
			t.Errorf("%s: a frontier of %d points shows little", name, len(frontier))
		}
		if diff := cmp.Diff(frontier, pagetest.Eval[[]int](b, frontierInPage)); diff != "" {
			t.Errorf("%s: frontier (-want +got):\n%s", name, diff)
		}
		expectIn(t, name, textOf(b, "#limits-controls"), fmt.Sprintf("%d of 78 points within the limits · %d on the frontier", feasible, len(frontier)))
		tiles := textOf(b, "#tiles")
		if near > 0 != strings.Contains(tiles, fmt.Sprintf("%d more within noise", near)) {
			t.Errorf("%s: %d are near the frontier; the tiles are\n%s", name, near, tiles)
		}
	}
	command := func() string { return pagetest.Eval[string](b, `document.querySelector("#limits code").textContent`) }
	check("as it is", "p99_ttft_ms <= 2000")
	if got := command(); got != `servegrid pareto 'runs/it'\''s'` {
		t.Errorf("command %s", got)
	}
	setLimit(b, "First token", "1200")
	check("tighter", "p99_ttft_ms <= 1200")
	if got, want := command(), `servegrid pareto 'runs/it'\''s' --no-sla --where 'p99_ttft_ms <= 1200 && workload != "none"'`; got != want {
		t.Errorf("command %s\nwant    %s", got, want)
	}
	setLimit(b, "GPUs", "700")
	chooseFigure(b, "Time per token", "mean_itl_ms")
	setLimit(b, "Time per token", "9.5")
	check("three limits", "p99_ttft_ms <= 1200", "mean_gpus <= 700", "mean_itl_ms <= 9.5")
	setLimit(b, "First token", "")
	check("without its own", "mean_gpus <= 700", "mean_itl_ms <= 9.5")
	waitForAddress(b, "where=mean_itl_ms+%3C%3D+9.5+%26%26+mean_gpus+%3C%3D+700")
	b.Do(chromedp.Reload())
	b.Settle()
	check("after a reload", "mean_gpus <= 700", "mean_itl_ms <= 9.5")
	pagetest.Eval[bool](b, `(() => { [...document.querySelectorAll("#limits-controls button")].find((x) => x.textContent === "Reset").click(); return true; })()`)
	b.Settle()
	check("reset", "p99_ttft_ms <= 2000")
	checkSlider(t, b)
	b.ExpectNoComplaints()
}

// waitForAddress waits until the part of the address behind #, which is written once people pause, holds some words.
func waitForAddress(b *pagetest.Browser, words ...string) {
	b.T.Helper()
	hash := ""
	for range 200 {
		hash = pagetest.Eval[string](b, `location.hash`)
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(hash, word) }) {
			return
		}
		b.Settle()
	}
	b.T.Fatalf("the address holds %s; want %q in it", hash, words)
}

// checkSlider moves a slider by the keyboard: to its end there is no limit, one step before it nearly all points count.
func checkSlider(t *testing.T, b *pagetest.Browser) {
	const slider = `[role=group][aria-label="Request latency"] input[type=range]`
	value := func() string {
		return pagetest.Eval[string](b, "document.querySelector('"+slider+"').getAttribute('aria-valuetext')")
	}
	if got := value(); got != "no limit" {
		t.Errorf("without a limit the slider says %q", got)
	}
	b.Do(chromedp.Focus(chromedp.CSS(slider)), chromedp.KeyEvent(kb.Home))
	b.Settle()
	if got := value(); !strings.HasPrefix(got, "at most ") || !strings.HasSuffix(got, " ms") {
		t.Errorf("at its start the slider says %q", got)
	}
	if n := pagetest.Eval[int](b, `document.querySelectorAll(".mark-frontier").length`); n > 2 {
		t.Errorf("%d points keep the tightest limit", n)
	}
	b.Do(chromedp.KeyEvent(kb.End))
	b.Settle()
	if got := value(); got != "no limit" {
		t.Errorf("at its end the slider says %q", got)
	}
}

// A report whose frontier has three objectives, tolerances and no ties is the program's after limits moved, too.
func TestLimitsOfThreeObjectives(t *testing.T) {
	a := Analysis{Objectives: []Objective{{Name: "output_throughput_tok_s", Maximize: true}, {Name: "gpus"}, {Name: "mean_ttft_ms"}}}
	a.Epsilon = []Epsilon{{Size: .05, Relative: true}, {}, {Size: 20}}
	a.Ties = KeepFirst
	table := NewTable(madeUpRows(3), Metadata{})
	b := openReport(t, ReportData{Title: "Three", Table: table, Analysis: a})
	setLimit(b, "First token", "3000")
	a.Constraints = mustParse(t, "p99_ttft_ms <= 3000")
	marked := *table
	if err := MarkFrontier(&marked, a); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rowsWhere(marked.Column(FrontierColumn), true), marksInPage(b, "★")); diff != "" {
		t.Errorf("frontier (-want +got):\n%s", diff)
	}
	b.ExpectNoComplaints()
}

// A rectangle in the plot, the filter of the table and Escape act on one selection.
func TestSelectionInBrowser(t *testing.T) {
	data := madeUpReport(t)
	b := openReport(t, data)
	x, y := b.Center("#chart > svg")
	b.Do(chromedp.MouseEvent("mousePressed", x-150, y-80, chromedp.ButtonLeft), chromedp.MouseEvent("mouseMoved", x-20, y, chromedp.ButtonLeft),
		chromedp.MouseEvent("mouseMoved", x+150, y+100, chromedp.ButtonLeft), chromedp.MouseEvent("mouseReleased", x+150, y+100, chromedp.ButtonLeft))
	b.Settle()
	count := func() int {
		var n, of int
		if _, err := fmt.Sscanf(textOf(b, "#table-controls [role=status]"), "%d of %d rows", &n, &of); err != nil {
			return -1
		}
		return n
	}
	inside := count()
	if inside <= 0 || inside >= 312 {
		t.Fatalf("the rectangle chooses %d of 312 rows", inside)
	}
	if n := pagetest.Eval[int](b, `document.querySelectorAll("#chart .unchosen").length`); n == 0 {
		t.Error("no point outside of the rectangle is faded")
	}
	setFilter(b, "kv_router")
	both := count()
	if both <= 0 || both >= inside {
		t.Errorf("with a filter %d rows are chosen, without it %d", both, inside)
	}
	for _, row := range pagetest.Eval[[]int](b, rowsInTable) {
		if data.Table.Column("router_policy").Strings[row] != "kv_router" {
			t.Errorf("row %d does not pass the filter", row)
		}
	}
	b.Do(chromedp.Focus(chromedp.CSS("#table")), chromedp.KeyEvent(kb.Escape))
	b.Settle()
	if n := count(); n != -1 || pagetest.Eval[string](b, `document.getElementById("filter").value`) != "" {
		t.Errorf("after Escape %d rows are chosen", n)
	}
	if n := pagetest.Eval[int](b, `document.querySelectorAll("#chart .unchosen").length`); n != 0 {
		t.Errorf("after Escape %d shapes are faded", n)
	}
	b.ExpectNoComplaints()
}

// The arrows walk through the table, Enter pins, and the theme can be chosen.
func TestTableKeysAndTheme(t *testing.T) {
	data := madeUpReport(t)
	b := openReport(t, data)
	shown := pagetest.Eval[[]int](b, rowsInTable)
	b.Do(chromedp.Focus(chromedp.CSS(`#table tr[tabindex="0"]`)), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.Settle()
	if got := pagetest.Eval[int](b, `Number(document.activeElement.dataset.row)`); got != shown[2] {
		t.Errorf("the focus is at row %d; want %d", got, shown[2])
	}
	if command := pagetest.Eval[string](b, `document.querySelector("#details pre").textContent`); command != commandOf(data, shown[2]) {
		t.Errorf("Enter chose %q", command)
	}
	b.Do(chromedp.KeyEvent(kb.End))
	if last := pagetest.Eval[int](b, `Number(document.activeElement.getAttribute("aria-rowindex"))`); last != 313 {
		t.Errorf("End goes to line %d; want the last of 312 after the head", last)
	}
	pagetest.Eval[bool](b, `dispatchEvent(new Event("beforeprint"))`)
	if printed := pagetest.Eval[[]int](b, rowsInTable); len(printed) == 0 || slices.ContainsFunc(printed, func(row int) bool { return !slices.Contains(frontierOf(t, data), row) }) {
		t.Errorf("on paper stand the rows %v; want the frontier", printed)
	}
	pagetest.Eval[bool](b, `dispatchEvent(new Event("afterprint"))`)
	background := `getComputedStyle(document.body).backgroundColor`
	before := pagetest.Eval[string](b, background)
	b.Do(chromedp.Click(chromedp.CSS("button.theme")))
	b.Settle()
	if after := pagetest.Eval[string](b, background); after == before {
		t.Error("the button does not change the theme")
	}
	b.ExpectNoComplaints()
}

// TestReportIsAccessible checks names, roles and contrast: what assistive technology needs of every control.
func TestReportIsAccessible(t *testing.T) {
	b := openReport(t, chartsReport(t))
	seeAll(b)
	for _, theme := range []string{"light", "dark"} {
		pagetest.Eval[bool](b, `(() => { document.documentElement.dataset.theme = "`+theme+`"; document.dispatchEvent(new Event("themechange")); return true; })()`)
		seeAll(b)
		for _, problem := range pagetest.Eval[[]string](b, accessibilityProblems) {
			t.Errorf("%s: %s", theme, problem)
		}
	}
	b.ExpectNoComplaints()
}

// accessibilityProblems lists controls without a name, images without a text or hiding, ids that are there twice,
// references to nothing, and text with a contrast below 4.5 to 1.
var accessibilityProblems = func() string {
	quoted, err := json.Marshal(slices.Sorted(slices.Values([]string{"button", "select", "input", "summary", "a", "[role=group]", "[role=region]", "[role=list]", "[role=img]", "section", "svg[role]"})))
	if err != nil {
		return err.Error()
	}
	return `(() => { const out = [];
	const seen = (e) => e.getClientRects().length > 0;
	const name = (e) => (e.getAttribute("aria-label") || (e.getAttribute("aria-labelledby") || "").split(" ").map((id) => document.getElementById(id)?.textContent || "").join("") || (e.labels && [...e.labels].map((l) => l.textContent).join("")) || (e.matches("button,summary,a") ? e.textContent : "") || "").trim();
	for (const e of document.querySelectorAll(` + string(quoted) + `.join(","))) if (seen(e) && !name(e)) out.push("no name: " + e.outerHTML.slice(0, 120));
	for (const e of document.querySelectorAll("svg:not([role])")) if (seen(e) && !e.closest("[aria-hidden=true]")) out.push("neither named nor hidden: " + e.outerHTML.slice(0, 120));
	const ids = [...document.querySelectorAll("[id]")].map((e) => e.id); for (const id of new Set(ids)) if (ids.filter((x) => x === id).length > 1) out.push("twice: " + id);
	for (const e of document.querySelectorAll("[aria-labelledby]")) for (const id of e.getAttribute("aria-labelledby").split(" ")) if (!document.getElementById(id)) out.push("nothing has the id " + id);
	const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
	const rgba = (c) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
	const ground = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255, 255]; };
	const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const poor = new Map();
	for (const e of document.querySelectorAll("main *, header *, footer *")) {
		if (!seen(e) || e.closest("svg,:disabled") || ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
		const style = getComputedStyle(e); if (Number(style.opacity) < 1) continue;
		const a = light(rgba(style.color)), b = light(ground(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) poor.set(style.color + e.className, ratio.toFixed(1) + " to 1: " + e.outerHTML.slice(0, 100));
	}
	return [...out, ...poor.values()]; })()`
}()
