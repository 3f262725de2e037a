package results

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
)

// RunColumn names the results that a row of several ones comes from.
const RunColumn = "run"

const runDoc = "Results that the row comes from. Only there when several are put together."

// Named is a table with the name of the results, such as its folder.
type Named struct {
	Name  string
	Table *Table
}

// Combine puts the rows of several results into one table, so that they have one frontier: simulated points and live runs
// among them. Columns are those of all; a setting that one of them varies, or in which they differ, is a column for all, and
// what results do not have is null. The objectives, the SLA and the traffic are those of the first that state any; where
// others state other ones the table's Notes say so. Rows with equal workloads served the same traffic.
func Combine(parts []Named) (*Table, error) {
	if len(parts) == 0 {
		return nil, errors.New("there are no results to combine")
	}
	if len(parts) == 1 {
		return parts[0].Table, nil
	}
	c := combination{parts: parts, out: &Table{}}
	for _, p := range parts {
		c.starts = append(c.starts, c.rows)
		c.rows += p.Table.Rows()
		c.out.Notes = append(c.out.Notes, p.Table.Notes...)
		c.out.GuessedRoles = c.out.GuessedRoles || p.Table.GuessedRoles
	}
	c.addRuns()
	c.collectColumns()
	c.collectConstants()
	c.fill()
	c.metadata()
	c.shareTraffic()
	return c.out, c.out.checkNames()
}

// combination is a table in the making.
type combination struct {
	parts  []Named
	starts []int // the first row of each part
	rows   int
	out    *Table
	// keys are what the columns are of: the path of a setting, else the name.
	keys []string
}

func (c *combination) addRuns() {
	run := NewColumn(RunColumn, gridspec.KindString, c.rows)
	run.Doc, run.Role = runDoc, RolePoint
	for i, p := range c.parts {
		for row := range p.Table.Rows() {
			run.Set(c.starts[i]+row, text(p.Name))
		}
	}
	c.out.Columns, c.keys = append(c.out.Columns, run), append(c.keys, "")
}

// keyOf is what a column of results is of.
func keyOf(c *Column) string {
	if c.Path != "" {
		return flatName(c.Path)
	}
	return c.Name
}

// collectColumns makes the columns of all parts, those that the first lacks behind its last of the same role.
func (c *combination) collectColumns() {
	for _, p := range c.parts {
		for _, column := range p.Table.Columns {
			key := keyOf(column)
			if slices.Contains([]string{RunColumn, FrontierColumn, FeasibleColumn, NoiseColumn}, column.Name) {
				continue // they are of that part only
			}
			if at := slices.Index(c.keys, key); at >= 0 {
				c.widen(c.out.Columns[at], column)
				continue
			}
			c.insert(key, column)
		}
	}
}

// widen makes a column hold the values of another one too.
func (c *combination) widen(into, column *Column) {
	kind := commonKind(into.Kind, column.Kind)
	wide := NewColumn(into.Name, kind, c.rows)
	wide.Unit, wide.Doc, wide.Path = cmp.Or(into.Unit, column.Unit), cmp.Or(into.Doc, column.Doc), cmp.Or(into.Path, column.Path)
	if wide.Role = into.Role; column.Role == RoleAxis {
		wide.Role = RoleAxis
	}
	*into = *wide
}

func (c *combination) insert(key string, like *Column) {
	at := len(c.out.Columns)
	for i, known := range c.out.Columns {
		if known.Role == like.Role {
			at = i + 1
		}
	}
	column := NewColumn(c.freeName(like), like.Kind, c.rows)
	column.Unit, column.Doc, column.Role, column.Path = like.Unit, like.Doc, like.Role, like.Path
	c.out.Columns, c.keys = slices.Insert(c.out.Columns, at, column), slices.Insert(c.keys, at, key)
}

// freeName is the name of a column, or its longer one where another column has that.
func (c *combination) freeName(like *Column) string {
	name := like.Name
	for _, longer := range []string{flatName(like.Path), "axis_" + flatName(like.Path)} {
		if c.out.Column(name) != nil && like.Path != "" {
			name = longer
		}
	}
	for c.out.Column(name) != nil {
		name += "_"
	}
	return name
}

// collectConstants keeps the settings that are equal in all parts, and makes columns of the others.
func (c *combination) collectConstants() {
	c.out.Metadata.Constants = map[string]any{}
	seen := map[string]bool{}
	for _, p := range c.parts {
		for _, s := range settings() {
			v, ok := p.Table.Metadata.Constants[s.path]
			if !ok || seen[s.path] {
				continue
			}
			seen[s.path] = true
			if slices.Contains(c.keys, flatName(s.path)) {
				continue
			}
			if c.equalEverywhere(s.path, v) {
				c.out.Metadata.Constants[s.path] = v
				continue
			}
			like := NewColumn(flatName(s.path), s.kind, 0)
			like.Unit, like.Doc, like.Role = s.unit, s.doc, RoleConfig
			c.insert(flatName(s.path), like)
		}
	}
}

// equalEverywhere reports whether a setting has one value in all parts that state their settings. A live run at an endpoint of
// which nobody said what is behind it states none.
func (c *combination) equalEverywhere(path string, v any) bool {
	return !slices.ContainsFunc(c.parts, func(p Named) bool {
		other, ok := p.Table.Metadata.Constants[path]
		return p.Table.statesDeployment() && (!ok || !reflect.DeepEqual(numberOf(other), numberOf(v)))
	})
}

func (t *Table) statesDeployment() bool {
	const mode = "deployment.mode"
	_, constant := t.Metadata.Constants[mode]
	return constant || t.columnOf(mode) != nil
}

// numberOf makes numbers comparable: those that come from a file are real.
func numberOf(v any) any {
	if n, ok := v.(int64); ok {
		return float64(n)
	}
	return v
}

// fill copies the values, and those of settings that are constants of a part.
func (c *combination) fill() {
	for i, p := range c.parts {
		constants := map[string]any{}
		for path, v := range p.Table.Metadata.Constants {
			constants[flatName(path)] = v
		}
		byKey := map[string]*Column{}
		for _, column := range p.Table.Columns {
			byKey[keyOf(column)] = column
		}
		for at, into := range c.out.Columns {
			if into.Name == RunColumn {
				continue
			}
			from, constant := byKey[c.keys[at]], constants[c.keys[at]]
			for row := range p.Table.Rows() {
				if from != nil {
					if v, ok := from.Value(row); ok {
						into.Set(c.starts[i]+row, v)
					}
				} else if constant != nil {
					into.Set(c.starts[i]+row, constantValue(constant, into.Kind))
				}
			}
		}
	}
}

// constantValue is a setting as a column of some kind has it.
func constantValue(v any, kind gridspec.Kind) gridspec.Value {
	switch v := numberOf(v).(type) {
	case string:
		return text(v)
	case bool:
		return gridspec.Value{Kind: gridspec.KindBool, Bool: v}
	case float64:
		if kind == gridspec.KindInt {
			return integer(int(v))
		}
		return float(v)
	}
	return missing
}

// metadata takes over what the parts say of themselves, and notes where they differ.
func (c *combination) metadata() {
	m := &c.out.Metadata
	m.Versions, m.Workloads = map[string]string{}, map[string]string{}
	var objectives, constraints string
	for _, p := range c.parts {
		own := p.Table.Metadata
		for name, v := range own.Versions {
			if known := m.Versions[name]; known == "" {
				m.Versions[name] = v
			} else if !slices.Contains(strings.Split(known, ", "), v) {
				m.Versions[name] += ", " + v
			}
		}
		for name, digest := range own.Workloads {
			m.Workloads[name] = digest
		}
		for _, name := range own.FrontierBy {
			if column := p.Table.columnOf(name); column != nil {
				name = c.out.Columns[slices.Index(c.keys, keyOf(column))].Name
			}
			if !slices.Contains(m.FrontierBy, name) {
				m.FrontierBy = append(m.FrontierBy, name)
			}
		}
		switch {
		case len(own.Objectives) == 0:
		case m.Objectives == nil:
			m.Objectives, objectives = own.Objectives, p.Name
		case !slices.Equal(m.Objectives, own.Objectives):
			c.out.Notes = append(c.out.Notes, fmt.Sprintf("%s has other objectives than %s, whose count; --maximize and --minimize choose others.", p.Name, objectives))
		}
		switch {
		case len(own.Constraints) == 0:
		case m.Constraints == nil:
			m.Constraints, constraints = own.Constraints, p.Name
		case !reflect.DeepEqual(m.Constraints, own.Constraints):
			c.out.Notes = append(c.out.Notes, fmt.Sprintf("%s has another SLA than %s, whose counts; --no-sla and --where choose another.", p.Name, constraints))
		}
	}
}

// shareTraffic gives rows the traffic that other rows with the same workload have, since a live run does not say which settings
// made it. Where nothing says what parts served, and they served different workloads, each workload has a frontier of its own.
func (c *combination) shareTraffic() {
	digest := c.out.Column(digestColumn)
	if digest == nil || digest.Kind != gridspec.KindString {
		return
	}
	m := &c.out.Metadata
	for _, name := range m.FrontierBy {
		column := c.out.Column(name)
		if column == nil {
			continue
		}
		known := map[string]gridspec.Value{}
		for row := range c.rows {
			if v, ok := column.Value(row); ok && !digest.Null[row] {
				known[digest.Strings[row]] = v
			}
		}
		for row := range c.rows {
			if v, ok := known[digest.Strings[row]]; ok && column.Null[row] && !digest.Null[row] {
				column.Set(row, v)
			}
		}
	}
	if len(m.FrontierBy) == 0 && c.servedApart(digest) {
		m.FrontierBy = []string{digestColumn}
		if label := c.out.Column(workloadPath); label != nil && len(groupRows(c.rows, []*Column{label})) == len(groupRows(c.rows, []*Column{label, digest})) {
			m.FrontierBy = []string{workloadPath}
		}
	}
}

// digestColumn identifies what was served.
const digestColumn = "workload_digest"

// servedApart reports whether two parts have no workload in common, though each says which it served.
func (c *combination) servedApart(digest *Column) bool {
	seen := map[string]bool{}
	for i, p := range c.parts {
		own := map[string]bool{}
		for row := range p.Table.Rows() {
			if at := c.starts[i] + row; !digest.Null[at] {
				own[digest.Strings[at]] = true
			}
		}
		common := i == 0
		for d := range own {
			common = common || seen[d]
			seen[d] = true
		}
		if !common && len(own) > 0 {
			return true
		}
	}
	return false
}
