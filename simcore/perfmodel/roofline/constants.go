package roofline

import (
	_ "embed"
	"encoding/json"
	"sync"
)

// constants are what the formulas cannot know: how much of a GPU's peak kernels reach, and what launching them takes.
// They were fitted to the tables of nine NVIDIA GPUs (perfmodel specification §4), one set for each backend and one
// for all together. Efficiencies are shares of the peak, times are µs.
type constants struct {
	BF16Efficiency     float64 `json:"bf16_efficiency"`
	FP8Efficiency      float64 `json:"fp8_efficiency"`
	FP8BlockEfficiency float64 `json:"fp8_block_efficiency"`
	FP4Efficiency      float64 `json:"fp4_efficiency"`
	// WeightReadEfficiency is the share of the memory's bandwidth at which matrix multiplications read weights.
	WeightReadEfficiency float64 `json:"weight_read_efficiency"`
	GEMMLaunchUs         float64 `json:"gemm_launch_us"`
	AttentionEfficiency  float64 `json:"attention_efficiency"`
	KVReadEfficiency     float64 `json:"kv_read_efficiency"`
	AttentionLaunchUs    float64 `json:"attention_launch_us"`
	// ElementwiseEfficiency is for norms, rotary embeddings and activations, which only move bytes;
	// ElementwiseLaunchUs for all of one layer.
	ElementwiseEfficiency float64 `json:"elementwise_efficiency"`
	ElementwiseLaunchUs   float64 `json:"elementwise_launch_us"`
	ExpertEfficiency      float64 `json:"expert_efficiency"`
	ExpertReadEfficiency  float64 `json:"expert_read_efficiency"`
	ExpertLaunchUs        float64 `json:"expert_launch_us"`
	LinkEfficiency        float64 `json:"link_efficiency"`
	AllReduceUs           float64 `json:"all_reduce_us"`
	// PCIeEfficiency replaces LinkEfficiency where GPUs are connected by PCIe only.
	PCIeEfficiency float64 `json:"pcie_efficiency"`
}

// allBackends is the set of constants for GPUs that no backend was measured on.
const allBackends = "all"

//go:embed constants.json
var constantsFile []byte

// fitted parses the embedded constants once. They are part of the program, so damage to them is a bug.
var fitted = sync.OnceValue(func() map[string]constants {
	var all map[string]constants
	if err := json.Unmarshal(constantsFile, &all); err != nil {
		panic("roofline: embedded constants.json: " + err.Error())
	}
	return all
})
