package tables

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/simcore/perfmodel/memory"
)

// The slots of backend versions, which are also accepted as versions in a [Query].
const (
	// SlotCurrent is the version that the source calls current.
	SlotCurrent = "current"
	// SlotLegacy is a version that older releases of the reference are pinned to.
	SlotLegacy = "legacy"
)

// Config is one row: a deployment that has tables.
type Config struct {
	// Slot is [SlotCurrent] or [SlotLegacy].
	Slot string
	// System is the GPU type, such as "h200_sxm".
	System string
	// Backend is "vllm", "sglang" or "trtllm"; BackendVersion the release whose kernels were measured.
	Backend, BackendVersion string
	// Model is the short name; HFPath the Hugging Face name of the checkpoint that gave the shapes and dtypes.
	Model, HFPath string
	// DType names the variant of the weights, such as "fp8_block".
	DType string
	// GEMM, MoE, KV and FMHA are the quantisations of matrix multiplications, experts, KV cache and attention.
	GEMM, MoE, KV, FMHA string
	// TP and DP are the tensor and attention data parallelism; MoETP and MoEEP split the experts of TP·DP GPUs.
	TP, DP, MoETP, MoEEP int
	// Layers is the number of transformer layers.
	Layers int
	// QKNormUs is what the source leaves out of a decode pass, in us per layer; added with corrections only.
	QKNormUs float64
	// Corrected says that the row replaces the one of the same key when corrections are on; Anomaly that the source is
	// suspect, more than twice as slow as the best backend.
	Corrected, Anomaly bool
	// Prefill and Decode are the errors of the tables against whole passes of the source, at points held out.
	Prefill, Decode ErrorFigures
	// SiliconPrefillPct and SiliconDecodePct are the shares of time that the source bases on measured operators, in %;
	// -1 where it does not say.
	SiliconPrefillPct, SiliconDecodePct float64
	// ReferencePrefillMs is the source's own time of one prompt of 2048 tokens; ReferenceDecodeMs of 32 sequences of
	// 2048 tokens.
	ReferencePrefillMs, ReferenceDecodeMs float64
	// MaxKVTokens is the source's own estimate of the KV tokens of a rank, at 8192 tokens a pass and the default
	// fraction; 0 means that the model does not fit.
	MaxKVTokens int
	// Generator is the program whose predictions the tables are of; Measured the day, as 2006-01-02.
	Generator, Measured string

	line                                        int // in configs.csv
	requirements                                memory.Requirements
	tokensCurve, requestsCurve, generationCurve string
	prefillAttention, generationAttention       string
}

// ErrorFigures are the median, 99th percentile and greatest absolute error, in %.
type ErrorFigures struct{ Median, P99, Max float64 }

// String names the deployment.
func (c *Config) String() string {
	return fmt.Sprintf("%s %s %s %s %s tp %d dp %d ep %d", c.System, c.Backend, c.BackendVersion, c.Model, c.DType, c.TP, c.DP, c.MoEEP)
}

// GPUs is the number of GPUs of one worker.
func (c *Config) GPUs() int { return c.TP * c.DP }

// Memory is what the deployment needs of one GPU.
func (c *Config) Memory() memory.Requirements { return c.requirements }

// Digest is a hash of everything that is priced: the ids of curves and grids, which are hashes of their contents, the
// corrections and the memory. Rows with equal digests give equal results.
func (c *Config) Digest() string {
	sum := sha256.Sum256(fmt.Append(nil, c.tokensCurve, "|", c.requestsCurve, "|", c.generationCurve, "|", c.prefillAttention, "|",
		c.generationAttention, "|", c.QKNormUs, "|", c.Layers, "|", c.requirements))
	return hex.EncodeToString(sum[:8])
}

// configColumns are the columns of configs.csv in the order in which they are written.
var configColumns = strings.Split("slot,system,backend,backend_version,model,hf_path,dtype,gemm,moe,kv,fmha,tp,dp,moe_tp,moe_ep,"+
	"layers,weights_bytes,act_bytes_8192,act_bytes_per_token,act_min_bytes,comm_bytes,other_bytes,gpu_mem_bytes,kv_bytes_per_token,"+
	"kv_bytes_64,kv_bytes_4096,kv_bytes_131072,mem_fraction,max_kv_tokens,c_tok,c_log,g_tok,ctx_att,gen_att,qk_norm_us,corrected,"+
	"pre_med,pre_p99,pre_max,dec_med,dec_p99,dec_max,silicon_pct_prefill,silicon_pct_decode,ref_prefill_1x2048_ms,"+
	"ref_decode_32x2048_ms,generator,measured,anomaly", ",")

// readConfigs reads the rows of a system.
func readConfigs(files fs.FS, system string) ([]*Config, error) {
	path := system + "/" + configsFile
	text, err := readPackedFile(files, path)
	if err != nil {
		return nil, err
	}
	configs, faults := parseConfigs(path, text, system)
	if err := faults.err(); err != nil {
		return nil, err
	}
	return configs, nil
}

// parseConfigs parses the text of a configs.csv. Rows with a fault are left out.
func parseConfigs(path, text, system string) ([]*Config, Faults) {
	var configs []*Config
	known := map[configKey]int{}
	faults := readTable(path, text, configColumns, func(line int, get func(string) string) error {
		c, err := parseConfig(get)
		if err != nil {
			return err
		}
		c.line = line
		if c.System != system {
			return fmt.Errorf("system is %s; it must be the name of the folder, %s", c.System, system)
		}
		if first, ok := known[c.key()]; ok {
			return fmt.Errorf("%s is there before, on line %d", c, first)
		}
		known[c.key()] = line
		configs = append(configs, c)
		return nil
	})
	return configs, faults
}

// configKey is what makes a row unique in its system.
type configKey struct {
	backend, version, model, dtype, gemm, moe, kv, fmha string
	tp, dp, moeTP, moeEP                                int
	corrected                                           bool
}

func (c *Config) key() configKey {
	return configKey{c.Backend, c.BackendVersion, c.Model, c.DType, c.GEMM, c.MoE, c.KV, c.FMHA, c.TP, c.DP, c.MoETP, c.MoEEP, c.Corrected}
}

func parseConfig(get func(string) string) (*Config, error) {
	f := fieldParser{get: get}
	c := &Config{
		Slot: f.oneOf("slot", SlotCurrent, SlotLegacy), System: f.word("system"),
		Backend: f.oneOf("backend", "vllm", "sglang", "trtllm"), BackendVersion: f.word("backend_version"),
		Model: f.word("model"), HFPath: f.word("hf_path"), DType: f.word("dtype"),
		GEMM: f.word("gemm"), MoE: f.word("moe"), KV: f.word("kv"), FMHA: f.word("fmha"),
		TP: f.count("tp"), DP: f.count("dp"), MoETP: f.count("moe_tp"), MoEEP: f.count("moe_ep"), Layers: f.count("layers"),
		QKNormUs: f.amount("qk_norm_us"), Corrected: f.flag("corrected"), Anomaly: f.flag("anomaly"),
		Prefill:           ErrorFigures{f.amount("pre_med"), f.amount("pre_p99"), f.amount("pre_max")},
		Decode:            ErrorFigures{f.amount("dec_med"), f.amount("dec_p99"), f.amount("dec_max")},
		SiliconPrefillPct: f.optional("silicon_pct_prefill"), SiliconDecodePct: f.optional("silicon_pct_decode"),
		ReferencePrefillMs: f.amount("ref_prefill_1x2048_ms"), ReferenceDecodeMs: f.amount("ref_decode_32x2048_ms"),
		MaxKVTokens: int(f.amount("max_kv_tokens")), Generator: f.word("generator"), Measured: f.word("measured"),
		tokensCurve: f.word("c_tok"), requestsCurve: f.word("c_log"), generationCurve: f.word("g_tok"),
		prefillAttention: f.word("ctx_att"), generationAttention: f.word("gen_att"),
	}
	c.requirements = memory.Requirements{
		WeightsBytes: f.amount("weights_bytes"), Activations8192Bytes: f.amount("act_bytes_8192"),
		ActivationBytesPerToken: f.amount("act_bytes_per_token"), MinActivationBytes: f.amount("act_min_bytes"),
		CommunicationBytes: f.amount("comm_bytes"), OtherBytes: f.amount("other_bytes"), GPUBytes: f.amount("gpu_mem_bytes"),
		KV:              memory.KVCurve{Bytes64: f.amount("kv_bytes_64"), Bytes4096: f.amount("kv_bytes_4096"), Bytes131072: f.amount("kv_bytes_131072")},
		DefaultFraction: f.amount("mem_fraction"), Backend: c.Backend,
	}
	return c, f.err()
}

// fieldParser parses the fields of a row and collects what is wrong with them.
type fieldParser struct {
	get    func(column string) string
	faults []string
}

// err is all that is wrong, in one line.
func (f *fieldParser) err() error {
	if f.faults == nil {
		return nil
	}
	return errors.New(strings.Join(f.faults, "; "))
}

func (f *fieldParser) fail(column, want string) {
	f.faults = append(f.faults, fmt.Sprintf("%s is %.40q: %s", column, f.get(column), want))
}

func (f *fieldParser) word(column string) string {
	v := f.get(column)
	if v == "" {
		f.fail(column, "it must not be empty")
	}
	return v
}

func (f *fieldParser) oneOf(column string, allowed ...string) string {
	v := f.get(column)
	for _, a := range allowed {
		if v == a {
			return v
		}
	}
	f.fail(column, "use one of: "+strings.Join(allowed, ", "))
	return v
}

func (f *fieldParser) count(column string) int {
	v, err := strconv.Atoi(f.get(column))
	if err != nil || v < 1 || v > math.MaxInt32 {
		f.fail(column, "give a whole number of 1 or more")
	}
	return v
}

func (f *fieldParser) amount(column string) float64 {
	v, err := strconv.ParseFloat(f.get(column), 64)
	if err != nil || !(v >= 0 && v <= 1e18) {
		f.fail(column, "give a number of 0 or more")
		return 0
	}
	return v
}

// optional is -1 for an empty field.
func (f *fieldParser) optional(column string) float64 {
	if f.get(column) == "" {
		return -1
	}
	return f.amount(column)
}

func (f *fieldParser) flag(column string) bool {
	return f.oneOf(column, "0", "1") == "1"
}

// attentionTerm is one entry of ctx_att or gen_att: grid*layers+constant. The layers count kernels: a model may launch
// several of a kind in a layer, and a grid may stand for all layers.
type attentionTerm struct {
	grid               string
	layers, constantUs float64
}

// parseAttention parses the terms of an attention column (spec perfmodel.md §2, reading rule 6). Only prefill terms
// have a constant.
func parseAttention(column, kind string) ([]attentionTerm, error) {
	var terms []attentionTerm
	for part := range strings.SplitSeq(column, ";") {
		id, rest, ok := strings.Cut(part, "*")
		layers, constant, hasConstant := strings.Cut(rest, "+")
		if !ok || hasConstant != (kind == kindPrefill) {
			form := map[string]string{kindPrefill: "grid*layers+constant_us", kindDecode: "grid*layers"}[kind]
			return nil, fmt.Errorf("%.60q is no attention term; write %s, several joined by ;", part, form)
		}
		term := attentionTerm{grid: id}
		count, err := strconv.ParseUint(layers, 10, 16)
		if err != nil || count == 0 {
			return nil, fmt.Errorf("%.20q in %.60q is no number of layers", layers, part)
		}
		term.layers = float64(count)
		if hasConstant {
			if term.constantUs, err = strconv.ParseFloat(constant, 64); err != nil || math.Abs(term.constantUs) > maxTime || math.IsNaN(term.constantUs) {
				return nil, fmt.Errorf("%.20q in %.60q is no time in us", constant, part)
			}
		}
		terms = append(terms, term)
	}
	return terms, nil
}

// unavailableColumns are the columns of unavailable.csv.
var unavailableColumns = []string{"slot", "system", "backend", "model", "dtype", "par", "error"}

// readUnavailable reads the refused deployments; a folder without the file has none.
func readUnavailable(files fs.FS) ([]Unavailable, error) {
	text, err := readRegular(files, unavailableFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, Fault{File: unavailableFile, What: "cannot be read: " + fileCause(err)}
	}
	var list []Unavailable
	faults := readTable(unavailableFile, string(text), unavailableColumns, func(_ int, get func(string) string) error {
		var par struct {
			TP    int `json:"tp"`
			DP    int `json:"dp"`
			MoETP int `json:"moe_tp"`
			MoEEP int `json:"moe_ep"`
		}
		if err := json.Unmarshal([]byte(get("par")), &par); err != nil {
			return fmt.Errorf(`par is %.60q; write {"tp": 2, "moe_tp": 2, "moe_ep": 1}: %w`, get("par"), err)
		}
		backend, version, _ := strings.Cut(get("backend"), " ")
		list = append(list, Unavailable{
			Slot: get("slot"), System: get("system"), Backend: backend, BackendVersion: version, Model: get("model"), DType: get("dtype"),
			TP: par.TP, DP: par.DP, MoETP: par.MoETP, MoEEP: par.MoEEP, Reason: strings.TrimSpace(get("error")),
		})
		return nil
	})
	return list, faults.err()
}
