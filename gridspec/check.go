package gridspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/problem"
)

// SkipInvalid is the SkipReason of points whose configuration is impossible.
const SkipInvalid = "invalid_config"

// maxListed bounds the problems with points that one error lists.
const maxListed = 20

// checks gathers what is impossible about points. A problem that many points share is reported once.
type checks struct {
	spec  *Spec
	found []*finding
	byKey map[string]*finding
}

// finding is one problem, the first point that has it and how many do.
type finding struct {
	problem problem.Problem
	where   string
	at      string
	points  int
	// fatal problems are errors even where the spec skips impossible points.
	fatal bool
}

func newChecks(s *Spec) checks { return checks{spec: s, byKey: map[string]*finding{}} }

// point validates a candidate and returns what is impossible about it, in one line. The rows are the options that
// made it.
func (ch *checks) point(p *candidate, rows []*option) string {
	problems := slices.Clone(p.problems)
	problems = append(problems, workloadProblems(p)...)
	lines := make([]string, len(problems))
	for i, pr := range problems {
		lines[i] = pr.Error()
		at := ch.place(rows, pr.Path)
		if strings.HasPrefix(pr.Path, workloadPath) {
			pr.Path = at // it says which workload of a list
		}
		ch.add(pr, ch.where(at), p, false)
	}
	return strings.Join(lines, "; ")
}

func workloadProblems(p *candidate) problem.List {
	problems := p.workload.Validate().Under(workloadPath)
	for i := range problems {
		if problems[i].Path == workloadPath+".(workload)" {
			problems[i].Path = workloadPath
		}
	}
	return problems
}

// place is the key that gives a point the setting at a path: that of an axis, case or listed workload, or else
// that of the base.
func (ch *checks) place(rows []*option, path string) string {
	for _, o := range slices.Backward(rows) {
		for _, a := range o.set {
			if a.key.path == path {
				return strings.TrimSuffix(a.at, lastIndex(a.at))
			}
		}
	}
	for _, o := range rows {
		if rest, below := strings.CutPrefix(path, workloadPath); below && o.workload != nil {
			return o.workloadAt + rest
		}
	}
	return path
}

// lastIndex is the index that a path ends in, such as "[2]"; empty when it ends in a key.
func lastIndex(path string) string {
	if strings.HasSuffix(path, "]") {
		return path[strings.LastIndexByte(path, '['):]
	}
	return ""
}

func (ch *checks) where(path string) string { return ch.spec.layers.parser.origins.where(path) }

// expression reports an expression that failed at a point.
func (ch *checks) expression(x *expression, err error, p *candidate) {
	pr := problem.Problem{Path: x.path, Value: show(x.source), Allowed: err.Error()}
	ch.add(pr, ch.where(x.path), p, true)
}

// mixedKinds reports a derived column whose values are not of one type.
func (ch *checks) mixedKinds(name string) {
	path := join("derive", name)
	pr := problem.Problem{Path: path, Allowed: "it is of different types at different points; a column has one type"}
	ch.found = append(ch.found, &finding{problem: pr, where: ch.where(path), fatal: true})
}

// sameName reports a value of a case, workload or section that gives the same points as another one.
func (ch *checks) sameName(a *axis, value, first Value) {
	path := join(a.home, a.path)
	if a.path == casePath {
		path = join(a.home, value.Str)
	}
	pr := problem.Problem{Path: path, Value: show(value.Str), Allowed: "it gives the same point as " + show(first.Str)}
	if ch.byKey[pr.Error()] == nil {
		ch.byKey[pr.Error()] = &finding{problem: pr, where: ch.where(path), fatal: true}
		ch.found = append(ch.found, ch.byKey[pr.Error()])
	}
}

func (ch *checks) add(pr problem.Problem, where string, p *candidate, fatal bool) {
	key := pr.Error()
	f := ch.byKey[key]
	if f == nil {
		f = &finding{problem: pr, where: where, at: ch.describe(p), fatal: fatal}
		ch.byKey[key] = f
		ch.found = append(ch.found, f)
	}
	f.points++
}

// maxDescribed bounds how much of a point an error repeats, in bytes.
const maxDescribed = 60

// describe names a point by the values of its axes, as many as an error has room for.
func (ch *checks) describe(p *candidate) string {
	text := ""
	for i, a := range ch.spec.axes {
		part := a.column + "=" + p.shown[i].String()
		switch {
		case i == 0:
			text = part
		case len(text)+len(part) > maxDescribed:
			return text + ", …"
		default:
			text += ", " + part
		}
	}
	return text
}

// maxUnsound bounds the points of a spec that cannot be read as a whole and whose values are checked all the same.
const maxUnsound = 10_000

// unsound returns what is impossible about the settings of a spec that has other problems, so that one error lists
// all. It takes just what is wrong at every point or with a listed workload, and with values that are written: the
// rest may follow from the other problems.
func (s *Spec) unsound(known Problems) Problems {
	if s.Execution.Replicates < 1 || s.Count() > maxUnsound {
		return nil
	}
	e := newExpander(s)
	if s.onlyIncluded() {
		return nil // the base may well be incomplete
	}
	e.product(slices.DeleteFunc(slices.Clone(s.factors), func(f factor) bool { return len(f.rows) == 0 }), false)
	var out Problems
	for _, f := range e.checks.found {
		path := f.problem.Path
		_, written := s.layers.parser.origins.places[path]
		isKnown := slices.ContainsFunc(known, func(p Problem) bool { return p.Path == path || strings.HasPrefix(p.Path, path+".") })
		listed := strings.HasPrefix(path, workloadPath+"[") && s.Execution.OnInvalid == InvalidIsError
		if written && !isKnown && !f.fatal && (listed || f.points == e.looked) {
			out = append(out, Problem{Where: f.where, Problem: f.problem})
		}
	}
	return out
}

// err returns what makes the spec impossible: a problem that every one of the points has comes from the base and
// stands alone; others name their points, and are none where the spec skips them.
func (ch *checks) err(points int) error {
	var out Problems
	combinations, more := 0, 0
	for _, f := range ch.found {
		p := Problem{Where: f.where, Problem: f.problem}
		switch everywhere := f.points >= points; {
		case everywhere || f.at == "":
		case !f.fatal && ch.spec.Execution.OnInvalid == InvalidIsSkipped:
			continue
		case combinations == maxListed:
			more++
			continue
		default:
			combinations++
			p.Allowed += " (at " + f.at + others(f.points-1) + ")"
		}
		out = append(out, p)
	}
	out.sort(ch.spec.layers.parser.name)
	if more > 0 {
		rest := Problem{}
		rest.Allowed = fmt.Sprintf("and %d more", more)
		out = append(out, rest)
	}
	return out.err()
}

func others(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " and 1 more point"
	}
	return fmt.Sprintf(" and %d more points", n)
}
