package catalogue

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// The number formats of a checkpoint, as specs and the tables name them.
const (
	// BF16 has 16-bit weights and arithmetic.
	BF16 = "bf16"
	// FP8 has 8-bit floating-point weights and arithmetic with one scale a tensor (or token).
	FP8 = "fp8"
	// FP8Block has 8-bit floating-point weights with one scale a block of 128×128.
	FP8Block = "fp8_block"
	// NVFP4 has 4-bit floating-point weights and arithmetic with an 8-bit scale for 16 weights.
	NVFP4 = "nvfp4"
	// MXFP4 has 4-bit floating-point experts; everything else stays 16-bit.
	MXFP4 = "mxfp4"
	// INT4 has 4-bit integer weights that are computed with in 16 bits; of a mixture of experts just the experts.
	INT4 = "int4_wo"
)

// DTypes lists the number formats.
func DTypes() []string { return []string{BF16, FP8, FP8Block, NVFP4, MXFP4, INT4} }

// Model is the shape of a decoder-only language model with gated MLPs, as its config.json states it.
type Model struct {
	// ID names the model in specs and results, such as "qwen3-32b"; Name is for people.
	ID   string `json:"id"`
	Name string `json:"name"`
	// HuggingFace lists checkpoints with this shape. The first one's dtype is the model's usual one.
	HuggingFace []HFName `json:"hugging_face"`
	// Layers is the number of transformer layers, Hidden the width of the residual stream, Vocabulary the number of
	// tokens.
	Layers     int `json:"layers"`
	Hidden     int `json:"hidden"`
	Vocabulary int `json:"vocabulary"`
	// ContextLength is the longest sequence that the model was made for (max_position_embeddings), in tokens; 0 when its
	// config.json does not say.
	ContextLength int `json:"context_length"`
	// Heads is the number of query heads, KVHeads of key-value heads, HeadDim their width. With latent attention
	// HeadDim is Hidden/Heads and says nothing about the cache.
	Heads   int `json:"heads"`
	KVHeads int `json:"kv_heads"`
	HeadDim int `json:"head_dim"`
	// Intermediate is the width of a dense MLP.
	Intermediate int `json:"intermediate"`
	// Experts is the number of routed experts of a layer, 0 for a dense model; ExpertsPerToken of them are used by a
	// token; ExpertIntermediate is the width of one; SharedIntermediate that of all shared experts together.
	Experts            int `json:"experts,omitempty"`
	ExpertsPerToken    int `json:"experts_per_token,omitempty"`
	ExpertIntermediate int `json:"expert_intermediate,omitempty"`
	SharedIntermediate int `json:"shared_intermediate,omitempty"`
	// KVLoRARank is the width of the latent that multi-head latent attention (MLA) caches, 0 without it; QLoRARank
	// that of queries, 0 when they are projected directly; NopeHeadDim, RopeHeadDim and ValueHeadDim are the parts of
	// a head.
	QLoRARank    int `json:"q_lora_rank,omitempty"`
	KVLoRARank   int `json:"kv_lora_rank,omitempty"`
	NopeHeadDim  int `json:"nope_head_dim,omitempty"`
	RopeHeadDim  int `json:"rope_head_dim,omitempty"`
	ValueHeadDim int `json:"value_head_dim,omitempty"`
	// Window is the number of tokens that a sliding-window layer attends to, WindowLayers the number of such layers.
	Window       int `json:"window,omitempty"`
	WindowLayers int `json:"window_layers,omitempty"`
}

// HFName is one checkpoint on Hugging Face.
type HFName struct {
	// Path is "organisation/name", DType the number format of its weights.
	Path  string `json:"path"`
	DType string `json:"dtype"`
	// KVDType is the number format of the KV cache that deployments of it default to, "" for that of [Model.KVDType].
	KVDType string `json:"kv_dtype,omitempty"`
	// AttentionDType is the number format of the projections around attention where the checkpoint leaves them out of
	// its quantisation, "" where they are as the rest.
	AttentionDType string `json:"attention_dtype,omitempty"`
	// ContextLength is that of the checkpoint where it differs from the model's.
	ContextLength int `json:"context_length,omitempty"`
}

// IsMoE reports a mixture of experts.
func (m Model) IsMoE() bool { return m.Experts > 0 }

// IsMLA reports multi-head latent attention.
func (m Model) IsMLA() bool { return m.KVLoRARank > 0 }

// DType is the number format of the model's usual checkpoint.
func (m Model) DType() string {
	if len(m.HuggingFace) == 0 {
		return BF16
	}
	return m.HuggingFace[0].DType
}

// KVDType is the number format, "bf16" or "fp8", that the KV cache has by default when the weights have a dtype. It
// is that of the tables: 8 bits for block-scaled fp8 and nvfp4 and where the checkpoint says so, else 16.
func (m Model) KVDType(dtype string) string {
	for _, h := range m.HuggingFace {
		if h.DType == dtype && h.KVDType != "" {
			return h.KVDType
		}
	}
	if dtype == FP8Block || dtype == NVFP4 {
		return FP8
	}
	return BF16
}

// AttentionDType is the number format of the projections around attention when the weights have a dtype.
func (m Model) AttentionDType(dtype string) string {
	for _, h := range m.HuggingFace {
		if h.DType == dtype && h.AttentionDType != "" {
			return h.AttentionDType
		}
	}
	return dtype
}

// Validate reports the first figure that no model can have, by its name in models.json.
func (m Model) Validate() error {
	for _, f := range []struct {
		name  string
		value int
		least int
	}{
		{"layers", m.Layers, 1}, {"hidden", m.Hidden, 1}, {"vocabulary", m.Vocabulary, 1},
		{"context_length", m.ContextLength, 0}, {"heads", m.Heads, 1}, {"kv_heads", m.KVHeads, 1}, {"head_dim", m.HeadDim, 1},
		{"intermediate", m.Intermediate, 0}, {"experts", m.Experts, 0}, {"experts_per_token", m.ExpertsPerToken, 0},
		{"expert_intermediate", m.ExpertIntermediate, 0}, {"shared_intermediate", m.SharedIntermediate, 0},
		{"q_lora_rank", m.QLoRARank, 0}, {"kv_lora_rank", m.KVLoRARank, 0}, {"nope_head_dim", m.NopeHeadDim, 0},
		{"rope_head_dim", m.RopeHeadDim, 0}, {"value_head_dim", m.ValueHeadDim, 0},
		{"window", m.Window, 0}, {"window_layers", m.WindowLayers, 0},
	} {
		if f.value < f.least || f.value > maxShape {
			return fmt.Errorf("%s is %d; it must be a number from %d to %d", f.name, f.value, f.least, maxShape)
		}
	}
	switch {
	case !m.IsMoE() && m.Intermediate == 0:
		return fmt.Errorf("intermediate is 0; a model without experts has the width of its MLP there")
	case m.IsMoE() && (m.ExpertIntermediate == 0 || m.ExpertsPerToken < 1 || m.ExpertsPerToken > m.Experts):
		return fmt.Errorf("%d experts of width %d, %d for each token; each token needs at least one and at most all", m.Experts, m.ExpertIntermediate, m.ExpertsPerToken)
	case m.IsMLA() && (m.NopeHeadDim == 0 || m.ValueHeadDim == 0):
		return fmt.Errorf("nope_head_dim is %d and value_head_dim %d; latent attention needs both", m.NopeHeadDim, m.ValueHeadDim)
	case !m.IsMLA() && m.Heads%m.KVHeads != 0:
		return fmt.Errorf("kv_heads is %d; it must divide the %d heads", m.KVHeads, m.Heads)
	case m.WindowLayers > m.Layers || m.WindowLayers > 0 && m.Window == 0:
		return fmt.Errorf("%d of %d layers have a window of %d tokens", m.WindowLayers, m.Layers, m.Window)
	}
	return nil
}

// maxShape bounds every figure of a shape; no model comes near, and products of a few stay exact.
const maxShape = 1 << 24

// Models lists the catalogue, in the order of its file.
func Models() []Model {
	out := slices.Clone(models())
	for i := range out {
		out[i].HuggingFace = slices.Clone(out[i].HuggingFace)
	}
	return out
}

// FindModel returns the model with an id or Hugging Face name, with the context length and the number format of that
// checkpoint (for an id: of its usual one). Names are compared without case, with or without the organisation. A name that isn't listed is
// tried without its ending for a number format ("-FP8", "-NVFP4", "-AWQ", …) and for tuning ("-Instruct", "-it", …),
// which leave the shape as it is. The error is an [*UnknownError] with the nearest ids.
func FindModel(name string) (m Model, dtype string, err error) {
	wanted := strings.ToLower(strings.TrimSpace(name))
	if m, dtype, ok := lookUp(wanted); ok {
		return m, dtype, nil
	}
	organisation, base := splitName(wanted)
	base, quantised := cutDType(organisation, base)
	for _, candidate := range []string{base, cutTuning(base)} {
		if m, dtype, ok := lookUp(candidate); ok {
			if quantised != "" {
				dtype = quantised
			}
			return m, dtype, nil
		}
	}
	var names, ids []string
	for _, m := range models() {
		names, ids = append(names, plain(m.ID)), append(ids, m.ID)
		for _, h := range m.HuggingFace {
			_, base := splitName(h.Path)
			names, ids = append(names, plain(base)), append(ids, m.ID)
		}
	}
	return Model{}, "", unknown("model", name, "give the path of the model's config.json for any other", names, ids)
}

// lookUp finds a listed name, in lower case.
func lookUp(name string) (Model, string, bool) {
	entry, ok := modelIndex()[name]
	return entry.model, entry.dtype, ok
}

// splitName parts "organisation/name"; the organisation may be missing.
func splitName(path string) (organisation, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// cutDType takes the ending for a number format off a checkpoint's name, in lower case.
func cutDType(organisation, name string) (base, dtype string) {
	for _, ending := range []struct{ text, dtype string }{
		{"-fp8-dynamic", FP8}, {"-fp8-kv", FP8}, {"-fp8", FP8}, {"-nvfp4", NVFP4}, {"-fp4", NVFP4}, {"-mxfp4", MXFP4},
		{"-awq-int4", INT4}, {"-awq", INT4}, {"-gptq-int4", INT4}, {"-int4", INT4}, {"-quantized.w4a16", INT4}, {"-bf16", BF16},
	} {
		if rest, ok := strings.CutSuffix(name, ending.text); ok {
			if organisation == "qwen" && ending.dtype == FP8 {
				return rest, FP8Block // Qwen publishes block-scaled weights under this name
			}
			return rest, ending.dtype
		}
	}
	return name, ""
}

// cutTuning takes the ending for instruction tuning off a model's name, in lower case.
func cutTuning(name string) string {
	for _, ending := range []string{"-instruct", "-it", "-chat", "-base", "-thinking", "-instruct-2507", "-thinking-2507"} {
		if rest, ok := strings.CutSuffix(name, ending); ok {
			return rest
		}
	}
	return name
}

//go:embed models.json
var modelTable []byte

// models parses the embedded list once. It is part of the program, so damage to it is a bug.
var models = sync.OnceValue(func() []Model {
	var all []Model
	if err := json.Unmarshal(modelTable, &all); err != nil {
		panic("catalogue: embedded models.json: " + err.Error())
	}
	return all
})

type modelEntry struct {
	model Model
	dtype string
}

// modelIndex finds models by id, Hugging Face path and name without organisation; of equal names the first wins.
var modelIndex = sync.OnceValue(func() map[string]modelEntry {
	index := map[string]modelEntry{}
	add := func(name string, m Model, dtype string) {
		if name = strings.ToLower(name); index[name].dtype == "" {
			index[name] = modelEntry{m, dtype}
		}
	}
	for _, m := range models() {
		add(m.ID, m, m.DType())
	}
	for _, m := range models() {
		for _, h := range m.HuggingFace {
			_, base := splitName(h.Path)
			m := m
			if h.ContextLength > 0 {
				m.ContextLength = h.ContextLength
			}
			add(h.Path, m, h.DType)
			add(base, m, h.DType)
		}
	}
	return index
})
