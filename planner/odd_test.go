package planner

import (
	"context"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// TestOddSettings runs with settings that the reference does not check: by its rules they give a result, by the default an
// error that names them.
func TestOddSettings(t *testing.T) {
	for key, change := range map[string]func(*Config){
		"load_min_observations":         func(c *Config) { c.LoadMinObservations = 100 },
		"max_num_fpm_samples":           func(c *Config) { c.MaxNumFPMSamples = 0 },
		"benchmark_granularity":         func(c *Config) { c.BenchmarkGranularity = 0 },
		"min_endpoint":                  func(c *Config) { c.MinEndpoint = -2 },
		"max_gpu_budget":                func(c *Config) { c.MaxGPUBudget = 0 },
		"min_gpu_budget":                func(c *Config) { c.MinGPUBudget = 20 },
		"load_scaling_down_sensitivity": func(c *Config) { c.LoadScalingDownSensitivity = -50 },
		"itl_ms":                        func(c *Config) { c.ITLMs = -1 },
	} {
		for _, compat := range []rules.Compat{rules.Default, rules.Dynamo13, rules.Dynamo12} {
			cfg := simcore.DefaultConfig()
			cfg.Compat = compat
			cfg.Timing.Source, cfg.Timing.GPU, cfg.Timing.Model = perfmodel.SourceTable, "h200_sxm", "llama-3.1-8b"
			cfg.Deployment.Workers = 2
			p := trapConfig("sla")
			p.LoadAdjustmentIntervalSeconds, p.ThroughputAdjustmentIntervalSeconds = 2, 5
			change(&p)
			set, err := rules.For(compat)
			if err != nil {
				t.Fatal(err)
			}
			s := workload.DefaultSyntheticSpec()
			s.Requests, s.InputTokens, s.OutputTokens, s.ArrivalIntervalMs = 60, 3000, 100, 300
			w, err := workload.Spec{Synthetic: &s}.Load(context.Background(), workload.Source{Rules: set, EngineBlockSize: 64})
			if err != nil {
				t.Fatal(err)
			}
			_, err = Run(context.Background(), cfg, p, w, simcore.Options{})
			switch {
			case compat == rules.Default && (err == nil || !strings.Contains(err.Error(), key)):
				t.Errorf("%s: error %v", key, err)
			case compat != rules.Default && err != nil && !strings.Contains(err.Error(), "worker"):
				t.Errorf("%s with compat %s: error %v", key, compat, err)
			}
		}
	}
}
