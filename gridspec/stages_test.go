package gridspec_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/gridspec"
)

// stagesOf shows what prefill and decode workers of a configuration have, as workers x block size/sequences/tp.
func stagesOf(c gridspec.Config) string {
	var out []string
	for _, p := range c.Stages() {
		out = append(out, fmt.Sprintf("%dx%d/%d/%d", p.Workers, p.Engine.BlockSize, p.Engine.MaxNumSeqs, p.Timing.TP))
	}
	return strings.Join(out, " ")
}

func TestStagesTakeOverWhatTheyLeaveOut(t *testing.T) {
	for _, tc := range []struct{ name, spec, want string }{
		{"aggregated", "deployment: {workers: 3}\nengine: {block_size: 16}", "3x16/256/1"},
		{"all of it", "deployment: {prefill_workers: 2, decode_workers: 3}\nengine: {block_size: 16, max_num_seqs: 8}\ntiming: {tp: 2}", "2x16/8/2 3x16/8/2"},
		{"one pool", "deployment: {mode: disaggregated}", "1x64/256/1 1x64/256/1"},
		{"a key of a stage wins", "deployment: {decode_workers: 2}\nengine: {max_num_seqs: 8}\nprefill: {engine: {max_num_seqs: 4}, timing: {tp: 2}}", "1x64/4/2 2x64/8/1"},
		{"also with the default", "deployment: {decode_workers: 2}\nengine: {max_num_seqs: 8}\nprefill: {engine: {max_num_seqs: 256}}", "1x64/256/1 2x64/8/1"},
		{"also with null", "deployment: {decode_workers: 2}\nengine: {max_num_seqs: 8}\ndecode: {engine: {max_num_seqs: null}}", "1x64/8/1 2x64/0/1"},
		{"another name", "deployment: {decode_workers: 2}\nprefill: {engine: {engine_type: sglang}}\ndecode: {engine: {engine_type: sglang}}", "1x1/256/1 2x1/256/1"},
		{"block size by engine", "deployment: {mode: disaggregated}\nengine: {type: sglang, sglang: {page_size: 4}}", "1x4/256/1 1x4/256/1"},
		{"axis of both", "deployment: {decode_workers: 2}\ngrid: {engine.max_num_seqs: [4, 8]}", "1x64/4/1 2x64/4/1, 1x64/8/1 2x64/8/1"},
		{"axis that a stage overrides", "deployment: {decode_workers: 2}\ndecode: {engine: {max_num_seqs: 2}}\ngrid: {engine.max_num_seqs: [4, 8]}", "1x64/4/1 2x64/2/1, 1x64/8/1 2x64/2/1"},
		{"axis of a stage", "deployment: {decode_workers: 2}\ndecode: {engine: {max_num_seqs: 2}}\ngrid: {decode.engine.max_num_seqs: [4, null]}", "1x64/256/1 2x64/4/1, 1x64/256/1 2x64/0/1"},
		{"pools as axes imply the mode", "grid: {deployment.prefill_workers: [1, 2]}", "1x64/256/1 1x64/256/1, 2x64/256/1 1x64/256/1"},
		{"one mode after the other", "deployment: {workers: 4, decode_workers: 2}\nprefill: {engine: {max_num_seqs: 4}}\ngrid: {deployment.mode: [aggregated, disaggregated]}", "4x64/256/1, 1x64/4/1 2x64/256/1"},
		{"cases", "cases: {a: {deployment.workers: 2}, b: {deployment: {prefill_workers: 2}, prefill.engine: {max_num_seqs: 4}}}", "2x64/256/1, 2x64/4/1 1x64/256/1"},
	} {
		var got []string
		for _, p := range expand(t, load(t, chat+tc.spec)) {
			got = append(got, stagesOf(p.Config))
		}
		if diff := cmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestSettingsOfTheOtherDeploymentMode(t *testing.T) {
	for _, tc := range []struct {
		name, spec string
		want       []string
	}{
		{"a stage", "prefill: {engine: {max_num_seqs: 4}}", []string{"grid.yaml:2:20: prefill.engine.max_num_seqs: 4 is not allowed; it would change nothing: only mode disaggregated has it, and this is mode aggregated"}},
		{"workers", "deployment: {mode: disaggregated, workers: 2}", []string{"grid.yaml:2:35: deployment.workers: 2 is not allowed; it would change nothing: only mode aggregated has it"}},
		{"pools", "deployment: {mode: aggregated, prefill_workers: 2}", []string{"deployment.prefill_workers: 2 is not allowed; it would change nothing"}},
		{"both", "deployment: {workers: 2, prefill_workers: 2}", []string{"deployment.mode", "both deployment.workers and the sizes of prefill and decode pools are given; set deployment.mode to aggregated or disaggregated"}},
		{"an axis at points of the other mode", "grid: {deployment.mode: [aggregated, disaggregated], deployment.workers: [1, 2]}", []string{"grid.yaml:2:54: deployment.workers: 1 is not allowed; it would change nothing"}},
		{"block sizes", "deployment: {mode: disaggregated}\nprefill: {engine: {block_size: 16}}", []string{"decode.engine.block_size"}},
		{"no policy file", "deployment: {workers: 2}\nrouter: {policy: kv_router, router_policy_config: nosuch.yaml}", []string{"grid.yaml:3:29: router.router_policy_config: ", "nosuch.yaml is not allowed; the file cannot be read: no such file"}},
	} {
		s, err := gridspec.Load(gridspec.Source{Path: "grid.yaml", Data: []byte(chat + tc.spec)})
		if err == nil {
			_, err = s.Expand(gridspec.ExpandOptions{})
		}
		if err == nil {
			t.Errorf("%s: no problem", tc.name)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got\n%v\nwant %q", tc.name, err, want)
			}
		}
	}
}

// Names of GPUs and models show as they are in tables, also where stages have them.
func TestAxesOfStagesShowWhatTheyResolveTo(t *testing.T) {
	ps := expand(t, load(t, chat+"deployment: {mode: disaggregated}\ntiming: {model: llama-3.1-8b, gpu: h200}\ngrid: {timing.gpu: [h200, b200], decode.timing.dtype: [bf16, fp8], engine.block_size: [null, 32]}"))
	want := []string{"h200_sxm", "h200_sxm", "h200_sxm", "h200_sxm", "b200_sxm", "b200_sxm", "b200_sxm", "b200_sxm"}
	if diff := cmp.Diff(want, column(t, ps, "gpu")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"64", "32"}, column(t, ps, "block_size")[:2]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"bf16", "bf16", "fp8", "fp8"}, column(t, ps, "decode_dtype")[:4]); diff != "" {
		t.Error(diff)
	}
	for _, p := range ps {
		if p.GPUPrice.USDPerHour == 0 {
			t.Errorf("no price of %s", p.Config.Decode.Timing.GPU)
		}
	}
}

// What a deployment mode does not have is no part of an ID, and all that it has is.
func TestStagesInContentIDs(t *testing.T) {
	id := func(spec string) string { return expand(t, load(t, chat+spec))[0].ContentID("digest") }
	const disagg = "deployment: {mode: disaggregated}\n"
	same := [][2]string{
		{"", "deployment: {mode: aggregated}"},
		{"", "engine: {block_size: 64, num_gpu_blocks: 16384}"},
		{disagg + "engine: {max_num_seqs: 4}", disagg + "prefill: {engine: {max_num_seqs: 4}}\ndecode: {engine: {max_num_seqs: 4}}"},
		{disagg + "prefill: {engine: {max_num_seqs: 4}}\ndecode: {engine: {max_num_seqs: 5}}", disagg + "engine: {max_num_seqs: 4}\ndecode: {engine: {max_num_seqs: 5}}"},
	}
	for _, pair := range same {
		if id(pair[0]) != id(pair[1]) {
			t.Errorf("different IDs of %q and %q", pair[0], pair[1])
		}
	}
	seen := map[string]string{}
	for _, spec := range []string{
		"", disagg, "deployment: {workers: 2}", "deployment: {prefill_workers: 2}", "deployment: {decode_workers: 2}",
		disagg + "prefill: {engine: {max_num_seqs: 4}}", disagg + "decode: {engine: {max_num_seqs: 4}}", disagg + "engine: {max_num_seqs: 4}", disagg + "decode: {timing: {tp: 2}}",
		"engine: {type: sglang, block_size: 64}", "engine: {type: trtllm, block_size: 64}", "engine: {type: sglang, block_size: 64, sglang: {schedule_policy: lpm}}",
		"router: {policy: kv_router}", "router: {policy: kv_router, router_queue_threshold: null}", "router: {policy: kv_router, seed: 1}",
	} {
		if other, ok := seen[id(spec)]; ok {
			t.Errorf("equal IDs of %q and %q", spec, other)
		}
		seen[id(spec)] = spec
	}
}

const policies = "default_policy_family: f\nuncached_isl_buckets: [{min_tokens: 0, bucket: b}]\npolicy_classes: [{name: c, policy_family: f, cache_bucket: b, quantum: 10}]\n"

// A policy file counts by what is in it, whatever it is called, and moves with the resolved spec.
func TestPolicyFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.yaml": policies, "b.yaml": policies, "c.yaml": strings.Replace(policies, "10", "20", 1), "bad.yaml": strings.Replace(policies, "10", "0", 1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	spec := func(file string) *gridspec.Spec {
		s, err := gridspec.Load(gridspec.Source{Data: []byte(chat + "deployment: {workers: 2}\nrouter: {policy: kv_router, router_policy_config: " + file + "}"), Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	ids := map[string]string{}
	for _, file := range []string{"a.yaml", "b.yaml", "c.yaml"} {
		p := expand(t, spec(file))[0]
		if p.Config.Router.Classes == nil || p.Config.Router.RouterPolicyConfig != filepath.Join(dir, file) {
			t.Errorf("%s: path %s, classes %v", file, p.Config.Router.RouterPolicyConfig, p.Config.Router.Classes)
		}
		ids[file] = p.ContentID("digest")
	}
	if ids["a.yaml"] != ids["b.yaml"] || ids["a.yaml"] == ids["c.yaml"] {
		t.Errorf("IDs %v", ids)
	}
	if _, err := spec("bad.yaml").Expand(gridspec.ExpandOptions{}); err == nil || !strings.Contains(err.Error(), "policy_classes[0].quantum: 0 is not allowed") {
		t.Errorf("got %v", err)
	}
	text, err := spec("a.yaml").Resolved(filepath.Join(dir, "out"))
	if err != nil || !strings.Contains(string(text), "router_policy_config: \"../a.yaml\"") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestUnusedInScenario checks that the AgentX scenario says what it has no use for.
func TestUnusedInScenario(t *testing.T) {
	const trace = "workload: {trace: {path: t.jsonl, pacing: causal}}\nload: {concurrency: 2}\n"
	for spec, want := range map[string]string{
		"agentx: {preset: rfc}":  "workload.trace.pacing: it changes nothing: the AgentX scenario keeps the recorded pauses",
		"":                       "",
		"agentx: {gap_cap_s: 5}": "agentx.gap_cap_s: it changes nothing: there is no AgentX scenario",
		"agentx: {gap_cap_s: 5}\ngrid: {agentx.preset: [\"\", rfc]}": "",
	} {
		s, err := gridspec.Load(gridspec.Source{Path: "grid.yaml", Data: []byte(trace + spec)})
		if err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		if got := s.Warnings(); (want == "") != (len(got) == 0) || want != "" && !strings.Contains(got[0].Error(), want) {
			t.Errorf("%s: got %v, want %q", spec, got, want)
		}
	}
}

// TestUnusedWarmUp checks that a kind of warm-up is said to change nothing where there is nothing to warm up with.
func TestUnusedWarmUp(t *testing.T) {
	const unused = "agentx.warm_up: it changes nothing: there are no further requests"
	for spec, want := range map[string]string{
		"agentx: {preset: rfc, warm_up: live_trajectory}":                                              unused,
		"agentx: {preset: ix, primers_per_user: 0, warm_up: live_trajectory}":                          unused,
		"agentx: {preset: ix, warm_up: live_trajectory}":                                               "",
		"agentx: {preset: rfc, primers_per_user: 3, warm_up: live_trajectory}":                         "",
		"agentx: {preset: rfc, warm_up: live_trajectory}\ngrid: {agentx.primers_per_user: [0, 5]}":     "",
		"agentx: {preset: rfc}\ngrid: {agentx.warm_up: [repeated_prefixes, live_trajectory]}":          "grid." + unused[:len("agentx.warm_up: it changes nothing")],
		"agentx: {primers_per_user: null, warm_up: live_trajectory}\ngrid: {agentx.preset: [rfc, ix]}": "",
	} {
		s, err := gridspec.Load(gridspec.Source{Path: "grid.yaml", Data: []byte("workload: {trace: {path: t.jsonl}}\nload: {concurrency: 2}\n" + spec)})
		if err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		if got := s.Warnings(); (want == "") != (len(got) == 0) || want != "" && !strings.Contains(got[0].Error(), want) {
			t.Errorf("%s: got %v, want %q", spec, got, want)
		}
	}
}

func TestUnusedSettings(t *testing.T) {
	for spec, want := range map[string]string{
		"engine: {sglang: {schedule_policy: lpm}}":                                                                   "engine.sglang.schedule_policy: it changes nothing: only engine.type sglang has it",
		"engine: {sglang: {schedule_policy: lpm}}\ngrid: {engine.type: [vllm, sglang]}":                              "",
		"grid: {engine.sglang.schedule_policy: [fifo, lpm]}":                                                         "grid.engine.sglang.schedule_policy: it changes nothing",
		"engine: {kv_transfer_bandwidth: 10}":                                                                        "only deployment.mode disaggregated transfers KV caches",
		"engine: {kv_transfer_bandwidth: 10}\ndeployment: {mode: disaggregated}":                                     "",
		"deployment: {mode: disaggregated}\ndecode: {engine: {kv_transfer_bandwidth: 10}}":                           "write it in prefill.engine",
		"router: {router_temperature: 1}":                                                                            "only router.policy kv_router has it",
		"router: {router_temperature: 1}\ndeployment: {workers: 2}\ngrid: {router.policy: [round_robin, kv_router]}": "",
		"tiers: {num_g3_blocks: 10}":                                                                                 "there are no memory tiers without tiers.num_g2_blocks",
		"tiers: {num_g2_blocks: 10, latency_g3_to_g2_ms: 1}":                                                         "there are no disks without tiers.num_g3_blocks",
		"tiers: {num_g2_blocks: 10, latency_g4_to_g2_ms: 1}":                                                         "there is no object store without tiers.enable_g4_storage",
		"tiers: {num_g2_blocks: 10, workers_per_node: 1}":                                                            "the workers of a node share disks and the way to the object store",
		"tiers: {num_g2_blocks: 10, decode_offload: true}":                                                           "only deployment.mode disaggregated has decode workers",
		"tiers: {num_g2_blocks: 10, num_g3_blocks: 10}\nengine: {kv_bytes_per_token: 1000}":                          "",
		"router: {seed: 1}":                                                                      "nothing is drawn with this router.policy",
		"router: {policy: power_of_two, seed: 1}":                                                "",
		"router: {policy: kv_router, model_name: a}":                                             "which is not given",
		"router: {policy: kv_router, prefill_timing: {gpu: h200}}":                               "only router.router_prefill_load_model aic",
		"router: {prefix_affinity_tokens: 9}":                                                    "only router.policy prefix_affinity has it",
		"cases: {a: {engine.type: sglang}, b: {engine: {type: sglang, sglang: {page_size: 4}}}}": "",
	} {
		s, err := gridspec.Load(gridspec.Source{Path: "grid.yaml", Data: []byte(chat + spec)})
		if err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		got := s.Warnings()
		switch {
		case want == "" && len(got) > 0:
			t.Errorf("%s: %v", spec, got)
		case want != "" && (len(got) != 1 || !strings.Contains(got[0].Error(), want)):
			t.Errorf("%s: got %v, want one with %q", spec, got, want)
		}
	}
}
