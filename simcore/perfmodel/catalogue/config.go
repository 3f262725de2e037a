package catalogue

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ReadModel reads the shape of a model from its Hugging Face config.json: dense models with grouped-query attention,
// mixtures of experts, multi-head latent attention and sliding windows. path is the file or the folder that holds it;
// a hf_quant_config.json beside it tells the number format. The error names the key that is missing or that describes
// layers of another kind, such as state-space or linear attention, whose time the formulas cannot tell.
func ReadModel(path string) (Model, error) {
	file := path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		file = filepath.Join(path, "config.json")
	}
	config, err := readConfig(file)
	if err != nil {
		return Model{}, fmt.Errorf("model config: %w", err)
	}
	quantisation, err := readConfig(filepath.Join(filepath.Dir(file), "hf_quant_config.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Model{}, fmt.Errorf("model config: %w", err)
	}
	m, err := parseModel(config, quantisation)
	if err != nil {
		return Model{}, fmt.Errorf("%s: %w", file, err)
	}
	m.ID = modelNameOf(file)
	m.Name = m.ID
	m.HuggingFace[0].Path = m.ID
	return m, nil
}

// maxConfigBytes bounds the size of a config.json; real ones have a few KiB.
const maxConfigBytes = 16 << 20

// readConfig reads a file that is neither a device nor a pipe nor huge.
func readConfig(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case info.Size() > maxConfigBytes:
		return nil, fmt.Errorf("%s has more than %d MiB", path, maxConfigBytes>>20)
	}
	return os.ReadFile(path)
}

// modelNameOf names a model after its folder, or its file when that has a name of its own.
func modelNameOf(file string) string {
	base := strings.TrimSuffix(filepath.Base(file), ".json")
	if base != "config" {
		return strings.TrimSuffix(base, "_config")
	}
	if dir, err := filepath.Abs(filepath.Dir(file)); err == nil {
		return filepath.Base(dir)
	}
	return base
}

// parseModel reads a config.json and, unless empty, the hf_quant_config.json beside it.
func parseModel(config, quantisation []byte) (Model, error) {
	root, err := parseSection(config)
	if err != nil {
		return Model{}, err
	}
	text := root
	if nested, err := root.section("text_config"); err != nil {
		return Model{}, err
	} else if nested != nil {
		text = nested // the language model of one that sees or hears
	}
	if err := refuseOtherLayers(text); err != nil {
		return Model{}, err
	}
	windows, err := windowRuleOf(text)
	if err != nil {
		return Model{}, err
	}
	m, err := shapeOf(text, windows)
	if err != nil {
		return Model{}, err
	}
	checkpoint, err := checkpointOf(root, text, quantisation)
	if err != nil {
		return Model{}, err
	}
	m.HuggingFace = []HFName{checkpoint}
	return m, m.Validate()
}

// windowRule says which layers have a sliding window when layer_types doesn't.
type windowRule int

const (
	noWindows windowRule = iota
	// allWindows: every layer, if sliding_window is given.
	allWindows
	// halfWindows: every other layer.
	halfWindows
	// patternWindows: all but each sliding_window_pattern-th layer.
	patternWindows
	// upperWindows: the layers from max_window_layers on, if use_sliding_window.
	upperWindows
)

// families are the model types whose layers the formulas describe: gated MLPs or experts, softmax attention.
var families = map[string]windowRule{
	"llama": noWindows, "granite": noWindows, "olmo2": noWindows, "internlm2": noWindows, "internlm3": noWindows,
	"mimo": noWindows, "gemma": noWindows, "smollm3": noWindows,
	"mistral": allWindows, "mixtral": allWindows, "phi3": allWindows,
	"qwen2": upperWindows, "qwen2_moe": upperWindows, "qwen2_5_vl_text": upperWindows,
	"qwen3": upperWindows, "qwen3_moe": upperWindows, "qwen3_vl_text": noWindows, "qwen3_vl_moe_text": noWindows,
	"gemma2": halfWindows, "gemma3_text": patternWindows, "gpt_oss": halfWindows,
	"deepseek_v2": noWindows, "deepseek_v3": noWindows, "kimi_k2": noWindows,
	"glm4_moe": noWindows, "minimax_m2": noWindows, "olmoe": noWindows, "granitemoe": noWindows,
}

func windowRuleOf(s section) (windowRule, error) {
	name, err := s.text("model_type")
	if err != nil {
		return noWindows, err
	}
	rule, ok := families[name]
	if !ok {
		return noWindows, fmt.Errorf("model_type is %q, whose layers are not known to be ones that can be priced; if they are those of "+
			"Llama, Qwen3-MoE or DeepSeek-V3, set it to llama, qwen3_moe or deepseek_v3 in a copy of the file", name)
	}
	return rule, nil
}

// refuseOtherLayers reports the first key that describes layers which the formulas don't.
func refuseOtherLayers(s section) error {
	for _, k := range []struct{ key, layers string }{
		{"ssm_cfg", "state-space layers"}, {"state_size", "state-space layers"}, {"mamba_d_state", "state-space layers"},
		{"mamba_num_heads", "state-space layers"}, {"hybrid_override_pattern", "state-space layers"},
		{"layers_block_type", "layers of several kinds"}, {"block_configs", "layers of several shapes"},
		{"linear_attn_config", "linear attention"}, {"linear_num_key_heads", "linear attention"},
		{"full_attention_interval", "linear attention"},
		{"index_topk", "sparse attention"}, {"sparse_attention_config", "sparse attention"}, {"compress_ratios", "sparse attention"},
		{"attention_chunk_size", "chunked attention"}, {"hybrid_layer_pattern", "attention of several shapes"},
		{"global_head_dim", "attention of several shapes"}, {"num_kv_shared_layers", "shared KV caches"},
		{"mlp_only_layers", "dense layers between expert layers"},
	} {
		if !s.empty(k.key) {
			return fmt.Errorf("%s: the model has %s, which the formulas don't price", k.key, k.layers)
		}
	}
	var types []int // MiniMax: 1 for softmax attention, 0 for linear
	if err := s.into("attn_type_list", &types); err != nil {
		return err
	} else if slices.ContainsFunc(types, func(t int) bool { return t != 1 }) {
		return errors.New("attn_type_list: the model has linear attention, which the formulas don't price")
	}
	for _, key := range []string{"decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step"} {
		if n, err := s.count(key); err != nil {
			return err
		} else if n > 1 {
			return fmt.Errorf("%s is %d: only some layers have experts, which the formulas don't price", key, n)
		}
	}
	return nil
}

// shapeOf reads the figures of the layers.
func shapeOf(s section, windows windowRule) (Model, error) {
	var m Model
	r := reader{section: s}
	m.Layers, m.Hidden, m.Vocabulary = r.need("num_hidden_layers"), r.need("hidden_size"), r.need("vocab_size")
	m.ContextLength = r.or(0, "max_position_embeddings")
	m.Heads = r.need("num_attention_heads")
	m.KVHeads = r.or(m.Heads, "num_key_value_heads")
	m.Experts = r.or(0, "num_experts", "n_routed_experts", "num_local_experts")
	if m.Experts > 0 {
		m.ExpertsPerToken = r.need("num_experts_per_tok", "experts_per_token")
		m.ExpertIntermediate = r.need("moe_intermediate_size", "intermediate_size")
		m.SharedIntermediate = r.or(r.or(0, "n_shared_experts")*m.ExpertIntermediate, "shared_expert_intermediate_size", "shared_intermediate_size")
		m.Intermediate = r.or(m.ExpertIntermediate, "intermediate_size")
	} else {
		m.Intermediate = r.need("intermediate_size")
	}
	m.KVLoRARank = r.or(0, "kv_lora_rank")
	if m.IsMLA() {
		m.QLoRARank = r.or(0, "q_lora_rank")
		m.NopeHeadDim, m.RopeHeadDim, m.ValueHeadDim = r.need("qk_nope_head_dim"), r.need("qk_rope_head_dim"), r.need("v_head_dim")
	}
	if r.err == nil && m.Heads > 0 {
		m.HeadDim = m.Hidden / m.Heads
		if !m.IsMLA() { // of latent attention the key means other things in different files
			m.HeadDim = r.or(m.HeadDim, "head_dim")
		}
	}
	m.Window = r.or(0, "sliding_window")
	if r.err != nil {
		return Model{}, r.err
	}
	var err error
	if m.WindowLayers, err = windowLayers(s, windows, m); err != nil {
		return Model{}, err
	}
	if m.WindowLayers == 0 {
		m.Window = 0
	}
	return m, nil
}

// windowLayers counts the layers with a sliding window.
func windowLayers(s section, rule windowRule, m Model) (int, error) {
	if !s.empty("layer_types") {
		return countWindows(s, m)
	}
	if m.Window == 0 {
		return 0, nil
	}
	switch rule {
	case allWindows:
		return m.Layers, nil
	case halfWindows:
		return m.Layers / 2, nil
	case patternWindows:
		pattern, err := s.count("sliding_window_pattern")
		if err == nil && pattern < 1 {
			err = errors.New("sliding_window_pattern is missing: every how many layers one sees the whole context")
		}
		if err != nil {
			return 0, err
		}
		return m.Layers - m.Layers/pattern, nil
	case upperWindows:
		var on bool
		if err := s.into("use_sliding_window", &on); err != nil || !on {
			return 0, err
		}
		from, err := s.count("max_window_layers")
		return max(m.Layers-from, 0), err
	}
	return 0, nil
}

// countWindows reads layer_types, which names the attention of every layer.
func countWindows(s section, m Model) (int, error) {
	var types []string
	if err := s.into("layer_types", &types); err != nil {
		return 0, err
	}
	windows := 0
	for _, t := range types {
		switch t {
		case "full_attention":
		case "sliding_attention":
			windows++
		default:
			return 0, fmt.Errorf("layer_types: %q layers are not priced by the formulas, only full_attention and sliding_attention", t)
		}
	}
	if len(types) != m.Layers {
		return 0, fmt.Errorf("layer_types has %d entries for %d layers", len(types), m.Layers)
	}
	if windows > 0 && m.Window == 0 {
		return 0, errors.New("sliding_window is missing: the number of tokens that sliding_attention layers see")
	}
	return windows, nil
}

// section is an object of a JSON file.
type section map[string]json.RawMessage

func parseSection(text []byte) (section, error) {
	var s section
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("no JSON object: %w", err)
	}
	if s == nil {
		return nil, errors.New("no JSON object: null")
	}
	return s, nil
}

// empty reports a key that is missing or says nothing: null, false, 0 or an empty list, object or text.
func (s section) empty(key string) bool {
	return slices.Contains([]string{"", "null", "false", "0", "[]", "{}", `""`}, string(s[key]))
}

// into decodes a key if it is there and isn't null.
func (s section) into(key string, value any) error {
	raw, ok := s[key]
	if !ok || string(raw) == "null" {
		return nil
	}
	if err := json.Unmarshal(raw, value); err != nil {
		return fmt.Errorf("%s is %s, which is not of the kind that belongs there", key, abbreviate(raw))
	}
	return nil
}

// section returns the object below a key, nil when it is missing.
func (s section) section(key string) (section, error) {
	var out section
	err := s.into(key, &out)
	return out, err
}

func (s section) text(key string) (string, error) {
	var out string
	err := s.into(key, &out)
	if err == nil && out == "" {
		err = fmt.Errorf("%s is missing", key)
	}
	return out, err
}

// count returns a whole number of 0 or more, 0 when the key is missing.
func (s section) count(key string) (int, error) {
	n := 0
	if err := s.into(key, &n); err != nil || n < 0 || n > maxShape {
		return 0, fmt.Errorf("%s is %s; it must be a whole number from 0 to %d", key, abbreviate(s[key]), maxShape)
	}
	return n, nil
}

func abbreviate(raw []byte) string {
	const most = 40
	if len(raw) > most {
		return string(raw[:most]) + "…"
	}
	return string(raw)
}

// reader reads numbers until one is wrong.
type reader struct {
	section
	err error
}

// or returns the first of some keys that is there, a default when none is.
func (r *reader) or(otherwise int, keys ...string) int {
	for _, key := range keys {
		n, err := r.count(key)
		if err != nil && r.err == nil {
			r.err = err
		}
		if n > 0 {
			return n
		}
	}
	return otherwise
}

// need returns the first of some keys that is there; one must be.
func (r *reader) need(keys ...string) int {
	n := r.or(0, keys...)
	if n == 0 && r.err == nil {
		r.err = fmt.Errorf("%s is missing", strings.Join(keys, " or "))
	}
	return n
}
