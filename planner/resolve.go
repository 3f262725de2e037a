package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/servegrid/servegrid/planner/forecast"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/problem"
)

// Policies lists the policies.
func Policies() []string {
	return []string{string(PolicyStatic), string(PolicyDynamo), string(PolicyTargetTracking), string(PolicyForesight)}
}

// OptimizationTargets lists what the policy dynamo can aim at.
func OptimizationTargets() []string { return []string{"sla", "throughput", "latency", "load"} }

// LoadPredictors lists the ways to predict the load.
func LoadPredictors() []string { return []string{"constant", "arima", "kalman", "prophet"} }

// Resolve fills in what the configuration leaves open, and gives the settings that change nothing their defaults, so that
// equal runs have equal configurations. The problems name settings by their keys; cfg is the resolved configuration of
// the simulation that is planned.
func (c Config) Resolve(cfg simcore.Config) (Config, problem.List) {
	l := append(c.checkChoices(), c.checkRanges(rulesFor(cfg.Compat))...)
	if len(l) > 0 {
		return c, l
	}
	c.resetUnused("", reflect.ValueOf(&c).Elem(), reflect.ValueOf(DefaultConfig()))
	if c.Policy == PolicyStatic {
		return c, nil
	}
	c.fit(cfg.Stages(), rulesFor(cfg.Compat), &l)
	var problems problem.List
	switch c.Policy {
	case PolicyDynamo:
		l = append(l, c.checkDynamo(cfg)...)
	case PolicyTargetTracking:
		c.TargetTracking, problems = c.TargetTracking.resolve(cfg.Stages())
		l = append(l, problems.Under("target_tracking")...)
	case PolicyForesight:
		l = append(l, c.Foresight.check().Under("foresight")...)
	}
	return c, l
}

// checkChoices reports words that are none of those allowed.
func (c Config) checkChoices() problem.List {
	var l problem.List
	for _, choice := range []struct {
		key, value string
		allowed    []string
	}{
		{"policy", string(c.Policy), Policies()},
		{"optimization_target", c.OptimizationTarget, OptimizationTargets()},
		{"load_predictor", c.LoadPredictor, LoadPredictors()},
	} {
		if !slices.Contains(choice.allowed, choice.value) {
			l.Add(choice.key, choice.value, "use one of: %s", strings.Join(choice.allowed, ", "))
		}
	}
	return l
}

// maxFPMSamples bounds the memory of a performance model, maxWorkers what a setting can ask for. Ticks that settings
// place freely are leastSeconds apart or more.
const (
	maxFPMSamples = 100_000
	maxWorkers    = 1 << 16
	leastSeconds  = 0.001
)

// checkRanges reports numbers that make no sense by themselves (planner specification §2, and trap T1).
func (c Config) checkRanges(r ruleSet) problem.List {
	type limit struct {
		key      string
		value    float64
		least    float64
		what     string
		positive bool // the least value itself is too little
	}
	limits := []limit{
		{"throughput_adjustment_interval_seconds", float64(c.ThroughputAdjustmentIntervalSeconds), 1, "a whole number of seconds, 1 or more", false},
		{"load_adjustment_interval_seconds", float64(c.LoadAdjustmentIntervalSeconds), 1, "a whole number of seconds, 1 or more", false},
		{"scale_interval_seconds", c.ScaleIntervalSeconds, 0, "a number of seconds above 0, or null for the greatest that divides both intervals", false},
		{"ttft_ms", c.TTFTMs, 0, "a latency in ms above 0", true},
		{"speculative_nextn", float64(c.SpeculativeNextN), 0, "a number of tokens, 0 or more", false},
		{"fpm_sample_bucket_size", float64(c.FPMSampleBucketSize), 1, "a square such as 16", false},
		{"prophet_window_size", float64(c.ProphetWindowSize), 1, "a number of intervals, 1 or more", false},
	}
	more := []limit{
		{"itl_ms", c.ITLMs, 0, "a latency in ms above 0", true},
		{"min_endpoint", float64(c.MinEndpoint), 1, "a number of workers, 1 or more", false},
		{"max_num_fpm_samples", float64(c.MaxNumFPMSamples), 1, "a number of passes, 1 or more", false},
		{"load_min_observations", float64(c.LoadMinObservations), 1, "a number of passes, 1 or more", false},
		{"kalman_q_level", c.KalmanQLevel, 0, "a variance of 0 or more", false},
		{"kalman_q_trend", c.KalmanQTrend, 0, "a variance of 0 or more", false},
		{"kalman_r", c.KalmanR, 0, "a variance above 0", true},
		{"benchmark_granularity", float64(c.BenchmarkGranularity), 1, "a number of steps, 1 or more", false},
	}
	if !r.UncheckedSettings {
		limits = append(limits, more...)
	}
	var l problem.List
	for _, n := range limits {
		if !(n.value >= n.least) || n.positive && n.value == n.least || math.IsInf(n.value, 0) {
			l.Add(n.key, n.value, "give %s", n.what)
		}
	}
	for _, n := range []struct {
		key         string
		value, most int
		what        string
	}{
		{"max_num_fpm_samples", c.MaxNumFPMSamples, maxFPMSamples, "passes"},
		{"fpm_sample_bucket_size", c.FPMSampleBucketSize, maxFPMSamples, "buckets"},
		{"min_endpoint", c.MinEndpoint, maxWorkers, "workers"},
		{"min_gpu_budget", c.MinGPUBudget, maxWorkers, "GPUs"},
	} {
		if n.value > n.most {
			l.Add(n.key, n.value, "give at most %d %s", n.most, n.what)
		}
	}
	if c.ScaleIntervalSeconds > 0 && c.ScaleIntervalSeconds < leastSeconds {
		l.Add("scale_interval_seconds", c.ScaleIntervalSeconds, "give a number of seconds, %v or more, or null for the greatest that divides both intervals", leastSeconds)
	}
	for _, variance := range []struct {
		key   string
		value float64
	}{{"kalman_q_level", c.KalmanQLevel}, {"kalman_q_trend", c.KalmanQTrend}, {"kalman_r", c.KalmanR}} {
		if !(math.Abs(variance.value) <= forecast.MaxMagnitude) {
			l.Add(variance.key, variance.value, "give a variance up to %v", forecast.MaxMagnitude)
		}
	}
	for _, share := range []struct {
		key   string
		value float64
	}{
		{"load_scaling_down_sensitivity", float64(c.LoadScalingDownSensitivity)},
		{"decode_scale_up_kv_rate", max(0, c.DecodeScaleUpKVRate)}, {"decode_scale_down_kv_rate", max(0, c.DecodeScaleDownKVRate)},
	} {
		if !r.UncheckedSettings && !(share.value >= 0 && share.value <= 100) {
			l.Add(share.key, share.value, "give a share in percent, 0 to 100")
		}
	}
	if !r.UncheckedSettings && c.LoadMinObservations > c.MaxNumFPMSamples {
		l.Add("load_min_observations", c.LoadMinObservations, "the %d passes of max_num_fpm_samples would never suffice; give no more than that", c.MaxNumFPMSamples)
	}
	if root := int(math.Sqrt(float64(max(c.FPMSampleBucketSize, 0)))); c.FPMSampleBucketSize > 0 && root*root != c.FPMSampleBucketSize {
		l.Add("fpm_sample_bucket_size", c.FPMSampleBucketSize, "give a square such as 16: loads of two numbers have as many buckets in each direction")
	}
	return l
}

// fit makes the configuration fit the pools: it knows how many GPUs a worker has, and what an aggregated deployment lacks.
func (c *Config) fit(pools []simcore.Pool, r ruleSet, l *problem.List) {
	defaults := DefaultConfig()
	if len(pools) == 1 {
		c.PrefillEngineNumGPU = defaults.PrefillEngineNumGPU
		c.PrefillScaleUpQueueTokens, c.PrefillScaleDownQueueTokens = defaults.PrefillScaleUpQueueTokens, defaults.PrefillScaleDownQueueTokens
	}
	if r.UncheckedSettings {
		return
	}
	least := 0
	for i, pool := range pools {
		key, n := "decode_engine_num_gpu", &c.DecodeEngineNumGPU
		if len(pools) > 1 && i == 0 {
			key, n = "prefill_engine_num_gpu", &c.PrefillEngineNumGPU
		}
		switch gpus := pool.GPUsPerWorker(); {
		case *n == 0:
			*n = gpus
		case *n != gpus:
			l.Add(key, *n, "a worker has %d GPUs by timing.tp and timing.dp; set these, and leave this out", gpus)
		}
		least += *n * c.MinEndpoint
	}
	if c.MaxGPUBudget >= 0 && c.MaxGPUBudget < least {
		l.Add("max_gpu_budget", c.MaxGPUBudget, "min_endpoint alone takes %d GPUs; give that many or more, or -1 for no limit", least)
	}
	if c.MaxGPUBudget >= 0 && c.MinGPUBudget > c.MaxGPUBudget {
		l.Add("min_gpu_budget", c.MinGPUBudget, "it is above max_gpu_budget, %d", c.MaxGPUBudget)
	}
}

// checkDynamo reports what contradicts itself in a configuration of the policy dynamo.
func (c *Config) checkDynamo(cfg simcore.Config) problem.List {
	var l problem.List
	if c.OptimizationTarget != "sla" {
		c.EnableLoadScaling, c.EnableThroughputScaling = true, false
	}
	load, throughput := c.LoadAdjustmentIntervalSeconds, c.ThroughputAdjustmentIntervalSeconds
	switch {
	case !c.EnableLoadScaling && !c.EnableThroughputScaling:
		l.Add("enable_load_scaling", false, "enable_throughput_scaling is false too, so nothing would scale; set one of them to true")
	case c.EnableLoadScaling && c.EnableThroughputScaling && load >= throughput:
		l.Add("load_adjustment_interval_seconds", load, "give less than throughput_adjustment_interval_seconds, %d", throughput)
	}
	if step := c.ScaleIntervalSeconds; step > 0 {
		for _, interval := range []struct {
			key     string
			seconds int
			looks   bool
		}{{"load_adjustment_interval_seconds", load, true}, {"throughput_adjustment_interval_seconds", throughput, c.EnableThroughputScaling}} {
			if n := float64(interval.seconds) / step; interval.looks && (n < 1 || math.Abs(n-math.Round(n)) > 1e-9) {
				l.Add("scale_interval_seconds", step, "it does not divide %s, %d", interval.key, interval.seconds)
			}
		}
	}
	if c.EnableThroughputScaling && c.LoadPredictor == "prophet" && throughput > forecast.MaxIntervalSeconds {
		l.Add("throughput_adjustment_interval_seconds", throughput, "the predictor prophet takes up to %d, a year", forecast.MaxIntervalSeconds)
	}
	if c.OptimizationTarget == "load" {
		l = append(l, c.checkThresholds(cfg.Deployment.Mode == simcore.ModeDisaggregated)...)
	}
	return l
}

// checkThresholds reports thresholds of target load that are missing, or that the workers would be added and removed at.
func (c *Config) checkThresholds(disaggregated bool) problem.List {
	var l problem.List
	check := func(prefix, suffix string, up, down float64) {
		for key, v := range map[string]float64{prefix + "up" + suffix: up, prefix + "down" + suffix: down} {
			if v < 0 {
				l.Add(key, "", "optimization_target load needs it; give a threshold")
			}
		}
		if up >= 0 && down >= 0 && up <= down {
			l.Add(prefix+"up"+suffix, up, "give more than %s, %v", prefix+"down"+suffix, down)
		}
	}
	if disaggregated {
		check("prefill_scale_", "_queue_tokens", float64(c.PrefillScaleUpQueueTokens), float64(c.PrefillScaleDownQueueTokens))
	}
	check("decode_scale_", "_kv_rate", c.DecodeScaleUpKVRate, c.DecodeScaleDownKVRate)
	slices.SortFunc(l, func(a, b problem.Problem) int { return strings.Compare(a.Path, b.Path) })
	return l
}

// Portable is the configuration with what its file holds in place of its path, so that it means the same on every machine.
func (c Config) Portable() Config {
	if c.LoadPredictorWarmupTrace != "" {
		c.LoadPredictorWarmupTrace = fileDigest(c.LoadPredictorWarmupTrace)
	}
	return c
}

// fileDigests holds the digest of every file that a configuration named.
var fileDigests sync.Map

// fileDigest is a SHA-256 of what a file holds; empty when it cannot be read. A file is read once a program.
func fileDigest(path string) string {
	if digest, ok := fileDigests.Load(path); ok {
		return digest.(string)
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	digest := hex.EncodeToString(h.Sum(nil))
	fileDigests.Store(path, digest)
	return digest
}

// resetUnused gives the settings of a section that change nothing their defaults.
func (c Config) resetUnused(section string, settings, defaults reflect.Value) {
	for i := range settings.NumField() {
		key := section + settings.Type().Field(i).Tag.Get("json")
		switch {
		case settings.Field(i).Kind() == reflect.Struct:
			c.resetUnused(key+".", settings.Field(i), defaults.Field(i))
		case !c.Uses(key):
			settings.Field(i).Set(defaults.Field(i))
		}
	}
}

// Uses reports whether a setting, given by its key, can change anything: other policies and targets may not look at it.
func (c Config) Uses(key string) bool {
	byDynamo := c.Policy == PolicyDynamo
	bySLA := byDynamo && c.OptimizationTarget == "sla"
	predicted := bySLA && c.EnableThroughputScaling
	if section, _, below := strings.Cut(key, "."); below {
		return section == string(c.Policy)
	}
	switch key {
	case "policy":
		return true
	case "min_endpoint", "max_gpu_budget", "min_gpu_budget", "prefill_engine_num_gpu", "decode_engine_num_gpu":
		return c.Policy != PolicyStatic
	case "ttft_ms", "itl_ms":
		return bySLA || c.Policy == PolicyForesight
	case "optimization_target", "load_adjustment_interval_seconds", "scale_interval_seconds":
		return byDynamo
	case "enable_throughput_scaling", "enable_load_scaling", "max_num_fpm_samples", "fpm_sample_bucket_size",
		"load_min_observations", "speculative_nextn", "benchmark_granularity":
		return bySLA
	case "load_scaling_down_sensitivity":
		return bySLA && c.EnableLoadScaling
	case "throughput_adjustment_interval_seconds", "load_predictor", "load_predictor_log1p", "load_predictor_warmup_trace":
		return predicted
	case "prophet_window_size":
		return predicted && c.LoadPredictor == "prophet"
	case "kalman_q_level", "kalman_q_trend", "kalman_r":
		return predicted && c.LoadPredictor == "kalman"
	case "prefill_scale_up_queue_tokens", "prefill_scale_down_queue_tokens", "decode_scale_up_kv_rate", "decode_scale_down_kv_rate":
		return byDynamo && c.OptimizationTarget == "load"
	}
	return false
}
