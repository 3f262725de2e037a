package perfmodel

import (
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/problem"
)

// Config selects a timing model and its parameters.
type Config struct {
	// Source is the timing model: "table" (measured, for a GPU and a model), "analytic" (roofline, for any GPU and
	// model), "profile" (your own measurements), "polynomial" (the reference's default, which knows no GPU), "fixed",
	// or "auto": table where GPU and model have one and analytic where the GPU or the model has none, profile when
	// one is given, polynomial when there is neither.
	Source string `json:"source"`
	// GPU is the GPU type, such as "h200_sxm"; `servegrid perf list` shows them.
	GPU string `json:"gpu"`
	// Model is the served model: a name of `servegrid perf list`, its Hugging Face name, or the path of a Hugging
	// Face config.json.
	Model string `json:"model"`
	// DType is the variant of the weights, such as "bf16", "fp8" or "nvfp4"; empty means that of the model's name.
	DType string `json:"dtype"`
	// Backend is the serving engine whose kernels are priced: "vllm", "sglang" or "trtllm"; empty means that of
	// engine.type.
	Backend string `json:"backend"`
	// BackendVersion is the release of the backend that was measured: "current", "legacy" or a version; empty means
	// current.
	BackendVersion string `json:"backend_version"`
	// TP is the tensor-parallel size of one worker: GPUs per rank.
	TP int `json:"tp"`
	// DP is the number of attention data-parallel ranks of one worker.
	DP int `json:"dp"`
	// EP is the expert-parallel size of one worker; the experts are tensor-parallel over the rest of its GPUs. 0
	// means 1 where that was measured.
	EP int `json:"ep"`
	// Mode says how the prices of a mixed pass combine: "mocker" (prefill and decode priced apart, unequal prompts by
	// their mean, as the reference does), "fused" (one pass over all tokens) or "serial-exact" (apart, attention
	// summed over the prompts).
	Mode string `json:"mode"`
	// Corrections repairs what is known to be wrong with the tables as aiconfigurator gives them.
	Corrections bool `json:"corrections"`
	// GEMMDType is the dtype of the matrix multiplications, such as "fp8"; empty means that of DType.
	GEMMDType string `json:"gemm_dtype"`
	// MoEDType is the dtype of the experts; empty means that of DType.
	MoEDType string `json:"moe_dtype"`
	// FMHADType is the dtype of attention; empty means that of DType.
	FMHADType string `json:"fmha_dtype"`
	// KVCacheDType is the dtype of the KV cache; empty means that of DType.
	KVCacheDType string `json:"kv_cache_dtype"`
	// Tables is a folder of tables made by tools/perf/generate.py and `servegrid perf import`; empty means the tables
	// that servegrid contains.
	Tables string `json:"tables"`
	// Profile is a file with measured pass times: .npz, .csv, .parquet, or the folder of the reference's profiler.
	Profile string `json:"profile"`
	// PrefillMs is the duration of any prefill with the fixed model, in ms.
	PrefillMs float64 `json:"prefill_ms"`
	// DecodeMs is the duration of any decode step with the fixed model, in ms.
	DecodeMs float64 `json:"decode_ms"`
	// PrefillScale multiplies what the model says of the prompts of a pass; `servegrid calibrate` finds it.
	PrefillScale float64 `json:"prefill_scale"`
	// DecodeScale multiplies what the model says of the decode step of a pass; `servegrid calibrate` finds it.
	DecodeScale float64 `json:"decode_scale"`
	// PassOverheadMs is added to each pass, after scales and before the speed ratios of the engine: scheduling and launches
	// that the model does not know, in ms.
	PassOverheadMs float64 `json:"pass_overhead_ms"`
	// RequestOverheadMs is how long a request takes from its arrival to the router, or to the workers where there is none to
	// choose: HTTP and tokenization, in ms. Of prefill and decode workers that of the prefill workers counts.
	RequestOverheadMs float64 `json:"request_overhead_ms"`
}

// The timing sources.
const (
	// SourceAuto is resolved to one of the others.
	SourceAuto = "auto"
	// SourceTable interpolates in times measured for a GPU, a model and its parallelism.
	SourceTable = "table"
	// SourceAnalytic computes a roofline from the figures of a GPU and the shape of a model.
	SourceAnalytic = "analytic"
	// SourceProfile interpolates in times that the user measured.
	SourceProfile = "profile"
	// SourcePolynomial is the reference's default model; it knows no GPU.
	SourcePolynomial = "polynomial"
	// SourceFixed gives every prefill and every decode step a constant duration.
	SourceFixed = "fixed"
)

// The ways to price a pass with prompts and decodes.
const (
	ModeMocker      = "mocker"
	ModeFused       = "fused"
	ModeSerialExact = "serial-exact"
)

// Sources lists the accepted values of Config.Source.
func Sources() []string {
	return []string{SourceAuto, SourceTable, SourceAnalytic, SourceProfile, SourcePolynomial, SourceFixed}
}

// Modes lists the accepted values of Config.Mode.
func Modes() []string { return []string{ModeMocker, ModeFused, ModeSerialExact} }

// Backends lists the accepted values of Config.Backend.
func Backends() []string { return []string{"vllm", "sglang", "trtllm"} }

// DefaultConfig leaves the model open, on one GPU per worker.
func DefaultConfig() Config {
	return Config{Source: SourceAuto, TP: 1, DP: 1, Mode: ModeMocker, Corrections: true, PrefillScale: 1, DecodeScale: 1}
}

// UsedMode is the mode of a resolved configuration, and empty where the source does not know what a pass consists of.
func (c Config) UsedMode() string {
	if !c.knowsGPU() {
		return ""
	}
	return c.Mode
}

// Ranks is the number of data-parallel ranks that a model prices one by one. The models that know no GPU have one.
func (c Config) Ranks() int {
	if !c.knowsGPU() {
		return 1
	}
	return c.DP
}

// knowsGPU reports whether the source prices a GPU and a model.
func (c Config) knowsGPU() bool { return c.Source == SourceTable || c.Source == SourceAnalytic }

// validate returns the problems of a configuration whose source is not auto any more, apart from what the data
// behind the source says.
func (c Config) validate() problem.List {
	var l problem.List
	if !slices.Contains(Sources(), c.Source) {
		l.Add("source", c.Source, "use one of: %s", strings.Join(Sources(), ", "))
	}
	if !slices.Contains(Modes(), c.Mode) {
		l.Add("mode", c.Mode, "use one of: %s", strings.Join(Modes(), ", "))
	}
	if c.Backend != "" && !slices.Contains(Backends(), c.Backend) {
		l.Add("backend", c.Backend, "use one of: %s", strings.Join(Backends(), ", "))
	}
	if c.TP < 1 || c.TP > maxParallel {
		l.Add("tp", c.TP, "give the number of GPUs per rank, 1 to %d", maxParallel)
	}
	if c.DP < 1 || c.DP > maxParallel {
		l.Add("dp", c.DP, "give the number of data-parallel ranks, 1 to %d", maxParallel)
	}
	if c.EP < 0 || c.EP > maxParallel {
		l.Add("ep", c.EP, "give the number of ranks that share the experts, 1 to %d, or 0 for what was measured", maxParallel)
	}
	l = append(l, c.validateFixed()...)
	l = append(l, c.validateAdjustment()...)
	return append(l, c.validateUnused()...)
}

// maxParallel bounds the GPUs of a worker in each direction.
const maxParallel = 1 << 14

func (c Config) validateFixed() problem.List {
	var l problem.List
	for _, d := range []struct {
		key   string
		value float64
	}{{"prefill_ms", c.PrefillMs}, {"decode_ms", c.DecodeMs}} {
		if !(d.value >= 0) || math.IsInf(d.value, 0) {
			l.Add(d.key, d.value, "give a duration of 0 ms or more")
		} else if d.value > 0 && c.Source != SourceFixed {
			l.Add(d.key, d.value, "only source fixed takes a duration; this is source %s, which computes its own", c.Source)
		}
	}
	if c.Source == SourceFixed && c.DecodeMs == 0 {
		l.Add("decode_ms", c.DecodeMs, "source fixed needs the duration of a decode step in ms")
	}
	return l
}

// validateUnused refuses settings that change nothing with the source, since they are hardly meant.
func (c Config) validateUnused() problem.List {
	var l problem.List
	for _, s := range []struct {
		key, value string
		sources    []string
	}{
		// A profile takes memory and context length from the model that it was measured with.
		{"model", c.Model, []string{SourceTable, SourceAnalytic, SourceProfile}},
		{"dtype", c.DType, []string{SourceTable, SourceAnalytic, SourceProfile}},
		{"backend", c.Backend, []string{SourceTable, SourceAnalytic, SourceProfile}},
		{"backend_version", c.BackendVersion, []string{SourceTable, SourceProfile}},
		{"gemm_dtype", c.GEMMDType, []string{SourceTable, SourceProfile}},
		{"moe_dtype", c.MoEDType, []string{SourceTable, SourceProfile}},
		{"fmha_dtype", c.FMHADType, []string{SourceTable, SourceProfile}},
		{"kv_cache_dtype", c.KVCacheDType, []string{SourceTable, SourceAnalytic, SourceProfile}},
		{"tables", c.Tables, []string{SourceTable, SourceProfile}},
		{"profile", c.Profile, []string{SourceProfile}},
	} {
		if s.value != "" && slices.Contains(Sources(), c.Source) && !slices.Contains(s.sources, c.Source) {
			l.Add(s.key, s.value, "only source %s takes it; this is source %s", strings.Join(s.sources, ", "), c.Source)
		}
	}
	if !c.Corrections && slices.Contains(Sources(), c.Source) && c.Source != SourceTable && c.Source != SourceProfile {
		l.Add("corrections", c.Corrections, "only source table has any; this is source %s", c.Source)
	}
	if c.Mode != ModeMocker && slices.Contains(Modes(), c.Mode) && !c.knowsGPU() && slices.Contains(Sources(), c.Source) {
		l.Add("mode", c.Mode, "only sources table and analytic know what a pass consists of; this is source %s", c.Source)
	}
	return l
}
