package planner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/rules"
)

// writeTrace writes a trace and returns its path.
func writeTrace(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "past.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPastTraffic(t *testing.T) {
	path := writeTrace(t,
		`{"timestamp": 5000, "input_length": 100, "output_length": 10, "hash_ids": [1]}`,
		`{"timestamp": 14999, "input_length": 300, "output_length": 30, "hash_ids": [2]}`,
		`{"timestamp": 15000, "input_length": 50, "output_length": 5, "hash_ids": [3]}`,
		`{"timestamp": 39000, "input_length": 70, "output_length": 7, "hash_ids": [4]}`,
	)
	p, err := pastTraffic(context.Background(), path, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		got, want []float64
	}{
		{"requests", p.requests, []float64{2, 1, 0, 1}},
		{"input", p.inputTokens, []float64{200, 50, 50, 70}},
		{"output", p.outputTokens, []float64{20, 5, 5, 7}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

// TestWarmUp checks that the predictors know the load of the warm-up trace before the first request comes, by our rules
// only (T19).
func TestWarmUp(t *testing.T) {
	path := writeTrace(t, `{"timestamp": 0, "input_length": 100, "output_length": 10, "hash_ids": [1]}`)
	for compat, want := range map[rules.Compat]float64{"": 1, rules.Dynamo13: 0, rules.Dynamo12: 0} {
		config := testSLA()
		config.EnableThroughputScaling, config.LoadPredictorWarmupTrace = true, path
		core := newTestCore(t, config, compat, poolSetup{kind: aggregatedPool, limits: testLimits, gpus: 1})
		if err := core.warm(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := core.requests.Forecast(); got != want {
			t.Errorf("%q: %v requests are expected, want %v", compat, got, want)
		}
		// Zeros before the first request of the simulation are no load that has gone down.
		core.observe(&Load{DurationSeconds: 180})
		if got := core.requests.Forecast(); got != want {
			t.Errorf("%q: after an idle interval %v requests are expected, want %v", compat, got, want)
		}
	}
}

func TestWarmUpSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct{ path, want string }{
		"no file":    {filepath.Join(t.TempDir(), "gone.jsonl"), "gone.jsonl"},
		"not JSON":   {writeTrace(t, "nonsense"), "format is not recognised"},
		"no times":   {writeTrace(t, `{"input_length": 100, "output_length": 10, "hash_ids": [1]}`), "says when it arrived"},
		"very long":  {writeTrace(t, `{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [1]}`, `{"timestamp": 1e14, "input_length": 1, "output_length": 1, "hash_ids": [1]}`), "shorter"},
		"empty file": {writeTrace(t), "did not contain any requests"},
	} {
		config := testSLA()
		config.EnableThroughputScaling, config.LoadPredictorWarmupTrace = true, c.path
		core := newTestCore(t, config, "", poolSetup{kind: aggregatedPool, limits: testLimits, gpus: 1})
		err := core.warm(context.Background())
		var l problem.List
		if !errors.As(err, &l) || !strings.Contains(err.Error(), "planner.load_predictor_warmup_trace") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
