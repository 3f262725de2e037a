package vegalite

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// mostRows bounds the points inside a chart: beyond it all points of the frontier and an even choice of the others stay.
const mostRows = 5000

// study is what the charts take from a report: one row a configuration, with the means over its replicates.
type study struct {
	results.ReportData
	// table has the marks of the analysis.
	table *results.Table
	// of is the row of table for each row of the report's table.
	of []int
	// rows are the points that succeeded, thinned to mostRows.
	rows []int
	// thinned says that some are left out.
	thinned            bool
	feasible, frontier []bool
	// axes are those that vary, colour is what the points are coloured by; nil for nothing.
	axes       []*results.Column
	objectives []goal
	colour     *results.Column
	// keys name the columns in the data of charts.
	keys map[*results.Column]string
}

// goal is an objective with its column.
type goal struct {
	results.Objective
	column *results.Column
}

func newStudy(d results.ReportData) (*study, error) {
	marked := *d.Table
	if len(d.Objectives) == 0 {
		d.Objectives = marked.Analysis().Objectives
	}
	if err := results.MarkFrontier(&marked, d.Analysis); err != nil {
		return nil, err
	}
	c := marked.Candidates()
	s := &study{ReportData: d, table: c.Table, of: c.Of, frontier: c.Table.Column(results.FrontierColumn).Bools, feasible: make([]bool, c.Table.Rows())}
	for row := range s.feasible {
		s.feasible[row] = true
	}
	if f := c.Table.Column(results.FeasibleColumn); f != nil {
		s.feasible = f.Bools
	}
	for _, o := range d.Objectives {
		s.objectives = append(s.objectives, goal{o, c.Table.Column(o.Name)})
	}
	s.nameColumns()
	s.chooseRows()
	for _, column := range c.Table.Columns {
		if column.Role == results.RoleAxis && len(s.distinct(column)) > 1 {
			s.axes = append(s.axes, column)
		}
	}
	s.chooseColour()
	return s, nil
}

// chooseRows keeps what succeeded, and of very many points an even choice besides the frontier.
func (s *study) chooseRows() {
	status := s.table.Column("status")
	var others []int
	for row := range s.table.Rows() {
		switch {
		case status != nil && status.Text(row) != string(results.StatusOK):
		case s.frontier[row]:
			s.rows = append(s.rows, row)
		default:
			others = append(others, row)
		}
	}
	room := max(0, mostRows-len(s.rows))
	s.thinned = len(others) > room
	n := min(room, len(others))
	for i := range n {
		s.rows = append(s.rows, others[i*len(others)/n])
	}
	slices.Sort(s.rows)
}

// chooseColour prefers the traffic, then an axis of few words, then one of few numbers, as the report does.
func (s *study) chooseColour() {
	const fewValues = 8
	if len(s.By) == 1 {
		s.colour = s.table.Column(s.By[0])
		return
	}
	for _, c := range s.axes {
		if len(s.distinct(c)) > fewValues {
			continue
		}
		if s.colour == nil || s.colour.Numeric() && !c.Numeric() {
			s.colour = c
		}
	}
}

// distinct lists the values of a column over the study's rows: numbers by size, others by first appearance.
func (s *study) distinct(c *results.Column) list {
	seen := map[any]bool{}
	var out list
	for _, row := range s.rows {
		if v := value(c, row); v != nil && !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	if c.Numeric() {
		slices.SortFunc(out, func(a, b any) int {
			x, y := asFloat(a), asFloat(b)
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		})
	}
	return out
}

// value is a cell as JSON has it; nil for none, and for numbers that JSON lacks.
func value(c *results.Column, row int) any {
	v, ok := c.Value(row)
	switch {
	case !ok:
		return nil
	case c.Kind == gridspec.KindFloat:
		return short(v.Float)
	}
	return v.Any()
}

// short rounds to seven digits, more than a chart shows.
func short(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 7, 64), 64)
	if err != nil || math.IsInf(rounded, 0) {
		return v
	}
	return rounded
}

func asFloat(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return math.NaN()
}

// numbers are the values of a column at some rows, without those that are none.
func numbers(c *results.Column, rows []int) []float64 {
	var out []float64
	for _, row := range rows {
		if v := asFloat(value(c, row)); !math.IsNaN(v) {
			out = append(out, v)
		}
	}
	return out
}

// spansDecades says whether a logarithmic axis suits the values.
func spansDecades(values []float64) bool {
	return len(values) > 0 && slices.Min(values) > 0 && slices.Max(values)/slices.Min(values) > 1000
}

// records are rows as data of a chart, limited to some columns and the marks.
func (s *study) records(rows []int, columns ...*results.Column) list {
	out := list{}
	for _, row := range rows {
		record := object{"feasible": s.feasible[row], "on_frontier": s.frontier[row]}
		for _, c := range columns {
			if v := value(c, row); v != nil {
				record[s.keys[c]] = v
			}
		}
		out = append(out, record)
	}
	return out
}

// nameColumns finds a key for every column. Vega-Lite reads dots, brackets and quotes in the name of a field as paths, so
// they are written as underscores; and no key may be that of another column, or one that a chart gives itself.
func (s *study) nameColumns() {
	s.keys = map[*results.Column]string{}
	taken := map[string]bool{"line": true, "axis": true, "position": true, "text": true, "value": true, "points": true, "kept": true}
	for _, c := range s.table.Columns {
		name := strings.Map(func(r rune) rune {
			if strings.ContainsRune(`.[]"'\`, r) || r < ' ' || r == '\u2028' || r == '\u2029' {
				return '_'
			}
			return r
		}, c.Name)
		if strings.HasPrefix(name, "axis ") {
			name = "_" + name
		}
		for taken[name] || name == "" {
			name += "_"
		}
		s.keys[c], taken[name] = name, true
	}
}

// named is a column's name with its unit.
func named(c *results.Column) string {
	if c.Unit == "" {
		return c.Name
	}
	return fmt.Sprintf("%s (%s)", c.Name, c.Unit)
}

// field is a channel that shows a column.
func (s *study) field(c *results.Column, kind string) object {
	return object{"field": s.keys[c], "type": kind, "title": named(c)}
}

// quantity is a channel for a figure, on a logarithmic scale when its values span decades.
func (s *study) quantity(c *results.Column, values []float64) object {
	channel := s.field(c, "quantitative")
	channel["scale"] = object{"zero": false}
	if spansDecades(values) {
		channel["scale"] = object{"type": "log"}
	}
	return channel
}

// ordinal is a channel for the values of a setting, in their order.
func (s *study) ordinal(c *results.Column, descending bool) object {
	channel := s.field(c, "ordinal")
	values := s.distinct(c)
	if descending {
		slices.Reverse(values)
	}
	channel["sort"] = values
	return channel
}

// colourChannel colours by a column: numbers by size, words by colours that people with any colour vision tell apart.
func (s *study) colourChannel() object {
	if s.colour == nil {
		return object{"value": palette[0]}
	}
	if s.colour.Numeric() {
		channel := s.ordinal(s.colour, false)
		channel["scale"], channel["legend"] = object{"scheme": "viridis"}, object{"symbolType": "circle"}
		return channel
	}
	channel := s.field(s.colour, "nominal")
	channel["sort"] = s.distinct(s.colour)
	channel["scale"], channel["legend"] = object{"range": palette}, object{"symbolType": "circle"}
	return channel
}

// palette is that of the report: Okabe and Ito's, darkened for white paper.
var palette = []string{"#0072b2", "#e08a00", "#009e73", "#c8589a", "#d55e00", "#3fa7dd", "#6b7280"}

// tooltips show columns of a point.
func (s *study) tooltips(columns ...*results.Column) list {
	out := list{}
	for i, c := range columns {
		if slices.Index(columns, c) != i {
			continue
		}
		kind := "nominal"
		if c.Numeric() {
			kind = "quantitative"
		}
		out = append(out, s.field(c, kind))
	}
	return out
}

// goals are the columns of the objectives.
func (s *study) goals() []*results.Column {
	var out []*results.Column
	for _, g := range s.objectives {
		out = append(out, g.column)
	}
	return out
}

// subtitle says which points there are.
func (s *study) subtitle(text string) string {
	parts := []string{text}
	for _, c := range s.Constraints {
		parts = append(parts, c.String())
	}
	if s.thinned {
		parts = append(parts, fmt.Sprintf("%d of %d points", len(s.rows), s.table.Rows()))
	}
	return strings.Join(parts, " · ")
}

// label tells a point from others by its axes.
func (s *study) label(row int) string {
	var parts []string
	for _, c := range s.axes {
		switch {
		case c.Null[row]:
		case c.Kind == gridspec.KindString:
			parts = append(parts, c.Text(row))
		default:
			parts = append(parts, c.Name+" "+c.Text(row))
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("point %d", row+1)
	}
	return strings.Join(parts, " · ")
}
