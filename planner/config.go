package planner

// Policy names what decides how many workers there are.
type Policy string

// The policies.
const (
	// PolicyStatic leaves the workers of the deployment as they are.
	PolicyStatic Policy = "static"
	// PolicyDynamo is the planner of NVIDIA Dynamo.
	PolicyDynamo Policy = "dynamo"
	// PolicyTargetTracking keeps a metric near a target, as the horizontal pod autoscaler of Kubernetes does.
	PolicyTargetTracking Policy = "target_tracking"
	// PolicyForesight knows the future: the cheapest numbers of workers that keep the SLA, as a bound for the others.
	PolicyForesight Policy = "foresight"
)

// Config is the section `planner` of a spec. It is plain data. Its keys are those of the planner configuration of Dynamo
// where that has them (planner specification §2).
type Config struct {
	// Policy is static, dynamo, target_tracking or foresight.
	Policy Policy `json:"policy"`
	// OptimizationTarget is what the policy dynamo aims at: "sla", "throughput", "latency" or "load".
	OptimizationTarget string `json:"optimization_target"`
	// EnableThroughputScaling sizes the pools for the predicted load; with target sla only.
	EnableThroughputScaling bool `json:"enable_throughput_scaling"`
	// EnableLoadScaling adds and removes single workers by what the engines have queued.
	EnableLoadScaling bool `json:"enable_load_scaling"`
	// ThroughputAdjustmentIntervalSeconds is the time between two looks at the load.
	ThroughputAdjustmentIntervalSeconds int `json:"throughput_adjustment_interval_seconds"`
	// LoadAdjustmentIntervalSeconds is the time between two looks at the engines.
	LoadAdjustmentIntervalSeconds int `json:"load_adjustment_interval_seconds"`
	// ScaleIntervalSeconds is the time between two ticks; 0 (null in a spec) means the greatest that divides both
	// intervals.
	ScaleIntervalSeconds float64 `json:"scale_interval_seconds"`
	// TTFTMs is the time to first token to keep, in ms.
	TTFTMs float64 `json:"ttft_ms"`
	// ITLMs is the inter-token latency to keep, in ms.
	ITLMs float64 `json:"itl_ms"`
	// MinEndpoint is the least number of workers of a pool.
	MinEndpoint int `json:"min_endpoint"`
	// MaxGPUBudget is the greatest number of GPUs of all pools; negative means no limit, but for target_tracking and foresight,
	// which ask for no more than 1,024 workers of a pool.
	MaxGPUBudget int `json:"max_gpu_budget"`
	// MinGPUBudget is the least number of GPUs of all pools; negative means none.
	MinGPUBudget int `json:"min_gpu_budget"`
	// PrefillEngineNumGPU is the number of GPUs of a prefill worker; 0 (null in a spec) means what the engine's parallelism
	// says.
	PrefillEngineNumGPU int `json:"prefill_engine_num_gpu"`
	// DecodeEngineNumGPU is the number of GPUs of a decode worker, or of any worker of an aggregated deployment; 0 (null in a
	// spec) means what the engine's parallelism says.
	DecodeEngineNumGPU int `json:"decode_engine_num_gpu"`
	// LoadScalingDownSensitivity is the share of the SLA, in percent, that must suffice with one worker less.
	LoadScalingDownSensitivity int `json:"load_scaling_down_sensitivity"`
	// MaxNumFPMSamples is the number of passes that the performance model keeps.
	MaxNumFPMSamples int `json:"max_num_fpm_samples"`
	// FPMSampleBucketSize is the number of buckets that these are spread over, a square.
	FPMSampleBucketSize int `json:"fpm_sample_bucket_size"`
	// LoadMinObservations is the number of passes that the performance model needs.
	LoadMinObservations int `json:"load_min_observations"`
	// LoadPredictor is how the load is predicted: "constant", "arima", "kalman" or "prophet".
	LoadPredictor string `json:"load_predictor"`
	// LoadPredictorLog1p predicts logarithms of the load.
	LoadPredictorLog1p bool `json:"load_predictor_log1p"`
	// LoadPredictorWarmupTrace is the path of a trace that the predictors learn from before the simulation; empty means
	// none.
	LoadPredictorWarmupTrace string `json:"load_predictor_warmup_trace"`
	// ProphetWindowSize is the number of intervals that the predictor prophet looks at.
	ProphetWindowSize int `json:"prophet_window_size"`
	// KalmanQLevel is the variance by which the predictor kalman lets the level of the load change in an interval.
	KalmanQLevel float64 `json:"kalman_q_level"`
	// KalmanQTrend is the variance by which it lets the trend of the load change.
	KalmanQTrend float64 `json:"kalman_q_trend"`
	// KalmanR is the variance that it reckons a measurement to have.
	KalmanR float64 `json:"kalman_r"`
	// PrefillScaleUpQueueTokens is the number of queued prompt tokens of a prefill worker at which target load adds one;
	// negative (null in a spec) means not given.
	PrefillScaleUpQueueTokens int `json:"prefill_scale_up_queue_tokens"`
	// PrefillScaleDownQueueTokens is the number at which it removes one, if all have no more; negative (null in a spec) means
	// not given.
	PrefillScaleDownQueueTokens int `json:"prefill_scale_down_queue_tokens"`
	// DecodeScaleUpKVRate is the share of a decode worker's KV cache in use, in percent, at which target load adds one;
	// negative (null in a spec) means not given.
	DecodeScaleUpKVRate float64 `json:"decode_scale_up_kv_rate"`
	// DecodeScaleDownKVRate is the share at which it removes one, if all have no more; negative (null in a spec) means not
	// given.
	DecodeScaleDownKVRate float64 `json:"decode_scale_down_kv_rate"`
	// SpeculativeNextN is the number of draft tokens that the planner reckons with.
	SpeculativeNextN int `json:"speculative_nextn"`
	// BenchmarkGranularity is the number of steps in which the performance model is filled before the simulation, from the
	// timing model of the engines.
	BenchmarkGranularity int `json:"benchmark_granularity"`
	// TargetTracking says how the policy target_tracking decides.
	TargetTracking TargetTracking `json:"target_tracking"`
	// Foresight says how the policy foresight looks for the fewest workers.
	Foresight Foresight `json:"foresight"`
}

// DefaultConfig is the configuration of a spec without planner: the policy static, and otherwise the defaults of Dynamo's
// planner.
func DefaultConfig() Config {
	return Config{
		Policy:                              PolicyStatic,
		OptimizationTarget:                  "throughput",
		EnableThroughputScaling:             true,
		ThroughputAdjustmentIntervalSeconds: 180,
		LoadAdjustmentIntervalSeconds:       5,
		TTFTMs:                              500,
		ITLMs:                               50,
		MinEndpoint:                         1,
		MaxGPUBudget:                        8,
		MinGPUBudget:                        -1,
		LoadScalingDownSensitivity:          80,
		MaxNumFPMSamples:                    64,
		FPMSampleBucketSize:                 16,
		LoadMinObservations:                 5,
		LoadPredictor:                       "arima",
		ProphetWindowSize:                   50,
		KalmanQLevel:                        1,
		KalmanQTrend:                        0.1,
		KalmanR:                             10,
		PrefillScaleUpQueueTokens:           -1,
		PrefillScaleDownQueueTokens:         -1,
		DecodeScaleUpKVRate:                 -1,
		DecodeScaleDownKVRate:               -1,
		BenchmarkGranularity:                8,
		TargetTracking:                      defaultTargetTracking(),
		Foresight:                           defaultForesight(),
	}
}
