package gridspec

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Alone returns a spec whose only point is this one, as YAML: everything that is not the default, with what was resolved, so
// that its content ID stays the same also when a later release would resolve something else. Files keep the paths that they
// have in the point. A name labels the sweep; it may be empty. Of a replicate it has the workload, not the number.
func (p Point) Alone(name string) []byte {
	t := p.tree()
	if name != "" {
		t.set("name", name)
	}
	return t.text()
}

// tree is the spec of just this point.
func (p Point) tree() *specTree {
	t := &specTree{tree: map[string]any{}, origins: newOrigins()}
	t.workload(&p.Workload)
	t.config(&p.Config)
	t.prices(p)
	return t
}

func (t *specTree) text() []byte { return marshalYAML(t.tree, t.origins) }

// specTree is a spec while it is written, with its keys in order.
type specTree struct {
	tree    map[string]any
	origins *origins
}

// set writes a value at a key path.
func (t *specTree) set(path string, v any) {
	at, rest := t.tree, path
	for {
		head, tail, below := strings.Cut(rest, ".")
		t.origins.set(path[:len(path)-len(rest)+len(head)], "")
		if !below {
			at[head] = v
			return
		}
		inner, ok := at[head].(map[string]any)
		if !ok {
			inner = map[string]any{}
			at[head] = inner
		}
		at, rest = inner, tail
	}
}

// setting writes a setting of a configuration or workload.
func (t *specTree) setting(path string, v reflect.Value) {
	switch {
	case IsNull(path, v):
		t.set(path, nil)
	case v.Kind() == reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = v.Index(i).Interface()
		}
		t.set(path, list)
	case v.Kind() == reflect.String:
		t.set(path, v.String()) // also where the type is the package's own
	default:
		t.set(path, v.Interface())
	}
}

// workload writes the kind of workload that is given, its main settings first.
func (t *specTree) workload(w *workload.Spec) {
	given := reflect.ValueOf(w).Elem()
	for _, section := range jsonFields(given.Type()) {
		v := given.FieldByIndex(section.index)
		path := join(workloadPath, section.name)
		if v.Kind() != reflect.Pointer {
			if !v.IsZero() {
				t.setting(path, v)
			}
			continue
		}
		if v.IsNil() {
			continue
		}
		defaults := newDefault(v.Type().Elem()).Elem()
		for _, f := range jsonFields(v.Type().Elem()) {
			if value := v.Elem().FieldByIndex(f.index); !equal(value, defaults.FieldByIndex(f.index)) {
				t.setting(join(path, f.name), value)
			}
		}
	}
}

// config writes what is not the default. What both stages of a disaggregated deployment have is written once.
func (t *specTree) config(c *Config) {
	given, defaults, resolved := reflect.ValueOf(c).Elem(), reflect.ValueOf(&rawConfig).Elem(), reflect.ValueOf(usualConfig(c.Compat)).Elem()
	// wanted reports whether a setting has to be written: resolving an empty spec would not give it, or would and it counts.
	wanted := func(path string, index []int) bool {
		v := given.FieldByIndex(index)
		if equal(v, defaults.FieldByIndex(index)) || !Concerns(path, c) {
			return false
		}
		idle := slices.ContainsFunc(conditions, func(u use) bool { return u.of(path) && !u.needs(c) })
		return !idle || !equal(v, resolved.FieldByIndex(index))
	}
	split := c.Deployment.Mode == simcore.ModeDisaggregated
	for _, k := range configKeys.leaves {
		switch {
		case k.workload || commonPath(k.path) != k.path:
		case split && isCommon(k.path):
			t.stages(k.path, given, wanted)
		case wanted(k.path, k.index):
			t.setting(k.path, given.FieldByIndex(k.index))
		}
	}
}

// conditions are those of uses, rawConfig what an empty spec says before it is resolved.
var (
	conditions = uses()
	rawConfig  = DefaultConfig()
)

// usualConfigs holds the *Config of each rule set that usualConfig was asked for.
var usualConfigs sync.Map

// usualConfig is what an empty spec of a rule set means.
func usualConfig(compat rules.Compat) *Config {
	if known, ok := usualConfigs.Load(compat); ok {
		return known.(*Config)
	}
	c := DefaultConfig()
	c.Compat = compat
	c, _ = c.Resolve()
	usualConfigs.Store(compat, &c)
	return &c
}

// stages writes a setting of the stages of a disaggregated deployment, into their common section where they agree.
func (t *specTree) stages(path string, given reflect.Value, wanted func(string, []int) bool) {
	prefill, decode := configKeys.byPath["prefill."+path], configKeys.byPath["decode."+path]
	p, d := given.FieldByIndex(prefill.index), given.FieldByIndex(decode.index)
	if equal(p, d) {
		if wanted(prefill.path, prefill.index) {
			t.setting(path, p)
		}
		return
	}
	for _, k := range []*key{prefill, decode} {
		if wanted(k.path, k.index) {
			t.setting(k.path, given.FieldByIndex(k.index))
		}
	}
}

// prices writes the prices that are not those of the catalogue.
func (t *specTree) prices(p Point) {
	for _, gpu := range p.RepricedGPUs() {
		t.set("prices."+gpu, p.GPUPrice.USDPerHour)
	}
}
