package gridspec

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/workload"
)

// key is one setting of a configuration or of a workload: a leaf of their structs.
type key struct {
	// path is the key path, such as "engine.block_size" or "workload.preset.rate".
	path string
	// typ is the field's type, index its place in Config or workload.Spec.
	typ   reflect.Type
	index []int
	// workload says that the field belongs to workload.Spec.
	workload bool
	// mode is the deployment mode that the setting belongs to; empty when both have it.
	mode string
}

// keySet is the catalogue of all key paths that a point consists of.
type keySet struct {
	// leaves holds the settings in the order of their structs, workload last.
	leaves []*key
	byPath map[string]*key
	// sections holds the paths of the structs around them, such as "engine".
	sections map[string]reflect.Type
}

// workloadPath is the key path of the workload, which is an axis by itself.
const workloadPath = "workload"

// configKeys is derived from the types once and never changes.
var configKeys = newKeySet()

// aliases maps other names of settings to their key paths.
var aliases = sync.OnceValue(func() map[string]string {
	out := map[string]string{"engine.engine_type": "engine.type"}
	for _, stage := range stages() {
		out[join(stage, "engine.engine_type")] = join(stage, "engine.type")
	}
	return out
})

// nullable is a number that may be null.
type nullable struct {
	// stored is what a configuration holds then.
	stored float64
	// means says what null stands for.
	means string
}

// least says which numbers the setting takes.
func (n nullable) least(whole bool) string {
	if n.stored == 0 && !whole {
		return "a number above 0"
	}
	return strconv.Itoa(int(n.stored)+1) + " or more"
}

// nullables holds the settings that may be null, by their path in an aggregated deployment.
var nullables = map[string]nullable{
	"engine.max_num_seqs":                     {0, "for no limit"},
	"engine.max_num_batched_tokens":           {0, "for no limit"},
	"engine.num_gpu_blocks":                   {0, "for what fits"},
	"engine.block_size":                       {0, "for the engine's default"},
	"engine.kv_bytes_per_token":               {0, "for that of the model"},
	"engine.sglang.page_size":                 {0, "for engine.block_size"},
	"engine.sglang.max_prefill_tokens":        {0, "for the default"},
	"engine.sglang.chunked_prefill_size":      {0, "for the default"},
	"engine.sglang.clip_max_new_tokens":       {0, "for the default"},
	"tiers.num_g4_blocks":                     {0, "for no limit"},
	"tiers.workers_per_node":                  {0, "for all workers on one node"},
	"tiers.bandwidth_g1_to_g2_gbps":           {0, "for transfers of no time"},
	"tiers.bandwidth_g2_to_g1_gbps":           {0, "for transfers of no time"},
	"tiers.bandwidth_g2_to_g3_gbps":           {0, "for transfers of no time"},
	"tiers.bandwidth_g3_to_g2_gbps":           {0, "for transfers of no time"},
	"tiers.bandwidth_g2_to_g4_gbps":           {0, "for transfers of no time"},
	"tiers.bandwidth_g4_to_g2_gbps":           {0, "for transfers of no time"},
	"agentx.duration_s":                       {-1, "for the preset's"},
	"agentx.grace_s":                          {-1, "for the preset's"},
	"agentx.start_min":                        {-1, "for the preset's"},
	"agentx.start_max":                        {-1, "for the preset's"},
	"agentx.gap_cap_s":                        {-1, "for the preset's"},
	"agentx.tree_idle_cap_s":                  {-1, "for the preset's"},
	"agentx.global_idle_cap_s":                {-1, "for the preset's"},
	"agentx.primers_per_user":                 {-1, "for the preset's"},
	"planner.scale_interval_seconds":          {0, "for the greatest that divides both intervals"},
	"planner.prefill_engine_num_gpu":          {0, "for those of the engine's parallelism"},
	"planner.decode_engine_num_gpu":           {0, "for those of the engine's parallelism"},
	"planner.prefill_scale_up_queue_tokens":   {-1, "for none"},
	"planner.prefill_scale_down_queue_tokens": {-1, "for none"},
	"planner.decode_scale_up_kv_rate":         {-1, "for none"},
	"planner.decode_scale_down_kv_rate":       {-1, "for none"},
	"planner.target_tracking.target":          {0, "for a value that suits the metric"},
	"planner.target_tracking.prefill_target":  {0, "for a value that suits the metric"},
	"router.overlap_score_weight":             {router.Unset, "for the two settings that it replaces"},
	"router.router_queue_threshold":           {router.Unset, "to keep no request in the router"},
}

func nullableAt(path string) (nullable, bool) {
	n, ok := nullables[commonPath(path)]
	return n, ok
}

// Nullable reports whether a setting may be null.
func Nullable(path string) bool {
	_, ok := nullableAt(path)
	return ok
}

// SectionKeys lists the keys of a section of settings; nil when there is no such section.
func SectionKeys(path string) []string {
	var keys []string
	if t, ok := configKeys.sections[path]; ok {
		for _, f := range jsonFields(t) {
			keys = append(keys, f.name)
		}
	}
	return keys
}

// IsNull reports whether a setting may be null and the value of a configuration stands for that.
func IsNull(path string, value reflect.Value) bool {
	n, ok := nullableAt(path)
	return ok && (value.CanInt() && float64(value.Int()) == n.stored || value.CanFloat() && value.Float() == n.stored)
}

func newKeySet() *keySet {
	ks := &keySet{byPath: map[string]*key{}, sections: map[string]reflect.Type{}}
	ks.walk("", reflect.TypeFor[Config](), nil, false)
	ks.sections[workloadPath] = reflect.TypeFor[workload.Spec]()
	ks.walk(workloadPath, reflect.TypeFor[workload.Spec](), nil, true)
	return ks
}

func (ks *keySet) walk(path string, t reflect.Type, index []int, inWorkload bool) {
	for _, f := range jsonFields(t) {
		p, i := join(path, f.name), append(slices.Clone(index), f.index...)
		inner := f.typ
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			ks.sections[p] = inner
			ks.walk(p, inner, i, inWorkload)
			continue
		}
		k := &key{path: p, typ: f.typ, index: i, workload: inWorkload, mode: deploymentModeOf(p)}
		ks.leaves = append(ks.leaves, k)
		ks.byPath[p] = k
	}
}

// find returns the setting at a key path.
func (ks *keySet) find(path string) (*key, bool) {
	k, ok := ks.byPath[path]
	return k, ok
}

// isSection reports whether a path names a struct of settings.
func (ks *keySet) isSection(path string) bool {
	_, ok := ks.sections[path]
	return ok
}

// paths lists all settings.
func (ks *keySet) paths() []string {
	out := make([]string, len(ks.leaves))
	for i, k := range ks.leaves {
		out[i] = k.path
	}
	return out
}

// homeOf returns the full path of a setting that was given by its last part; "" when there is none.
func (ks *keySet) homeOf(last string) string {
	last = last[strings.LastIndexByte(last, '.')+1:]
	for _, k := range ks.leaves {
		if strings.HasSuffix(k.path, "."+last) {
			return k.path
		}
	}
	return ""
}

// canonicalPath resolves aliases.
func canonicalPath(path string) string {
	if p, ok := aliases()[path]; ok {
		return p
	}
	return path
}

// jsonField is one field of a struct under its `json` name.
type jsonField struct {
	name  string
	typ   reflect.Type
	index []int
}

// fieldAt is the field at a place in a structure, and false when a section above it is not there.
func fieldAt(v reflect.Value, index []int) (reflect.Value, bool) {
	for i, at := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return reflect.Value{}, false
			}
			v = v.Elem()
		}
		v = v.Field(at)
	}
	return v, true
}

// knownFields holds what jsonFields found, by the type of the struct.
var knownFields sync.Map

// jsonFields lists the fields of a struct in order; those of embedded structs stand in their place. The list is shared.
func jsonFields(t reflect.Type) []jsonField {
	if known, ok := knownFields.Load(t); ok {
		return known.([]jsonField)
	}
	var out []jsonField
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			for _, inner := range jsonFields(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				out = append(out, inner)
			}
		case f.IsExported() && name != "" && name != "-":
			out = append(out, jsonField{name: name, typ: f.Type, index: []int{i}})
		}
	}
	out = slices.Clip(out)
	knownFields.Store(t, out)
	return out
}
