package catalogue

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The smallest configs of their kinds.
const (
	denseConfig = `{"model_type":"llama","max_position_embeddings":131072,"num_hidden_layers":32,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,` +
		`"intermediate_size":14336,"vocab_size":128256}`
	expertConfig = `{"model_type":"qwen3_moe","max_position_embeddings":40960,"num_hidden_layers":48,"hidden_size":2048,"num_attention_heads":32,"num_key_value_heads":4,` +
		`"head_dim":128,"intermediate_size":6144,"vocab_size":151936,"num_experts":128,"num_experts_per_tok":8,"moe_intermediate_size":768,` +
		`"decoder_sparse_step":1,"mlp_only_layers":[],"sliding_window":null,"use_sliding_window":false,"max_window_layers":48}`
	latentConfig = `{"model_type":"kimi_k25","text_config":{"model_type":"kimi_k2","max_position_embeddings":262144,"num_hidden_layers":61,"hidden_size":7168,` +
		`"num_attention_heads":64,"num_key_value_heads":64,"intermediate_size":18432,"vocab_size":163840,"n_routed_experts":384,` +
		`"num_experts_per_tok":8,"moe_intermediate_size":2048,"n_shared_experts":1,"q_lora_rank":1536,"kv_lora_rank":512,` +
		`"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"quantization_config":{"quant_method":"compressed-tensors",` +
		`"config_groups":{"group_0":{"weights":{"num_bits":4,"type":"int","group_size":32}}},"ignore":["re:.*self_attn.*"]}}}`
	windowConfig = `{"model_type":"gpt_oss","max_position_embeddings":131072,"num_hidden_layers":4,"hidden_size":2880,"num_attention_heads":64,"num_key_value_heads":8,` +
		`"head_dim":64,"intermediate_size":2880,"vocab_size":201088,"num_local_experts":32,"num_experts_per_tok":4,"sliding_window":128,` +
		`"layer_types":["sliding_attention","full_attention","sliding_attention","sliding_attention"],"quantization_config":{"quant_method":"mxfp4"}}`
)

func TestParseModel(t *testing.T) {
	for name, test := range map[string]struct {
		config, quantisation string
		catalogue            string
		layers, windowLayers int
		want                 HFName
	}{
		"dense":                   {denseConfig, "", "llama-3.1-8b", 32, 0, HFName{DType: BF16}},
		"ModelOpt beside":         {denseConfig, `{"quantization":{"quant_algo":"FP8","kv_cache_quant_algo":"FP8"}}`, "llama-3.1-8b", 32, 0, HFName{DType: FP8, KVDType: FP8}},
		"experts":                 {expertConfig, "", "qwen3-30b-a3b", 48, 0, HFName{DType: BF16}},
		"nested, latent, 4-bit":   {latentConfig, "", "kimi-k2.5", 61, 0, HFName{DType: INT4}},
		"windows":                 {windowConfig, "", "gpt-oss-20b", 4, 3, HFName{DType: MXFP4}},
		"windows of half":         {without(windowConfig, "layer_types"), "", "gpt-oss-20b", 4, 2, HFName{DType: MXFP4}},
		"NVFP4 without attention": {expertConfig, `{"quantization":{"quant_algo":"NVFP4","exclude_modules":["lm_head","model.layers.0.self_attn*"]}}`, "qwen3-30b-a3b", 48, 0, HFName{DType: NVFP4, AttentionDType: BF16}},
	} {
		m, err := parseModel([]byte(test.config), []byte(test.quantisation))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if m.HuggingFace[0] != test.want || m.WindowLayers != test.windowLayers {
			t.Errorf("%s: %+v with %d window layers, want %+v with %d", name, m.HuggingFace[0], m.WindowLayers, test.want, test.windowLayers)
		}
		like, _, err := FindModel(test.catalogue)
		if err != nil {
			t.Fatal(err)
		}
		like.ID, like.Name, like.HuggingFace, like.Layers, like.WindowLayers = "", "", m.HuggingFace, test.layers, test.windowLayers
		if got, want := mustJSON(t, m), mustJSON(t, like); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

// TestWindowRules checks which layers have windows in families whose config.json doesn't list them.
func TestWindowRules(t *testing.T) {
	for name, test := range map[string]struct {
		extra string
		want  int
	}{
		"llama ignores it":    {`"model_type":"llama","sliding_window":4096`, 0},
		"mistral":             {`"model_type":"mistral","sliding_window":4096`, 32},
		"mistral without":     {`"model_type":"mistral","sliding_window":null`, 0},
		"gemma2":              {`"model_type":"gemma2","sliding_window":4096`, 16},
		"gemma3":              {`"model_type":"gemma3_text","sliding_window":1024,"sliding_window_pattern":6`, 27},
		"qwen2 off":           {`"model_type":"qwen2","sliding_window":4096,"use_sliding_window":false,"max_window_layers":28`, 0},
		"qwen2 on":            {`"model_type":"qwen2","sliding_window":4096,"use_sliding_window":true,"max_window_layers":28`, 4},
		"qwen2 beyond layers": {`"model_type":"qwen2","sliding_window":4096,"use_sliding_window":true,"max_window_layers":99`, 0},
	} {
		m, err := parseModel([]byte(with(denseConfig, test.extra)), nil)
		if err != nil || m.WindowLayers != test.want || (m.Window > 0) != (test.want > 0) {
			t.Errorf("%s: %d layers with a window of %d, %v; want %d", name, m.WindowLayers, m.Window, err, test.want)
		}
	}
}

// TestQuantisations checks the notations of quantisers.
func TestQuantisations(t *testing.T) {
	group := func(weights string) string {
		return `"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":` + weights + `}}}`
	}
	for extra, want := range map[string]HFName{
		`"quantization_config":null`: {DType: BF16},
		`"quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]}`:                              {DType: FP8Block},
		`"quantization_config":{"quant_method":"fp8"}`:                                                            {DType: FP8},
		`"quantization_config":{"quant_method":"fbgemm_fp8"}`:                                                     {DType: FP8},
		`"quantization_config":{"quant_method":"awq","bits":4}`:                                                   {DType: INT4},
		`"quantization_config":{"quant_method":"gptq","bits":4}`:                                                  {DType: INT4},
		`"quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4","kv_cache_scheme":{"num_bits":8}}`: {DType: NVFP4, KVDType: FP8},
		`"quantization_config":{"quant_algo":"FP8","kv_cache_scheme":"FP8","ignore":["lm_head"]}`:                 {DType: FP8, KVDType: FP8},
		group(`{"num_bits":8,"type":"float","strategy":"tensor"}`):                                                {DType: FP8},
		group(`{"num_bits":8,"type":"float","strategy":"block"}`):                                                 {DType: FP8Block},
		group(`{"num_bits":4,"type":"float","group_size":16}`):                                                    {DType: NVFP4},
		group(`{"num_bits":4,"type":"int"}`):                                                                      {DType: INT4},
	} {
		m, err := parseModel([]byte(with(denseConfig, extra)), nil)
		if err != nil || m.HuggingFace[0] != want {
			t.Errorf("%s: %+v, %v; want %+v", extra, m.HuggingFace, err, want)
		}
	}
}

// TestParseModelRefuses checks that each error names the key.
func TestParseModelRefuses(t *testing.T) {
	for name, test := range map[string]struct{ config, says string }{
		"no JSON":             {`{"a":`, "no JSON object"},
		"null":                {`null`, "no JSON object"},
		"list":                {`[]`, "no JSON object"},
		"no family":           {without(denseConfig, "model_type"), "model_type is missing"},
		"other family":        {with(denseConfig, `"model_type":"rwkv"`), `model_type is "rwkv"`},
		"family as a number":  {with(denseConfig, `"model_type":7`), "model_type is 7"},
		"Mamba":               {with(denseConfig, `"mamba_d_state":128`), "mamba_d_state: the model has state-space layers"},
		"hybrid":              {with(denseConfig, `"hybrid_override_pattern":"M-M*"`), "hybrid_override_pattern"},
		"linear attention":    {with(denseConfig, `"layer_types":["linear_attention","full_attention"]`), "linear_attention"},
		"lightning attention": {with(denseConfig, `"attn_type_list":[0,1]`), "attn_type_list"},
		"sparse attention":    {with(latentConfig, `"text_config":{"model_type":"deepseek_v3","index_topk":2048}`), "index_topk"},
		"chunked attention":   {with(denseConfig, `"attention_chunk_size":8192`), "attention_chunk_size"},
		"dense layers":        {with(expertConfig, `"mlp_only_layers":[0]`), "mlp_only_layers"},
		"every other layer":   {with(expertConfig, `"decoder_sparse_step":2`), "decoder_sparse_step"},
		"no layers":           {without(denseConfig, "num_hidden_layers"), "num_hidden_layers is missing"},
		"no vocabulary":       {without(denseConfig, "vocab_size"), "vocab_size is missing"},
		"no width":            {without(denseConfig, "intermediate_size"), "intermediate_size is missing"},
		"no topk":             {without(expertConfig, "num_experts_per_tok"), "num_experts_per_tok or experts_per_token is missing"},
		"too many per token":  {with(expertConfig, `"num_experts_per_tok":129`), "129 for each token"},
		"text for a number":   {with(denseConfig, `"hidden_size":"4096"`), `hidden_size is "4096"`},
		"a fraction":          {with(denseConfig, `"hidden_size":4096.5`), "hidden_size is 4096.5"},
		"negative":            {with(denseConfig, `"hidden_size":-1`), "hidden_size is -1"},
		"huge":                {with(denseConfig, `"hidden_size":1e300`), "hidden_size is 1e300"},
		"heads in groups":     {with(denseConfig, `"num_key_value_heads":5`), "kv_heads is 5"},
		"layers do not match": {with(windowConfig, `"num_hidden_layers":5`), "layer_types has 4 entries for 5 layers"},
		"window is missing":   {without(windowConfig, "sliding_window"), "sliding_window is missing"},
		"pattern is missing":  {with(denseConfig, `"model_type":"gemma3_text","sliding_window":9`), "sliding_window_pattern is missing"},
		"nested text":         {`{"text_config":[]}`, "text_config is []"},
		"no value heads":      {without(strings.TrimSuffix(strings.SplitN(latentConfig, `"text_config":`, 2)[1], "}"), "v_head_dim"), "v_head_dim is missing"},
		"8-bit integers":      {with(denseConfig, `"quantization_config":{"quant_method":"gptq","bits":8}`), "quantization_config: bits is 8"},
		"other quantiser":     {with(denseConfig, `"quantization_config":{"quant_method":"bitsandbytes"}`), `quant_method is "bitsandbytes"`},
		"mixed precision":     {with(denseConfig, `"quantization_config":{"quant_algo":"MIXED_PRECISION"}`), "quant_algo"},
		"two formats": {with(denseConfig, `"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"a":{"weights":{"num_bits":4,"type":"int"}},`+
			`"b":{"weights":{"num_bits":8,"type":"float"}}}}`), "config_groups"},
		"no groups": {with(denseConfig, `"quantization_config":{"quant_method":"compressed-tensors"}`), "config_groups is missing"},
	} {
		if m, err := parseModel([]byte(test.config), nil); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %+v, %v; want an error with %q", name, m, err, test.says)
		}
	}
	if _, err := parseModel([]byte(denseConfig), []byte(`{"quantization":{"quant_algo":"INT2"}}`)); err == nil || !strings.Contains(err.Error(), "hf_quant_config.json") {
		t.Errorf("damaged hf_quant_config.json: %v", err)
	}
}

func TestReadModel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my-model")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadModel(dir); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("empty folder: %v", err)
	}
	write("config.json", denseConfig)
	write("hf_quant_config.json", `{"quantization":{"quant_algo":"NVFP4"}}`)
	for _, path := range []string{dir, filepath.Join(dir, "config.json")} {
		m, err := ReadModel(path)
		if err != nil || m.ID != "my-model" || m.DType() != NVFP4 || m.Layers != 32 {
			t.Errorf("%s: %+v, %v", path, m, err)
		}
	}
	write("other_config.json", with(denseConfig, `"hidden_size":null`))
	if _, err := ReadModel(filepath.Join(dir, "other_config.json")); err == nil || !strings.Contains(err.Error(), "other_config.json: hidden_size is missing") {
		t.Errorf("missing key: %v", err)
	}
}

func FuzzParseModel(f *testing.F) {
	for _, c := range []string{denseConfig, expertConfig, latentConfig, windowConfig} {
		f.Add([]byte(c), []byte(`{"quantization":{"quant_algo":"FP8"}}`))
		f.Add([]byte(c), []byte(nil))
	}
	f.Fuzz(func(t *testing.T, config, quantisation []byte) {
		m, err := parseModel(config, quantisation)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		if err := m.Validate(); err != nil || len(m.HuggingFace) != 1 {
			t.Errorf("accepted %+v: %v", m, err)
		}
	})
}

// with returns a config with further keys, which replace those it has.
func with(config, keys string) string { return merge(config, "{"+keys+"}", "") }

// without returns a config that lacks a key.
func without(config, key string) string { return merge(config, "{}", key) }

func merge(config, more, drop string) string {
	var all map[string]json.RawMessage
	for _, text := range []string{config, more} {
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			panic(err)
		}
	}
	delete(all, drop)
	out, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
