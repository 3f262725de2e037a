package deploy

import (
	"math"
	"strconv"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/kvcache/tiers"
	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
)

// sglangLaunch translates the settings of a worker into flags of `python3 -m sglang.launch_server`, which Dynamo's SGLang
// worker takes too. SGLang counts the GPUs of all ranks of data-parallel attention as tensor parallel, and gives its limits for
// all of them together.
func sglangLaunch(d *deployment, w worker) launch {
	e, t := w.Engine, w.Timing
	var l launch
	ranks, each := 1, ""
	if w.attentionDP() {
		ranks, each = t.DP, " × timing.dp"
	}
	l.number("--tp-size", t.TP*ranks, 1, "timing.tp"+each)
	l.number("--dp-size", t.DP, 1, "timing.dp")
	if w.attentionDP() {
		l.flag("--enable-dp-attention", "timing.dp")
	}
	l.number("--ep-size", w.expertParallel(), 1, "timing.ep")
	d.sglangNumbers(&l, w)
	l.number("--max-running-requests", e.MaxNumSeqs*ranks, 0, "engine.max_num_seqs"+each)
	d.unlimited(w)
	l.number("--chunked-prefill-size", orDefault(e.SGLang.ChunkedPrefillSize, 8192)*ranks, 0, "engine.sglang.chunked_prefill_size"+each)
	l.number("--max-prefill-tokens", e.SGLang.MaxPrefillTokens, 0, "engine.sglang.max_prefill_tokens")
	if p := e.SGLang.SchedulePolicy; p == engine.PolicyLPM {
		l.value("--schedule-policy", "lpm", "engine.sglang.schedule_policy")
	} else {
		l.value("--schedule-policy", "fcfs", "engine.sglang.schedule_policy")
	}
	if c := e.SGLang.ScheduleConservativeness; c != 1 {
		l.value("--schedule-conservativeness", strconv.FormatFloat(c, 'f', -1, 64), "engine.sglang.schedule_conservativeness")
	}
	if n := e.SGLang.ClipMaxNewTokens; n > 0 {
		l.variable("SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION", strconv.Itoa(n), "engine.sglang.clip_max_new_tokens")
	}
	l.number("--context-length", e.ContextLength, 0, "engine.context_length")
	l.number("--page-size", e.BlockSize, 0, "engine.block_size")
	l.share("--mem-fraction-static", w, e.MemFractionStatic, .88, "engine.mem_fraction_static")
	if w.ownPool {
		l.value("--max-total-tokens", strconv.Itoa(w.blocksPerRank()*e.BlockSize), "engine.num_gpu_blocks")
	}
	if !e.EnablePrefixCaching {
		l.flag("--disable-radix-cache", "engine.enable_prefix_caching")
	}
	if n := e.NumSpeculativeTokens; n > 0 && w.mtp {
		l.value("--speculative-algorithm", "NEXTN", "engine.num_speculative_tokens")
		l.value("--speculative-num-steps", strconv.Itoa(n), "engine.num_speculative_tokens")
		l.value("--speculative-eagle-topk", "1", "engine.num_speculative_tokens")
		l.value("--speculative-num-draft-tokens", strconv.Itoa(n+1), "engine.num_speculative_tokens")
		d.checkAcceptance(w)
	} else if n > 0 {
		d.lacks("engine.num_speculative_tokens", n, "choose what proposes the tokens and add --speculative-algorithm, --speculative-draft-model-path and --speculative-num-steps %d", n)
	}
	if w.role != "" {
		l.value("--disaggregation-mode", w.role, "deployment.mode")
		l.value("--disaggregation-transfer-backend", "nixl", "deployment.mode")
	}
	if w.role == roleDecode && e.EnablePrefixCaching && e.KVTransferTimingMode == engine.TransferDestinationMissing {
		l.flag("--disaggregation-decode-enable-radix-cache", "engine.kv_transfer_timing_mode")
	}
	d.sglangTiers(&l, w)
	return l
}

// sglangNumbers translates the number formats of weights and KV cache.
func (d *deployment) sglangNumbers(l *launch, w worker) {
	switch w.quantise {
	case "":
	case catalogue.FP8:
		l.value("--quantization", "fp8", "timing.dtype")
	default:
		d.lacksCheckpoint(w)
	}
	switch kv := w.Timing.KVCacheDType; {
	case kv == catalogue.FP8:
		l.value("--kv-cache-dtype", "fp8_e4m3", "timing.kv_cache_dtype")
	case kv != "" && d.kvIsFP8(w):
		l.value("--kv-cache-dtype", "bf16", "timing.kv_cache_dtype")
	}
}

// sglangTiers translates host memory and disks for KV blocks. Each rank has host memory of its own.
func (d *deployment) sglangTiers(l *launch, w worker) {
	t := d.tiersOf(w)
	if t.NumG2Blocks == 0 {
		return
	}
	l.flag("--enable-hierarchical-cache", "tiers.num_g2_blocks")
	if bytes := w.tierBytes(t.NumG2Blocks) / float64(w.Timing.TP); bytes > 0 {
		l.value("--hicache-size", strconv.Itoa(int(math.Ceil(bytes/1e9))), "tiers.num_g2_blocks")
	} else {
		ratio := float64(t.NumG2Blocks) / float64(w.Engine.NumGPUBlocks)
		l.value("--hicache-ratio", strconv.FormatFloat(ratio, 'f', 3, 64), "tiers.num_g2_blocks")
	}
	policy := "write_back"
	if t.OffloadPolicy == tiers.OffloadOnComplete {
		policy = "write_through"
	}
	l.value("--hicache-write-policy", policy, "tiers.offload_policy")
	if t.NumG3Blocks > 0 {
		l.value("--hicache-storage-backend", "file", "tiers.num_g3_blocks")
		d.lacks("tiers.num_g3_blocks", t.NumG3Blocks, "SGLang does not bound the files of a disk tier; SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR says where they are")
	}
}

func orDefault(value, standard int) int {
	if value == 0 {
		return standard
	}
	return value
}
