package gridspec

import "testing"

func TestStatesDeployment(t *testing.T) {
	const workload = "workload: {synthetic: {input_tokens: 16, output_tokens: 2, requests: 3}}\n"
	for _, c := range []struct {
		text string
		set  []string
		want bool
	}{
		{workload, nil, false},
		{workload + "load: {mode: rate, rate: 3}\nsla: {ttft_ms: 5}\n", nil, false},
		{workload + "deployment: {workers: 2}\n", nil, true},
		{workload + "grid: {timing.prefill_ms: [1, 2]}\n", nil, true},
		{workload + "grid: {load.speedup: [1, 2]}\n", nil, false},
		{workload, []string{"engine.block_size=16"}, true},
	} {
		spec, err := Load(Source{Path: "s.yaml", Data: []byte(c.text), Format: YAML, Set: c.set, Dir: "."})
		if err != nil {
			t.Fatal(err)
		}
		if got := spec.StatesDeployment(); got != c.want {
			t.Errorf("%q with %v: got %v, want %v", c.text, c.set, got, c.want)
		}
	}
}
