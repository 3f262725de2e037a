package gridspec

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"github.com/servegrid/servegrid/simcore/problem"
)

// expressions holds the compiled exclude and derive keys of a spec.
type expressions struct {
	exclude []*expression
	// derive is in the order of evaluation, names in the order of the spec.
	derive []*expression
	names  []string
	values map[string]variable
}

// expression is one compiled expression.
type expression struct {
	// path is where it is written, name the derived column that it computes.
	path, name string
	source     string
	program    *vm.Program
	// uses lists the names that it reads.
	uses []string
	// usesDerived says that one of them is a derived value.
	usesDerived bool
}

// variable is one name that expressions may use.
type variable struct {
	typ types.Type
	get func(*candidate) any
}

// compile checks the expressions of a spec: they may use every setting by its key path, every column, settings by
// their short name where nothing else has it, gpus, and derived values.
func (s *Spec) compile(c *collector, doc *document) {
	if len(doc.Derive) == 0 && len(doc.Exclude) == 0 {
		return // the names that expressions know take a while
	}
	s.rules = expressions{values: s.variables(), names: c.origins.sorted("derive", derivedAny(doc.Derive))}
	s.compileDerive(c, doc.Derive)
	for i, source := range doc.Exclude {
		e := &expression{path: indexed("exclude", i), source: source}
		if s.rules.compile(c, e, expr.AsBool()) {
			e.usesDerived = slices.ContainsFunc(e.uses, func(name string) bool { return slices.Contains(s.rules.names, name) })
			s.rules.exclude = append(s.rules.exclude, e)
		}
	}
}

func derivedAny(d derivedMap) map[string]any {
	out := make(map[string]any, len(d))
	for k, v := range d {
		out[k] = v
	}
	return out
}

// variables lists the names besides derived values.
func (s *Spec) variables() map[string]variable {
	vars := map[string]variable{
		gpusColumn:   {types.Int, func(p *candidate) any { return p.config.GPUs() }},
		workloadPath: {types.String, func(p *candidate) any { return workloadLabel(*p.workload) }},
	}
	users := map[string]int{}
	for _, k := range configKeys.leaves {
		vars[k.path] = variable{typeOf(k), func(p *candidate) any { return p.setting(k) }}
		if hasShortName(k) {
			users[shortName(k.path)]++
		}
	}
	for _, k := range configKeys.leaves {
		if short := shortName(k.path); hasShortName(k) && users[short] == 1 {
			vars[short] = vars[k.path]
		}
	}
	for i, a := range s.axes {
		v := variable{types.String, func(p *candidate) any { return plain(p.shown[i]) }}
		if a.key != nil {
			v = vars[a.path]
		}
		vars[a.column] = v
	}
	return vars
}

// hasShortName reports whether expressions know a setting by its short name too, if no other one has it. The planner's
// go by their whole path, since they repeat names of other sections, such as ttft_ms.
func hasShortName(k *key) bool {
	return !k.workload && likeSection(k.path) == k.path && !strings.HasPrefix(k.path, plannerPrefix)
}

func typeOf(k *key) types.Type {
	switch {
	case k.workload: // the workload may lack the section
		return types.Any
	case k.typ.Kind() == reflect.String:
		return types.String
	}
	switch kindOf(k.typ) {
	case KindBool:
		return types.Bool
	case KindInt:
		return types.Int
	case KindFloat:
		return types.Float64
	}
	return types.Any
}

// compile compiles one expression, or reports why it cannot be.
func (x *expressions) compile(c *collector, e *expression, options ...expr.Option) bool {
	env := make(types.Map, len(x.values))
	for name, v := range x.values {
		env[name] = v.typ
	}
	paths := &pathNames{}
	options = append(options, expr.Env(env), expr.Patch(paths), expr.DisableBuiltin("now"))
	program, err := expr.Compile(e.source, options...)
	if err != nil {
		c.add(e.path, e.source, "%s", x.explain(err))
		return false
	}
	e.program = program
	slices.Sort(paths.used)
	e.uses = slices.Compact(paths.used)
	return true
}

// explain formats a compile or run-time error in one line, with the nearest name when one is unknown.
func (x *expressions) explain(err error) string {
	var at *file.Error
	if !errors.As(err, &at) {
		return err.Error()
	}
	text := fmt.Sprintf("column %d: %s", at.Column+1, at.Message)
	if name, ok := strings.CutPrefix(at.Message, "unknown name "); ok {
		names := make([]string, 0, len(x.values))
		for n := range x.values {
			names = append(names, n)
		}
		slices.Sort(names)
		if paths := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasSuffix(n, "."+name) }); len(paths) > 0 {
			text += "; use one of: " + strings.Join(paths, ", ")
		} else if near := problem.Nearest(name, names); near != "" {
			text += "; the nearest is " + near
		}
	}
	return text
}

// pathNames turns member chains such as engine.block_size into one name and collects all names.
type pathNames struct{ used []string }

// Visit implements the visitor of the expression library; inner nodes come first.
func (p *pathNames) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		p.used = append(p.used, n.Value)
	case *ast.MemberNode:
		base, isName := n.Node.(*ast.IdentifierNode)
		property, isText := n.Property.(*ast.StringNode)
		if !isName || !isText || !configKeys.isSection(base.Value) {
			return
		}
		name := &ast.IdentifierNode{Value: join(base.Value, property.Value)}
		ast.Patch(node, name)
		name.SetLocation(base.Location())
		p.used = append(p.used, name.Value)
	}
}

// compileDerive compiles the derived values in an order in which each follows those that it uses.
func (s *Spec) compileDerive(c *collector, derive derivedMap) {
	x := &s.rules
	uses := map[string][]string{}
	for _, name := range x.names {
		uses[name] = namesIn(derive[name])
	}
	state := map[string]int{} // 1 while its uses are visited, 2 when done
	var visit func(name string, chain []string)
	visit = func(name string, chain []string) {
		chain = append(chain, name)
		switch state[name] {
		case 1:
			c.add(join("derive", name), derive[name], "it depends on itself: %s", strings.Join(chain[slices.Index(chain, name):], " -> "))
			return
		case 2:
			return
		}
		state[name] = 1
		for _, other := range uses[name] {
			if _, isDerived := derive[other]; isDerived {
				visit(other, chain)
			}
		}
		state[name] = 2
		e := &expression{path: join("derive", name), name: name, source: derive[name]}
		typ := types.Type(types.Any)
		if x.compile(c, e) {
			x.derive = append(x.derive, e)
			typ = resultType(e.program)
		}
		x.values[name] = variable{typ: typ, get: func(p *candidate) any { return p.derived[name] }}
	}
	// A derived value hides a setting of the same short name, also in those that are compiled before it.
	for _, name := range x.names {
		x.values[name] = variable{typ: types.Any}
	}
	for _, name := range x.names {
		visit(name, nil)
	}
}

// namesIn lists the names in an expression; of one that is malformed there are none, as compiling it will tell.
func namesIn(source string) []string {
	tree, err := parser.Parse(source)
	if err != nil {
		return nil
	}
	names := &pathNames{}
	ast.Walk(&tree.Node, names)
	return names.used
}

func resultType(p *vm.Program) types.Type {
	t := p.Node().Type()
	if t == nil {
		return types.Any
	}
	switch t.Kind() {
	case reflect.Int:
		return types.Int
	case reflect.Float64:
		return types.Float64
	case reflect.Bool:
		return types.Bool
	case reflect.String:
		return types.String
	}
	return types.Any
}

// evaluator runs the expressions of a spec point by point.
type evaluator struct {
	*expressions
	machine vm.VM
	env     map[string]any
}

func (ev *evaluator) run(e *expression, p *candidate) (any, error) {
	for _, name := range e.uses {
		if v, ok := ev.values[name]; ok {
			ev.env[name] = v.get(p)
		}
	}
	out, err := ev.machine.Run(e.program, ev.env)
	if err != nil {
		return nil, errors.New(ev.explain(err))
	}
	return out, nil
}

// derivedValue types the result of a derive expression.
func derivedValue(v any) (Value, error) {
	switch v := v.(type) {
	case bool:
		return Value{Kind: KindBool, Bool: v}, nil
	case string:
		return Value{Kind: KindString, Str: v}, nil
	case int:
		return Value{Kind: KindInt, Int: int64(v)}, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return Value{}, fmt.Errorf("the result is %v, not a finite number", v)
		}
		return Value{Kind: KindFloat, Float: v}, nil
	}
	return Value{}, fmt.Errorf("the result is %s; a derived value is a number, text, true or false", show(v))
}
