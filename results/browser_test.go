package results

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results/htmlpage/pagetest"
)

// openReport opens a report in a browser.
func openReport(t *testing.T, d ReportData) *pagetest.Browser {
	t.Helper()
	return pagetest.Open(t, renderReport(t, d))
}

// rowsInTable returns the data rows that the table shows from its top.
const rowsInTable = `[...document.querySelectorAll("#table tbody tr[data-row]")].map((tr) => Number(tr.dataset.row))`

func TestReportInBrowser(t *testing.T) {
	data := madeUpReport(t)
	b := openReport(t, data)
	t.Run("frontier", func(t *testing.T) { checkFrontierMarks(t, b, data) })
	t.Run("hover", func(t *testing.T) { checkHover(t, b, data) })
	t.Run("keyboard", func(t *testing.T) { checkKeyboard(t, b, data) })
	t.Run("filter", func(t *testing.T) { checkFilter(t, b, data) })
	t.Run("sort", func(t *testing.T) { checkSort(t, b, data) })
	t.Run("controls", func(t *testing.T) { checkControls(t, b) })
	t.Run("sections", func(t *testing.T) { checkSections(t, b, data) })
	b.ShowEverywhere()
	b.ExpectNoComplaints()
}

func commandOf(d ReportData, row int) string { return d.Table.Column(CommandColumn).Text(row) }

func frontierOf(t *testing.T, d ReportData) []int {
	t.Helper()
	table := &Table{Columns: slices.Clone(d.Table.Columns)}
	if err := MarkFrontier(table, Analysis{Objectives: DefaultObjectives(), Constraints: d.Constraints}); err != nil {
		t.Fatal(err)
	}
	return rowsWhere(table.Column(FrontierColumn), true)
}

func checkFrontierMarks(t *testing.T, b *pagetest.Browser, d ReportData) {
	got := pagetest.Eval[[]int](b, `[...document.querySelectorAll(".mark-frontier")].map((m) => Number(m.dataset.row))`)
	slices.Sort(got)
	want := frontierOf(t, d)
	if len(want) < 5 {
		t.Fatalf("a frontier of %d points shows little", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	if n := pagetest.Eval[int](b, `document.querySelectorAll(".infeasible").length`); n == 0 {
		t.Error("no infeasible point is drawn")
	}
}

func checkHover(t *testing.T, b *pagetest.Browser, d ReportData) {
	x, y := b.Center(".mark-frontier")
	row := pagetest.Eval[int](b, `Number(document.querySelector(".mark-frontier").dataset.row)`)
	b.Do(chromedp.MouseEvent("mouseMoved", x, y))
	tip := pagetest.Eval[string](b, `document.querySelector(".tooltip").innerText`)
	for _, axis := range []string{"router_policy", "workers", "concurrency"} {
		if !strings.Contains(tip, axis) {
			t.Errorf("the tooltip lacks %s:\n%s", axis, tip)
		}
	}
	if policy := d.Table.Column("router_policy").Text(row); !strings.Contains(tip, policy) || !strings.Contains(tip, "on the frontier") {
		t.Errorf("the tooltip of row %d lacks its policy %s or state:\n%s", row, policy, tip)
	}
	b.Do(chromedp.MouseClickXY(x, y))
	b.Settle()
	if command := pagetest.Eval[string](b, `document.querySelector("#details pre").textContent`); command != commandOf(d, row) {
		t.Errorf("the chosen point's command is %q; want %q", command, commandOf(d, row))
	}
}

func checkKeyboard(t *testing.T, b *pagetest.Browser, d ReportData) {
	b.Do(chromedp.Focus(chromedp.CSS(".mark-frontier")), chromedp.KeyEvent(kb.ArrowLeft))
	row := pagetest.Eval[int](b, `Number(document.activeElement.dataset.row)`)
	second := pagetest.Eval[int](b, `Number(document.querySelectorAll(".mark-frontier")[1].dataset.row)`)
	if row != second {
		t.Errorf("the arrow key went to row %d; want %d", row, second)
	}
	if hidden := pagetest.Eval[bool](b, `document.querySelector(".tooltip").hidden`); hidden {
		t.Error("keyboard focus shows no tooltip")
	}
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Settle()
	if command := pagetest.Eval[string](b, `document.querySelector("#details pre").textContent`); command != commandOf(d, row) {
		t.Errorf("Enter chose %q; want %q", command, commandOf(d, row))
	}
}

func setFilter(b *pagetest.Browser, text string) {
	b.T.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		b.T.Fatal(err)
	}
	pagetest.Eval[bool](b, `(() => { const f = document.getElementById("filter"); f.value = `+string(quoted)+`; f.dispatchEvent(new Event("input")); return true; })()`)
	b.Settle()
}

func checkFilter(t *testing.T, b *pagetest.Browser, d ReportData) {
	policy, workers, status := d.Table.Column("router_policy"), d.Table.Column("workers"), d.Table.Column("status")
	cases := []struct {
		filter string
		keep   func(row int) bool
	}{
		{"kv_router workers>=8", func(row int) bool { return policy.Strings[row] == "kv_router" && workers.Ints[row] >= 8 }},
		{"status=failed", func(row int) bool { return status.Strings[row] == "failed" }},
		{"TIMEOUT", func(row int) bool { return status.Strings[row] == "failed" }},
		{"no-such-word", func(int) bool { return false }},
	}
	for _, c := range cases {
		setFilter(b, c.filter)
		var want []int
		for row := range d.Table.Rows() {
			if c.keep(row) {
				want = append(want, row)
			}
		}
		got := pagetest.Eval[[]int](b, rowsInTable)
		for _, row := range got {
			if !slices.Contains(want, row) {
				t.Errorf("%s: row %d is shown", c.filter, row)
			}
		}
		if (len(got) == 0) != (len(want) == 0) {
			t.Errorf("%s: %d rows are shown; %d match", c.filter, len(got), len(want))
		}
	}
	setFilter(b, "")
}

func checkSort(t *testing.T, b *pagetest.Browser, d ReportData) {
	values, err := d.Table.Column("p99_ttft_ms").Float64s()
	if err != nil {
		t.Fatal(err)
	}
	const header = `#table th[data-column="p99_ttft_ms"]`
	for _, want := range []string{"ascending", "descending"} {
		b.Do(chromedp.Click(chromedp.CSS(header + " button")))
		sorted := pagetest.Eval[string](b, "document.querySelector('"+header+"').ariaSort")
		rows := pagetest.Eval[[]int](b, rowsInTable)
		if sorted != want || len(rows) < 10 {
			t.Fatalf("aria-sort is %q with %d rows; want %q", sorted, len(rows), want)
		}
		for i := 1; i < len(rows); i++ {
			if a, b := values[rows[i-1]], values[rows[i]]; want == "ascending" && a > b || want == "descending" && a < b {
				t.Errorf("%s: %v comes before %v", want, a, b)
			}
		}
	}
}

// checkControls changes every select and presses every toggle; the frontier must follow the figures.
func checkControls(t *testing.T, b *pagetest.Browser) {
	choose := func(label, value string) {
		pagetest.Eval[bool](b, `(() => { const s = document.querySelector('select[aria-label="`+label+`"]'); s.value = "`+value+`"; s.dispatchEvent(new Event("change")); return true; })()`)
	}
	choose("X", "mean_ttft_ms")
	choose("Colour", "workers")
	b.Settle()
	if n := pagetest.Eval[int](b, `document.querySelectorAll(".legend-list button").length`); n != 4 {
		t.Errorf("the legend of four worker counts has %d entries", n)
	}
	marks := `document.querySelectorAll(".mark-frontier").length`
	all := pagetest.Eval[int](b, marks)
	b.Do(chromedp.Click(chromedp.CSS(".legend-list button")))
	b.Settle()
	if shown := pagetest.Eval[int](b, marks); shown > all || all == 0 {
		t.Errorf("%d marks without a series; %d with all", shown, all)
	}
	for range 6 {
		pagetest.Eval[bool](b, `(() => { for (const t of document.querySelectorAll("#plot-controls button")) t.click(); return true; })()`)
	}
	choose("Colour", "")
	choose("X", "mean_output_token_throughput_per_user")
	b.Settle()
}

func checkSections(t *testing.T, b *pagetest.Browser, d ReportData) {
	for selector, want := range map[string]string{
		"#cliffs": "kept at workers 4, lost from 2 down", "#failures": "the simulation took longer than 5m", "#spec": "deployment.workers: [1, 2, 4, 8]", "#summary": "312 points", "#title": d.Title,
	} {
		if got := pagetest.Eval[string](b, `document.querySelector("`+selector+`").innerText`); !strings.Contains(got, want) {
			t.Errorf("%s lacks %q:\n%s", selector, want, got)
		}
	}
	see(b, "#multiples")
	if n := pagetest.Eval[int](b, `document.querySelectorAll(".multiple svg").length`); n != 4*2 {
		t.Errorf("%d small multiples; want 4 axes by 2 objectives", n)
	}
}

// TestHostileNamesAreInert puts markup, quotes and control characters everywhere that text can come from.
func TestHostileNamesAreInert(t *testing.T) {
	hostile := []string{
		`</script><img src=x onerror="alert(1)">`, `<svg onload=alert(1)>`, `"'` + "`" + `${alert(1)}`, "<!--<script>", "line\u2028break\x00\u202e", `{{.Data}}`, `__proto__`, `constructor`,
	}
	rows := madeUpRows(5)[60:140]
	for i := range rows {
		rows[i].ID += hostile[i%len(hostile)]
		rows[i].Point.Workload.Name = hostile[i%3]
		rows[i].Point.Axes = append(rows[i].Point.Axes,
			gridspec.AxisValue{Column: hostile[0], Path: "engine." + hostile[0], Value: text(hostile[i%len(hostile)])},
			gridspec.AxisValue{Column: hostile[6], Path: hostile[6], Value: integer(i)},
			gridspec.AxisValue{Column: hostile[7], Path: hostile[7], Value: integer(i)})
		if i%9 == 0 {
			rows[i].Status, rows[i].Reason, rows[i].Error = StatusFailed, hostile[1], hostile[0]
		}
	}
	table := NewTable(rows, Metadata{Spec: strings.Join(hostile, "\n"), Versions: map[string]string{hostile[0]: hostile[1]}})
	table.AddCommands(func(int) string { return hostile[0] + hostile[2] })
	b := openReport(t, ReportData{Title: hostile[0], Table: table})
	if n := pagetest.Eval[int](b, `document.querySelectorAll("img, script:not([type]) ~ script, [onerror], [onload]").length`); n != 0 {
		t.Errorf("%d elements came out of names", n)
	}
	if title := pagetest.Eval[string](b, `document.title`); title != hostile[0] {
		t.Errorf("the title is %q; want %q", title, hostile[0])
	}
	if head := pagetest.Eval[string](b, `document.getElementById("title").textContent`); head != hostile[0] {
		t.Errorf("the heading is %q; want %q", head, hostile[0])
	}
	x, y := b.Center(".mark-frontier")
	b.Do(chromedp.MouseEvent("mouseMoved", x, y))
	if tip := pagetest.Eval[string](b, `document.querySelector(".tooltip").innerText`); !strings.Contains(tip, hostile[0]) {
		t.Errorf("the tooltip does not show the axis %q as text:\n%s", hostile[0], tip)
	}
	setFilter(b, `"'`)
	seeAll(b)
	b.ExpectNoComplaints()
}

func TestReportOfHandMadeTables(t *testing.T) {
	few := NewTable(madeUpRows(1)[:1], Metadata{})
	cases := map[string]struct {
		table *Table
		marks int
	}{
		"no rows":          {NewTable(nil, Metadata{}), 0},
		"one row":          {few, 1},
		"all failed":       {NewTable([]Row{{ID: "a", Point: &gridspec.Point{}, Status: StatusFailed, Reason: "panic", Error: "boom"}}, Metadata{}), 0},
		"words only":       {readContent(t, "gpu\nh200\nb200\n"), 0},
		"unknown figures":  {readContent(t, "gpu,a,b\nh200,1,2\nb200,2,1\n,3,\n"), 2},
		"a metric of ours": {readContent(t, "gpu,mean_ttft_ms,output_throughput_tok_s\nh200,10,20\nb200,9,30\n"), 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := openReport(t, ReportData{Title: name, Table: c.table})
			if n := pagetest.Eval[int](b, `document.querySelectorAll(".mark-frontier").length`); n != c.marks {
				t.Errorf("%d marks; want %d", n, c.marks)
			}
			b.ExpectNoComplaints()
		})
	}
}

// TestLargeReportStaysSmooth opens 10,000 points and times what a user does most: the quickest of some tries, since the
// machine may be busy. On an idle one they take less than 50 ms.
func TestLargeReportStaysSmooth(t *testing.T) {
	if testing.Short() {
		t.Skip("a large report takes seconds")
	}
	var rows []Row
	for seed := uint64(0); len(rows) < 10_000; seed++ {
		rows = append(rows, madeUpRows(seed)...)
	}
	page := renderReport(t, ReportData{Title: "Large", Table: NewTable(rows, Metadata{})})
	empty := renderReport(t, ReportData{Title: "Empty", Table: NewTable(nil, Metadata{})})
	if perRow := (len(page) - len(empty)) / len(rows); perRow > 1000 || len(empty) > 1<<20 {
		t.Errorf("the page takes %d bytes and %d a row; want at most 1 MiB and 1,000", len(empty), perRow)
	}
	b := pagetest.Open(t, page)
	if n := pagetest.Eval[int](b, `document.querySelectorAll("#table tbody tr").length`); n > 200 {
		t.Errorf("the table has %d elements for rows; want those in view only", n)
	}
	if n := pagetest.Eval[int](b, `document.querySelectorAll("#chart *").length`); n > 1000 {
		t.Errorf("the plot has %d elements; want its dots on a canvas", n)
	}
	for name, action := range map[string]string{
		"a limit":  `const s = document.querySelector(".limit input[type=range]"); s.value = 300 + 40 * i; s.dispatchEvent(new Event("input"));`,
		"a filter": `const f = document.getElementById("filter"); f.value = ["k", "kv", "workers>=4", "workers>=8", ""][i % 5]; f.dispatchEvent(new Event("input"));`,
		"a sort":   `document.querySelector('#table th[data-column="p99_ttft_ms"] button').click();`,
		"hovering": `const c = document.querySelector("#chart"), r = c.getBoundingClientRect(); c.dispatchEvent(new PointerEvent("pointermove", { clientX: r.x + 150 + 20 * i, clientY: r.y + 200, bubbles: true }));`,
	} {
		ms := eventually[float64](b, `(async () => { const frame = () => new Promise((done) => requestAnimationFrame(done)); let best = Infinity;
			for (let i = 0; i < 4; i++) { await frame(); const start = performance.now(); `+action+` await frame(); await frame(); best = Math.min(best, performance.now() - start); } return best; })()`)
		if ms > 1500 {
			t.Errorf("%s takes %.0f ms", name, ms)
		}
		t.Logf("%s of %d points takes %.0f ms, with the wait for the next frame", name, len(rows), ms)
	}
	b.ExpectNoComplaints()
}

// eventually returns what a promise in the page comes to.
func eventually[T any](b *pagetest.Browser, promise string) T {
	b.T.Helper()
	pagetest.Eval[bool](b, `(() => { globalThis.outcome = undefined; `+promise+`.then((v) => { globalThis.outcome = v; }); return true; })()`)
	for !pagetest.Eval[bool](b, `globalThis.outcome !== undefined`) {
		b.Settle()
	}
	return pagetest.Eval[T](b, `globalThis.outcome`)
}

// rowsWhere lists the rows in which a column has a value.
func rowsWhere(c *Column, value bool) []int {
	rows := []int{}
	for i, v := range c.Bools {
		if v == value {
			rows = append(rows, i)
		}
	}
	return rows
}
