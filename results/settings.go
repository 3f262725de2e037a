package results

import (
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/simcore"
)

// setting is one leaf of a point's configuration.
type setting struct {
	// path is the key path in a spec, such as "engine.block_size".
	path      string
	unit, doc string
	kind      gridspec.Kind
	index     []int
	// prefill and decode are the places in the stages of a disaggregated deployment; nil where they have no such setting.
	prefill, decode []int
}

// settings lists every leaf of the configuration in the order of its declaration.
func settings() []setting {
	all := leaves(reflect.TypeFor[gridspec.Config](), "", nil)
	byPath := make(map[string]*setting, len(all))
	for i := range all {
		byPath[all[i].path] = &all[i]
	}
	for i := range all {
		if like, ok := all[i].estimate(); ok {
			all[i].doc = settingDocs[like]
		}
		common := all[i].common()
		if p, d := byPath["prefill."+common], byPath["decode."+common]; p != nil && d != nil {
			all[i].prefill, all[i].decode, all[i].doc = p.index, d.index, settingDocs[common]
		}
	}
	return all
}

// estimate returns the setting of the timing section that a setting is like: how long passes take as the KV router or
// the planner reckons.
func (s setting) estimate() (like string, ok bool) {
	for _, section := range []string{"router.prefill_timing.", "planner.bootstrap_timing."} {
		if rest, ok := strings.CutPrefix(s.path, section); ok {
			return "timing." + rest, true
		}
	}
	return "", false
}

// common is the path of the setting in an aggregated deployment.
func (s setting) common() string {
	return strings.TrimPrefix(strings.TrimPrefix(s.path, "prefill."), "decode.")
}

// ofStage reports whether the setting is that of a stage of a disaggregated deployment.
func (s setting) ofStage() bool { return s.common() != s.path }

func leaves(t reflect.Type, prefix string, index []int) []setting {
	var out []setting
	for _, f := range reflect.VisibleFields(t) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous {
			out = append(out, leaves(f.Type, prefix, append(slices.Clone(index), f.Index...))...)
			continue
		}
		if !f.IsExported() || key == "-" || key == "" || len(f.Index) != 1 {
			continue
		}
		path := prefix + key
		at := append(append([]int(nil), index...), f.Index...)
		if f.Type.Kind() == reflect.Struct {
			out = append(out, leaves(f.Type, path+".", at)...)
			continue
		}
		if kind, ok := leafKind(f.Type); ok {
			out = append(out, setting{path: path, unit: unitOf(path), doc: settingDocs[path], kind: kind, index: at})
		}
	}
	return out
}

// leafKind maps a field's type to the kind of its column. Lists and optional structures have no column.
func leafKind(t reflect.Type) (gridspec.Kind, bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return gridspec.KindString, true
	case reflect.Bool:
		return gridspec.KindBool, true
	case reflect.Float32, reflect.Float64:
		return gridspec.KindFloat, true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return gridspec.KindInt, true
	}
	return 0, false
}

// value reads the setting from a configuration, and false when it is an unset pointer or the configuration does not have
// it, which concerns says, and its mode: what both stages of a disaggregated deployment have in common stands where an aggregated one has it, the rest with
// the stages.
func (s setting) value(config reflect.Value, concerns bool) (gridspec.Value, bool) {
	v := config.FieldByIndex(s.index)
	c := config.Addr().Interface().(*gridspec.Config)
	if c.Deployment.Mode == simcore.ModeDisaggregated && s.prefill != nil {
		p := config.FieldByIndex(s.prefill)
		if p.Equal(config.FieldByIndex(s.decode)) == s.ofStage() {
			return gridspec.Value{}, false
		}
		if !s.ofStage() {
			v = p
		}
	} else if !concerns {
		return gridspec.Value{}, false
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return gridspec.Value{}, false
		}
		v = v.Elem()
	}
	out := gridspec.Value{Kind: s.kind}
	switch {
	case v.Kind() == reflect.String:
		out.Str = v.String()
	case v.Kind() == reflect.Bool:
		out.Bool = v.Bool()
	case v.CanFloat():
		out.Float = v.Float()
	case v.CanInt():
		out.Int = v.Int()
	case v.CanUint():
		out.Int = int64(v.Uint())
	}
	return out, true
}

// addSettings appends the settings that differ between points and are no axis, and records the equal ones.
func (t *Table) addSettings(rows []Row) {
	axes := map[string]bool{}
	for i := range rows {
		for _, a := range rows[i].Point.Axes {
			axes[a.Path] = true
		}
	}
	t.Metadata.Constants = map[string]any{}
	alike := concernedAlike(rows)
	for _, s := range settings() {
		if axes[s.path] || len(rows) == 0 {
			continue
		}
		value := s.reader(rows, alike)
		first, some := value(0)
		constant := true
		for i := 1; i < len(rows) && constant; i++ {
			v, ok := value(i)
			constant = v == first && ok == some
		}
		switch name := flatName(s.path); {
		case constant && some:
			t.Metadata.Constants[s.path] = plain(first)
		case constant: // no point has it
		case slices.Contains(provenanceSettings, name): // has a column of its own
		case t.Column(name) == nil:
			t.Columns = append(t.Columns, s.column(len(rows), value))
		}
	}
}

// reader returns what reads the setting of a row, and false where the row has none.
func (s setting) reader(rows []Row, alike []int) func(row int) (gridspec.Value, bool) {
	concerns := map[int]bool{}
	return func(row int) (gridspec.Value, bool) {
		config := &rows[row].Point.Config
		concerned, known := concerns[alike[row]]
		if !known {
			concerned = gridspec.Concerns(s.path, config)
			concerns[alike[row]] = concerned
		}
		v, ok := s.value(reflect.ValueOf(config).Elem(), concerned)
		if !ok || !rows[row].states(s) || math.IsNaN(v.Float) {
			return gridspec.Value{}, false
		}
		return v, true
	}
}

// column has the setting of so many rows.
func (s setting) column(rows int, value func(row int) (gridspec.Value, bool)) *Column {
	c := NewColumn(flatName(s.path), s.kind, rows)
	c.Unit, c.Doc, c.Role = s.unit, s.doc, RoleConfig
	for row := range rows {
		if v, ok := value(row); ok {
			c.Set(row, v)
		}
	}
	return c
}

// states reports whether a setting says something about a row: of a live one not how its figures would be simulated, and
// nothing of the deployment when nobody stated it.
func (r *Row) states(s setting) bool {
	if r.Source == SourceLive && slices.ContainsFunc(provenanceSettings, func(name string) bool { return flatName(s.common()) == name }) {
		return false
	}
	return !r.DeploymentUnknown || slices.ContainsFunc([]string{"load.", "sla.", "agentx."}, func(section string) bool { return strings.HasPrefix(s.path, section) })
}

// concernedAlike returns for each row the first one that is concerned by the same settings.
func concernedAlike(rows []Row) []int {
	type decisive struct {
		mode    string
		planner planner.Config
	}
	first, out := map[decisive]int{}, make([]int, len(rows))
	for i := range rows {
		c := &rows[i].Point.Config
		key := decisive{c.Deployment.Mode, c.Planner}
		at, known := first[key]
		if !known {
			at, first[key] = i, i
		}
		out[i] = at
	}
	return out
}

// plain returns the value of a row as JSON encodes it; JSON has no infinities, so they are null.
func (c *Column) plain(row int) any {
	v, ok := c.Value(row)
	if !ok {
		return nil
	}
	return plain(v)
}

func plain(v gridspec.Value) any {
	switch {
	case math.IsInf(v.Float, 0):
		return nil
	case v.Kind == gridspec.KindInt:
		return v.Int
	case v.Kind == gridspec.KindFloat:
		return v.Float
	case v.Kind == gridspec.KindBool:
		return v.Bool
	}
	return v.Str
}

// unitOf derives a setting's unit from the last part of its path, where the name says it.
func unitOf(path string) string {
	key := path[strings.LastIndexByte(path, '.')+1:]
	switch key {
	case "block_size", "max_num_batched_tokens", "context_length":
		return "tokens"
	case "num_gpu_blocks":
		return "blocks"
	case "max_num_seqs", "requests":
		return "requests"
	case "concurrency":
		return "sessions"
	case "rate":
		if strings.HasPrefix(path, "workload.") {
			return "requests/s"
		}
		return "sessions/s"
	case "workers":
		return "workers"
	case "tp", "dp", "ep":
		return "GPUs"
	}
	for _, u := range []struct{ suffix, unit string }{
		{"_ms", "ms"}, {"_seconds", "s"}, {"_s", "s"}, {"_tokens", "tokens"}, {"_bytes", "bytes"},
	} {
		if strings.HasSuffix(key, u.suffix) {
			return u.unit
		}
	}
	return ""
}
