package plannerreport

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/results/htmlpage/pagetest"
	"github.com/servegrid/servegrid/results/timeplot"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/metrics"
)

var nan = math.NaN()

// madeUpRecord is a run in which every pool scales up, waits for a worker that starts, and scales down again.
func madeUpRecord(pools []string, ticks, workers int) *planner.Record {
	r := &planner.Record{Pools: pools, Config: planner.DefaultConfig(), TickCount: ticks}
	r.Config.Policy, r.Config.OptimizationTarget, r.Config.EnableLoadScaling = planner.PolicyDynamo, "sla", true
	for range pools {
		r.KVCapacityTokens = append(r.KVCapacityTokens, 1<<20)
		r.InitialWorkers = append(r.InitialWorkers, 1)
	}
	for i := range ticks {
		at := 10_000 * float64(i+1)
		t := planner.Tick{AtMs: at, NowMs: at, LoadScaling: true, ThroughputScaling: i%6 == 5, LoadReason: "no_change", KVHitRate: nan, GPUHours: at / 3.6e6}
		t.Observed = planner.Load{DurationSeconds: nan, Requests: nan, InputTokens: nan, OutputTokens: nan, TTFTMs: nan, ITLMs: nan, KVHitRate: nan}
		t.Predicted = t.Observed
		if t.ThroughputScaling {
			t.Observed = planner.Load{DurationSeconds: 60, Requests: float64(60 + i), InputTokens: 9000, OutputTokens: 90, TTFTMs: float64(200 * i), ITLMs: 20}
			t.Predicted.Requests, t.Predicted.InputTokens, t.Predicted.OutputTokens = float64(70+i), 9500, 95
			t.ThroughputReason = "set_lower_bound"
		}
		for range pools {
			p := planner.PoolTick{Ready: 1, Target: -1, LowerBound: 1 + i/10, LoadReason: "no_change", EstimatedTTFTMs: float64(100 + 30*i), EstimatedITLMs: 12, RequestsPerSecond: nan}
			switch i {
			case 3:
				p.Target, p.LoadReason = 2, "scale_up"
			case 4, 5:
				p.Starting, p.LoadReason = 1, "scaling_in_progress"
			}
			for w := range workers {
				p.Workers = append(p.Workers, planner.WorkerTick{Worker: int32(w), QueuedPrefillTokens: int64(1000 * (i % 7)), DecodeKVTokens: int64(20_000 * (w + 1))})
			}
			t.Pools = append(t.Pools, p)
		}
		r.Ticks = append(r.Ticks, t)
	}
	for pool := range pools {
		r.Decisions = append(r.Decisions, planner.Decision{AtMs: 40_000, Pool: pool, From: 1, To: 2, Reason: "scale_up"})
		for _, e := range []simcore.ScalingEvent{
			{AtMs: 40_000, Kind: simcore.WorkerRequested, Worker: 1}, {AtMs: 65_000, Kind: simcore.WorkerReady, Worker: 1},
			{AtMs: 90_000, Kind: simcore.WorkerDraining, Worker: 1}, {AtMs: 95_000, Kind: simcore.WorkerRemoved, Worker: 1},
			{AtMs: 100_000, Kind: simcore.WorkerRequested, Worker: 2}, {AtMs: 110_000, Kind: simcore.WorkerCancelled, Worker: 2},
		} {
			e.Pool = pool
			r.Events = append(r.Events, e)
		}
	}
	return r
}

func madeUpReport() *simcore.Report {
	return &simcore.Report{
		NumRequests: 900, DurationMs: 205_000, GPUHours: 0.09, TTFT: metrics.Summary{Mean: 700, P90: 1500}, ITL: metrics.Summary{Mean: 20, P90: 30},
		Goodput: &metrics.Goodput{CompletedRequests: 800, SLAAttainment: 800. / 900}, SimulatorVersion: "3", WorkloadDigest: "abc",
	}
}

func render(t *testing.T, d Data) string {
	t.Helper()
	var page, again bytes.Buffer
	if err := Write(&page, d); err != nil {
		t.Fatal(err)
	}
	if err := Write(&again, d); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page.Bytes(), again.Bytes()) {
		t.Error("equal records give different pages")
	}
	return page.String()
}

func titles(charts []timeplot.Chart) string {
	var names []string
	for _, c := range charts {
		names = append(names, c.Title)
	}
	return strings.Join(names, "; ")
}

func TestCharts(t *testing.T) {
	for _, test := range []struct {
		name  string
		pools []string
		want  string
	}{
		{"aggregated", []string{"agg"}, "Workers; Requests; Time to first token; Inter-token latency; Queued prompts; KV cache of decoding requests; Input length; Output length; Cumulative GPU-hours"},
		{"disaggregated", []string{"prefill", "decode"}, "Workers, prefill; Workers, decode; Requests; Time to first token; Inter-token latency; Queued prompts, prefill; KV cache of decoding requests, prefill; Queued prompts, decode; KV cache of decoding requests, decode; Input length; Output length; Cumulative GPU-hours"},
	} {
		v := newView(Data{Record: madeUpRecord(test.pools, 20, 2), Report: madeUpReport()})
		if got := titles(v.charts()); got != test.want {
			t.Errorf("%s: got %s\nwant %s", test.name, got, test.want)
		}
	}
}

// TestT17EachTickHasItsOwnWindow draws requests per second of the window that a tick looks back on, and nothing where nobody looked
// (docs/planner.md, T17).
func TestT17EachTickHasItsOwnWindow(t *testing.T) {
	r := madeUpRecord([]string{"agg"}, 20, 1)
	r.Config.ThroughputAdjustmentIntervalSeconds = 180 // what was meant
	for i := range r.Ticks {
		if r.Ticks[i].ThroughputScaling {
			r.Ticks[i].Observed.DurationSeconds = 50 + float64(i) // what it was
		}
	}
	chart := newView(Data{Record: r, Report: madeUpReport()}).rateChart()
	for k, of := range []float64{60, 70} { // observed, predicted: so many and one more each tick
		s := chart.Series[k]
		if len(s.Values) != 3 {
			t.Fatalf("%s: %d points, want one for each of 3 looks", s.Name, len(s.Values))
		}
		for n, i := range []float64{5, 11, 17} {
			if want := (of + i) / (50 + i); s.AtSeconds[n] != 10*(i+1) || math.Abs(s.Values[n]-want) > 1e-12 {
				t.Errorf("%s: %v a second at %v s, want %v at %v", s.Name, s.Values[n], s.AtSeconds[n], want, 10*(i+1))
			}
		}
	}
}

// TestReplicas follows the workers between ticks.
func TestReplicas(t *testing.T) {
	v := newView(Data{Record: madeUpRecord([]string{"agg"}, 20, 1), Report: madeUpReport()})
	r := v.replicas[0]
	got := fmt.Sprint(r.at, r.ready, r.starting, r.draining)
	const want = "[0 40 65 90 95 100 110] [1 1 2 1 1 1 1] [0 1 0 0 0 1 0] [0 0 0 1 0 0 0]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if mean := r.meanReady(v.end); math.Abs(mean-(205+25)/205.) > 1e-12 || v.end != 205 {
		t.Errorf("mean %v over %v s", mean, v.end)
	}
	v.Events = nil
	if r := v.replicasOf(0); len(r.at) != 20 || r.at[0] != 0 || r.starting[4] != 1 {
		t.Errorf("without events: %v", r)
	}
}

func TestPage(t *testing.T) {
	empty := &planner.Record{Pools: []string{"agg"}, Config: planner.DefaultConfig()}
	threshold := madeUpRecord([]string{"agg"}, 5, 1)
	threshold.Config.OptimizationTarget, threshold.Config.TTFTMs = "throughput", 1500
	for name, test := range map[string]struct {
		data     Data
		contains []string
		most     int
	}{
		"aggregated":    {Data{"<script>alert(1)</script>", madeUpRecord([]string{"agg"}, 20, 2), madeUpReport()}, []string{"asks for more workers", "&lt;script&gt;alert(1)", "88.9"}, 60_000},
		"no report":     {Data{Title: "x", Record: madeUpRecord([]string{"prefill", "decode"}, 20, 2)}, []string{"Prefill workers"}, 70_000},
		"no ticks":      {Data{Title: "x", Record: empty}, []string{"before the planner looked", "There were none."}, 60_000},
		"thresholds":    {Data{Title: "x", Record: threshold}, []string{"have no effect with optimization_target throughput"}, 60_000},
		"many workers":  {Data{Title: "x", Record: madeUpRecord([]string{"agg"}, 700, 64)}, []string{"of 64 workers"}, 200_000},
		"a day of load": {Data{Title: "x", Record: madeUpRecord([]string{"agg"}, 17_280, 2)}, nil, 700_000},
	} {
		t.Run(name, func(t *testing.T) {
			page := render(t, test.data)
			for _, want := range test.contains {
				if !strings.Contains(page, want) {
					t.Errorf("the page lacks %q", want)
				}
			}
			for _, bad := range []string{"src=", "href=", "@import", "ZgotmplZ", "alert(1)</script>"} {
				if strings.Contains(page, bad) {
					t.Errorf("the page has %q", bad)
				}
			}
			if len(page) > test.most {
				t.Errorf("the page has %d bytes; want at most %d", len(page), test.most)
			}
		})
	}
}

func TestReasonsAreExplained(t *testing.T) {
	for _, s := range states {
		if s.Meaning == "" || s.Kind == "" || !strings.HasSuffix(explain(s.Name), s.Meaning) {
			t.Errorf("%+v is not explained", s)
		}
	}
	if got := explain("some_new_reason"); got != "some new reason" {
		t.Error(got)
	}
}

// TestInBrowser moves the cursor, zooms and hides with the pointer and with the keyboard.
func TestInBrowser(t *testing.T) {
	b := pagetest.Open(t, render(t, Data{"Run", madeUpRecord([]string{"prefill", "decode"}, 20, 2), madeUpReport()}))
	if n := pagetest.Eval[int](b, `document.querySelectorAll("#plots .timeplot").length`); n != 12 {
		t.Errorf("%d plots", n)
	}
	text := func(selector string) string {
		return pagetest.Eval[string](b, `document.querySelector("`+selector+`").innerText`)
	}
	x, y := b.Center("#plots .timeplot")
	b.Do(chromedp.MouseEvent("mouseMoved", x, y))
	if n := pagetest.Eval[int](b, `[...document.querySelectorAll(".now")].filter((l) => l.getAttribute("visibility") === "visible").length`); n != 14 {
		t.Errorf("the cursor is in %d of 14 drawings", n)
	}
	if at := text("#cursor"); !strings.HasSuffix(at, " s") {
		t.Errorf("the cursor is at %q", at)
	}
	b.Do(chromedp.MouseEvent("mouseMoved", 2, 2))
	b.Do(chromedp.Focus(chromedp.CSS("#tracks .timeplot")), chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	if at, why := text("#cursor"), text("#tracks .now-text"); at != "40 s" || !strings.Contains(why, "scale up: asks for more workers") {
		t.Errorf("four steps from the start: %q, %q", at, why)
	}
	b.Do(chromedp.KeyEvent("+"), chromedp.KeyEvent("+"))
	zoomed := text("#range")
	if tag := pagetest.Eval[string](b, `document.activeElement.tagName`); !strings.HasSuffix(zoomed, " s") || strings.HasPrefix(zoomed, "Whole") || tag != "svg" {
		t.Errorf("zoomed to %q, focus on %s", zoomed, tag)
	}
	b.Do(chromedp.KeyEvent(kb.Escape))
	if whole := text("#range"); whole != "Whole run, 205 s" {
		t.Errorf("after Escape: %q", whole)
	}
	checkDragging(t, b, text)
	paths := `document.querySelector("#plots .timeplot").querySelectorAll("path.line").length`
	before := pagetest.Eval[int](b, paths)
	b.Do(chromedp.Click(chromedp.CSS("#plots .keys button")))
	if after := pagetest.Eval[int](b, paths); after != before-1 {
		t.Errorf("hiding a series leaves %d of %d lines", after, before)
	}
	b.Do(chromedp.Click(chromedp.CSS("button.moment")))
	if at := text("#cursor"); at != "40 s" {
		t.Errorf("the first decision leads to %q", at)
	}
	pagetest.Eval[bool](b, `(() => { for (const b of document.querySelectorAll("button.log")) b.click(); return true; })()`)
	if bad := pagetest.Eval[int](b, `[...document.querySelectorAll(".timeplot path")].filter((p) => /NaN|Infinity|undefined/.test(p.getAttribute("d"))).length`); bad != 0 {
		t.Errorf("%d paths are broken", bad)
	}
	b.ShowEverywhere()
	b.ExpectNoComplaints()
}

func checkDragging(t *testing.T, b *pagetest.Browser, text func(string) string) {
	t.Helper()
	x, y := b.Center("#plots .timeplot")
	b.Do(chromedp.MouseEvent("mousePressed", x, y, chromedp.ButtonLeft), chromedp.MouseEvent("mouseMoved", x+60, y, chromedp.ButtonLeft), chromedp.MouseEvent("mouseReleased", x+60, y, chromedp.ButtonLeft))
	if zoomed := text("#range"); strings.HasPrefix(zoomed, "Whole") {
		t.Errorf("dragging does not zoom: %q", zoomed)
	}
	b.Do(chromedp.Click(chromedp.CSS("#plots-controls button")))
	if whole := text("#range"); whole != "Whole run, 205 s" {
		t.Errorf("after the button: %q", whole)
	}
}

// TestGoldenRuns makes the page of every recorded run of the reference and compares what is plotted with what the
// reference plotted.
func TestGoldenRuns(t *testing.T) {
	shared := os.Getenv("SHARED_DATA_DIR")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "shared")
	}
	runs, err := filepath.Glob(filepath.Join(shared, "golden/planner/agg121/*/traces.json.gz"))
	if err != nil || len(runs) == 0 {
		t.Skip("needs the recorded planner runs: set SHARED_DATA_DIR to the folder that holds golden/planner")
	}
	for _, path := range runs {
		folder := filepath.Dir(path)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			r := goldenRecord(t, folder)
			page := render(t, Data{Title: filepath.Base(folder), Record: r})
			if len(page) > 150_000 {
				t.Errorf("the page has %d bytes", len(page))
			}
			comparePlots(t, newView(Data{Record: r}), path)
		})
	}
}

// goldenRecord makes a record of a recorded run.
func goldenRecord(t *testing.T, folder string) *planner.Record {
	t.Helper()
	file, err := os.Open(filepath.Join(folder, "ticks.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r := &planner.Record{Pools: []string{"agg"}, Config: planner.DefaultConfig()}
	r.Config.Policy = planner.PolicyDynamo
	decoder := json.NewDecoder(file)
	var head map[string]any
	if err := decoder.Decode(&head); err != nil {
		t.Fatal(err)
	}
	for {
		var tick goldenTick
		if err := decoder.Decode(&tick); err == io.EOF {
			return r
		} else if err != nil {
			t.Fatal(err)
		}
		if tick.Workers == nil {
			if tick.GPUHours != nil {
				r.Ticks[len(r.Ticks)-1].GPUHours = *tick.GPUHours
			}
			continue
		}
		tick.addTo(r)
	}
}

// goldenTick is a line of ticks.jsonl.
type goldenTick struct {
	Tick struct {
		AtS  float64 `json:"at_s"`
		Load bool    `json:"run_load_scaling"`
		TP   bool    `json:"run_throughput_scaling"`
	}
	NowS    float64 `json:"now_s"`
	Traffic *struct {
		DurationS float64 `json:"duration_s"`
		NumReq    float64 `json:"num_req"`
		ISL, OSL  float64
		TTFTMs    *float64 `json:"ttft_ms"`
	}
	Workers *struct {
		Prefill *int `json:"ready_num_prefill"`
		Decode  int  `json:"ready_num_decode"`
	}
	FPMPrefill map[int32][9]float64 `json:"fpm_prefill"`
	FPMDecode  map[int32][9]float64 `json:"fpm_decode"`
	ScaleTo    *struct {
		Prefill *int `json:"num_prefill"`
		Decode  *int `json:"num_decode"`
	} `json:"scale_to"`
	Diag     map[string]any
	GPUHours *float64 `json:"cum_gpu_hours"`
}

func (g *goldenTick) number(key string) float64 {
	if v, ok := g.Diag[key].(float64); ok {
		return v
	}
	return nan
}

func (g *goldenTick) text(key string) string {
	v, _ := g.Diag[key].(string)
	return v
}

func (g *goldenTick) addTo(r *planner.Record) {
	r.TickCount++
	t := planner.Tick{AtMs: 1000 * g.Tick.AtS, NowMs: 1000 * g.NowS, LoadScaling: g.Tick.Load, ThroughputScaling: g.Tick.TP, LoadReason: g.text("load_decision_reason"), ThroughputReason: g.text("throughput_decision_reason"), KVHitRate: nan}
	t.Observed = planner.Load{DurationSeconds: nan, Requests: nan, InputTokens: nan, OutputTokens: nan, TTFTMs: nan, ITLMs: nan, KVHitRate: nan}
	t.Predicted = t.Observed
	t.Predicted.Requests, t.Predicted.InputTokens, t.Predicted.OutputTokens = g.number("predicted_num_req"), g.number("predicted_isl"), g.number("predicted_osl")
	if g.Traffic != nil {
		t.Observed.DurationSeconds, t.Observed.Requests, t.Observed.InputTokens, t.Observed.OutputTokens = g.Traffic.DurationS, g.Traffic.NumReq, g.Traffic.ISL, g.Traffic.OSL
	}
	pool := func(name string, ready int, fpm map[int32][9]float64, target *int) {
		p := planner.PoolTick{Ready: ready, Target: -1, LowerBound: int(max(1, g.number("throughput_lower_bound_"+name))), EstimatedTTFTMs: nan, EstimatedITLMs: nan,
			RequestsPerSecond: g.number("engine_rps_" + name), LoadReason: g.text("load_decision_reason_" + name), ThroughputReason: g.text("throughput_decision_reason_" + name)}
		if name == "prefill" || g.Workers.Prefill == nil {
			p.EstimatedTTFTMs = g.number("estimated_ttft_ms")
		}
		if name == "decode" {
			p.EstimatedITLMs = g.number("estimated_itl_ms")
		}
		if target != nil {
			p.Target = *target
			if *target != ready {
				r.Decisions = append(r.Decisions, planner.Decision{AtMs: t.NowMs, Pool: len(t.Pools), From: ready, To: *target, Reason: p.LoadReason})
			}
		}
		for id := range int32(64) {
			if f, ok := fpm[id]; ok {
				p.Workers = append(p.Workers, planner.WorkerTick{Worker: id, QueuedPrefillTokens: int64(f[5]), DecodeKVTokens: int64(f[3]), QueuedDecodeKVTokens: int64(f[7])})
			}
		}
		t.Pools = append(t.Pools, p)
	}
	var prefillTarget, decodeTarget *int
	if g.ScaleTo != nil {
		prefillTarget, decodeTarget = g.ScaleTo.Prefill, g.ScaleTo.Decode
	}
	if g.Workers.Prefill != nil {
		r.Pools = []string{"prefill", "decode"}
		pool("prefill", *g.Workers.Prefill, g.FPMPrefill, prefillTarget)
	}
	pool("decode", g.Workers.Decode, g.FPMDecode, decodeTarget)
	r.Ticks = append(r.Ticks, t)
}

// comparePlots checks series of the page against those of the reference's page.
func comparePlots(t *testing.T, v *view, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var page struct {
		Traces []struct {
			Name string
			Y    []*float64
		}
	}
	if err := json.NewDecoder(plain).Decode(&page); err != nil {
		t.Fatal(err)
	}
	charts := v.charts()
	compared := 0
	for _, trace := range page.Traces {
		s := findSeries(charts, trace.Name, len(v.Pools) > 1)
		if s == nil || len(trace.Y) != len(v.Ticks) {
			continue
		}
		values := map[float64]float64{}
		for i, at := range s.AtSeconds {
			values[at] = s.Values[i]
		}
		for i, y := range trace.Y {
			if y == nil {
				continue
			}
			if got, known := values[v.at[i]]; known && !math.IsNaN(got) && math.Abs(got-*y) > 1e-9*math.Abs(*y) {
				t.Errorf("%s at tick %d: %v, the reference plots %v", trace.Name, i, got, *y)
			} else if known { // the reference repeats what was observed until the next look
				compared++
			}
		}
	}
	if compared < len(v.Ticks) {
		t.Errorf("only %d values could be compared", compared)
	}
}

// findSeries finds what the reference calls a trace; nil when the page shows it in another way.
func findSeries(charts []timeplot.Chart, trace string, disaggregated bool) *timeplot.Series {
	var title, name string
	switch {
	case trace == "Estimated TTFT":
		title, name = "Time to first token", map[bool]string{false: "estimated, slowest worker", true: "estimated, slowest worker, prefill"}[disaggregated]
	case trace == "Estimated ITL":
		title, name = "Inter-token latency", map[bool]string{false: "estimated, slowest worker", true: "estimated, slowest worker, decode"}[disaggregated]
	case trace == "Predicted ISL":
		title, name = "Input length", "predicted"
	case trace == "Predicted OSL":
		title, name = "Output length", "predicted"
	case trace == "Cumulative GPU Hours":
		title, name = "Cumulative GPU-hours", "all workers"
	case trace == "Decode Engine RPS":
		title, name = "Capacity of a worker", map[bool]string{false: "agg", true: "decode"}[disaggregated]
	case strings.HasSuffix(trace, " total KV"):
		var id int
		if _, err := fmt.Sscanf(trace, "D %d:dp0", &id); err != nil {
			return nil
		}
		title, name = map[bool]string{false: "KV cache of decoding requests", true: "KV cache of decoding requests, decode"}[disaggregated], fmt.Sprintf("worker %d", id)
	default:
		return nil
	}
	for _, c := range charts {
		for i := range c.Series {
			if s := &c.Series[i]; c.Title == title && s.Name == name {
				return s
			}
		}
	}
	return nil
}
