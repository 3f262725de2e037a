package roofline

import (
	"strings"

	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
	"github.com/servegrid/servegrid/simcore/problem"
)

// Deployment is what a roofline is computed for.
type Deployment struct {
	// GPU and Model are the hardware and the shape, usually from the catalogue.
	GPU   catalogue.GPU
	Model catalogue.Model
	// Backend is "vllm", "sglang" or "trtllm".
	Backend string
	// DType is the number format of the weights, one of [catalogue.DTypes]; empty is that of the model's usual
	// checkpoint.
	DType string
	// KVDType is the number format of the KV cache: "bf16" (or "bfloat16") or "fp8"; empty is the default of the
	// model and dtype.
	KVDType string
	// TP is the number of GPUs that share a rank's layers, DP the number of attention data-parallel ranks, EP the
	// number of groups that experts are divided into; 0 means 1. TP·DP GPUs hold the model; those of a group share
	// the group's experts as tensors.
	TP, DP, EP int
}

// The backends.
const (
	backendVLLM   = "vllm"
	backendSGLang = "sglang"
	backendTRTLLM = "trtllm"
)

// withDefaults fills in what is left empty.
func (d Deployment) withDefaults() Deployment {
	for _, n := range []*int{&d.TP, &d.DP, &d.EP} {
		if *n == 0 {
			*n = 1
		}
	}
	if d.DType == "" {
		d.DType = d.Model.DType()
	}
	switch d.KVDType {
	case "":
		d.KVDType = d.Model.KVDType(d.DType)
	case "bfloat16":
		d.KVDType = catalogue.BF16
	}
	return d
}

// validate returns all problems of a deployment whose defaults are filled in. Paths are keys of the timing section.
func (d Deployment) validate() problem.List {
	var l problem.List
	switch d.Backend {
	case backendVLLM, backendSGLang:
	case backendTRTLLM:
		if d.GPU.Vendor == amd {
			l.Add("backend", d.Backend, "TensorRT-LLM runs on NVIDIA GPUs only; use vllm or sglang for %s", d.GPU.ID)
		}
	default:
		l.Add("backend", d.Backend, "use vllm, sglang or trtllm")
	}
	if _, ok := formatsOf(d); !ok {
		l.Add("dtype", d.DType, "use one of: %s", strings.Join(catalogue.DTypes(), ", "))
	}
	if d.KVDType != catalogue.BF16 && d.KVDType != catalogue.FP8 {
		l.Add("kv_cache_dtype", d.KVDType, "use bf16 or fp8")
	}
	l = append(l, d.validateGPU()...)
	if err := d.Model.Validate(); err != nil {
		l.Add("model", d.Model.ID, "%v", err)
		return l
	}
	return append(l, d.validateParallelism()...)
}

func (d Deployment) validateGPU() problem.List {
	var l problem.List
	for _, f := range []struct {
		name  string
		value float64
	}{
		{"memory in GiB", d.GPU.MemoryGiB}, {"memory bandwidth in GB/s", d.GPU.MemoryGBps},
		{"bf16 TFLOPS", d.GPU.BF16TFLOPS}, {"link bandwidth in GB/s", d.GPU.LinkGBps},
	} {
		if !(f.value > 0) {
			l.Add("gpu", d.GPU.ID, "its %s is %v; give a number over 0", f.name, f.value)
		}
	}
	return l
}

// maxParallel bounds tp, dp and ep; nobody runs a model on more GPUs, and products stay small.
const maxParallel = 4096

func (d Deployment) validateParallelism() problem.List {
	var l problem.List
	for _, p := range []struct {
		key   string
		value int
	}{{"tp", d.TP}, {"dp", d.DP}, {"ep", d.EP}} {
		if p.value < 1 || p.value > maxParallel {
			l.Add(p.key, p.value, "give a number of GPUs from 1 to %d", maxParallel)
		}
	}
	if len(l) > 0 {
		return l
	}
	m, gpus := d.Model, d.TP*d.DP
	switch {
	case m.Heads%d.TP != 0:
		l.Add("tp", d.TP, "it must divide the %d attention heads of %s", m.Heads, m.ID)
	case !m.IsMLA() && m.KVHeads%d.TP != 0 && d.TP%m.KVHeads != 0:
		l.Add("tp", d.TP, "it must divide the %d key-value heads of %s or be a multiple of them", m.KVHeads, m.ID)
	case !m.IsMoE() && d.EP > 1:
		l.Add("ep", d.EP, "%s has no experts; leave it out", m.ID)
	case gpus%d.EP != 0:
		l.Add("ep", d.EP, "it must divide tp × dp = %d", gpus)
	case m.IsMoE() && m.Experts%d.EP != 0:
		l.Add("ep", d.EP, "it must divide the %d experts of %s", m.Experts, m.ID)
	}
	return l
}

// expertTP is the number of GPUs that share an expert.
func (d Deployment) expertTP() int { return d.TP * d.DP / d.EP }

// amd is the vendor whose GPUs no table covers.
const amd = "amd"

// format is how weights are stored and computed with.
type format struct {
	// bytes of one weight.
	bytes float64
	// flops is the peak speed in FLOP/s of the arithmetic, efficiency the share that dense matrix products reach.
	flops, efficiency float64
}

// formats are those of a model's parts: plain for what is never quantised, latent for the projections of queries, keys
// and values, output for the one after attention, linear for dense and shared MLPs, experts for routed ones.
type formats struct{ plain, latent, output, linear, experts format }

// formatsOf says how the parts of a model are stored and computed with.
func formatsOf(d Deployment) (formats, bool) {
	plain, _ := formatOf(d, catalogue.BF16)
	linear, ok := formatOf(d, d.DType)
	attention, attentionOK := formatOf(d, d.Model.AttentionDType(d.DType))
	f := formats{plain, attention, attention, linear, linear}
	switch {
	case d.Model.IsMoE() && (d.DType == catalogue.MXFP4 || d.DType == catalogue.INT4): // experts only
		f.latent, f.output, f.linear = plain, plain, plain
	case d.Model.IsMLA() && d.DType == catalogue.NVFP4: // the narrow latent projections stay as they are
		f.latent = plain
	}
	return f, ok && attentionOK
}

// formatOf says how weights of one dtype are stored and computed with on a GPU. A GPU without units for a format reads
// the small weights and computes in bf16, as the weight-only kernels of the backends do.
func formatOf(d Deployment, dtype string) (format, bool) {
	c, g := constantsOf(d), d.GPU
	f := format{bytes: 2, flops: g.BF16TFLOPS * tera, efficiency: c.BF16Efficiency}
	var tflops, efficiency float64
	switch dtype {
	case catalogue.BF16:
	case catalogue.FP8:
		f.bytes, tflops, efficiency = 1, g.FP8TFLOPS, c.FP8Efficiency
	case catalogue.FP8Block:
		f.bytes, tflops, efficiency = 1, g.FP8TFLOPS, c.FP8BlockEfficiency
	case catalogue.NVFP4:
		f.bytes, tflops, efficiency = 9./16, g.FP4TFLOPS, c.FP4Efficiency // 16 weights share a byte of scale
	case catalogue.MXFP4, catalogue.INT4:
		f.bytes = .5
	default:
		return format{}, false
	}
	if tflops > 0 {
		f.flops, f.efficiency = tflops*tera, efficiency
	}
	return f, true
}

// constantsOf are the fitted constants for a backend; AMD has none of its own.
func constantsOf(d Deployment) constants {
	if d.GPU.Vendor == amd {
		return fitted()[allBackends]
	}
	return fitted()[d.Backend]
}
