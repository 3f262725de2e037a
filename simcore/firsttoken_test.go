package simcore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/workload"
)

// TestFirstTokensThatAreDecoded replays three runs of the newest peer in which the first token does not come out of
// computing the prompt: when TensorRT-LLM finds all of it cached, and on decode workers. Prefill takes 30 ms, decode 8 ms.
func TestFirstTokensThatAreDecoded(t *testing.T) {
	type times struct{ Admitted, First, Last float64 }
	twice := `{"timestamp":0,"input_length":128,"output_length":2,"hash_ids":[1,2]}
{"timestamp":200,"input_length":128,"output_length":2,"hash_ids":[1,2]}
`
	apart := `{"timestamp":0,"input_length":100,"output_length":4,"hash_ids":[1,2]}
{"timestamp":5,"input_length":100,"output_length":4,"hash_ids":[3,4]}
`
	for _, c := range []struct {
		name, trace, engine, mode string
		want                      []times
	}{
		{"vLLM computes the last block again", twice, engine.TypeVLLM, ModeAggregated, []times{{0, 30, 38}, {200, 230, 238}}},
		{"TensorRT-LLM computes nothing", twice, engine.TypeTensorRTLLM, ModeAggregated, []times{{0, 30, 38}, {200, 208, 216}}},
		{"vLLM in pools", apart, engine.TypeVLLM, ModeDisaggregated, []times{{0, 38, 62}, {30, 70, 94}}},
		{"SGLang in pools", apart, engine.TypeSGLang, ModeDisaggregated, []times{{0, 38, 62}, {30, 70, 94}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Deployment.Mode = c.mode
			cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = "fixed", 30, 8
			cfg.Engine.Type, cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = c.engine, 16, 100
			for _, s := range []*Stage{&cfg.Prefill, &cfg.Decode} {
				s.Engine, s.Timing = cfg.Engine, cfg.Timing
			}
			path := filepath.Join(t.TempDir(), "trace.jsonl")
			if err := os.WriteFile(path, []byte(c.trace), 0o666); err != nil {
				t.Fatal(err)
			}
			spec := workload.DefaultTraceSpec()
			spec.Path, spec.BlockSize = path, 64
			_, records := mustRun(t, cfg, load(t, workload.Spec{Trace: &spec}, cfg))
			var got []times
			for _, r := range records {
				got = append(got, times{r.Life.AdmittedMs, r.Life.FirstTokenMs, r.Life.LastTokenMs})
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("times differ (-want +got):\n%s", diff)
			}
		})
	}
}
