package deploy

import (
	"fmt"
	"strings"

	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
)

// option is an entry of a file of TensorRT-LLM's LLM API options; a value of a section is a list of options.
type option struct {
	name  string
	value any
	from  string
}

// trtllmLaunch translates the settings of a worker into options of TensorRT-LLM's LLM API, which `trtllm-serve` and Dynamo's
// TensorRT-LLM worker both read. It counts the GPUs of all ranks of data-parallel attention as tensor parallel.
func trtllmLaunch(d *deployment, w worker) launch {
	e, t := w.Engine, w.Timing
	var l launch
	add := func(name string, value any, from string) { l.options = append(l.options, option{name, value, from}) }
	add("tensor_parallel_size", w.GPUsPerWorker(), "timing.tp × timing.dp")
	if t.DP > 1 {
		switch {
		case t.TP > 1:
			d.lacks("timing.tp", t.TP, "with data-parallel attention TensorRT-LLM has a rank on each GPU, not on %d", t.TP)
		case !w.experts:
			d.lacks("timing.dp", t.DP, "TensorRT-LLM has no copies of a dense model in one server; start %d of them with tensor_parallel_size %d", t.DP, t.TP)
		}
		add("enable_attention_dp", true, "timing.dp")
	}
	if ep := w.expertParallel(); ep > 1 {
		add("moe_expert_parallel_size", ep, "timing.ep")
	}
	if e.MaxNumSeqs > 0 {
		add("max_batch_size", e.MaxNumSeqs, "engine.max_num_seqs")
	}
	if e.MaxNumBatchedTokens > 0 {
		add("max_num_tokens", e.MaxNumBatchedTokens, "engine.max_num_batched_tokens")
	}
	d.unlimited(w)
	if e.ContextLength > 0 {
		add("max_seq_len", e.ContextLength, "engine.context_length")
	}
	add("enable_chunked_prefill", e.EnableChunkedPrefill, "engine.enable_chunked_prefill")
	add("kv_cache_config", d.trtllmCache(w), "")
	policy := e.TensorRTLLM.CapacitySchedulerPolicy
	if policy == "" {
		policy = "guaranteed_no_evict"
	}
	add("scheduler_config", []option{{"capacity_scheduler_policy", strings.ToUpper(policy), "engine.trtllm.capacity_scheduler_policy"}}, "")
	if w.quantise != "" {
		d.lacksCheckpoint(w)
	}
	if n := e.NumSpeculativeTokens; n > 0 && w.mtp {
		add("speculative_config", []option{{"decoding_type", "MTP", ""}, {"num_nextn_predict_layers", n, "engine.num_speculative_tokens"}}, "")
		d.checkAcceptance(w)
	} else if n > 0 {
		d.lacks("engine.num_speculative_tokens", n, "choose what proposes the tokens and add a speculative_config to the options")
	}
	if w.role != "" {
		add("cache_transceiver_config", []option{{"backend", "DEFAULT", "deployment.mode"}}, "")
	}
	if w.role == rolePrefill {
		add("disable_overlap_scheduler", true, "deployment.mode")
	}
	return l
}

// trtllmCache is the section about the KV cache.
func (d *deployment) trtllmCache(w worker) []option {
	e := w.Engine
	options := []option{{"tokens_per_block", e.BlockSize, "engine.block_size"}}
	if fraction := e.FreeGPUMemoryFraction; fraction > 0 || w.hasGPU() {
		if fraction == 0 {
			fraction = .9
		}
		options = append(options, option{"free_gpu_memory_fraction", fraction, "engine.free_gpu_memory_fraction"})
	}
	if w.ownPool {
		options = append(options, option{"max_tokens", w.blocksPerRank() * e.BlockSize, "engine.num_gpu_blocks"})
	}
	options = append(options, option{"enable_block_reuse", e.EnablePrefixCaching, "engine.enable_prefix_caching"})
	if w.Timing.KVCacheDType == catalogue.FP8 {
		options = append(options, option{"dtype", "fp8", "timing.kv_cache_dtype"})
	}
	t := d.tiersOf(w)
	if t.NumG2Blocks == 0 {
		return options
	}
	if bytes := w.tierBytes(t.NumG2Blocks) / float64(w.Timing.TP); bytes > 0 {
		options = append(options, option{"host_cache_size", int64(bytes), "tiers.num_g2_blocks"})
	} else {
		d.lacks("tiers.num_g2_blocks", t.NumG2Blocks, "give kv_cache_config.host_cache_size in bytes; the size of a block is not known without timing.model or engine.kv_bytes_per_token")
	}
	if t.NumG3Blocks > 0 {
		d.lacks("tiers.num_g3_blocks", t.NumG3Blocks, "TensorRT-LLM by itself has no disk tier; the Dynamo graph has")
	}
	return options
}

// optionsYAML writes options as a YAML file.
func optionsYAML(title string, options []option) []byte {
	var b yamlWriter
	b.comment(0, fmt.Sprintf("Options of %s, with the setting of servegrid that each comes from.", title))
	b.options(0, options)
	return b.Bytes()
}
