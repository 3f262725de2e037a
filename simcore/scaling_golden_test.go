package simcore

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// recordedTick is what a planner of the reference saw and decided at a tick of a recorded run.
type recordedTick struct {
	Tick struct {
		AtS float64 `json:"at_s"`
	}
	NowS    float64 `json:"now_s"`
	ScaleTo *struct {
		Prefill int `json:"num_prefill"`
		Decode  int `json:"num_decode"`
	} `json:"scale_to"`
	Workers struct {
		Prefill *int `json:"ready_num_prefill"`
		Decode  *int `json:"ready_num_decode"`
	}
	passes [2][]recordedPass
}

// recordedPass is what the reference published of a pass.
type recordedPass struct {
	Worker         int32   `json:"worker_id"`
	WallSeconds    float64 `json:"wall_time"`
	Prefills       int     `json:"num_prefill_requests"`
	PrefillTokens  int64   `json:"sum_prefill_tokens"`
	PrefillVar     float64 `json:"var_prefill_length"`
	PrefillKV      int64   `json:"sum_prefill_kv_tokens"`
	Decodes        int     `json:"num_decode_requests"`
	DecodeKV       int64   `json:"sum_decode_kv_tokens"`
	DecodeVar      float64 `json:"var_decode_kv_tokens"`
	QueuedPrefills int     `json:"num_queued_prefill"`
	QueuedTokens   int64   `json:"sum_queued_prefill_tokens"`
	QueuedDecodes  int     `json:"num_queued_decode"`
	QueuedDecodeKV int64   `json:"sum_queued_decode_kv_tokens"`
}

func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*max(math.Abs(want), 1e-9)
}

func (p recordedPass) equals(want recordedPass) bool {
	if !near(p.WallSeconds, want.WallSeconds, 1e-9) || !near(p.PrefillVar, want.PrefillVar, 1e-9) || !near(p.DecodeVar, want.DecodeVar, 1e-9) {
		return false
	}
	p.WallSeconds, p.PrefillVar, p.DecodeVar = want.WallSeconds, want.PrefillVar, want.DecodeVar
	return p == want
}

// replayed decides as a recorded planner did, and compares what it sees with what that saw.
type replayed struct {
	t      *testing.T
	ticks  []recordedTick
	at     int
	passes [2][]recordedPass
	seen   int
}

func (r *replayed) NextTickMs() float64 {
	if r.at == len(r.ticks) {
		return math.Inf(1)
	}
	return r.ticks[r.at].Tick.AtS * 1000
}

func (r *replayed) Pass(p *PassMetrics) {
	r.passes[p.Pool] = append(r.passes[p.Pool], recordedPass{
		p.Worker, p.WallSeconds, p.PrefillRequests, p.PrefillTokens, p.PrefillVariance, p.PrefillKVTokens, p.DecodeRequests, p.DecodeKVTokens, p.DecodeVariance,
		p.QueuedPrefills, p.QueuedPrefillTokens, p.QueuedDecodes, p.QueuedDecodeKVTokens,
	})
}

func (r *replayed) Tick(nowMs float64, pools []PoolState) []int {
	want := r.ticks[r.at]
	r.compare(nowMs, pools, want)
	r.at++
	r.passes[0], r.passes[1] = r.passes[0][:0], r.passes[1][:0]
	switch {
	case want.ScaleTo == nil:
		return nil
	case len(pools) == 1:
		return []int{want.ScaleTo.Decode}
	}
	return []int{want.ScaleTo.Prefill, want.ScaleTo.Decode}
}

func (r *replayed) compare(nowMs float64, pools []PoolState, want recordedTick) {
	if !near(nowMs, want.NowS*1000, 1e-9) {
		r.t.Errorf("tick %d is at %v ms, want %v", r.at, nowMs, want.NowS*1000)
	}
	ready := []*int{want.Workers.Decode}
	if len(pools) == 2 {
		ready = []*int{want.Workers.Prefill, want.Workers.Decode}
	}
	for i, p := range pools {
		if len(p.Ready) != *ready[i] {
			r.t.Errorf("tick %d: pool %d has %d ready workers, want %d", r.at, i, len(p.Ready), *ready[i])
		}
		got, recorded := r.passes[i], want.passes[i]
		if recorded == nil {
			continue
		}
		if len(got) != len(recorded) {
			r.t.Errorf("tick %d: %d passes of pool %d, want %d", r.at, len(got), i, len(recorded))
		}
		for k := range min(len(got), len(recorded)) {
			if r.seen++; !got[k].equals(recorded[k]) {
				r.t.Errorf("tick %d, pass %d of pool %d:\n got %+v\nwant %+v", r.at, k, i, got[k], recorded[k])
				break
			}
		}
	}
}

// TestRecordedScaling lets workers come and go as in recorded runs of the reference 1.2.1, whose engines had the polynomial
// timing model. The times of all ticks, every pass where they were recorded, and the report agree.
func TestRecordedScaling(t *testing.T) {
	root := filepath.Join(cmp.Or(os.Getenv("SHARED_DATA_DIR"), "../../shared"), "golden", "planner")
	if _, err := os.Stat(root); err != nil {
		t.Skip("needs the recorded planner runs: set SHARED_DATA_DIR to the folder that holds golden/planner")
	}
	const wave = "wave900req.jsonl"
	for _, test := range []struct {
		run, trace string
		startup    float64
		blocks     int // of the KV pool; 0 means the default
	}{
		{"a01_conv300_sla_both", "conv300.jsonl", 0, 0},
		{"a02_wave_sla_both_startup40", wave, 40, 0},
		{"a03_wave_loadonly_startup30", wave, 30, 0},
		{"a04_wave_tponly_constant_startup90", wave, 90, 0},
		{"a05_wave_tponly_kalman", wave, 0, 0},
		{"a06_wave_tponly_arima", wave, 0, 0},
		{"a07_wave_tponly_prophet", wave, 0, 0},
		{"a08_wave_easy_throughput", wave, 0, 2048},
		{"a09_wave_easy_latency_startup20", wave, 20, 2048},
		{"a10_wave_none_numgpu_trap", wave, 20, 2048},
		{"a11_wave_maxbudget2", wave, 0, 0},
		{"a12_wave_minendpoint2_minbudget3", wave, 0, 0},
		{"a20_wave1200_startup40_ticks", "wave1200.jsonl", 40, 0},
		{"d01_wave_disagg_sla_both_startup30", wave, 30, 0},
		{"d02_wave_disagg_easy_throughput", wave, 0, 2048},
		{"d03_conv_disagg_sla_tponly", "conv300.jsonl", 0, 0},
		{"d04_wave_disagg_easy_latency_startup20_cancels", wave, 20, 2048},
	} {
		t.Run(test.run, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Compat, cfg.Deployment.Workers, cfg.Timing.Source = rules.Dynamo12, 2, perfmodel.SourcePolynomial
			cfg.Engine.StartupTime, cfg.Engine.NumGPUBlocks = test.startup, test.blocks
			if test.run[0] == 'd' {
				cfg.Deployment = Deployment{Mode: ModeDisaggregated, PrefillWorkers: 1, DecodeWorkers: 1}
				cfg.Prefill, cfg.Decode = Stage{cfg.Engine, cfg.Timing}, Stage{cfg.Engine, cfg.Timing}
			}
			w := load(t, workload.Spec{Trace: &workload.TraceSpec{Path: filepath.Join(root, "inputs", test.trace), Format: workload.FormatMooncake, BlockSize: 512}}, cfg)
			dir := filepath.Join(root, "agg121", test.run)
			scaler := &replayed{t: t, ticks: readTicks(t, dir)}
			r, err := Run(context.Background(), cfg, w, Options{Autoscaler: scaler})
			if err != nil {
				t.Fatal(err)
			}
			compareReport(t, r, scaler, filepath.Join(dir, "report.json"))
			t.Logf("%d passes compared", scaler.seen)
		})
	}
}

func compareReport(t *testing.T, r *Report, scaler *replayed, path string) {
	t.Helper()
	if scaler.at != len(scaler.ticks) {
		t.Errorf("%d ticks, want %d", scaler.at, len(scaler.ticks))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]float64
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, f := range metrics.Fields() {
		expected, recorded := want[f.Name]
		if got, ok := f.Value(r); recorded && ok {
			if compared++; !near(got, expected, 1e-9) {
				t.Errorf("%s is %v, want %v", f.Name, got, expected)
			}
		}
	}
	if compared < 50 {
		t.Errorf("only %d figures compared", compared)
	}
}

// readTicks reads the ticks of a recorded run, with their passes where there are any.
func readTicks(t *testing.T, dir string) []recordedTick {
	t.Helper()
	var ticks []recordedTick
	lines := openLines(t, filepath.Join(dir, "ticks.jsonl"))
	for lines.Scan() {
		var tick recordedTick
		if !bytes.HasPrefix(lines.Bytes(), []byte(`{"tick"`)) {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &tick); err != nil {
			t.Fatal(err)
		}
		ticks = append(ticks, tick)
	}
	if _, err := os.Stat(filepath.Join(dir, "fpm.jsonl.gz")); err != nil {
		return ticks
	}
	lines = openLines(t, filepath.Join(dir, "fpm.jsonl"))
	for i := 0; lines.Scan() && i < len(ticks); i++ {
		var passes struct{ Prefill, Decode []recordedPass }
		if err := json.Unmarshal(lines.Bytes(), &passes); err != nil {
			t.Fatal(err)
		}
		if ticks[i].passes = [2][]recordedPass{passes.Prefill, passes.Decode}; ticks[i].Workers.Prefill == nil {
			ticks[i].passes = [2][]recordedPass{passes.Decode}
		}
	}
	return ticks
}

// openLines returns the lines of a file, which may be compressed.
func openLines(t *testing.T, path string) *bufio.Scanner {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		if data, err = os.ReadFile(path + ".gz"); err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(z)
		lines.Buffer(nil, 1<<28)
		return lines
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<28)
	return lines
}
