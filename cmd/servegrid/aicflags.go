package main

import (
	"encoding/json"
	"strings"

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
	{"aic-nextn", "KV router's estimate of prefill load: speculative tokens, which prompts do not have"},
	{"aic-nextn-accept-rates", "KV router's estimate of prefill load: acceptance rates, which prompts do not have"},
}

func addAICFlags(fs *pflag.FlagSet) {
	for _, f := range aicFlags {
		if strings.HasSuffix(f.name, "-size") {
			fs.Int(f.name, 0, f.usage)
		} else {
			fs.String(f.name, "", f.usage)
		}
	}
}

// effectiveAICFlags are those that say something: a dtype can be left open in several ways.
func effectiveAICFlags(flags *pflag.FlagSet) []string {
	var names []string
	for _, f := range aicFlags {
		if !strings.HasSuffix(f.name, "-dtype") || referenceDType(flags.Lookup(f.name).Value.String()) != "" {
			names = append(names, f.name)
		}
	}
	return names
}

// aicTiming is the timing section that the flags describe.
func aicTiming(flags *pflag.FlagSet) (map[string]any, error) {
	args := map[string]any{}
	for _, f := range aicFlags {
		flag := flags.Lookup(f.name)
		if !flag.Changed || strings.HasPrefix(f.name, "aic-nextn") {
			continue
		}
		var v any = flag.Value.String()
		if strings.HasSuffix(f.name, "-size") {
			v = json.Number(flag.Value.String())
		}
		args[strings.ReplaceAll(f.name, "-", "_")] = v
	}
	section := map[string]any{}
	a := engineArgs{flag: "--aic-*", engine: args, stage: section, spec: map[string]any{}}
	a.moveTiming()
	timing, _ := section["timing"].(map[string]any)
	return timing, a.err()
}
