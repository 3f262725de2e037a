package main

import (
	"fmt"

	"github.com/spf13/pflag"
)

// aicFlags are the reference's flags for its KV router's estimate of prefill load. The timing of the
// workers is said elsewhere: by --timing, or by --extra-engine-args.
var aicFlags = []struct{ name, usage string }{
	{"aic-backend", "KV router's estimate of prefill load: backend of the tables"},
	{"aic-system", "KV router's estimate of prefill load: GPU of the tables"},
	{"aic-model-path", "KV router's estimate of prefill load: model of the tables"},
	{"aic-backend-version", "KV router's estimate of prefill load: release of the backend"},
	{"aic-tp-size", "KV router's estimate of prefill load: tensor parallelism"},
	{"aic-moe-tp-size", "KV router's estimate of prefill load: tensor parallelism of the experts"},
	{"aic-moe-ep-size", "KV router's estimate of prefill load: expert parallelism"},
	{"aic-attention-dp-size", "KV router's estimate of prefill load: attention data parallelism"},
	{"aic-gemm-dtype", "KV router's estimate of prefill load: dtype of matrix multiplications"},
	{"aic-moe-dtype", "KV router's estimate of prefill load: dtype of the experts"},
	{"aic-fmha-dtype", "KV router's estimate of prefill load: dtype of attention"},
	{"aic-kv-cache-dtype", "KV router's estimate of prefill load: dtype of the KV cache"},
	{"aic-comm-dtype", "KV router's estimate of prefill load: dtype of communication"},
	{"aic-nextn", "KV router's estimate of prefill load: speculative tokens"},
	{"aic-nextn-accept-rates", "KV router's estimate of prefill load: acceptance rates"},
}

func addAICFlags(fs *pflag.FlagSet) {
	for _, f := range aicFlags {
		fs.String(f.name, "", f.usage)
	}
}

// checkAICFlags refuses flags that would change nothing: the estimate belongs to the KV router, and needs backend,
// system and model.
func checkAICFlags(fs *pflag.FlagSet, router string) error {
	given := ""
	for _, f := range aicFlags {
		if fs.Changed(f.name) {
			given = f.name
			break
		}
	}
	if given == "" {
		return nil
	}
	for _, needed := range []string{"aic-backend", "aic-system", "aic-model-path"} {
		if !fs.Changed(needed) {
			return fmt.Errorf("--%s needs --%s: give --aic-backend, --aic-system and --aic-model-path together", given, needed)
		}
	}
	return fmt.Errorf("--%s describes how the KV router estimates prefill load, and --router-mode is %s; what the workers take is said by --timing or by aic_* keys of --extra-engine-args",
		given, router)
}
