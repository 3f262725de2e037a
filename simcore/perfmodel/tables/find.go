package tables

import (
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/simcore/problem"
)

// Query asks for the row of a deployment.
type Query struct {
	// System is the GPU type.
	System string
	// Backend is "vllm", "sglang" or "trtllm".
	Backend string
	// BackendVersion is a release, [SlotCurrent] or empty, or [SlotLegacy] for the newest legacy release of the backend.
	BackendVersion string
	// Model is a short name or a Hugging Face name, in any case; -Instruct variants count as their base.
	Model string
	// DType is the variant of the weights; empty means that of the Hugging Face name, else bf16 if there, else the only
	// one.
	DType string
	// GEMM, MoE, FMHA and KV are quantisations; empty means any.
	GEMM, MoE, FMHA, KV string
	// TP and DP are the tensor and attention data parallelism.
	TP, DP int
	// EP is the expert parallelism; 0 means 1 if there is such a row, else the only one.
	EP int
	// Corrections prefers rows that replace others because the source is known to be wrong.
	Corrections bool
}

// defaultDType is preferred when neither the query nor the model's name has a dtype.
const defaultDType = "bf16"

// rowIndex finds rows by what a query is sure to name.
type rowIndex struct {
	all      []*Config
	byModel  map[modelKey][]*Config
	versions map[versionKey]string
	names    map[string]modelName
}

// modelKey is the part of a row's key before its dtype.
type modelKey struct{ backend, version, model string }

// versionKey asks for the release that a slot stands for.
type versionKey struct{ backend, slot string }

// modelName is what a name says: the short name, and the dtype when it is that of a checkpoint.
type modelName struct{ model, dtype string }

func indexRows(configs []*Config) *rowIndex {
	x := &rowIndex{all: configs, byModel: map[modelKey][]*Config{}, versions: map[versionKey]string{}, names: map[string]modelName{}}
	for _, c := range configs {
		key := modelKey{c.Backend, c.BackendVersion, c.Model}
		x.byModel[key] = append(x.byModel[key], c)
		slot := versionKey{c.Backend, c.Slot}
		if compareVersions(c.BackendVersion, x.versions[slot]) > 0 {
			x.versions[slot] = c.BackendVersion
		}
	}
	for _, c := range configs {
		// A checkpoint that is also measured with other dtypes is bf16 by itself.
		path := checkpoint(c.HFPath)
		if known, ok := x.names[path]; !ok || c.DType == defaultDType || known.dtype != defaultDType {
			x.names[path] = modelName{c.Model, c.DType}
		}
	}
	for _, c := range configs {
		x.names[strings.ToLower(c.Model)] = modelName{model: c.Model}
	}
	return x
}

// checkpoint is the form in which Hugging Face names are compared: those of a model's base and its instruction-tuned
// variants, which have equal shapes, are equal.
func checkpoint(name string) string {
	org, base, ok := strings.Cut(strings.ToLower(name), "/")
	if !ok {
		base = org
	}
	return "/" + strings.Replace(strings.TrimPrefix(base, "meta-"), "-instruct", "", 1)
}

// name resolves the name of a model.
func (x *rowIndex) name(model string) (modelName, bool) {
	if n, ok := x.names[strings.ToLower(model)]; ok {
		return n, true
	}
	n, ok := x.names[checkpoint(model)]
	return n, ok
}

// version resolves an alias of a backend's version.
func (x *rowIndex) version(backend, version string) string {
	if version == "" {
		version = SlotCurrent
	}
	if alias, ok := x.versions[versionKey{backend, version}]; ok {
		return alias
	}
	return version
}

// Find returns the one row that a query means, or what is wrong with the query: each problem's path is gpu, backend,
// backend_version, model, dtype, tp, dp, ep, gemm_dtype, moe_dtype, fmha_dtype or kv_cache_dtype.
func (s *Set) Find(q Query) (*Config, problem.List) {
	sys, ok := s.systems[q.System]
	if !ok {
		return nil, problem.List{{Path: "gpu", Value: q.System, Allowed: nearestOf(q.System, s.names)}}
	}
	x, err := sys.rows()
	if err != nil {
		return nil, problem.List{{Path: "gpu", Value: q.System, Allowed: "its tables are damaged: " + err.Error()}}
	}
	name, ok := x.name(q.Model)
	key := modelKey{q.Backend, x.version(q.Backend, q.BackendVersion), name.model}
	rows := x.byModel[key]
	search := search{set: s, query: q, index: x, name: name, version: key.version}
	if !ok || len(rows) == 0 {
		return nil, search.explainNames()
	}
	return search.choose(rows)
}

// HasModel reports whether a system has tables of a model, whatever the backend and the variant.
func (s *Set) HasModel(system, model string) bool {
	sys, ok := s.systems[system]
	if !ok {
		return false
	}
	x, err := sys.rows()
	if err != nil {
		return false
	}
	_, ok = x.name(model)
	return ok
}

// search is a query under way.
type search struct {
	set     *Set
	query   Query
	index   *rowIndex
	name    modelName
	version string
}

// choose narrows the rows of a model down to one.
func (s *search) choose(rows []*Config) (*Config, problem.List) {
	q := &s.query
	rows = s.preferCorrected(rows)
	for _, quant := range []struct {
		path, value string
		of          func(*Config) string
	}{
		{"gemm_dtype", q.GEMM, func(c *Config) string { return c.GEMM }},
		{"moe_dtype", q.MoE, func(c *Config) string { return c.MoE }},
		{"fmha_dtype", q.FMHA, func(c *Config) string { return c.FMHA }},
		{"kv_cache_dtype", q.KV, func(c *Config) string { return c.KV }},
	} {
		if quant.value == "" {
			continue
		}
		left := narrow(rows, func(c *Config) bool { return quant.of(c) == quant.value })
		if len(left) == 0 {
			return nil, s.refuse(quant.path, quant.value, distinct(rows, quant.of), Unavailable{})
		}
		rows = left
	}
	dtype, ok := s.dtype(rows)
	if !ok {
		return nil, s.refuse("dtype", dtype, distinct(rows, func(c *Config) string { return c.DType }), Unavailable{DType: dtype})
	}
	rows = narrow(rows, func(c *Config) bool { return c.DType == dtype })
	return s.chooseParallelism(rows, dtype)
}

func (s *search) chooseParallelism(rows []*Config, dtype string) (*Config, problem.List) {
	q := &s.query
	left := narrow(rows, func(c *Config) bool { return c.TP == q.TP })
	if len(left) == 0 {
		return nil, s.refuse("tp", strconv.Itoa(q.TP), numbersOf(rows, func(c *Config) int { return c.TP }), Unavailable{DType: dtype, TP: q.TP})
	}
	rows, left = left, narrow(left, func(c *Config) bool { return c.DP == q.DP })
	if len(left) == 0 {
		return nil, s.refuse("dp", strconv.Itoa(q.DP), numbersOf(rows, func(c *Config) int { return c.DP }), Unavailable{DType: dtype, TP: q.TP, DP: q.DP})
	}
	rows = left
	ep := s.ep(rows)
	if left = narrow(rows, func(c *Config) bool { return c.MoEEP == ep }); len(left) == 0 {
		shown := ""
		if q.EP != 0 {
			shown = strconv.Itoa(q.EP)
		}
		return nil, s.refuse("ep", shown, numbersOf(rows, func(c *Config) int { return c.MoEEP }),
			Unavailable{DType: dtype, TP: q.TP, DP: q.DP, MoEEP: q.EP})
	}
	if len(left) > 1 {
		return nil, s.ambiguous(left)
	}
	return left[0], nil
}

// preferCorrected drops corrected rows when corrections are off, and when they are on the rows that they replace.
func (s *search) preferCorrected(rows []*Config) []*Config {
	if !s.query.Corrections {
		return narrow(rows, func(c *Config) bool { return !c.Corrected })
	}
	corrected := false
	for _, c := range rows {
		corrected = corrected || c.Corrected
	}
	if !corrected {
		return rows
	}
	replaced := map[configKey]bool{}
	for _, c := range rows {
		if c.Corrected {
			key := c.key()
			key.corrected = false
			replaced[key] = true
		}
	}
	return narrow(rows, func(c *Config) bool { return !replaced[c.key()] })
}

// dtype is the dtype that the query means, and whether there is such a row.
func (s *search) dtype(rows []*Config) (string, bool) {
	q := &s.query
	has := func(dtype string) bool {
		return slices.ContainsFunc(rows, func(c *Config) bool { return c.DType == dtype })
	}
	if q.DType != "" {
		return q.DType, has(q.DType)
	}
	if s.name.dtype != "" {
		if has(s.name.dtype) {
			return s.name.dtype, true
		}
		if q.GEMM == "" && q.MoE == "" && q.FMHA == "" && q.KV == "" {
			return s.name.dtype, false
		}
	}
	if has(defaultDType) {
		return defaultDType, true
	}
	for _, c := range rows {
		if c.DType != rows[0].DType {
			return "", false
		}
	}
	return rows[0].DType, len(rows) > 0
}

// ep is the expert parallelism that the query means; 0 when it has to be given.
func (s *search) ep(rows []*Config) int {
	if s.query.EP != 0 {
		return s.query.EP
	}
	for _, c := range rows {
		if c.MoEEP == 1 {
			return 1
		}
	}
	for _, c := range rows {
		if c.MoEEP != rows[0].MoEEP {
			return 0
		}
	}
	return rows[0].MoEEP
}

// narrow keeps the rows that a test accepts.
func narrow(rows []*Config, keep func(*Config) bool) []*Config {
	var left []*Config
	for _, c := range rows {
		if keep(c) {
			left = append(left, c)
		}
	}
	return left
}
