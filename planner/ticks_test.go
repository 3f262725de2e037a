package planner

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore/rules"
)

// loggedRun is a run of the reference's planner, tick by tick. Some runs have every pass, the others only the newest of each
// worker and what the model had learned (testdata/README.md).
type loggedRun struct {
	Run          string
	Config       loggedConfig
	Capabilities map[string]*loggedLimits
	Bootstrap    map[string][][5]float64
	ticks        []loggedTick
}

type loggedConfig struct {
	Mode                         string   `json:"mode"`
	OptimizationTarget           string   `json:"optimization_target"`
	TTFT                         *float64 `json:"ttft"`
	ITL                          *float64 `json:"itl"`
	EnableThroughputScaling      *bool    `json:"enable_throughput_scaling"`
	EnableLoadScaling            *bool    `json:"enable_load_scaling"`
	ThroughputAdjustmentInterval *int     `json:"throughput_adjustment_interval"`
	LoadAdjustmentInterval       *int     `json:"load_adjustment_interval"`
	LoadPredictor                *string  `json:"load_predictor"`
	MinEndpoint                  *int     `json:"min_endpoint"`
	MinGPUBudget                 *int     `json:"min_gpu_budget"`
	MaxGPUBudget                 *int     `json:"max_gpu_budget"`
}

type loggedLimits struct {
	MaxNumBatchedTokens int64 `json:"max_num_batched_tokens"`
	MaxNumSeqs          int64 `json:"max_num_seqs"`
	MaxKVTokens         int64 `json:"max_kv_tokens"`
}

type loggedTick struct {
	At, Now         float64
	Load, TP        bool
	Ready, Expected [2]*int
	Traffic         *[5]float64
	FPMPrefill      [][8]int64 `json:"fpm_prefill"`
	FPMDecode       [][8]int64 `json:"fpm_decode"`
	SeenPrefill     seenPasses `json:"seen_prefill"`
	SeenDecode      seenPasses `json:"seen_decode"`
	Model           map[string]modelState
	Want            loggedWant
}

type loggedWant struct {
	EstimatedTTFT    *float64                   `json:"estimated_ttft_ms"`
	EstimatedITL     *float64                   `json:"estimated_itl_ms"`
	PredictedNumReq  *float64                   `json:"predicted_num_req"`
	PredictedISL     *float64                   `json:"predicted_isl"`
	PredictedOSL     *float64                   `json:"predicted_osl"`
	PredictedHitRate *float64                   `json:"predicted_kv_hit_rate"`
	EnginePrefill    *float64                   `json:"engine_rps_prefill"`
	EngineDecode     *float64                   `json:"engine_rps_decode"`
	BoundPrefill     *int                       `json:"throughput_lower_bound_prefill"`
	BoundDecode      *int                       `json:"throughput_lower_bound_decode"`
	Load             string                     `json:"load_decision_reason"`
	LoadPrefill      string                     `json:"load_decision_reason_prefill"`
	LoadDecode       string                     `json:"load_decision_reason_decode"`
	TP               string                     `json:"throughput_decision_reason"`
	TPPrefill        string                     `json:"throughput_decision_reason_prefill"`
	TPDecode         string                     `json:"throughput_decision_reason_decode"`
	ScaleTo          *[2]*int                   `json:"scale_to"`
	Next             float64                    `json:"next"`
	Model            map[string]json.RawMessage `json:"model"`
}

// seenPasses are passes by worker, in the order of the planner's cache.
type seenPasses []pass

func (s *seenPasses) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(strings.NewReader(string(b)))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		worker, err := strconv.Atoi(key.(string))
		if err != nil {
			return err
		}
		var row [7]int64
		if err := d.Decode(&row); err != nil {
			return err
		}
		*s = append(*s, passOfRow([8]int64{int64(worker), row[0], row[1], row[2], row[3], row[4], row[5], row[6]}))
	}
	return nil
}

// passOfRow reads worker, prefills and their tokens, decodes and their tokens, queued tokens of both, and ns.
func passOfRow(row [8]int64) pass {
	return pass{
		worker: int32(row[0]), prefills: row[1], prefillTokens: row[2], decodes: row[3], decodeTokens: row[4],
		queuedPrefillTokens: row[5], queuedDecodeTokens: row[6], wallSeconds: float64(row[7]) / 1e9,
	}
}

// modelState is what a regression had learned: whether it was fitted, the number of samples, slopes, intercept, and the means.
type modelState struct {
	fitted                                           bool
	count                                            int
	plane                                            plane
	promptTokens, contextTokens, passTokens, decodes float64
}

func (m *modelState) UnmarshalJSON(b []byte) error {
	var slopes []float64
	if err := json.Unmarshal(b, &[]any{
		&m.fitted, &m.count, &slopes, &m.plane.intercept, &m.promptTokens, &m.contextTokens, &m.passTokens, &m.decodes,
	}); err != nil {
		return err
	}
	copy(m.plane.slope[:], slopes)
	return nil
}

// toldModel is a regression that is told what it has learned.
type toldModel struct {
	regression
	next *modelState
}

func (m *toldModel) observe([]pass) {
	if m.next == nil {
		return
	}
	m.fitted, m.ready, m.stale, m.kept.count = m.next.plane, m.next.fitted, false, m.next.count
	m.promptTokens, m.contextTokens = always(m.next.promptTokens), always(m.next.contextTokens)
	m.passTokens, m.decodes = always(m.next.passTokens), always(m.next.decodes)
	m.next = nil
}

func readLoggedRun(t testing.TB, path string) *loggedRun {
	t.Helper()
	lines := bufio.NewScanner(openRecorded(t, path))
	lines.Buffer(nil, 64<<20)
	var run loggedRun
	for first := true; lines.Scan(); first = false {
		var tick loggedTick
		var into any = &tick
		if first {
			into = &run
		}
		if err := json.Unmarshal(lines.Bytes(), into); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if !first {
			run.ticks = append(run.ticks, tick)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return &run
}

// newCore makes the core that plays the run.
func (r *loggedRun) newCore(t testing.TB) *core {
	c := DefaultConfig()
	set := func(to any, from any) {
		switch from := from.(type) {
		case *float64:
			if from != nil {
				*to.(*float64) = *from
			}
		case *int:
			if from != nil {
				*to.(*int) = *from
			}
		case *bool:
			if from != nil {
				*to.(*bool) = *from
			}
		case *string:
			if from != nil {
				*to.(*string) = *from
			}
		}
	}
	l := &r.Config
	c.Policy, c.OptimizationTarget = PolicyDynamo, l.OptimizationTarget
	set(&c.TTFTMs, l.TTFT)
	set(&c.ITLMs, l.ITL)
	set(&c.EnableThroughputScaling, l.EnableThroughputScaling)
	set(&c.EnableLoadScaling, l.EnableLoadScaling)
	set(&c.ThroughputAdjustmentIntervalSeconds, l.ThroughputAdjustmentInterval)
	set(&c.LoadAdjustmentIntervalSeconds, l.LoadAdjustmentInterval)
	set(&c.LoadPredictor, l.LoadPredictor)
	set(&c.MinEndpoint, l.MinEndpoint)
	set(&c.MinGPUBudget, l.MinGPUBudget)
	set(&c.MaxGPUBudget, l.MaxGPUBudget)
	var setups []poolSetup
	for _, kind := range r.kinds() {
		capabilities := r.Capabilities["decode"]
		if kind == prefillPool {
			capabilities = r.Capabilities["prefill"]
		}
		s := poolSetup{kind: kind, gpus: 1, workers: r.workers(0, kind), limits: limits{
			batchedTokens: capabilities.MaxNumBatchedTokens, sequences: capabilities.MaxNumSeqs, kvTokens: capabilities.MaxKVTokens,
		}}
		for _, p := range r.Bootstrap[kindName(kind)] {
			s.known = append(s.known, pass{
				prefills: int64(p[0]), prefillTokens: int64(p[1]), decodes: int64(p[2]), decodeTokens: int64(p[3]), wallSeconds: p[4],
			})
		}
		setups = append(setups, s)
	}
	out, err := newCore(c, rulesFor(rules.Dynamo12), setups)
	if err != nil {
		t.Fatal(err)
	}
	if r.told() {
		for _, p := range out.pools {
			if p.model != nil {
				p.model = &toldModel{regression: *p.model.(*regression)}
			}
		}
	}
	return out
}

// told reports whether the run's models are told what they learned.
func (r *loggedRun) told() bool {
	return slices.ContainsFunc(r.ticks, func(t loggedTick) bool { return t.Model != nil })
}

func kindName(kind poolKind) string { return [...]string{"agg", "prefill", "decode"}[kind] }

func (r *loggedRun) kinds() []poolKind {
	if r.Config.Mode == "agg" {
		return []poolKind{aggregatedPool}
	}
	return []poolKind{prefillPool, decodePool}
}

// workers is the number of ready workers at a tick.
func (r *loggedRun) workers(tick int, kind poolKind) int {
	if kind == prefillPool {
		return *r.ticks[tick].Ready[0]
	}
	return *r.ticks[tick].Ready[1]
}

// input is what the planner sees at a tick.
func (r *loggedRun) input(i int, c *core) *tickInput {
	t := &r.ticks[i]
	in := &tickInput{atMs: t.At * 1000, nowMs: t.Now * 1000, load: t.Load, throughput: t.TP}
	if v := t.Traffic; v != nil {
		in.traffic = &Load{DurationSeconds: v[0], Requests: v[1], InputTokens: v[2], OutputTokens: v[3], KVHitRate: v[4],
			TTFTMs: math.NaN(), ITLMs: math.NaN()}
	}
	for k, kind := range r.kinds() {
		rows, seen := t.FPMDecode, t.SeenDecode
		if kind == prefillPool {
			rows, seen = t.FPMPrefill, t.SeenPrefill
		}
		p := poolInput{passes: seen}
		for _, row := range rows {
			p.passes = append(p.passes, passOfRow(row))
		}
		for id := range r.workers(i, kind) {
			p.ready = append(p.ready, int32(id)) // the reference knows their number only
		}
		in.pools = append(in.pools, p)
		if m, ok := t.Model[kindName(kind)]; ok {
			c.pools[k].model.(*toldModel).next = &m
		}
	}
	return in
}

// TestLoggedTicks plays the runs of the reference's planner tick by tick: what it decided, why, and what it reckoned.
func TestLoggedTicks(t *testing.T) {
	playLoggedRuns(t, filepath.Join("testdata", "ticks"))
}

// TestLoggedTicksOfSharedData does the same with every pass of the longest run, which is not in testdata.
func TestLoggedTicksOfSharedData(t *testing.T) {
	dir := os.Getenv("SHARED_DATA_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	dir = filepath.Join(dir, "golden", "planner", "ticks")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("needs the shared data (SHARED_DATA_DIR): ", err)
	}
	playLoggedRuns(t, dir)
}

func playLoggedRuns(t *testing.T, dir string) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	if err != nil || len(paths) != 19 {
		t.Fatalf("%d runs in %s, want 19 (%v)", len(paths), dir, err)
	}
	ticks := 0
	for _, path := range paths {
		run := readLoggedRun(t, path)
		ticks += len(run.ticks)
		t.Run(run.Run, func(t *testing.T) {
			c := run.newCore(t)
			wrong := 0
			for i := range run.ticks {
				if diff := run.playTick(i, c); len(diff) > 0 {
					if wrong++; wrong <= 5 {
						t.Errorf("tick %d at %g s: %s", i, run.ticks[i].Now, strings.Join(diff, "; "))
					}
				}
			}
			if wrong > 0 {
				t.Errorf("%d of %d ticks differ", wrong, len(run.ticks))
			}
		})
	}
	if ticks != 848 {
		t.Errorf("%d ticks, want 848", ticks)
	}
}

// playTick lets the core decide, and returns what differs from the log.
func (r *loggedRun) playTick(i int, c *core) (diff []string) {
	check := func(name string, ok bool, got, want any) {
		if !ok {
			diff = append(diff, fmt.Sprintf("%s %v, want %v", name, got, want))
		}
	}
	number := func(name string, got float64, want *float64) {
		if want != nil {
			check(name, math.Abs(got-*want) <= 1e-8*math.Abs(*want), got, *want)
		}
	}
	want := &r.ticks[i].Want
	in := r.input(i, c)
	for k, kind := range r.kinds() {
		expected, p := r.ticks[i].Expected[1], c.pools[k]
		if kind == prefillPool {
			expected = r.ticks[i].Expected[0]
		}
		got := len(in.pools[k].ready)
		if p.target >= 0 {
			got = p.target
		}
		check("expected workers", got == *expected, got, *expected)
	}
	merged := in.load && in.throughput
	got, _ := c.tick(in)
	first, last := got.Pools[0], got.Pools[len(got.Pools)-1]
	number("TTFT", first.EstimatedTTFTMs, want.EstimatedTTFT)
	number("ITL", last.EstimatedITLMs, want.EstimatedITL)
	if r.Config.LoadPredictor == nil || *r.Config.LoadPredictor == "constant" || *r.Config.LoadPredictor == "kalman" {
		number("predicted requests", got.Predicted.Requests, want.PredictedNumReq)
		number("predicted input", got.Predicted.InputTokens, want.PredictedISL)
		number("predicted output", got.Predicted.OutputTokens, want.PredictedOSL)
		number("predicted hit rate", got.Predicted.KVHitRate, want.PredictedHitRate)
		if !merged || !r.told() { // a told model does not know what it had learned in between
			number("prefill rate", first.RequestsPerSecond, want.EnginePrefill)
			number("decode rate", last.RequestsPerSecond, want.EngineDecode)
		}
	}
	if want.BoundDecode != nil {
		check("decode bound", last.LowerBound == *want.BoundDecode, last.LowerBound, *want.BoundDecode)
	}
	if want.BoundPrefill != nil && len(got.Pools) > 1 {
		check("prefill bound", first.LowerBound == *want.BoundPrefill, first.LowerBound, *want.BoundPrefill)
	}
	check("load reason", got.LoadReason == want.Load, got.LoadReason, want.Load)
	check("throughput reason", got.ThroughputReason == want.TP, got.ThroughputReason, want.TP)
	if len(got.Pools) > 1 {
		check("prefill load reason", want.LoadPrefill == "" || first.LoadReason == want.LoadPrefill, first.LoadReason, want.LoadPrefill)
		check("decode load reason", want.LoadDecode == "" || last.LoadReason == want.LoadDecode, last.LoadReason, want.LoadDecode)
		check("prefill throughput reason", want.TPPrefill == "" || first.ThroughputReason == want.TPPrefill, first.ThroughputReason, want.TPPrefill)
		check("decode throughput reason", want.TPDecode == "" || last.ThroughputReason == want.TPDecode, last.ThroughputReason, want.TPDecode)
	}
	scaleTo := []int{-1, -1}
	if want.ScaleTo != nil {
		for k, v := range want.ScaleTo {
			if v != nil {
				scaleTo[k] = *v
			}
		}
	}
	targets := []int{-1, last.Target}
	if len(got.Pools) > 1 {
		targets[0] = first.Target
	}
	check("targets", slices.Equal(targets, scaleTo), targets, scaleTo)
	r.checkModels(want, c, check)
	return diff
}

// checkModels compares what the models have learned.
func (r *loggedRun) checkModels(want *loggedWant, c *core, check func(name string, ok bool, got, want any)) {
	for k, kind := range r.kinds() {
		raw, ok := want.Model[kindName(kind)]
		if !ok {
			continue
		}
		var count int
		var slopes []float64
		var intercept float64
		if err := json.Unmarshal(raw, &[]any{&count, &slopes, &intercept}); err != nil {
			check("model", false, err, nil)
			continue
		}
		m := c.pools[k].model.(*regression)
		m.fit()
		check("samples", m.kept.count == count, m.kept.count, count)
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-5*math.Abs(b)+1e-15 }
		check("intercept", near(m.fitted.intercept, intercept), m.fitted.intercept, intercept)
		for d, slope := range slopes {
			check("slope", near(m.fitted.slope[d], slope), m.fitted.slope[d], slope)
		}
	}
}
