package results_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// TestWriteInferenceX checks keys, units and what is left out.
func TestWriteInferenceX(t *testing.T) {
	table := &results.Table{Metadata: results.Metadata{Constants: map[string]any{"timing.model": "qwen3-32b", "timing.tp": 2, "timing.dtype": ""}}}
	add := func(name string, kind gridspec.Kind, values ...any) {
		c := results.NewColumn(name, kind, 2)
		for row, v := range values {
			switch v := v.(type) {
			case string:
				c.Set(row, gridspec.Value{Kind: kind, Str: v})
			case int:
				c.Set(row, gridspec.Value{Kind: kind, Int: int64(v)})
			case float64:
				c.Set(row, gridspec.Value{Kind: kind, Float: v})
			}
		}
		table.Add(c)
	}
	add("status", gridspec.KindString, "ok", "failed")
	add("gpu", gridspec.KindString, "h200_sxm", "b200_sxm")
	add("concurrency", gridspec.KindInt, 16, 32)
	add("p90_ttft_ms", gridspec.KindFloat, 250.)
	add("p90_e2e_per_output_token_ms", gridspec.KindFloat, 20.)
	add("median_tpot_ms", gridspec.KindFloat, 12.5)
	add("std_tpot_ms", gridspec.KindFloat, 2.)
	add("total_throughput_tok_s_per_gpu", gridspec.KindFloat, 1234.5)
	add("duration_ms", gridspec.KindFloat, 1_800_000.)
	add("num_requests", gridspec.KindInt, 10)
	add("completed_requests", gridspec.KindInt, 9)
	var out bytes.Buffer
	if err := results.WriteInferenceX(&out, table); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{{
		"hw": "h200_sxm", "model": "qwen3-32b", "tp": 2., "conc": 16., "p90_ttft": .25, "p90_e2e_norm_intvty": 50., "p50_tpot": .0125, "p50_intvty": 80., "std_tpot": .002,
		"tput_per_gpu": 1234.5, "duration": 1800., "request_accounting": map[string]any{"issued": 10., "completed": 9.},
	}}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
