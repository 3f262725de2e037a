package results

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	"github.com/servegrid/servegrid/gridspec"
)

// browser opens reports in a real headless Chromium.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu sync.Mutex
	// complaints are what the page reported: exceptions, console messages, blocked content, dialogs.
	complaints []string
}

// openReport writes the report to disk and opens it there, as a user would.
func openReport(t *testing.T, d ReportData) *browser {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, []byte(renderReport(t, d)), 0o600); err != nil {
		t.Fatal(err)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(findChromium(t)), chromedp.WindowSize(1400, 1000), // a fresh profile is the default
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true))
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	b.ctx, cancel = context.WithTimeout(ctx, 90*time.Second)
	t.Cleanup(cancel)
	b.do(chromedp.Navigate("file://" + path))
	return b
}

func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no chromium, chromium-browser or google-chrome in PATH: the report is not tested in a browser")
	return ""
}

func (b *browser) listen(event any) {
	var complaint string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		complaint = (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error()
	case *runtime.EventConsoleAPICalled:
		complaint = "console: " + string(e.Type)
	case *cdplog.EventEntryAdded:
		complaint = e.Entry.Text
	case *page.EventJavascriptDialogOpening:
		complaint = "dialog: " + e.Message
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, complaint)
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// eval runs an expression in the page and returns its value.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return out
}

func (b *browser) expectNoComplaints() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) > 0 {
		b.t.Errorf("the page complained:\n%s", strings.Join(b.complaints, "\n"))
	}
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
	for _, media := range []emulation.SetEmulatedMediaParams{
		{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}, {Media: "print"},
	} {
		if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
			t.Fatal(err)
		}
		eval[bool](b, `(() => { dispatchEvent(new Event("beforeprint")); return true; })()`)
	}
	b.expectNoComplaints()
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

func checkFrontierMarks(t *testing.T, b *browser, d ReportData) {
	got := eval[[]int](b, `[...document.querySelectorAll(".mark-frontier")].map((m) => Number(m.dataset.row))`)
	slices.Sort(got)
	want := frontierOf(t, d)
	if len(want) < 5 {
		t.Fatalf("a frontier of %d points shows little", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	if n := eval[int](b, `document.querySelectorAll(".infeasible").length`); n == 0 {
		t.Error("no infeasible point is drawn")
	}
}

// center is the pixel in the middle of an element.
func center(b *browser, selector string) (x, y float64) {
	b.t.Helper()
	quoted, err := json.Marshal(selector)
	if err != nil {
		b.t.Fatal(err)
	}
	at := eval[[2]float64](b, `(() => { const e = document.querySelector(`+string(quoted)+`); e.scrollIntoView({block: "center"});
		const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`)
	return at[0], at[1]
}

func checkHover(t *testing.T, b *browser, d ReportData) {
	x, y := center(b, ".mark-frontier")
	row := eval[int](b, `Number(document.querySelector(".mark-frontier").dataset.row)`)
	b.do(chromedp.MouseEvent("mouseMoved", x, y))
	tip := eval[string](b, `document.querySelector(".tooltip").innerText`)
	for _, axis := range []string{"router_policy", "workers", "concurrency"} {
		if !strings.Contains(tip, axis) {
			t.Errorf("the tooltip lacks %s:\n%s", axis, tip)
		}
	}
	if policy := d.Table.Column("router_policy").Text(row); !strings.Contains(tip, policy) || !strings.Contains(tip, "on the frontier") {
		t.Errorf("the tooltip of row %d lacks its policy %s or state:\n%s", row, policy, tip)
	}
	b.do(chromedp.MouseClickXY(x, y))
	if command := eval[string](b, `document.querySelector("#details pre").textContent`); command != commandOf(d, row) {
		t.Errorf("the chosen point's command is %q; want %q", command, commandOf(d, row))
	}
}

func checkKeyboard(t *testing.T, b *browser, d ReportData) {
	b.do(chromedp.Focus(chromedp.CSS(".mark-frontier")), chromedp.KeyEvent(kb.ArrowLeft))
	row := eval[int](b, `Number(document.activeElement.dataset.row)`)
	second := eval[int](b, `Number(document.querySelectorAll(".mark-frontier")[1].dataset.row)`)
	if row != second {
		t.Errorf("the arrow key went to row %d; want %d", row, second)
	}
	if hidden := eval[bool](b, `document.querySelector(".tooltip").hidden`); hidden {
		t.Error("keyboard focus shows no tooltip")
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	if command := eval[string](b, `document.querySelector("#details pre").textContent`); command != commandOf(d, row) {
		t.Errorf("Enter chose %q; want %q", command, commandOf(d, row))
	}
}

func setFilter(b *browser, text string) {
	b.t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		b.t.Fatal(err)
	}
	eval[bool](b, `(() => { const f = document.getElementById("filter"); f.value = `+string(quoted)+`; f.dispatchEvent(new Event("input")); return true; })()`)
}

func checkFilter(t *testing.T, b *browser, d ReportData) {
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
		got := eval[[]int](b, rowsInTable)
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

func checkSort(t *testing.T, b *browser, d ReportData) {
	values, err := d.Table.Column("p99_ttft_ms").Float64s()
	if err != nil {
		t.Fatal(err)
	}
	const header = `#table th[data-column="p99_ttft_ms"]`
	for _, want := range []string{"ascending", "descending"} {
		b.do(chromedp.Click(chromedp.CSS(header + " button")))
		sorted := eval[string](b, "document.querySelector('"+header+"').ariaSort")
		rows := eval[[]int](b, rowsInTable)
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
func checkControls(t *testing.T, b *browser) {
	choose := func(label, value string) {
		eval[bool](b, `(() => { const s = document.querySelector('select[aria-label="`+label+`"]'); s.value = "`+value+`"; s.dispatchEvent(new Event("change")); return true; })()`)
	}
	choose("X", "mean_ttft_ms")
	choose("Colour", "workers")
	if n := eval[int](b, `document.querySelectorAll(".legend-list button").length`); n != 4 {
		t.Errorf("the legend of four worker counts has %d entries", n)
	}
	marks := `document.querySelectorAll(".mark-frontier").length`
	all := eval[int](b, marks)
	b.do(chromedp.Click(chromedp.CSS(".legend-list button")))
	if shown := eval[int](b, marks); shown > all || all == 0 {
		t.Errorf("%d marks without a series; %d with all", shown, all)
	}
	for range 6 {
		eval[bool](b, `(() => { for (const t of document.querySelectorAll("#plot-controls button")) t.click(); return true; })()`)
	}
	choose("Colour", "")
	choose("X", "mean_output_token_throughput_per_user")
}

func checkSections(t *testing.T, b *browser, d ReportData) {
	for selector, want := range map[string]string{
		"#failures": "the simulation took longer than 5m", "#spec": "deployment.workers: [1, 2, 4, 8]", "#summary": "312 points", "#title": d.Title,
	} {
		if got := eval[string](b, `document.querySelector("`+selector+`").innerText`); !strings.Contains(got, want) {
			t.Errorf("%s lacks %q:\n%s", selector, want, got)
		}
	}
	if n := eval[int](b, `document.querySelectorAll(".multiple svg").length`); n != 4*2 {
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
	if n := eval[int](b, `document.querySelectorAll("img, script:not([type]) ~ script, [onerror], [onload]").length`); n != 0 {
		t.Errorf("%d elements came out of names", n)
	}
	if title := eval[string](b, `document.title`); title != hostile[0] {
		t.Errorf("the title is %q; want %q", title, hostile[0])
	}
	if head := eval[string](b, `document.getElementById("title").textContent`); head != hostile[0] {
		t.Errorf("the heading is %q; want %q", head, hostile[0])
	}
	x, y := center(b, ".mark-frontier")
	b.do(chromedp.MouseEvent("mouseMoved", x, y))
	if tip := eval[string](b, `document.querySelector(".tooltip").innerText`); !strings.Contains(tip, hostile[0]) {
		t.Errorf("the tooltip does not show the axis %q as text:\n%s", hostile[0], tip)
	}
	setFilter(b, `"'`)
	b.expectNoComplaints()
}

func TestReportOfHandMadeTables(t *testing.T) {
	few := NewTable(madeUpRows(1)[:1], Metadata{})
	cases := map[string]struct {
		table *Table
		marks int
	}{
		"no rows":          {NewTable(nil, Metadata{}), 0},
		"one row":          {few, 1},
		"all failed":       {NewTable([]Row{{ID: "a", Status: StatusFailed, Reason: "panic", Error: "boom"}}, Metadata{}), 0},
		"words only":       {readContent(t, "gpu\nh200\nb200\n"), 0},
		"unknown figures":  {readContent(t, "gpu,a,b\nh200,1,2\nb200,2,1\n,3,\n"), 2},
		"a metric of ours": {readContent(t, "gpu,mean_ttft_ms,output_throughput_tok_s\nh200,10,20\nb200,9,30\n"), 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := openReport(t, ReportData{Title: name, Table: c.table})
			if n := eval[int](b, `document.querySelectorAll(".mark-frontier").length`); n != c.marks {
				t.Errorf("%d marks; want %d", n, c.marks)
			}
			b.expectNoComplaints()
		})
	}
}

// TestLargeReportStaysSmooth opens 10,000 points and times what a user does most.
func TestLargeReportStaysSmooth(t *testing.T) {
	if testing.Short() {
		t.Skip("a large report takes seconds")
	}
	var rows []Row
	for seed := uint64(0); len(rows) < 10_000; seed++ {
		rows = append(rows, madeUpRows(seed)...)
	}
	b := openReport(t, ReportData{Title: "Large", Table: NewTable(rows, Metadata{})})
	if n := eval[int](b, `document.querySelectorAll("#table tbody tr").length`); n > 200 {
		t.Errorf("the table has %d elements for rows; want those in view only", n)
	}
	ms := eval[float64](b, `(() => { const f = document.getElementById("filter"); const start = performance.now();
		for (const text of ["k", "kv", "kv_", "workers>=4", ""]) { f.value = text; f.dispatchEvent(new Event("input")); }
		document.querySelector('#table th[data-column="p99_ttft_ms"] button').click(); return performance.now() - start; })()`)
	if ms > 3000 {
		t.Errorf("five filters and a sort took %.0f ms", ms)
	}
	t.Logf("five filters and a sort of %d points took %.0f ms", len(rows), ms)
	b.expectNoComplaints()
}
