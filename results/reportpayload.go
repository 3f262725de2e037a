package results

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// reportPayload is the data inside a report, column by column to keep the file small.
type reportPayload struct {
	Title       string         `json:"title"`
	Rows        int            `json:"rows"`
	Columns     []reportColumn `json:"columns"`
	Objectives  []Objective    `json:"objectives"`
	Constraints []reportBound  `json:"constraints"`
	By          []string       `json:"by"`
	Infeasible  []int          `json:"infeasible"`
	Frontier    []int          `json:"frontier"`
	// Candidates holds the candidate of each row, Counted whether the row counts; both only with replicates.
	Candidates []int  `json:"candidates,omitempty"`
	Counted    []bool `json:"counted,omitempty"`
	// Closest holds, for each traffic without a frontier, the point that misses the constraints by least.
	Closest []reportClosest `json:"closest"`
	// Cliffs say where axes lose the SLA.
	Cliffs []reportCliff `json:"cliffs"`
	// Cautions are those of [Candidates.Cautions].
	Cautions  []string          `json:"cautions"`
	Commands  *reportCommands   `json:"commands,omitempty"`
	Spec      string            `json:"spec"`
	Versions  map[string]string `json:"versions"`
	Workloads map[string]string `json:"workloads"`
	Constants []reportConstant  `json:"constants"`
}

// reportColumn is a column without its equal rows: strings are numbers into Words.
type reportColumn struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	Doc  string `json:"doc"`
	Role Role   `json:"role"`
	Kind string `json:"kind"`
	// Better is "higher", "lower" or "".
	Better string   `json:"better"`
	Words  []string `json:"words,omitempty"`
	Values []any    `json:"values"`
}

// reportBound is a constraint. Bound is null when it is no number.
type reportBound struct {
	Text     string   `json:"text"`
	Column   string   `json:"column"`
	Operator string   `json:"operator"`
	Bound    *float64 `json:"bound"`
}

type reportClosest struct {
	Row    int    `json:"row"`
	Misses string `json:"misses"`
}

// reportConstant is a setting or column with one value.
type reportConstant struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// reportCommands shares what all commands start with.
type reportCommands struct {
	Prefix string   `json:"prefix"`
	Rests  []string `json:"rests"`
}

func newReportPayload(d ReportData) (*reportPayload, error) {
	marked := *d.Table
	marked.deleteColumns(FrontierColumn, FeasibleColumn)
	commands := marked.Column(CommandColumn)
	marked.deleteColumns(CommandColumn)
	d.Table = &marked
	d.Objectives = reportObjectives(d)
	p := &reportPayload{
		Title: d.Title, Rows: marked.Rows(), Objectives: d.Objectives, Constraints: reportBounds(d.Constraints), By: []string{},
		Infeasible: []int{}, Frontier: []int{}, Closest: []reportClosest{}, Cliffs: []reportCliff{}, Cautions: []string{}, Spec: marked.Metadata.Spec, Versions: marked.Metadata.Versions,
		Workloads: marked.Metadata.Workloads, Commands: newReportCommands(commands),
	}
	p.By = append(p.By, d.By...)
	if len(d.Objectives) > 0 {
		if err := p.mark(d); err != nil {
			return nil, err
		}
	}
	marked.deleteColumns(FrontierColumn, FeasibleColumn)
	p.Cliffs = reportCliffs(d)
	p.Constants, p.Columns = reportConstants(d), reportColumns(d)
	return p, nil
}

// mark fills in the frontier and what else follows from the analysis.
func (p *reportPayload) mark(d ReportData) error {
	if err := MarkFrontier(d.Table, d.Analysis); err != nil {
		return err
	}
	p.Frontier = rowsWhere(d.Table.Column(FrontierColumn), true)
	if len(d.Constraints) > 0 {
		p.Infeasible = rowsWhere(d.Table.Column(FeasibleColumn), false)
	}
	c := d.Table.Candidates()
	if c.Replicated() {
		p.Candidates, p.Counted = c.Of, make([]bool, len(c.Of))
		for _, rows := range c.Counted {
			for _, row := range rows {
				p.Counted[row] = true
			}
		}
	}
	p.Cautions = append(p.Cautions, c.Cautions(d.Analysis)...)
	groups, err := c.Table.Groups(d.By)
	on := c.Table.Column(FrontierColumn)
	for _, rows := range groups {
		if slices.ContainsFunc(rows, func(row int) bool { return on.Bools[row] }) {
			continue
		}
		if row, misses := d.Closest(c.Table, rows); misses != nil {
			p.Closest = append(p.Closest, reportClosest{Row: c.Rows[row][0], Misses: JoinMisses(misses)})
		}
	}
	return err
}

func reportBounds(constraints []Constraint) []reportBound {
	out := []reportBound{}
	for _, c := range constraints {
		b := reportBound{Text: c.String(), Column: c.Column, Operator: c.Operator}
		if size := c.size(); !math.IsNaN(size) && !math.IsInf(size, 0) {
			b.Bound = &size
		}
		out = append(out, b)
	}
	return out
}

func rowsWhere(c *Column, value bool) []int {
	rows := []int{}
	for i, v := range c.Bools {
		if v == value {
			rows = append(rows, i)
		}
	}
	return rows
}

// reportObjectives returns the given objectives, or the table's, or the default ones, as far as the table has them.
func reportObjectives(d ReportData) []Objective {
	out := []Objective{}
	for _, set := range [][]Objective{d.Objectives, d.Table.Metadata.Objectives, DefaultObjectives()} {
		for _, o := range set {
			if c := d.Table.Column(o.Name); c != nil && c.Kind != gridspec.KindString {
				out = append(out, o)
			}
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

// reportColumns leaves out the columns whose rows are all equal, apart from the status, the axes, what the analysis
// uses and what qualifies the other figures.
func reportColumns(d ReportData) []reportColumn {
	better := map[string]metrics.Direction{}
	for _, f := range metrics.Fields() {
		better[f.Name] = f.Better
	}
	out := []reportColumn{}
	for _, c := range d.Table.Columns {
		if d.hides(c) {
			continue
		}
		r := reportColumn{Name: c.Name, Unit: c.Unit, Doc: c.Doc, Role: c.Role, Values: make([]any, c.Len())}
		switch better[c.Name] {
		case metrics.HigherIsBetter:
			r.Better = "higher"
		case metrics.LowerIsBetter:
			r.Better = "lower"
		}
		r.fill(c)
		out = append(out, r)
	}
	return out
}

func (d ReportData) hides(c *Column) bool {
	used := d.qualifies(c) ||
		slices.ContainsFunc(d.Objectives, func(o Objective) bool { return o.Name == c.Name }) ||
		slices.ContainsFunc(d.Constraints, func(b Constraint) bool { return b.Column == c.Name }) || slices.Contains(d.By, c.Name)
	return !used && c.constant() && c.Name != "status" && c.Role != RoleAxis && (c.Role != RoleMetric || c.Len() != 1)
}

// qualifies reports whether a column says that figures of some row are not what they seem.
func (d ReportData) qualifies(c *Column) bool {
	switch c.Name {
	case extrapolatedColumn:
		return slices.ContainsFunc(c.Floats, func(share float64) bool { return share > 0 })
	case rejectedColumn:
		return slices.ContainsFunc(c.Ints, func(n int64) bool { return n > 0 })
	case arrivedColumn:
		rejected := d.Table.Column(rejectedColumn)
		return rejected != nil && d.qualifies(rejected)
	}
	return false
}

func (r *reportColumn) fill(c *Column) {
	r.Kind = "number"
	switch c.Kind {
	case gridspec.KindString:
		r.Kind = "string"
	case gridspec.KindBool:
		r.Kind = "bool"
	}
	codes := map[string]int{}
	for row := range r.Values {
		v, ok := c.Value(row)
		switch {
		case !ok:
		case c.Kind == gridspec.KindString:
			code, known := codes[v.Str]
			if !known {
				code = len(r.Words)
				codes[v.Str] = code
				r.Words = append(r.Words, v.Str)
			}
			r.Values[row] = code
		case c.Kind == gridspec.KindFloat:
			r.Values[row] = shortFloat(v.Float)
		default:
			r.Values[row] = c.plain(row)
		}
	}
}

// shortFloat rounds to seven digits, more than any figure on the page shows, to keep the file small.
func shortFloat(v float64) any {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 7, 64), 64)
	if err != nil {
		return v
	}
	return short
}

// reportConstants lists the settings that are equal at all points, then the columns whose rows are equal.
func reportConstants(d ReportData) []reportConstant {
	t := d.Table
	out := []reportConstant{}
	for _, s := range settings() {
		if v, ok := t.Metadata.Constants[s.path]; ok {
			out = append(out, reportConstant{Name: s.path, Value: constantText(v)})
		}
	}
	for _, c := range t.Columns {
		if d.hides(c) && c.Len() > 0 && !c.Null[0] && c.Role != RoleMetric {
			out = append(out, reportConstant{Name: c.Name, Value: c.Text(0)})
		}
	}
	return out
}

func constantText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return ""
}

// newReportCommands cuts off what all commands share. It is nil unless every row has one.
func newReportCommands(column *Column) *reportCommands {
	if column == nil || column.Kind != gridspec.KindString || slices.Contains(column.Null, true) || column.Len() == 0 {
		return nil
	}
	prefix := column.Strings[0]
	for _, command := range column.Strings {
		for !strings.HasPrefix(command, prefix) {
			_, size := utf8.DecodeLastRuneInString(prefix)
			prefix = prefix[:len(prefix)-size]
		}
	}
	c := &reportCommands{Prefix: prefix, Rests: make([]string, column.Len())}
	for row, command := range column.Strings {
		c.Rests[row] = command[len(prefix):]
	}
	return c
}
