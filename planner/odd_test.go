package planner

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/problem"
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

// TestAbsurdSettings refuses, by all rules, settings that would take for ever or fill the memory, and names them.
func TestAbsurdSettings(t *testing.T) {
	for _, test := range []struct {
		key    string
		change func(*Config)
	}{
		{"scale_interval_seconds", func(c *Config) { c.ScaleIntervalSeconds = 1e-9 }},
		{"fpm_sample_bucket_size", func(c *Config) { c.FPMSampleBucketSize = 94906265 * 94906265 }},
		{"max_num_fpm_samples", func(c *Config) { c.MaxNumFPMSamples = 1 << 40 }},
		{"min_endpoint", func(c *Config) { c.MinEndpoint = 1 << 40 }},
		{"min_gpu_budget", func(c *Config) { c.MinGPUBudget, c.MaxGPUBudget = 1<<40, -1 }},
		{"kalman_q_level", func(c *Config) { c.KalmanQLevel = 1e308 }},
		{"kalman_q_trend", func(c *Config) { c.KalmanQTrend = math.Inf(1) }},
		{"kalman_r", func(c *Config) { c.KalmanR = math.NaN() }},
		{"prophet_window_size", func(c *Config) { c.ProphetWindowSize = 0 }},
		{"throughput_adjustment_interval_seconds", func(c *Config) {
			c.LoadPredictor, c.ThroughputAdjustmentIntervalSeconds = "prophet", 1<<40
		}},
		{"ttft_ms", func(c *Config) { c.TTFTMs = math.NaN() }},
		{"ttft_ms", func(c *Config) { c.TTFTMs = math.Inf(1) }},
		{"foresight.interval_seconds", func(c *Config) { c.Policy, c.Foresight.IntervalSeconds = PolicyForesight, 1e-9 }},
		{"foresight.attainment", func(c *Config) { c.Policy, c.Foresight.Attainment = PolicyForesight, math.NaN() }},
		{"target_tracking.sync_period_seconds", func(c *Config) { c.Policy, c.TargetTracking.SyncPeriodSeconds = PolicyTargetTracking, 1e-9 }},
		{"target_tracking.target", func(c *Config) { c.Policy, c.TargetTracking.Target = PolicyTargetTracking, math.NaN() }},
		{"target_tracking.tolerance", func(c *Config) { c.Policy, c.TargetTracking.Tolerance = PolicyTargetTracking, math.NaN() }},
	} {
		for _, compat := range allCompat {
			cfg := simcore.DefaultConfig()
			cfg.Compat = compat
			cfg, problems := cfg.Resolve()
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			c := trapConfig("sla")
			test.change(&c)
			_, problems = c.Resolve(cfg)
			if !slices.ContainsFunc(problems, func(p problem.Problem) bool { return p.Path == test.key }) {
				t.Errorf("%s, compat %q: %v", test.key, compat, problems)
			}
		}
	}
}

// TestOddRuns gives settings that contradict each other, or the workload, a defined result.
func TestOddRuns(t *testing.T) {
	plan := func(change func(*Config)) Config {
		c := trapConfig("latency")
		c.LoadAdjustmentIntervalSeconds = 2
		change(&c)
		return c
	}
	for _, test := range []struct {
		name             string
		requests         int
		startup          float64
		config           Config
		ticks            bool // there are some
		least, peak, ups int64
	}{
		{"a budget with one number", 200, 0, plan(func(c *Config) { c.MinGPUBudget, c.MaxGPUBudget = 3, 3 }), true, 1, 3, 1},
		{"a budget with one number, by throughput only", 200, 0, plan(func(c *Config) {
			c.OptimizationTarget, c.EnableLoadScaling, c.MinGPUBudget, c.MaxGPUBudget = "sla", false, 3, 3
			c.ThroughputAdjustmentIntervalSeconds = 5
		}), true, 1, 3, 1},
		{"a start that outlasts the trace", 200, 1e6, plan(func(c *Config) { c.MinEndpoint = 2 }), true, 1, 1, 1},
		{"a start that never ends", 200, 1e300, plan(func(c *Config) { c.MinEndpoint = 2 }), true, 1, 1, 1},
		{"a trace shorter than the first interval", 1, 0, plan(func(c *Config) { c.MinEndpoint = 2 }), false, 1, 1, 0},
		{"an interval beyond all time", 200, 0, plan(func(c *Config) { c.LoadAdjustmentIntervalSeconds = math.MaxInt }), false, 1, 1, 0},
		{"target tracking beyond all numbers", 200, 0, plan(func(c *Config) {
			c.Policy = PolicyTargetTracking
			c.TargetTracking.Target, c.TargetTracking.ScaleUpPercent, c.TargetTracking.ScaleUpWorkers = 1e-300, 1e300, math.MaxInt
			c.TargetTracking.SyncPeriodSeconds = 2
		}), true, 1, 8, 1},
	} {
		cfg := simcore.DefaultConfig()
		cfg.Timing.Source = perfmodel.SourcePolynomial
		cfg.Engine.StartupTime = test.startup
		s := workload.DefaultSyntheticSpec()
		s.Requests, s.InputTokens, s.OutputTokens, s.ArrivalIntervalMs = test.requests, 2000, 100, 100
		out := simulate(t, cfg, test.config, workload.Spec{Synthetic: &s})
		pool := out.Report.Scaling.Decode
		if int(out.Report.CompletedRequests) != test.requests || out.Record.TickCount > 0 != test.ticks {
			t.Errorf("%s: %d of %d requests, %d ticks", test.name, out.Report.CompletedRequests, test.requests, out.Record.TickCount)
		}
		if pool.LeastReady != test.least || pool.PeakReady != test.peak || out.Report.Planning.ScaleUps != test.ups {
			t.Errorf("%s: %d to %d workers, asked %d times for more; want %d to %d, %d times", test.name, pool.LeastReady, pool.PeakReady,
				out.Report.Planning.ScaleUps, test.least, test.peak, test.ups)
		}
		if hours := out.Report.GPUHours; !(hours > 0) || math.IsInf(hours, 0) {
			t.Errorf("%s: %v GPU hours", test.name, hours)
		}
	}
}
