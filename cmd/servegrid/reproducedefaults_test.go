package main

import (
	"testing"

	"github.com/servegrid/servegrid/gridspec"
)

// A setting that is the default by itself but not with others of the point is in its command.
func TestReproduceDefaultsThatCount(t *testing.T) {
	const gpu = "timing: {gpu: h200_sxm, model: llama-3.1-8b}"
	for _, settings := range []string{
		"engine: {type: sglang, block_size: 64}",
		"engine: {type: trtllm, block_size: 64}",
		"engine: {num_gpu_blocks: 16384}\n" + gpu,
		"timing: {source: polynomial, gpu: h200_sxm}",
		"compat: dynamo-1.3\ndeployment: {mode: disaggregated}\nengine: {kv_transfer_timing_mode: destination_missing}",
		"deployment: {mode: disaggregated}\ndecode: {engine: {num_gpu_blocks: 16384}}\n" + gpu,
	} {
		s, err := gridspec.Load(gridspec.Source{Data: []byte("workload: {preset: {name: chat}}\n" + settings)})
		if err != nil {
			t.Fatal(err)
		}
		points, err := s.Expand(gridspec.ExpandOptions{})
		if err != nil {
			t.Fatal(err)
		}
		command := reproduceCommand(points[0])
		again, err := pointOfCommand(nil, command)
		if err != nil {
			t.Errorf("%s: %v", command, err)
		} else if again.ContentID("w") != points[0].ContentID("w") {
			t.Errorf("another point than %q: %s", settings, command)
		}
	}
}
