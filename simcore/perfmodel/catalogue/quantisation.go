package catalogue

import (
	"encoding/json"
	"fmt"
	"strings"
)

// checkpointOf reads the number formats of a checkpoint from its config.json and, unless empty, hf_quant_config.json.
func checkpointOf(root, text section, quantisation []byte) (HFName, error) {
	h := HFName{DType: BF16}
	if len(quantisation) > 0 {
		file, err := parseSection(quantisation)
		if err != nil {
			return h, fmt.Errorf("hf_quant_config.json: %w", err)
		}
		q, err := file.section("quantization")
		if err == nil && q != nil {
			err = q.quantised(&h)
		}
		if err != nil {
			return h, fmt.Errorf("hf_quant_config.json: quantization: %w", err)
		}
		return h, nil
	}
	for _, s := range []section{root, text} {
		q, err := s.section("quantization_config")
		if err == nil && q != nil {
			if err = q.quantised(&h); err == nil {
				return h, nil
			}
		}
		if err != nil {
			return h, fmt.Errorf("quantization_config: %w", err)
		}
	}
	return h, nil
}

// quantised fills in the number formats that a description of quantisation states.
func (s section) quantised(h *HFName) error {
	algorithm := s.word("quant_algo")
	method := s.word("quant_method")
	var err error
	switch {
	case algorithm != "":
		h.DType, err = s.byAlgorithm(algorithm)
	case method == "compressed-tensors":
		h.DType, err = s.byGroups()
	default:
		h.DType, err = s.byMethod(method)
	}
	if err != nil {
		return err
	}
	if s.hasKV8() {
		h.KVDType = FP8
	}
	if h.DType != MXFP4 && h.DType != INT4 && s.leavesAttention() {
		h.AttentionDType = BF16
	}
	return nil
}

// word returns a text in lower case, "" when the key is missing or something else.
func (s section) word(key string) string {
	var w string
	if json.Unmarshal(s[key], &w) != nil {
		return ""
	}
	return strings.ToLower(w)
}

// byAlgorithm reads the notation of NVIDIA's ModelOpt.
func (s section) byAlgorithm(name string) (string, error) {
	switch name {
	case "fp8":
		return FP8, nil
	case "fp8_pb_wo", "fp8_block_scales":
		return FP8Block, nil
	case "nvfp4":
		return NVFP4, nil
	case "w4a16_awq":
		return INT4, nil
	}
	return "", fmt.Errorf("quant_algo is %q; only FP8, FP8_PB_WO, NVFP4 and W4A16_AWQ have formulas", name)
}

// byMethod reads the notation of Hugging Face's quantisers.
func (s section) byMethod(name string) (string, error) {
	switch name {
	case "fp8":
		if !s.empty("weight_block_size") {
			return FP8Block, nil
		}
		return FP8, nil
	case "fbgemm_fp8":
		return FP8, nil
	case "mxfp4":
		return MXFP4, nil
	case "awq", "gptq":
		if bits, err := s.count("bits"); err != nil || bits != 4 {
			return "", fmt.Errorf("bits is %s; only 4 has formulas", abbreviate(s["bits"]))
		}
		return INT4, nil
	}
	return "", fmt.Errorf("quant_method is %q; only fp8, fbgemm_fp8, mxfp4, awq, gptq, modelopt and compressed-tensors have formulas", name)
}

// byGroups reads the notation of compressed-tensors; all groups must be alike.
func (s section) byGroups() (string, error) {
	var groups map[string]struct {
		Weights struct {
			Bits     int    `json:"num_bits"`
			Type     string `json:"type"`
			Strategy string `json:"strategy"`
			Group    int    `json:"group_size"`
		} `json:"weights"`
	}
	if err := s.into("config_groups", &groups); err != nil {
		return "", err
	}
	dtype := ""
	for _, g := range groups {
		w := g.Weights
		found := ""
		switch {
		case w.Type == "float" && w.Bits == 8 && w.Strategy == "block":
			found = FP8Block
		case w.Type == "float" && w.Bits == 8:
			found = FP8
		case w.Type == "float" && w.Bits == 4 && w.Group == 16:
			found = NVFP4
		case w.Type == "int" && w.Bits == 4:
			found = INT4
		}
		if found == "" || dtype != "" && dtype != found {
			return "", fmt.Errorf("config_groups: the weights are in a format, or in several, that have no formulas; only all in 8-bit float, 4-bit float in groups of 16 or 4-bit integer have")
		}
		dtype = found
	}
	if dtype == "" {
		return "", fmt.Errorf("config_groups is missing")
	}
	return dtype, nil
}

// hasKV8 reports scales for an 8-bit KV cache.
func (s section) hasKV8() bool {
	if s.word("kv_cache_quant_algo") == "fp8" || s.word("kv_cache_scheme") == "fp8" {
		return true
	}
	var scheme struct {
		Bits int `json:"num_bits"`
	}
	return json.Unmarshal(s["kv_cache_scheme"], &scheme) == nil && scheme.Bits == 8
}

// leavesAttention reports that the projections around attention are left out of the quantisation: modules of whole
// attention blocks are excepted.
func (s section) leavesAttention() bool {
	for _, key := range []string{"ignore", "exclude_modules", "modules_to_not_convert"} {
		var modules []string
		if json.Unmarshal(s[key], &modules) != nil {
			continue
		}
		for _, m := range modules {
			if strings.HasSuffix(strings.TrimRight(m, ".*"), "self_attn") {
				return true
			}
		}
	}
	return false
}
