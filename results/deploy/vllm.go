package deploy

import (
	"fmt"
	"math"
	"strconv"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/kvcache/tiers"
	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
)

// vllmLaunch translates the settings of a worker into flags of `vllm serve`, which Dynamo's vLLM worker takes too.
func vllmLaunch(d *deployment, w worker) launch {
	e, t := w.Engine, w.Timing
	var l launch
	l.number("--tensor-parallel-size", t.TP, 1, "timing.tp")
	l.number("--data-parallel-size", t.DP, 1, "timing.dp")
	switch ep, gpus := w.expertParallel(), w.GPUsPerWorker(); {
	case ep > 1 && ep == gpus:
		l.flag("--enable-expert-parallel", "timing.ep")
	case ep > 1:
		d.lacks("timing.ep", ep, "vLLM spreads the experts over all %d GPUs of a worker or over none", gpus)
	}
	d.vllmNumbers(&l, w)
	l.number("--max-num-seqs", e.MaxNumSeqs, 0, "engine.max_num_seqs")
	l.number("--max-num-batched-tokens", e.MaxNumBatchedTokens, 0, "engine.max_num_batched_tokens")
	d.unlimited(w)
	l.number("--max-model-len", e.ContextLength, 0, "engine.context_length")
	l.number("--block-size", e.BlockSize, 0, "engine.block_size")
	if e.BlockSize%16 != 0 {
		d.lacks("engine.block_size", e.BlockSize, "vLLM's kernels take multiples of 16")
	}
	l.share("--gpu-memory-utilization", w, e.GPUMemoryUtilization, .9, "engine.gpu_memory_utilization")
	if w.ownPool {
		l.value("--num-gpu-blocks-override", strconv.Itoa(w.blocksPerRank()), "engine.num_gpu_blocks")
	}
	if !e.EnablePrefixCaching {
		l.flag("--no-enable-prefix-caching", "engine.enable_prefix_caching")
	}
	if !e.EnableChunkedPrefill {
		l.flag("--no-enable-chunked-prefill", "engine.enable_chunked_prefill")
		if e.ContextLength > e.MaxNumBatchedTokens && e.MaxNumBatchedTokens > 0 {
			d.lacks("engine.enable_chunked_prefill", false, "vLLM starts without it only when engine.max_num_batched_tokens (%d) is no less than the context length (%d)", e.MaxNumBatchedTokens, e.ContextLength)
		}
	}
	if e.PreemptionMode == engine.PreemptFIFO {
		d.lacks("engine.preemption_mode", e.PreemptionMode, "vLLM preempts the request that came last")
	}
	d.vllmSpeculation(&l, w)
	if w.role != "" {
		l.value("--kv-transfer-config", `{"kv_connector":"NixlConnector","kv_role":"kv_both"}`, "deployment.mode")
	}
	d.vllmTiers(&l, w)
	return l
}

// vllmNumbers translates the number formats of weights and KV cache.
func (d *deployment) vllmNumbers(l *launch, w worker) {
	switch w.quantise {
	case "":
	case catalogue.FP8:
		l.value("--quantization", "fp8", "timing.dtype")
	case catalogue.FP8Block:
		l.value("--quantization", "fp8_per_block", "timing.dtype")
	default:
		d.lacksCheckpoint(w)
	}
	switch kv := w.Timing.KVCacheDType; {
	case kv == catalogue.FP8:
		l.value("--kv-cache-dtype", "fp8", "timing.kv_cache_dtype")
	case kv != "" && d.kvIsFP8(w):
		l.value("--kv-cache-dtype", "bfloat16", "timing.kv_cache_dtype")
	}
}

// vllmSpeculation translates speculative decoding where the model proposes tokens itself.
func (d *deployment) vllmSpeculation(l *launch, w worker) {
	n := w.Engine.NumSpeculativeTokens
	switch {
	case n == 0:
	case w.mtp:
		l.value("--speculative-config", fmt.Sprintf(`{"method":"mtp","num_speculative_tokens":%d}`, n), "engine.num_speculative_tokens")
		d.checkAcceptance(w)
	default:
		d.lacks("engine.num_speculative_tokens", n, `choose what proposes the tokens and add --speculative-config, such as '{"method":"eagle3","model":"DRAFT","num_speculative_tokens":%d}'`, n)
	}
}

// vllmTiers translates host memory for KV blocks. Dynamo has its own block manager for it, see graph.go.
func (d *deployment) vllmTiers(l *launch, w worker) {
	t := d.tiersOf(w)
	if t.NumG2Blocks == 0 {
		return
	}
	if bytes := w.tierBytes(t.NumG2Blocks); bytes > 0 {
		l.value("--kv-offloading-size", strconv.FormatFloat(math.Ceil(bytes/(1<<30)*100)/100, 'f', -1, 64), "tiers.num_g2_blocks")
	} else {
		d.lacks("tiers.num_g2_blocks", t.NumG2Blocks, "give --kv-offloading-size in GiB; the size of a block is not known without timing.model or engine.kv_bytes_per_token")
	}
	if t.NumG3Blocks > 0 {
		d.lacks("tiers.num_g3_blocks", t.NumG3Blocks, "vLLM by itself has no disk tier; the Dynamo graph has")
	}
}

// tiersOf returns the lower memory tiers that a worker has.
func (d *deployment) tiersOf(w worker) tiers.Config {
	t := d.Config.Tiers
	if !t.Enabled() || w.role == roleDecode && !t.DecodeOffload {
		return tiers.DefaultConfig()
	}
	return t
}

// unlimited notes limits that are open, since every server has some.
func (d *deployment) unlimited(w worker) {
	if w.Engine.MaxNumSeqs == 0 {
		d.lacks("engine.max_num_seqs", "null", "%s always has a limit; raise it above what the simulation reached", d.backend.title)
	}
	if w.Engine.MaxNumBatchedTokens == 0 && w.Engine.Type != engine.TypeSGLang {
		d.lacks("engine.max_num_batched_tokens", "null", "%s always has a limit, by default a smaller one", d.backend.title)
	}
}

// lacksCheckpoint notes that the weights are needed in a number format that the server does not make of others.
func (d *deployment) lacksCheckpoint(w worker) {
	d.lacks("timing.dtype", w.quantise, "replace `%s` by a checkpoint with weights in %s; %s does not convert them", w.model, w.quantise, d.backend.title)
}

// checkAcceptance notes the acceptance rates of speculative decoding.
func (d *deployment) checkAcceptance(w worker) {
	rates := w.Engine.AcceptanceRates
	if rates == "" {
		rates = "0.85,0.3"
	}
	d.check("The acceptance rates of speculative tokens were taken to be %s (`engine.acceptance_rates`); the server logs what they are.", rates)
}

// kvIsFP8 reports whether servers would take an 8-bit KV cache for the checkpoint by themselves.
func (d *deployment) kvIsFP8(w worker) bool {
	m, _, err := catalogue.FindModel(w.Timing.Model)
	return err == nil && m.KVDType(w.Timing.DType) == catalogue.FP8
}

// number adds a flag unless the value is the one that the server has anyway.
func (l *launch) number(name string, value, standard int, from string) {
	if value != standard {
		l.value(name, strconv.Itoa(value), from)
	}
}

// share adds a flag for a share of the memory, of which 0 means what the simulator takes for it where it knows the GPU.
func (l *launch) share(name string, w worker, value, simulated float64, from string) {
	if value == 0 && !w.hasGPU() {
		return
	}
	if value == 0 {
		value = simulated
	}
	l.value(name, strconv.FormatFloat(value, 'f', -1, 64), from)
}

func (l *launch) value(name, value, from string) {
	l.args = append(l.args, argument{name, value, from})
}

func (l *launch) flag(name, from string) { l.args = append(l.args, argument{name: name, from: from}) }

func (l *launch) variable(name, value, from string) {
	l.env = append(l.env, argument{name, value, from})
}
