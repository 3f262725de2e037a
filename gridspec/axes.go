package gridspec

import (
	"math"
	"reflect"

	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/workload"
)

// axis is one thing that varies between points and has a column.
type axis struct {
	// path is the key path; "workload" and "case" are axes of their own.
	path string
	// column is the name in the results; see columns.go.
	column string
	kind   Kind
	// key is the setting; nil when the axis is a section, the workload or the case.
	key *key
	// home is where the axis is written, such as "grid" or "lhs.space"; empty when only included points set it.
	home string
}

// casePath is the path and column of the axis of cases.
const casePath = "case"

// factor is one part of the product that makes the points: an axis, several in lockstep, cases or samples.
type factor struct {
	axes []*axis
	rows []option
}

// option is one row of a factor: what it shows in the columns of the factor's axes and what it sets.
type option struct {
	shown    []Value
	set      []assignment
	workload *workload.Spec
	// workloadAt is where the workload is written.
	workloadAt string
	given      givenKeys
}

// assignment is a typed value for one setting.
type assignment struct {
	key   *key
	value reflect.Value
	// at is where it is written.
	at string
}

// with adds what another option shows and sets.
func (o option) with(other option) option {
	o.shown = append(o.shown[:len(o.shown):len(o.shown)], other.shown...)
	o.set = append(o.set[:len(o.set):len(o.set)], other.set...)
	if other.workload != nil {
		o.workload, o.workloadAt = other.workload, other.workloadAt
	}
	o.given = o.given.or(other.given)
	return o
}

// apply sets the option's values. The settings must own their workload.
func (o *option) apply(s *settings) {
	for _, a := range o.set {
		if a.key.workload {
			setWorkload(s.workload, a)
			continue
		}
		reflect.ValueOf(&s.config).Elem().FieldByIndex(a.key.index).Set(a.value)
		if a.key.mode != "" {
			s.bound = append(s.bound[:len(s.bound):len(s.bound)], a)
		}
	}
	s.given = s.given.or(o.given)
}

func setWorkload(w *workload.Spec, a assignment) {
	v := reflect.ValueOf(w).Elem()
	for _, i := range a.key.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(newDefault(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	v.Set(a.value)
}

// buildAxes reads the workload and everything that multiplies, in the order in which it multiplies.
func (s *Spec) buildAxes(c *collector, doc *document) {
	b := axisBuilder{collector: c, spec: s, setBy: map[string]string{}, byPath: map[string]*axis{}}
	b.workload(doc.Workload)
	b.cases(doc.Cases)
	b.zip(doc.Zip)
	for _, path := range c.origins.sorted("grid", doc.Grid) {
		if a, rows := b.axis("grid", path, doc.Grid[path]); a != nil {
			b.addFactor(factor{axes: []*axis{a}, rows: rows})
		}
	}
	for _, method := range samplers() {
		if space := method.of(doc); space != nil {
			b.sampled(method, space, doc.Execution.Seed)
		}
	}
	b.include(doc.Include)
}

type axisBuilder struct {
	*collector
	spec *Spec
	// setBy says which home sets a setting already.
	setBy  map[string]string
	byPath map[string]*axis
}

func (b *axisBuilder) addFactor(f factor) {
	b.spec.factors = append(b.spec.factors, f)
}

// newAxis registers an axis; a path that is an axis already is reported and gives nil.
func (b *axisBuilder) newAxis(home, path string) *axis {
	at := join(home, path)
	_, isKey := configKeys.find(path)
	if known := isKey || configKeys.isSection(path) || path == casePath && home == "cases"; !known {
		b.addUnknownPath(at, path)
		return nil
	}
	if other := b.byPath[path]; other != nil {
		b.addMessage(at, "this axis is already given by %s; an axis has one place", join(other.home, path))
		return nil
	}
	a := &axis{path: path, home: home, kind: KindString}
	if k, ok := configKeys.find(path); ok {
		a.key, a.kind = k, kindOf(k.typ)
	}
	b.byPath[path] = a
	b.spec.axes = append(b.spec.axes, a)
	return a
}

// addUnknownPath reports a key path that no configuration has.
func (c *collector) addUnknownPath(at, path string) {
	if near := problem.Nearest(path, configKeys.paths()); near != "" {
		c.addMessage(at, "unknown key path; the nearest is %s", near)
	} else if home := configKeys.homeOf(path); home != "" {
		c.addMessage(at, "unknown key path; the nearest is %s", home)
	} else {
		c.addMessage(at, "unknown key path; write one such as engine.block_size, deployment.workers or workload.preset.rate")
	}
}

// axis reads the values of one axis of grid or zip.
func (b *axisBuilder) axis(home, path string, domain any) (*axis, []option) {
	a := b.newAxis(home, path)
	if a == nil {
		return nil, nil
	}
	at := join(home, path)
	raw, ok := b.domain(at, domain)
	if !ok {
		return nil, nil
	}
	_, isList := domain.([]any)
	rows := make([]option, 0, len(raw))
	for i, v := range raw {
		place := at
		if isList {
			place = indexed(at, i)
		}
		o, ok := b.option(place, path, v)
		if !ok && !isList {
			break // all that a generator makes is wrong alike
		}
		if ok {
			rows = append(rows, o)
		}
	}
	if len(rows) == len(raw) {
		b.checkDistinct(at, path, raw, rows)
	}
	b.claim(home, path, rows)
	return a, rows
}

// checkDistinct reports values that stand twice in an axis. Workloads of one name are told apart by what differs.
func (b *axisBuilder) checkDistinct(at, path string, raw []any, rows []option) {
	if path == workloadPath {
		labelWorkloads(rows)
	}
	seen := make(map[Value]int, len(rows))
	for i, o := range rows {
		first, twice := seen[o.shown[0]]
		switch {
		case !twice:
			seen[o.shown[0]] = i
		case path == workloadPath && o.workload.Name != "" && !sameWorkload(o.workload, rows[first].workload):
			b.add(join(indexed(at, i), "name"), o.workload.Name, "the workload at index %d has this name already; give each a name of its own", first)
		default:
			b.add(indexed(at, i), raw[i], "give every value once; it is already at index %d", first)
		}
	}
}

// claim records which settings a home sets and reports those that another sets too. The workload as a whole is a
// base that axes of its settings refine.
func (b *axisBuilder) claim(home, path string, rows []option) {
	own := map[string]bool{}
	for i := range rows {
		for _, a := range rows[i].set {
			own[a.key.path] = true
		}
	}
	for _, k := range configKeys.leaves {
		if !own[k.path] {
			continue
		}
		if other, taken := b.setBy[k.path]; taken {
			b.addMessage(join(home, path), "%s is already set by %s", k.path, other)
		} else {
			b.setBy[k.path] = join(home, path)
		}
	}
}

// option types one value of an axis or bundle.
func (b *axisBuilder) option(at, path string, v any) (option, bool) {
	before := len(b.problems)
	var o option
	if path == workloadPath {
		o.workload, o.workloadAt = &workload.Spec{}, at
		b.bind(at, v, reflect.ValueOf(o.workload).Elem())
		o.shown = []Value{{Kind: KindString, Str: workloadLabel(*o.workload)}}
	} else if k, ok := configKeys.find(path); ok {
		value := reflect.New(k.typ).Elem()
		b.bindSetting(at, k, v, value)
		o.set = []assignment{{k, value, at}}
		o.shown = []Value{valueOf(value)}
	} else {
		o = b.section(at, path, v)
	}
	o.given = o.given.or(givenBy(o.set))
	return o, len(b.problems) == before
}

// bindSetting binds the value of a setting that is written at another place than its own.
func (b *axisBuilder) bindSetting(at string, k *key, v any, dst reflect.Value) {
	if n, ok := nullableAt(k.path); ok {
		b.bindNullable(at, n, v, dst)
		return
	}
	b.bind(at, v, dst)
	if dst.Kind() == reflect.Uint64 && dst.Uint() > math.MaxInt64 {
		b.add(at, v, "an axis takes whole numbers up to %d", int64(math.MaxInt64))
	}
}

// section types a mapping that sets several keys of one section.
func (b *axisBuilder) section(at, path string, v any) option {
	m, ok := v.(map[string]any)
	if !ok {
		b.add(at, v, "give a mapping of keys of %s", path)
		return option{}
	}
	text, err := jsonText(m)
	if err != nil {
		b.add(at, v, "%v", err)
	}
	o := option{shown: []Value{{Kind: KindString, Str: text}}}
	for _, k := range b.origins.sorted(at, m) {
		inner := canonicalPath(join(path, k))
		if _, ok := configKeys.find(inner); !ok && !configKeys.isSection(inner) {
			b.addUnknownPath(join(at, k), inner)
			continue
		}
		part, _ := b.option(join(at, k), inner, m[k])
		o.set = append(o.set, part.set...)
	}
	return o
}

// workload reads the base workload, or the axis of workloads when it is a list.
func (b *axisBuilder) workload(v any) {
	switch v := v.(type) {
	case nil:
	case []any:
		if a, rows := b.axis("", workloadPath, v); a != nil {
			b.addFactor(factor{axes: []*axis{a}, rows: rows})
		}
	default:
		b.spec.base.workload = &workload.Spec{}
		b.bind(workloadPath, v, reflect.ValueOf(b.spec.base.workload).Elem())
	}
}

func (b *axisBuilder) cases(cases caseMap) {
	if cases == nil {
		return
	}
	a := b.newAxis("cases", casePath)
	f := factor{axes: []*axis{a}}
	for _, name := range b.origins.sorted("cases", anyMap(cases)) {
		row := option{shown: []Value{{Kind: KindString, Str: name}}}
		_, set := b.bundle(join("cases", name), cases[name])
		set.shown = nil
		f.rows = append(f.rows, row.with(set))
	}
	if len(f.rows) == 0 {
		b.addMessage("cases", "give at least one case, such as `small: {engine.block_size: 16}`")
	}
	b.claim("cases", "", f.rows)
	b.addFactor(f)
}

func anyMap(cases caseMap) map[string]any {
	out := make(map[string]any, len(cases))
	for k, v := range cases {
		out[k] = v
	}
	return out
}

// bundle types the settings of a case or an included point.
func (b *axisBuilder) bundle(at string, settings bundle) (paths []string, all option) {
	for _, path := range b.origins.sorted(at, settings) {
		if _, ok := configKeys.find(path); !ok && !configKeys.isSection(path) {
			b.addUnknownPath(join(at, path), path)
			continue
		}
		if o, ok := b.option(join(at, path), path, settings[path]); ok {
			paths = append(paths, path)
			all = all.with(o)
		}
	}
	return paths, all
}

func (b *axisBuilder) zip(axes axisMap) {
	var f factor
	first := ""
	for _, path := range b.origins.sorted("zip", axes) {
		a, rows := b.axis("zip", path, axes[path])
		switch {
		case a == nil:
		case len(f.axes) == 0:
			f, first = factor{axes: []*axis{a}, rows: rows}, path
		case len(rows) != len(f.rows):
			b.addMessage(join("zip", path), "it has %d values and %s has %d; axes of zip have equally many", len(rows), first, len(f.rows))
		default:
			f.axes = append(f.axes, a)
			for i := range rows {
				f.rows[i] = f.rows[i].with(rows[i])
			}
		}
	}
	if len(f.axes) > 0 {
		b.addFactor(f)
	}
}

// include reads the added points. Their settings are columns too, also where nothing else varies them.
func (b *axisBuilder) include(bundles []bundle) {
	for i, settings := range bundles {
		at := indexed("include", i)
		paths, row := b.bundle(at, settings)
		var axes []*axis
		for _, path := range paths {
			a := b.byPath[path]
			if a == nil {
				if a = b.newAxis(at, path); a == nil {
					continue
				}
				a.home = ""
			}
			axes = append(axes, a)
		}
		b.spec.include = append(b.spec.include, factor{axes: axes, rows: []option{row}})
	}
}
