package gridspec

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/kvcache/tiers"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

var update = flag.Bool("update", false, "rewrite generated files")

func TestJSONSchema(t *testing.T) {
	want := newSchemaWriter(t).document()
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(JSONSchema())); diff != "" {
		t.Errorf("schema.json is not up to date; run go test ./gridspec -run TestJSONSchema -update\n%s", diff)
	}
}

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// instance is a YAML spec as a JSON value.
func instance(t *testing.T, data []byte) any {
	t.Helper()
	p := &strictParser{collector: collector{origins: newOrigins()}, format: YAML, name: "spec"}
	tree := p.parseYAML(data)
	if len(p.syntax) > 0 {
		t.Fatal(p.syntax)
	}
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSchemaAcceptsExamples(t *testing.T) {
	schema := compiledSchema(t)
	files, err := filepath.Glob("../examples/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples found", err)
	}
	specs := map[string][]byte{"starter": Starter(), "everything": []byte(everything)}
	for _, f := range files {
		if specs[f], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range specs {
		if err := schema.Validate(instance(t, data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Load(Source{Data: data, Dir: "."}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// everything uses every key of a spec at least once.
const everything = `
name: all
workload:
  - {name: a, preset: {name: chat, requests: 10, rate: 2.5, duration_s: 0, scale: 1, seed: 3}}
  - {name: b, synthetic: {input_tokens: 10, output_tokens: 2, requests: 5, prefix_groups: 2, shared_prefix_ratio: 0.5}}
compat: dynamo-1.3
load: {mode: trace, speedup: 2, max_sim_time_seconds: 10}
deployment: {mode: aggregated, workers: 2}
engine: {engine_type: vllm, max_num_seqs: null, preemption_mode: fifo, context_length: 4096}
timing: {source: fixed, prefill_ms: 1, decode_ms: 1}
prices: {h200_sxm: 2.5, B200: 4}
router: {policy: round_robin, router_queue_threshold: null}
sla: {ttft_ms: 1, itl_ms: 1, e2e_ms: 1}
grid:
  engine.block_size: [16, 32]
  engine: {speedup_ratio: {linspace: [1, 2, 3]}}
  timing.tp: {powers: [2, 0, 2], round: true}
  timing.dp: {range: [1, 2, 1]}
zip: {sla.ttft_ms: [1, 2]}
cases: {x: {engine.num_gpu_blocks: 100}, y: {engine: {num_gpu_blocks: 1e3}}, z: {engine.num_gpu_blocks: null, timing: {source: auto, prefill_ms: 0, decode_ms: 0, gpu: h200, model: llama-3.1-8b, backend: vllm, mode: fused}}}
random: {samples: 2, space: {engine.max_num_batched_tokens: {int: [512, 1024]}}}
lhs: {samples: 2, space: {engine.decode_speedup_ratio: {uniform: [1, 2]}, sla.itl_ms: {loguniform: [1, 2]}}}
sobol: {samples: 2, space: {engine.enable_prefix_caching: {choices: [true, false]}, engine.enable_chunked_prefill: [true, false]}}
include: [{deployment.workers: 3, workload: {preset: {name: agentic, requests: 3}}}]
exclude: ["tp * workers > 16"]
derive: {g: gpus * 2}
objectives: {maximize: [g], minimize: [p99_ttft_ms]}
search: {method: evolve, points: 15%, batch: 8, patience: 3, seed: 2, population: 16}
execution: {jobs: 2, timeout: 5m, on_invalid: skip, replicates: 2, seed: 1, seeds: shared, max_memory: 8GiB}
output: {dir: out, per_request: true}
`

func TestSchemaRefusesWhatLoadRefuses(t *testing.T) {
	schema := compiledSchema(t)
	for _, wrong := range []string{
		"enigne: {block_size: 1}",
		"engine: {block_sise: 1}",
		"engine: {block_size: big}",
		"engine: {block_size: 1.5}",
		"engine: {speedup_ratio: null}",
		"grid: {engine.block_sise: [1]}",
		"grid: {engine.block_size: []}",
		"grid: {engine.block_size: [x]}",
		"grid: {engine.block_size: {uniform: [1, 2]}}",
		"grid: {engine: {block_sise: [1]}}",
		"random: {samples: 0, space: {engine.block_size: [1]}}",
		"cases: {a: {engine.foo: 1}}",
		"include: [{foo: 1}]",
		"execution: {jobs: 0}",
		"execution: {timeout: 5}",
		"execution: {on_invalid: maybe}",
		"execution: {max_memory: 8 apples}",
		"workload: {preset: {nam: chat}}",
		"grid: {timing.corrections: [1]}",
		"engine: {num_gpu_blocks: 0}",
		"prices: {h200_sxm: cheap}",
		"prices: {h200_sxm: -1}",
		"prices: [1]",
		"search: {method: guess}",
		"search: {points: some}",
		"search: {points: 1.5}",
		"search: {population: many}",
		"exclude: [1]",
	} {
		if err := schema.Validate(instance(t, []byte(wrong))); err == nil {
			t.Errorf("the schema accepts %s", wrong)
		}
		if _, err := Load(Source{Data: []byte(wrong)}); err == nil {
			t.Errorf("Load accepts %s", wrong)
		}
	}
}

// TestSchemaRefusesWhatExpandRefuses checks values that are words out of a list.
func TestSchemaRefusesWhatExpandRefuses(t *testing.T) {
	schema := compiledSchema(t)
	for _, wrong := range []string{
		"compat: dynamo-0.1",
		"timing: {source: guess}",
		"timing: {mode: exact}",
		"timing: {backend: tgi}",
		"grid: {timing.mode: [mocker, exact]}",
	} {
		if err := schema.Validate(instance(t, []byte(wrong))); err == nil {
			t.Errorf("the schema accepts %s", wrong)
		}
		s, err := Load(Source{Data: []byte("workload: {synthetic: {input_tokens: 1, output_tokens: 1, requests: 1}}\n" + wrong)})
		if err != nil {
			t.Errorf("%s: %v", wrong, err)
			continue
		}
		if _, err := s.Expand(ExpandOptions{}); err == nil {
			t.Errorf("Expand accepts %s", wrong)
		}
	}
}

// schemaWriter makes the schema from the types of a document and the comments of their source.
type schemaWriter struct {
	t    *testing.T
	docs map[string]string
	defs map[string]any
}

type object = map[string]any

func newSchemaWriter(t *testing.T) *schemaWriter {
	w := &schemaWriter{t: t, docs: map[string]string{}, defs: object{}}
	for _, dir := range []string{".", "../planner", "../simcore", "../simcore/engine", "../simcore/kvcache/tiers", "../simcore/perfmodel", "../simcore/router", "../simcore/workload"} {
		w.readDocs(dir)
	}
	return w
}

// readDocs collects the comments of all struct fields of a package, by type and field.
func (w *schemaWriter) readDocs(dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			w.t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if st, ok := spec.Type.(*ast.StructType); ok {
				w.readFields(f.Name.Name+"."+spec.Name.Name, st)
			}
			return false
		})
	}
}

func (w *schemaWriter) readFields(typeName string, st *ast.StructType) {
	last := ""
	for _, f := range st.Fields.List {
		if f.Doc != nil {
			last = strings.Join(strings.Fields(f.Doc.Text()), " ")
		}
		for _, name := range f.Names {
			w.docs[typeName+"."+name.Name] = last
		}
	}
}

// describe returns the comment of a field with keys in the place of the fields' names.
func (w *schemaWriter) describe(t reflect.Type, f jsonField) string {
	field := t.FieldByIndex(f.index)
	for _, i := range f.index[:len(f.index)-1] {
		t = t.Field(i).Type
	}
	doc := w.docs[t.String()+"."+field.Name]
	if doc == "" {
		w.t.Errorf("%s.%s has no comment", t, field.Name)
	}
	doc = strings.Replace(doc, field.Name, f.name, 1)
	if t == reflect.TypeFor[document]() {
		return doc // its comments name methods, not keys: a Sobol sequence
	}
	for _, other := range jsonFields(reflect.TypeFor[engine.Config]()) {
		name := reflect.TypeFor[engine.Config]().FieldByIndex(other.index).Name
		doc = regexp.MustCompile(`\bConfig\.`+name+`\b`).ReplaceAllLiteralString(doc, "engine."+other.name)
	}
	for _, other := range jsonFields(t) {
		name := t.FieldByIndex(other.index).Name
		if name != strings.ToUpper(name) && other.typ.Kind() != reflect.Struct { // GPU and SGLang are words too
			doc = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllLiteralString(doc, other.name)
		}
	}
	return doc
}

func (w *schemaWriter) document() []byte {
	t := reflect.TypeFor[document]()
	properties := object{}
	for _, f := range jsonFields(t) {
		properties[f.name] = described(w.topLevel(f), w.describe(t, f))
	}
	var out bytes.Buffer
	out.WriteString(`{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "servegrid grid spec", "type": "object", "additionalProperties": false,`)
	w.lines(&out, "properties", properties)
	out.WriteString(",")
	w.lines(&out, "$defs", w.defs)
	out.WriteString("\n}\n")
	return out.Bytes()
}

// lines writes a mapping with one entry a line, so that changes of the file can be reviewed.
func (w *schemaWriter) lines(out *bytes.Buffer, name string, entries object) {
	fmt.Fprintf(out, "\n%q: {", name)
	separator := "\n"
	for _, k := range slices.Sorted(maps.Keys(entries)) {
		text, err := jsonText(entries[k])
		if err != nil {
			w.t.Fatal(err)
		}
		fmt.Fprintf(out, "%s  %q: %s", separator, k, text)
		separator = ",\n"
	}
	out.WriteString("\n}")
}

func described(schema any, doc string) object {
	if m := schema.(object); m["$ref"] == nil {
		m["description"] = doc
		return m
	}
	return object{"allOf": []any{schema}, "description": doc}
}

func (w *schemaWriter) topLevel(f jsonField) any {
	bundle := w.def("bundle", func() any { return w.bundle("") })
	switch f.name {
	case "workload":
		one := w.setting(workloadPath, configKeys.sections[workloadPath])
		return object{"anyOf": []any{one, object{"type": "array", "items": one, "minItems": 1}}}
	case "grid", "zip":
		return w.axes("", "axes", w.axis)
	case "random", "lhs", "sobol":
		return w.def("sampling", func() any {
			return object{"type": "object", "additionalProperties": false, "required": []string{"samples", "space"}, "properties": object{
				"samples": object{"type": "integer", "minimum": 1, "maximum": maxAxisValues},
				"space":   w.axes("", "space", w.sampledAxis),
			}}
		})
	case "cases":
		return object{"type": "object", "additionalProperties": bundle, "minProperties": 1}
	case "include":
		return object{"type": "array", "items": bundle}
	case "exclude":
		return listOf(object{"type": "string"})
	case "derive":
		return object{"type": "object", "additionalProperties": object{"type": "string"}, "propertyNames": object{"pattern": identifier.String()}}
	case "prices":
		return object{"type": "object", "additionalProperties": object{"type": "number", "exclusiveMinimum": 0}}
	}
	return w.setting(f.name, f.typ)
}

func listOf(items any) object { return object{"type": "array", "items": items} }

// def makes a schema once and refers to it.
func (w *schemaWriter) def(name string, schema func() any) any {
	if _, ok := w.defs[name]; !ok {
		w.defs[name] = true // breaks recursion
		w.defs[name] = schema()
	}
	return object{"$ref": "#/$defs/" + name}
}

// setting is the schema of a field: a struct of settings or a leaf.
func (w *schemaWriter) setting(path string, t reflect.Type) any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return w.leaf(path, t)
	}
	path = likeSection(path) // stages have the sections of others
	return w.def(path, func() any {
		properties := object{}
		for _, f := range jsonFields(t) {
			properties[f.name] = described(w.setting(join(path, f.name), f.typ), w.describe(t, f))
		}
		for alias, canonical := range aliases() {
			if name, ok := strings.CutPrefix(alias, path+"."); ok {
				properties[name] = object{"allOf": []any{w.leafAt(canonical)}, "description": "Another name of " + canonical + "."}
			}
		}
		return object{"type": "object", "properties": properties, "additionalProperties": false}
	})
}

// leafAt refers to the schema of a setting in its section.
func (w *schemaWriter) leafAt(path string) any {
	path = likeSection(path)
	dot := strings.LastIndexByte(path, '.')
	if dot < 0 {
		return object{"$ref": "#/properties/" + path}
	}
	w.setting(path[:dot], configKeys.sections[path[:dot]])
	return object{"$ref": "#/$defs/" + path[:dot] + "/properties/" + path[dot+1:]}
}

func (w *schemaWriter) leaf(path string, t reflect.Type) any {
	schema := object{}
	switch reflect.Zero(t).Interface().(type) {
	case time.Duration:
		return object{"anyOf": []any{object{"type": "string", "pattern": "^([0-9.]+(ns|us|ms|s|m|h))+$"}, object{"const": 0}}}
	case Jobs:
		return object{"anyOf": []any{object{"const": "auto"}, object{"type": "integer", "minimum": 1}}}
	case SearchPoints:
		return object{"anyOf": []any{object{"type": "string", "pattern": "^[0-9.]+ *%$"}, object{"type": "integer", "minimum": 0}}}
	case Bytes:
		return object{"anyOf": []any{object{"type": "string", "pattern": "^[0-9.]+ *([KMGT]i?)?B$"}, object{"const": 0}}}
	}
	switch t.Kind() {
	case reflect.Slice:
		return listOf(w.leaf(path, t.Elem()))
	case reflect.Bool:
		schema["type"] = "boolean"
	case reflect.String:
		schema["type"] = "string"
	case reflect.Float64:
		schema["type"] = "number"
	case reflect.Uint64:
		schema["type"], schema["minimum"] = "integer", 0
	case reflect.Int:
		schema["type"] = "integer"
	default:
		w.t.Errorf("%s: no schema for %s", path, t)
	}
	if choices := choicesOf(path, t); choices != nil {
		schema["enum"] = choices
	}
	if null, ok := nullableAt(path); ok {
		bound := "minimum"
		if t.Kind() == reflect.Float64 && null.stored == 0 {
			bound = "exclusiveMinimum"
		}
		least := null.stored
		if bound == "minimum" {
			least++
		}
		schema["type"], schema[bound] = []string{schema["type"].(string), "null"}, least
	}
	return schema
}

func choicesOf(path string, t reflect.Type) []string {
	if c, ok := reflect.Zero(t).Interface().(chooser); ok {
		return c.choices()
	}
	return map[string][]string{
		"compat":                                  rules.Names(),
		"load.mode":                               {string(simcore.LoadTrace), string(simcore.LoadConcurrency), string(simcore.LoadRate)},
		"deployment.mode":                         {simcore.ModeAggregated, simcore.ModeDisaggregated},
		"engine.type":                             engine.Types(),
		"engine.preemption_mode":                  engine.PreemptionModes(),
		"timing.source":                           perfmodel.Sources(),
		"timing.backend":                          perfmodel.Backends(),
		"timing.mode":                             perfmodel.Modes(),
		"engine.kv_transfer_timing_mode":          engine.TransferTimingModes(),
		"engine.sglang.schedule_policy":           engine.SchedulePolicies(),
		"engine.trtllm.capacity_scheduler_policy": {engine.PolicyGuaranteedNoEvict},
		"tiers.offload_policy":                    tiers.OffloadPolicies(),
		"tiers.onboard_policy":                    tiers.OnboardPolicies(),
		"router.policy":                           router.Policies(),
		"router.router_queue_policy":              router.QueuePolicies(),
		"router.router_prefill_load_model":        router.PrefillLoadModels(),
		"planner.policy":                          planner.Policies(),
		"planner.optimization_target":             planner.OptimizationTargets(),
		"planner.load_predictor":                  planner.LoadPredictors(),
		"workload.trace.format":                   workload.Formats(),
		"workload.preset.name":                    workload.PresetNames(),
	}[likeSection(path)]
}

// axes is a mapping of key paths below prefix to axes; sections may be nested or be an axis as a whole.
func (w *schemaWriter) axes(prefix, name string, axis func(leaf any, numeric bool) any) any {
	prefix = likeSection(prefix)
	def := name
	if prefix != "" {
		def += "." + prefix
	}
	return w.def(def, func() any {
		properties := object{}
		w.below(prefix, func(relative, path string, k *key) {
			if k != nil {
				properties[relative] = axis(w.leafAt(path), slices.Contains([]Kind{KindInt, KindFloat}, kindOf(k.typ)))
				return
			}
			whole := axis(w.setting(path, configKeys.sections[path]), false)
			properties[relative] = object{"anyOf": []any{whole, w.axes(path, name, axis)}}
		})
		return object{"type": "object", "properties": properties, "additionalProperties": false}
	})
}

// below visits the settings and sections whose path starts with prefix.
func (w *schemaWriter) below(prefix string, visit func(relative, path string, k *key)) {
	relative := func(path string) (string, bool) {
		if prefix == "" {
			return path, true
		}
		return strings.CutPrefix(path, prefix+".")
	}
	for _, k := range configKeys.leaves {
		if r, ok := relative(k.path); ok {
			visit(r, k.path, k)
		}
	}
	for path := range configKeys.sections {
		if r, ok := relative(path); ok {
			visit(r, path, nil)
		}
	}
	for alias, canonical := range aliases() {
		if r, ok := relative(alias); ok {
			visit(r, canonical, configKeys.byPath[canonical])
		}
	}
}

func (w *schemaWriter) axis(leaf any, numeric bool) any {
	list := object{"type": "array", "items": leaf, "minItems": 1}
	if !numeric {
		return list
	}
	return object{"anyOf": []any{list, w.generators("generator", generators())}}
}

func (w *schemaWriter) sampledAxis(leaf any, numeric bool) any {
	list := object{"type": "array", "items": leaf, "minItems": 1}
	choices := object{"type": "object", "additionalProperties": false, "required": []string{"choices"}, "properties": object{"choices": list}}
	if !numeric {
		return object{"anyOf": []any{list, choices}}
	}
	return object{"anyOf": []any{list, choices, w.generators("distribution", append(generators(), "uniform", "loguniform", "int"))}}
}

func (w *schemaWriter) generators(name string, names []string) any {
	return w.def(name, func() any {
		properties := object{"round": object{"type": "boolean", "description": "Round the values to whole numbers."}}
		var oneOf []any
		for _, n := range names {
			size := 3
			if slices.Contains(distributions(), n) {
				size = 2
			}
			properties[n] = object{"type": "array", "items": object{"type": "number"}, "minItems": size, "maxItems": size}
			oneOf = append(oneOf, object{"required": []string{n}})
		}
		return object{"type": "object", "properties": properties, "additionalProperties": false, "oneOf": oneOf}
	})
}

// bundle is a mapping of key paths to values.
func (w *schemaWriter) bundle(prefix string) any {
	properties := object{}
	w.below(prefix, func(relative, path string, k *key) {
		if k != nil {
			properties[relative] = w.leafAt(path)
		} else {
			properties[relative] = w.setting(path, configKeys.sections[path])
		}
	})
	return object{"type": "object", "properties": properties, "additionalProperties": false}
}

// What 0 means is for the one to say who asks for a size.
func TestParseBytes(t *testing.T) {
	for text, want := range map[string]Bytes{"0": 0, "512MiB": 512 << 20, "8GB": 8e9, "1.5 KiB": 1536} {
		if got, err := ParseBytes(text); got != want || err != nil {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
	const want = `"8" is not allowed; give a size such as 512MiB, 8GiB or 8GB, or 0`
	if _, err := ParseBytes("8"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
