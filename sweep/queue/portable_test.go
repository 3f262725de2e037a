package queue

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// portableFiles makes a folder with a file of every kind that a setting can name.
func portableFiles(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	copied := func(from, to string) {
		t.Helper()
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(filepath.Join("..", "..", filepath.FromSlash(from)))); err != nil {
			t.Fatal(err)
		}
	}
	copied("simcore/workload/testdata/dynamo", "dynamo")
	copied("simcore/workload/testdata/mooncake", "moon cake")
	copied("simcore/perfmodel/profile/testdata/reference", "profiles")
	copied("simcore/perfmodel/tables/data/h200_sxm", "tables/h200_sxm")
	turns := `{"id":"a","models":["m"],"block_size":64,"hash_id_scope":"local","requests":[{"t":0,"type":"n","model":"m","in":64,"out":5,"hash_ids":[1]}]}`
	texts := map[string]string{
		"weka/a.json": turns, "weka/deeper/b.json": strings.Replace(turns, `"a"`, `"b"`, 1), "weka/notes.txt": "not read",
		"azure.csv":            "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.0319600,110,27\n",
		"agents.jsonl":         `{"num_turns":2,"input_prompt_length":1000,"assistant_response_length":[40,30],"tool_call_output_length":[100,600],"tool_call_latency":[0.25,0.5],"final_assistant_response_length":20}` + "\n",
		"aiperf.jsonl":         `{"timestamp":0,"text_input":"hello there","output_length":3}` + "\n",
		"delta.jsonl":          `{"session_id":"a","timestamp":0,"input_length":512,"output_length":16,"hash_ids":[1]}` + "\n",
		"classes.yaml":         "default_policy_family: f\nuncached_isl_buckets: [{min_tokens: 0, bucket: b}]\npolicy_classes: [{name: c, policy_family: f, cache_bucket: b, quantum: 10}]\n",
		"dense/config.json":    `{"model_type":"llama","max_position_embeddings":131072,"num_hidden_layers":32,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256}`,
		"quantised/mine.json":  `{"model_type":"llama","max_position_embeddings":131072,"num_hidden_layers":16,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256}`,
		"quantised/other.safe": "not read", "quantised/hf_quant_config.json": `{"quantization":{"quant_algo":"FP8"}}`,
		"warm up.jsonl": `{"timestamp":0,"input_length":100,"output_length":3,"hash_ids":[1]}` + "\n",
	}
	for name, text := range texts {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

// section is a part of a spec with texts to choose from. A text may be empty.
type section struct {
	name    string
	choices []string
}

// sections are of every kind of configuration.
func sections() []section {
	return []section{
		{"workload", []string{
			`preset: {name: chat, requests: 20}`, `{name: "a: b #1", preset: {name: agent, requests: 15, seed: 18446744073709551615, scale: 0.3}, share: 0.5}`,
			`synthetic: {input_tokens: 100, output_tokens: 5, requests: 10}`,
			`synthetic: {input_tokens: 100, output_tokens: 5, requests: 6, shared_prefix_ratio: 0.5, prefix_groups: 3, turns_per_session: 2, inter_turn_delay_ms: 1.0e-7}`,
			`trace: {path: "moon cake/sessions.jsonl"}`, `trace: {paths: ["moon cake/flat.jsonl", "moon cake/extra.jsonl"], block_size: 1024}`,
			`trace: {format: dynamo, paths: [dynamo/agentic.000000.jsonl.gz, dynamo/agentic.000001.jsonl.gz], strict: true}`,
			`trace: {path: dynamo/completion.jsonl, pacing: causal_with_floor}`, `trace: {format: weka, path: weka}`, `trace: {path: weka/a.json, join_delay: none}`,
			`trace: {path: azure.csv}`, `trace: {path: agents.jsonl, shared_prefix_ratio: 0.25, prefix_groups: 2}`, `trace: {path: aiperf.jsonl, characters_per_token: 3.5}`,
			`trace: {path: delta.jsonl, format: mooncake-delta}`, `{trace: {path: "-"}, name: "on"}`, `trace: {path: "moon cake/flat.jsonl", salvage: true}`,
		}},
		{"timing", []string{
			``, `{gpu: h200, model: llama-3.1-8b}`, `{gpu: mi300x, model: llama-3.1-8b, tp: 2}`, `{source: fixed, prefill_ms: 0.0000001, decode_ms: 100000000000000000000}`,
			`{profile: profiles/passes.csv}`, `{profile: profiles/folder_npz}`, `{profile: profiles/irregular.npz}`, `{gpu: h200_sxm, model: dense/config.json}`,
			`{gpu: h200_sxm, model: quantised/mine.json}`, `{gpu: h200_sxm, model: llama-3.1-8b, tables: tables}`, `{profile: profiles/passes.csv, gpu: h200_sxm, model: quantised/mine.json}`,
		}},
		{"engine", []string{
			``, `{type: sglang, sglang: {schedule_policy: lpm, page_size: 8}}`, `{type: trtllm}`, `{block_size: 32, max_num_seqs: null, preemption_mode: fifo}`,
			`{num_gpu_blocks: 4000, num_speculative_tokens: 2, acceptance_rates: "0.7"}`, `{kv_bytes_per_token: 1000, num_gpu_blocks: 16384, startup_time: 2.5}`,
		}},
		{"deployment", []string{``, `{workers: 3}`, `{mode: disaggregated, prefill_workers: 2, decode_workers: 3}`}},
		{"prefill", []string{``, ``, `{timing: {profile: profiles/passes.csv}, engine: {kv_transfer_bandwidth: 10}}`, `{timing: {gpu: h200_sxm, model: dense/config.json}}`}},
		{"decode", []string{``, ``, `{engine: {max_num_seqs: null}}`, `{timing: {profile: profiles/folder_json}}`}},
		{"router", []string{
			``, `{policy: kv_router, router_queue_threshold: null, router_temperature: 0.5}`, `{policy: kv_router, router_policy_config: classes.yaml}`,
			`{policy: kv_router, router_prefill_load_model: aic, prefill_timing: {gpu: h200_sxm, model: dense/config.json}}`, `{policy: power_of_two, seed: 7}`, `{policy: prefix_affinity}`,
		}},
		{"tiers", []string{``, ``, `{num_g2_blocks: 5000, bandwidth_g1_to_g2_gbps: 10}`}},
		{"planner", []string{
			``, ``, `{policy: target_tracking}`,
			`{policy: dynamo, optimization_target: load, load_adjustment_interval_seconds: 1, decode_scale_up_kv_rate: 50.5, decode_scale_down_kv_rate: 10, max_gpu_budget: -1}`,
			`{policy: dynamo, optimization_target: sla, load_predictor: arima, load_predictor_warmup_trace: "warm up.jsonl"}`,
		}},
		{"load", []string{``, `{concurrency: 3}`, `{rate: 2.5}`, `{speedup: 1000000}`, `{max_sim_time_seconds: 3}`}},
		{"sla", []string{``, `{ttft_ms: 1500, itl_ms: 12.5}`}},
		{"compat", []string{``, ``, ``, `dynamo-1.3`, `dynamo-1.2`}},
		{"prices", []string{``, `{h200: 10}`}},
		{"output", []string{``, `{per_request: true}`}},
		{"execution", []string{``, `{replicates: 3}`, `{replicates: 2, seeds: derived}`}},
	}
}

// drawnSpec draws a spec. Each section says something in about every third one, so that many are sound together.
func drawnSpec(t *rapid.T) string {
	var b strings.Builder
	for _, s := range sections() {
		choice := ""
		if s.name == "workload" || rapid.IntRange(0, 2).Draw(t, s.name+" says something") == 0 {
			choice = rapid.SampledFrom(s.choices).Draw(t, s.name)
		}
		if s.name == "workload" && !strings.HasPrefix(choice, "{") {
			choice = "{" + choice + "}"
		}
		if choice != "" {
			fmt.Fprintf(&b, "%s: %s\n", s.name, choice)
		}
	}
	return b.String()
}

// TestPortablePoints sends points of every kind of configuration, with all their files, to a worker in another folder: there
// they are the same points with the same requests.
func TestPortablePoints(t *testing.T) {
	dir := portableFiles(t)
	stdin := filepath.Join(dir, "moon cake", "flat.jsonl")
	b, store := NewBundle(BundleOptions{Stdin: stdin}), newMemoryStore()
	c := openCache(t, t.TempDir(), 1<<30)
	sound, named := 0, map[string]bool{}
	loaded := map[string]string{} // digests of workloads by their settings, for speed
	rapid.Check(t, func(t *rapid.T) {
		text := drawnSpec(t)
		spec, err := gridspec.Load(gridspec.Source{Data: []byte(text), Dir: dir})
		if err != nil {
			return
		}
		points, err := spec.Expand(gridspec.ExpandOptions{})
		if err != nil {
			return
		}
		sound++
		p := points[rapid.IntRange(0, len(points)-1).Draw(t, "point")]
		digest := digestOf(t, loaded, &p, stdin)
		spelt, files, err := b.Portable(t.Context(), &p)
		if err = errors.Join(err, b.Upload(t.Context(), store, files)); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		sent := &wire.Message{
			Simulator: thisVersion, Sweep: "s", ID: p.ContentID(digest), WorkloadDigest: digest,
			Replicate: p.Replicate, Spec: string(spelt), Files: files,
		}
		data, err := sent.Encode()
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if strings.Contains(string(data), dir) {
			t.Fatalf("the message has a path of this machine: %s", data)
		}
		m, err := wire.DecodeMessage(data)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		release, err := c.Fetch(t.Context(), store, m.Files, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		defer release()
		var declared []string
		for _, f := range m.Files {
			declared = append(declared, f.Path())
			named[f.Name] = true
		}
		back, err := gridspec.FromPortable([]byte(m.Spec), c.Dir(), declared)
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, text, m.Spec)
		}
		back.Replicate = m.Replicate
		if got := back.ContentID(m.WorkloadDigest); got != m.ID {
			t.Fatalf("content ID %s became %s\n%s\n%s", m.ID, got, text, m.Spec)
		}
		if got := digestOf(t, loaded, &back, ""); got != digest {
			t.Fatalf("the requests have the digest %s, not %s\n%s\n%s", got, digest, text, m.Spec)
		}
		if back.Workload.Label() != p.Workload.Label() {
			t.Fatalf("the workload is called %q, not %q", back.Workload.Label(), p.Workload.Label())
		}
	})
	t.Logf("%d specs were sound, %d names of files were sent", sound, len(named))
	if t.Failed() || testing.Short() {
		return
	}
	if sound < 30 || len(named) < 10 {
		t.Errorf("only %d specs were sound and %d names of files were sent: %v", sound, len(named), named)
	}
}

// digestOf is the digest of a point's requests.
func digestOf(t *rapid.T, loaded map[string]string, p *gridspec.Point, stdin string) string {
	set, err := rules.For(p.Config.Compat)
	if err != nil {
		t.Fatal(err)
	}
	src := workload.Source{Rules: set, EngineBlockSize: p.Config.BlockSize()}
	key := fmt.Sprintf("%+v %+v %+v %+v %d %s", p.Workload, p.Workload.Trace, p.Workload.Preset, p.Workload.Synthetic, src.EngineBlockSize, p.Config.Compat)
	if digest, ok := loaded[key]; ok {
		return digest
	}
	if stdin != "" {
		f, err := os.Open(stdin)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		src.Stdin = f
	}
	w, err := p.Workload.Load(t.Context(), src)
	if err != nil {
		t.Fatalf("%v: %+v", err, p.Workload.Trace)
	}
	loaded[key] = w.Digest()
	return w.Digest()
}

// Files that are read together with the one that is named travel with it, and nothing else does.
func TestCompanions(t *testing.T) {
	dir := portableFiles(t)
	for text, want := range map[string]string{
		`workload: {trace: {path: dynamo/agentic.000000.jsonl.gz}}`:                           "agentic.000000.jsonl.gz agentic.000001.jsonl.gz",
		`workload: {trace: {format: weka, path: weka}}`:                                       "weka/a.json weka/deeper/b.json",
		"workload: {preset: {name: chat}}\ntiming: {gpu: h200, model: quantised/mine.json}":   "hf_quant_config.json mine.json",
		"workload: {preset: {name: chat}}\ntiming: {profile: profiles/folder_npz}":            "folder_npz/",
		"workload: {preset: {name: chat}}\ntiming: {gpu: h200_sxm, model: dense/config.json}": "config.json",
	} {
		p := pointOf(t, dir, text)
		b, store := NewBundle(BundleOptions{}), newMemoryStore()
		_, named, err := b.Portable(t.Context(), &p)
		if err = errors.Join(err, b.Upload(t.Context(), store, named)); err != nil {
			t.Fatal(err)
		}
		c := openCache(t, t.TempDir(), 1<<30)
		mustFetch(t, c, store, named...)
		var got []string
		for _, f := range filesBelow(t, c.Dir()) {
			if _, name, _ := strings.Cut(f, "/"); name != listName {
				got = append(got, name)
			}
		}
		if !strings.HasPrefix(strings.Join(got, " "), want) || !strings.HasSuffix(want, "/") && strings.Join(got, " ") != want {
			t.Errorf("%s\nhas %v, want %s", text, got, want)
		}
	}
}

// BenchmarkPortable reports what a point costs on its way: to be written by the coordinator, and read by a worker.
func BenchmarkPortable(b *testing.B) {
	dir := portableFiles(b)
	for name, text := range map[string]string{
		"preset": "workload: {preset: {name: chat, requests: 20}}\nengine: {block_size: 32}\nsla: {ttft_ms: 100}",
		"priced": "workload: {trace: {path: azure.csv}}\ntiming: {gpu: h200, model: llama-3.1-8b}\nload: {rate: 5}\ndeployment: {mode: disaggregated}\nrouter: {policy: kv_router}",
	} {
		p := pointOf(b, dir, text)
		bundle, store := NewBundle(BundleOptions{}), newMemoryStore()
		c, err := OpenCache(b.TempDir(), 1<<30)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		send := func() []byte {
			spec, files, err := bundle.Portable(b.Context(), &p)
			m := &wire.Message{Simulator: thisVersion, Sweep: "s", ID: p.ContentID("d"), WorkloadDigest: "d", Spec: string(spec), Files: files}
			data, problem := m.Encode()
			if err = errors.Join(err, problem, bundle.Upload(b.Context(), store, files)); err != nil {
				b.Fatal(err)
			}
			return data
		}
		data := send()
		b.Run(name+"/write", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				send()
			}
		})
		b.Run(name+"/read", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m, err := wire.DecodeMessage(data)
				if err != nil {
					b.Fatal(err)
				}
				release, err := c.Fetch(b.Context(), store, m.Files, nil)
				if err != nil {
					b.Fatal(err)
				}
				var declared []string
				for _, f := range m.Files {
					declared = append(declared, f.Path())
				}
				back, err := gridspec.FromPortable([]byte(m.Spec), c.Dir(), declared)
				if err != nil || back.ContentID("d") != m.ID {
					b.Fatal(err)
				}
				release()
			}
		})
	}
}
