package gridspec

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/bits"
	"reflect"
	"slices"

	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/workload"
)

// DefaultMaxPoints is the number of points above which a spec is refused unless the caller allows more.
const DefaultMaxPoints = 1_000_000

// ExpandOptions limits an expansion.
type ExpandOptions struct {
	// MaxPoints is the largest number of points; 0 means [DefaultMaxPoints].
	MaxPoints int
	// LeftOut is called, unless it is nil, with the number of points that were left out because they are equal to an
	// earlier one, when there are any.
	LeftOut func(equal int)
	// Shard is the part of the points to make. Their Index counts within it. What is impossible about points of other shards
	// is an error all the same. There may be MaxPoints for each shard.
	Shard Shard
}

// Count returns the number of points before exclude drops any and before equal samples fall together. A count
// that 64 bits cannot hold is the largest that they can.
func (s *Spec) Count() uint64 {
	total := uint64(0)
	if !s.onlyIncluded() {
		total = product(s.factors)
	}
	for _, f := range s.include {
		total = saturatingAdd(total, product(s.includeFactors(f)))
	}
	return saturatingMul(total, uint64(s.Execution.Replicates))
}

func product(factors []factor) uint64 {
	n := uint64(1)
	for _, f := range factors {
		n = saturatingMul(n, uint64(len(f.rows)))
	}
	return n
}

func saturatingMul(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high != 0 {
		return ^uint64(0)
	}
	return low
}

func saturatingAdd(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return ^uint64(0)
	}
	return sum
}

// onlyIncluded reports whether a spec lists its points by hand: nothing multiplies, and the base configuration by
// itself is none of them.
func (s *Spec) onlyIncluded() bool { return len(s.factors) == 0 && len(s.include) > 0 }

// includeFactors multiplies an included point by the list of workloads, unless it names its own.
func (s *Spec) includeFactors(included factor) []factor {
	out := []factor{included}
	if len(s.factors) > 0 && included.rows[0].workload == nil {
		if first := s.factors[0]; first.axes[0].path == workloadPath && first.axes[0].home == "" {
			out = []factor{first, included}
		}
	}
	return out
}

// Expand returns the points of a spec in their fixed order: workloads, cases, zip, grid, random, lhs, sobol, the
// last axis fastest, then included points; replicates of a point follow each other. Points that are equal to an
// earlier one are left out, and so is the base configuration when there are included points and no axes. The error is a [Problems] that names every impossible combination, unless the spec
// says `on_invalid: skip`.
func (s *Spec) Expand(opt ExpandOptions) ([]Point, error) {
	limit := uint64(DefaultMaxPoints)
	if opt.MaxPoints > 0 {
		limit = uint64(opt.MaxPoints)
	}
	if err := opt.Shard.Check(); err != nil {
		return nil, err
	}
	count := s.Count()
	if count > saturatingMul(limit, uint64(max(opt.Shard.Count, 1))) {
		return nil, tooManyPoints(count, limit, opt.Shard)
	}
	e := newExpander(s)
	e.shard, e.count = opt.Shard, count
	if !s.onlyIncluded() {
		e.product(s.factors, false)
	}
	for _, included := range s.include {
		e.product(s.includeFactors(included), true)
	}
	points, err := e.finish()
	if err == nil && e.equal > 0 && opt.LeftOut != nil {
		opt.LeftOut(e.equal)
	}
	return points, err
}

func tooManyPoints(n, limit uint64, shard Shard) error {
	count := fmt.Sprint(n)
	if n == ^uint64(0) {
		count = "more than " + count
	}
	allowed, fewer := fmt.Sprintf("%d", limit), "draw samples with random, lhs or sobol, or search"
	if !shard.All() {
		allowed, fewer = fmt.Sprintf("%d in each of %d shards", limit, shard.Count), "make more shards"
	}
	p := Problem{}
	p.Allowed = fmt.Sprintf("the spec makes %s points before exclude, and at most %s are allowed; raise --max-points, %s", count, allowed, fewer)
	return Problems{p}
}

// candidate is a point while it is made.
type candidate struct {
	settings
	// shown holds the value of every axis.
	shown   []Value
	derived map[string]any
	// problems is what is impossible about the configuration.
	problems problem.List
	// written is the configuration before it was resolved.
	written Config
	// replayed are the settings of the workload that are not at their default.
	replayed []byte
}

// resolve fills in what the configuration leaves open, so that points, expressions and columns have it. Values of
// axes that name the same thing otherwise become its name.
func (e *expander) resolve(p *candidate) {
	idle := p.idle(e.deploymentVaries)
	p.settle()
	p.written = p.config
	var missing problem.List
	for _, f := range configFiles(&p.config) {
		*f.path = files.From(e.spec.Dir, *f.path)
		missing = append(missing, e.copyFile(f)...)
	}
	policyProblems := e.readPolicies(&p.config.Router)
	p.config, p.problems = p.config.Resolve()
	showCommon(&p.config)
	p.problems = slices.Concat(idle, missing, p.problems, policyProblems)
	before, after := reflect.ValueOf(&p.written).Elem(), reflect.ValueOf(&p.config).Elem()
	for i, a := range e.spec.axes {
		if a.key == nil || a.key.workload || !p.config.plans(a.path) || isSettingFile(a.path, p.shown[i].Str) {
			continue
		}
		if v := after.FieldByIndex(a.key.index); !v.Equal(before.FieldByIndex(a.key.index)) {
			p.shown[i] = valueOf(v)
		}
	}
}

// copyFile replaces the URL of a file by the path of a copy on this machine, once for all points. A system that keeps to
// places looks at paths too.
func (e *expander) copyFile(f configFile) problem.List {
	if _, guarded := e.spec.files.(files.Guard); *f.path == "" || !guarded && !files.IsURL(*f.path) {
		return nil
	}
	known, ok := e.copies[*f.path]
	if !ok {
		known.path, known.err = e.spec.files.Local(context.Background(), *f.path)
		e.copies[*f.path] = known
	}
	if known.err != nil {
		var l problem.List
		l.Add(f.key, files.Shown(*f.path), "the file cannot be read: %v", files.Cause(known.err))
		return l
	}
	*f.path = known.path
	return nil
}

// copied is the copy of a file at a URL, or why there is none.
type copied struct {
	path string
	err  error
}

// configFile is a setting that is the path of a file.
type configFile struct {
	key  string
	path *string
}

// configFiles lists the settings that are paths of files, apart from the workload's.
func configFiles(c *Config) []configFile {
	var out []configFile
	for _, section := range []struct {
		key    string
		timing *perfmodel.Config
	}{{"timing", &c.Timing}, {"prefill.timing", &c.Prefill.Timing}, {"decode.timing", &c.Decode.Timing}, {"router.prefill_timing", &c.Router.PrefillTiming}} {
		for i, path := range section.timing.Files() {
			out = append(out, configFile{join(section.key, []string{"profile", "tables", "model"}[i]), path})
		}
	}
	return append(out,
		configFile{"router.router_policy_config", &c.Router.RouterPolicyConfig},
		configFile{"planner.load_predictor_warmup_trace", &c.Planner.LoadPredictorWarmupTrace})
}

// setting returns a setting's value as expressions see it; nil when the workload has no such section.
func (p *candidate) setting(k *key) any {
	v, ok := p.field(k)
	if !ok {
		return nil
	}
	if kindOf(k.typ) == KindString && v.Kind() != reflect.String {
		return v.Interface()
	}
	return plain(valueOf(v))
}

func (p *candidate) field(k *key) (reflect.Value, bool) {
	if !k.workload {
		return reflect.ValueOf(&p.config).Elem().FieldByIndex(k.index), true
	}
	return fieldAt(reflect.ValueOf(p.workload).Elem(), k.index)
}

// firstPoint is what was written at a point, and the values of its axes.
type firstPoint struct {
	written pointKey
	shown   []Value
}

// expander makes the points of one expansion.
type expander struct {
	spec      *Spec
	shard     Shard
	evaluator evaluator
	axisIndex map[*axis]int
	// seen holds every point of the shard so far.
	seen map[pointKey]firstPoint
	// looked counts those of all shards, without their replicates.
	looked int
	// equal counts the points of the shard that repeat an earlier one.
	equal int
	// count is the [Spec.Count] when all are looked at, and visited how many were.
	count, visited uint64
	points         []Point
	// made is the candidate that is being made.
	made candidate
	// workloads holds those of the points so far, which share them.
	workloads map[workloadKey]workload.Spec
	checks    checks
	// dropped counts the points that each exclude expression drops.
	dropped map[*expression]int
	// rows holds the options of the point that is being made, replicates those of its replicates that are in the shard.
	rows       []*option
	replicates []int
	// kinds has a bit for each kind that a derived value has at some point of any shard.
	kinds []uint8
	// policies holds the policy files of routers, by path.
	policies map[string]policyFile
	// copies holds the copies of files at URLs, by URL.
	copies map[string]copied
	// deploymentVaries says that points have different deployment modes.
	deploymentVaries bool
}

func newExpander(s *Spec) *expander {
	e := &expander{
		spec:      s,
		evaluator: evaluator{expressions: &s.rules, env: map[string]any{}},
		axisIndex: map[*axis]int{},
		seen:      map[pointKey]firstPoint{},
		workloads: map[workloadKey]workload.Spec{},
		checks:    newChecks(s),
		dropped:   map[*expression]int{},
		policies:  map[string]policyFile{},
		copies:    map[string]copied{},
		kinds:     make([]uint8, len(s.rules.names)),
	}
	e.deploymentVaries = s.deploymentVaries()
	for i, a := range s.axes {
		e.axisIndex[a] = i
	}
	return e
}

// product visits every combination of the rows of factors, the last factor fastest.
func (e *expander) product(factors []factor, included bool) {
	for _, f := range factors {
		if len(f.rows) == 0 {
			return
		}
	}
	at := make([]int, len(factors))
	for {
		e.add(factors, at, included)
		i := len(at) - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] < len(factors[i].rows) {
				break
			}
			at[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// add makes the point of one combination, unless it is excluded or there already.
func (e *expander) add(factors []factor, at []int, included bool) {
	e.visited += uint64(e.spec.Execution.Replicates)
	p := e.candidate(factors, at)
	contradictions := p.implyModes()
	e.resolve(p)
	p.problems = append(contradictions, p.problems...)
	if !included && e.excluded(p, false) {
		return
	}
	derived := e.derive(p)
	if !included && e.excluded(p, true) {
		return
	}
	e.replicates = e.shard.replicatesOf(p, e.spec.Execution.Replicates, e.replicates)
	mine := len(e.replicates) > 0
	if mine {
		p.replayed = appendWorkload(p.replayed, p.workload)
	}
	if alone := e.count == uint64(e.spec.Execution.Replicates); mine && !alone && e.repeats(p, included) {
		return
	}
	for i, v := range derived {
		e.kinds[i] |= 1 << v.Kind
	}
	e.looked++
	e.rows = e.rows[:0]
	for i, f := range factors {
		e.rows = append(e.rows, &f.rows[at[i]])
	}
	skip := e.checks.point(p, e.rows)
	if mine {
		e.emit(p, derived, skip)
	}
}

// repeats reports whether there is an equal point already.
func (e *expander) repeats(p *candidate, included bool) bool {
	key, written := keyOf(&p.config, p.replayed), keyOf(&p.written, p.replayed)
	first, twice := e.seen[key]
	if twice {
		e.equal += len(e.replicates)
		// What is written apart and resolves to the same, such as two names of a GPU, falls together.
		if !included && first.written == written {
			e.sameAs(first.shown, p)
		}
		return true
	}
	e.seen[key] = firstPoint{written, p.shown}
	return false
}

// sameAs reports a point that equals an earlier one under another name of a case, workload or section. Samples
// that repeat each other have no such names and fall together in silence.
func (e *expander) sameAs(first []Value, p *candidate) {
	for i, a := range e.spec.axes {
		if a.key == nil && first[i] != p.shown[i] {
			e.checks.sameName(a, p.shown[i], first[i])
			return
		}
	}
}

func (e *expander) candidate(factors []factor, at []int) *candidate {
	e.made = candidate{settings: e.spec.base, shown: make([]Value, len(e.spec.axes)), replayed: e.made.replayed[:0]}
	p := &e.made
	for i, f := range factors {
		if w := f.rows[at[i]].workload; w != nil {
			p.workload = w
		}
	}
	p.workload = cloneWorkload(p.workload)
	for i, f := range factors {
		f.rows[at[i]].apply(&p.settings)
	}
	e.show(p, factors, at)
	return p
}

// show fills in the axis values: those of the rows, and elsewhere what the point has at the axis's path.
func (e *expander) show(p *candidate, factors []factor, at []int) {
	for i, a := range e.spec.axes {
		switch {
		case a.path == workloadPath:
			p.shown[i] = Value{Kind: KindString, Str: workloadLabel(*p.workload)}
		case a.key != nil:
			p.shown[i] = Value{Kind: a.kind}
			if v, ok := p.field(a.key); ok {
				p.shown[i] = valueOf(v)
			}
		}
	}
	for i, f := range factors {
		for j, a := range f.axes {
			p.shown[e.axisIndex[a]] = f.rows[at[i]].shown[j]
		}
	}
}

func (e *expander) excluded(p *candidate, usesDerived bool) bool {
	for _, x := range e.spec.rules.exclude {
		if x.usesDerived != usesDerived {
			continue
		}
		out, err := e.evaluator.run(x, p)
		if err != nil {
			e.checks.expression(x, err, p)
			return true
		}
		if out == true {
			e.dropped[x]++
			return true
		}
	}
	return false
}

// derive evaluates the derived values of a point, in the order of their columns.
func (e *expander) derive(p *candidate) []Value {
	rules := &e.spec.rules
	if len(rules.derive) == 0 {
		return nil
	}
	p.derived = make(map[string]any, len(rules.derive))
	values := make(map[string]Value, len(rules.derive))
	for _, x := range rules.derive {
		out, err := e.evaluator.run(x, p)
		if err == nil {
			values[x.name], err = derivedValue(out)
		}
		if err != nil {
			e.checks.expression(x, err, p)
			break
		}
		p.derived[x.name] = out
	}
	out := make([]Value, len(rules.names))
	for i, name := range rules.names {
		out[i] = values[name]
	}
	return out
}

// emit appends the replicates of a point that are in the shard.
func (e *expander) emit(p *candidate, derived []Value, skip string) {
	s := e.spec
	for _, r := range e.replicates {
		point := Point{Index: len(e.points), Config: p.config, GPUPrice: s.gpuPrice(&p.config), Replicate: r, SkipMessage: skip}
		if skip != "" {
			point.SkipReason = SkipInvalid
		}
		point.Workload = e.workload(p, r)
		point.Axes = s.axisValues(p.shown, r, derived)
		e.makeRoom()
		e.points = append(e.points, point)
	}
}

// fewPoints are so many that growing costs nothing to speak of.
const fewPoints = 1 << 10

// makeRoom makes the room of many points at once, as many as there will be if as large a part of the rest is kept as of those
// before. A point is large, and so is what a slice leaves behind that grows by and by.
func (e *expander) makeRoom() {
	if n := len(e.points); n == cap(e.points) && n >= fewPoints && e.count > e.visited {
		rest := float64(n) * float64(e.count-e.visited) / float64(e.visited)
		e.points = slices.Grow(e.points, int(1.02*rest)+fewPoints/16)
	}
}

// workloadKey tells the workloads of points apart.
type workloadKey struct {
	name     string
	settings [16]byte
	derived  int // the replicate whose seeds it has
}

// workload is what a replicate of a point replays. Equal ones share their sections.
func (e *expander) workload(p *candidate, replicate int) workload.Spec {
	sum := sha256.Sum256(p.replayed)
	key := workloadKey{name: p.workload.Name, settings: [16]byte(sum[:16])}
	if e.spec.Execution.Seeds == SeedsDerived {
		key.derived = replicate
	}
	known, ok := e.workloads[key]
	if !ok {
		w := cloneWorkload(p.workload)
		deriveSeeds(w, key.derived)
		resolveTrace(w, e.spec.Dir)
		known = *w
		e.workloads[key] = known
	}
	return known
}

func (s *Spec) axisValues(shown []Value, replicate int, derived []Value) []AxisValue {
	out := make([]AxisValue, 0, len(shown)+1+len(derived))
	for i, a := range s.axes {
		out = append(out, AxisValue{Column: a.column, Path: a.path, Value: shown[i]})
	}
	if s.Execution.Replicates > 1 {
		out = append(out, AxisValue{Column: replicateColumn, Path: replicateColumn, Value: Value{Kind: KindInt, Int: int64(replicate)}})
	}
	for i, v := range derived {
		name := s.rules.names[i]
		out = append(out, AxisValue{Column: name, Path: name, Value: v})
	}
	return out
}

// finish returns the points, or everything that is impossible about them.
func (e *expander) finish() ([]Point, error) {
	e.unifyDerived()
	if err := e.checks.err(e.looked); err != nil {
		return nil, err
	}
	if e.looked == 0 {
		return nil, e.noPoints()
	}
	if spare := cap(e.points) - len(e.points); spare > fewPoints+len(e.points)/4 {
		e.points = slices.Clone(e.points)
	}
	return e.points, nil
}

// noPoints says which expressions dropped every point.
func (e *expander) noPoints() error {
	var out Problems
	for _, x := range e.spec.rules.exclude {
		if n := e.dropped[x]; n > 0 {
			p := Problem{Where: e.checks.where(x.path)}
			p.Path, p.Value = x.path, show(x.source)
			p.Allowed = fmt.Sprintf("no point is left: it drops %d of %d; leave at least one", n, e.spec.Count()/uint64(e.spec.Execution.Replicates))
			out = append(out, p)
		}
	}
	return out.err()
}

// unifyDerived gives every derived column one kind: whole numbers become floats when some values have fractions.
func (e *expander) unifyDerived() {
	if e.looked == 0 || len(e.checks.found) > 0 && e.checks.found[0].fatal {
		return
	}
	for i := range e.spec.rules.names {
		switch kinds := e.kinds[i]; {
		case bits.OnesCount8(kinds) == 1:
		case kinds == 1<<KindInt|1<<KindFloat:
			for _, p := range e.points {
				column := len(p.Axes) - len(e.spec.rules.names) + i
				if v := &p.Axes[column].Value; v.Kind == KindInt {
					*v = Value{Kind: KindFloat, Float: float64(v.Int)}
				}
			}
		default:
			e.checks.mixedKinds(e.spec.rules.names[i])
		}
	}
}

// cloneWorkload copies a workload with the sections below it.
func cloneWorkload(w *workload.Spec) *workload.Spec {
	if w == nil {
		return &workload.Spec{}
	}
	out := *w
	if w.Trace != nil {
		trace := *w.Trace
		out.Trace = &trace
	}
	if w.Preset != nil {
		preset := *w.Preset
		out.Preset = &preset
	}
	if w.Synthetic != nil {
		synthetic := *w.Synthetic
		out.Synthetic = &synthetic
	}
	return &out
}

// resolveTrace names a trace by its files and makes their paths start at the spec's folder.
func resolveTrace(w *workload.Spec, dir string) {
	if w.Trace == nil {
		return
	}
	w.Name = workloadLabel(*w)
	w.Trace.Path = files.From(dir, w.Trace.Path)
	paths := slices.Clone(w.Trace.Paths)
	for i := range paths {
		paths[i] = files.From(dir, paths[i])
	}
	w.Trace.Paths = paths
}
