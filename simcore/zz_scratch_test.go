package simcore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

type scratch struct {
	replayed
	raw  []map[string]map[string][]float64
	last [2]map[int32]PassMetrics
}

func (r *scratch) Pass(p *PassMetrics) { r.last[p.Pool][p.Worker] = *p }

func (r *scratch) Tick(now float64, pools []PoolState) []int {
	at := r.at
	for i, key := range []string{"fpm_prefill", "fpm_decode"} {
		for w, v := range r.raw[at][key] {
			id, _ := strconv.Atoi(w)
			p := r.last[i][int32(id)]
			got := []float64{float64(p.PrefillRequests), float64(p.PrefillTokens), float64(p.DecodeRequests), float64(p.DecodeKVTokens), float64(p.QueuedPrefills), float64(p.QueuedPrefillTokens), float64(p.QueuedDecodes), float64(p.QueuedDecodeKVTokens)}
			if fmt.Sprint(got) != fmt.Sprint(v[:8]) {
				r.t.Errorf("tick %d now %v %s worker %d: got %v start %v want %v", at, now, key, id, got, p.StartMs, v)
			}
		}
	}
	return r.replayed.Tick(now, pools)
}

func TestScratch(t *testing.T) {
	for _, run := range []string{"d02_wave_disagg_easy_throughput", "d04_wave_disagg_easy_latency_startup20_cancels"} {
		root := "../../shared/golden/planner"
		cfg := DefaultConfig()
		cfg.Compat, cfg.Timing.Source = rules.Dynamo12, perfmodel.SourcePolynomial
		cfg.Engine.NumGPUBlocks = 2048
		if run[2] == '4' {
			cfg.Engine.StartupTime = 20
		}
		cfg.Deployment = Deployment{Mode: ModeDisaggregated, PrefillWorkers: 1, DecodeWorkers: 1}
		cfg.Prefill, cfg.Decode = Stage{cfg.Engine, cfg.Timing}, Stage{cfg.Engine, cfg.Timing}
		w := load(t, workload.Spec{Trace: &workload.TraceSpec{Path: filepath.Join(root, "inputs", "wave900req.jsonl"), Format: workload.FormatMooncake, BlockSize: 512}}, cfg)
		dir := filepath.Join(root, "agg121", run)
		s := &scratch{replayed: replayed{t: t, ticks: readTicks(t, dir)}}
		s.last = [2]map[int32]PassMetrics{{}, {}}
		lines := openLines(t, filepath.Join(dir, "ticks.jsonl"))
		for lines.Scan() {
			if !bytes.HasPrefix(lines.Bytes(), []byte(`{"tick"`)) {
				continue
			}
			var raw map[string]json.RawMessage
			json.Unmarshal(lines.Bytes(), &raw)
			m := map[string]map[string][]float64{}
			for _, k := range []string{"fpm_prefill", "fpm_decode"} {
				var x map[string][]float64
				json.Unmarshal(raw[k], &x)
				m[k] = x
			}
			s.raw = append(s.raw, m)
		}
		if _, err := Run(context.Background(), cfg, w, Options{Autoscaler: s}); err != nil {
			t.Fatal(err)
		}
	}
}
