package results

import (
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// reportPayload is the data inside a report, column by column to keep the file small.
type reportPayload struct {
	Title       string            `json:"title"`
	Rows        int               `json:"rows"`
	Columns     []reportColumn    `json:"columns"`
	Objectives  []Objective       `json:"objectives"`
	Constraints []string          `json:"constraints"`
	Infeasible  []int             `json:"infeasible"`
	Frontier    []int             `json:"frontier"`
	Commands    *reportCommands   `json:"commands,omitempty"`
	Spec        string            `json:"spec"`
	Versions    map[string]string `json:"versions"`
	Workloads   map[string]string `json:"workloads"`
	Constants   []reportConstant  `json:"constants"`
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
	d.Table = d.Table.withoutMarks()
	objectives := reportObjectives(d)
	marked := &Table{Columns: slices.Clone(d.Table.Columns)}
	p := &reportPayload{
		Title: d.Title, Rows: d.Table.Rows(), Objectives: objectives, Constraints: []string{}, Infeasible: []int{}, Frontier: []int{},
		Spec: d.Table.Metadata.Spec, Versions: d.Table.Metadata.Versions, Workloads: d.Table.Metadata.Workloads,
		Commands: newReportCommands(d), Constants: reportConstants(d.Table), Columns: reportColumns(d.Table),
	}
	for _, c := range d.Constraints {
		p.Constraints = append(p.Constraints, c.String())
	}
	if len(objectives) == 0 {
		return p, nil
	}
	if err := MarkFrontier(marked, objectives, d.Constraints, d.Frontier); err != nil {
		return nil, err
	}
	p.Frontier = rowsWhere(marked.Column(FrontierColumn), true)
	if len(d.Constraints) > 0 {
		p.Infeasible = rowsWhere(marked.Column(FeasibleColumn), false)
	}
	return p, nil
}

// withoutMarks leaves out the columns of an earlier [MarkFrontier], since the report marks rows itself.
func (t *Table) withoutMarks() *Table {
	out := *t
	out.Columns = slices.DeleteFunc(slices.Clone(t.Columns), func(c *Column) bool {
		return c.Name == FrontierColumn || c.Name == FeasibleColumn
	})
	return &out
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

// reportColumns leaves out the columns whose rows are all equal, apart from the status and the axes.
func reportColumns(t *Table) []reportColumn {
	better := map[string]metrics.Direction{}
	for _, f := range metrics.Fields() {
		better[f.Name] = f.Better
	}
	out := []reportColumn{}
	for _, c := range t.Columns {
		if hiddenInReport(c) {
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

func hiddenInReport(c *Column) bool {
	return c.constant() && c.Name != "status" && c.Role != RoleAxis && (c.Role != RoleMetric || c.Len() != 1)
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
func reportConstants(t *Table) []reportConstant {
	out := []reportConstant{}
	for _, s := range settings() {
		if v, ok := t.Metadata.Constants[s.path]; ok {
			out = append(out, reportConstant{Name: s.path, Value: constantText(v)})
		}
	}
	for _, c := range t.Columns {
		if hiddenInReport(c) && c.Len() > 0 && !c.Null[0] && c.Role != RoleMetric {
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

func newReportCommands(d ReportData) *reportCommands {
	if d.Command == nil || d.Table.Rows() == 0 {
		return nil
	}
	c := &reportCommands{Prefix: d.Command(0), Rests: make([]string, d.Table.Rows())}
	for row := range c.Rests {
		c.Rests[row] = d.Command(row)
		shared := 0
		for shared < min(len(c.Prefix), len(c.Rests[row])) && c.Prefix[shared] == c.Rests[row][shared] {
			shared++
		}
		for shared > 0 && shared < len(c.Prefix) && !utf8.RuneStart(c.Prefix[shared]) {
			shared--
		}
		c.Prefix = c.Prefix[:shared]
	}
	for row := range c.Rests {
		c.Rests[row] = c.Rests[row][len(c.Prefix):]
	}
	return c
}
