package compare

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// Options say what counts as a difference.
type Options struct {
	// Tolerance is the relative change of a figure that does not matter: 0.01 is 1 %. With 0 every change does.
	Tolerance float64
	// Metrics are the names of the figures to compare; none means all.
	Metrics []string
}

// Difference is what differs between two tables.
type Difference struct {
	// Settings are those that are equal within each table and differ between both, with the versions and workloads.
	Settings []Setting `json:"settings"`
	// OnlyBefore and OnlyAfter are the points that the other table lacks.
	OnlyBefore []Point `json:"only_before"`
	OnlyAfter  []Point `json:"only_after"`
	// ByID and ByAxes are how many points both have, paired by their IDs or, for the rest, by equal axes.
	ByID   int `json:"by_id"`
	ByAxes int `json:"by_axes"`
	// Statuses are the points that ended in another way.
	Statuses []StatusChange `json:"statuses"`
	// Metrics are the figures that changed, those with the largest relative change first.
	Metrics []MetricChange `json:"metrics"`
	// Entered and Left are the points that joined and left the frontier; a point that the other table lacks may do so too.
	Entered []Point `json:"entered"`
	Left    []Point `json:"left"`
	// Frontier is the number of points on both frontiers; nil where they cannot be compared, as FrontierNote says.
	Frontier     *int   `json:"frontier"`
	FrontierNote string `json:"frontier_note,omitempty"`
}

// Same reports whether nothing differs.
func (d *Difference) Same() bool {
	return len(d.Settings)+len(d.OnlyBefore)+len(d.OnlyAfter)+len(d.Statuses)+len(d.Metrics)+len(d.Entered)+len(d.Left) == 0
}

// Point names a row.
type Point struct {
	// Row is its number in its table, from 0.
	Row int `json:"row"`
	// ID is its content ID; empty in files without.
	ID string `json:"id,omitempty"`
	// Axes is what tells it from other points of its table, such as "workers=4 policy=kv_router".
	Axes string `json:"axes"`
}

// StatusChange is a point that ended in another way.
type StatusChange struct {
	Point  Point  `json:"point"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// MetricChange is how one figure changed over the points that both tables have.
type MetricChange struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	// Changed is the number of points at which it changed by more than the tolerance.
	Changed int `json:"changed"`
	// MeanRelative is the mean of the relative changes of all points with a value other than 0.
	MeanRelative float64 `json:"mean_relative"`
	// Changes are the points, the largest relative change first; a figure that appears, goes or leaves 0 comes before all.
	Changes []FigureChange `json:"changes"`
}

// FigureChange is a figure that changed at one point. Point is that of the second table.
type FigureChange struct {
	Point Point `json:"point"`
	// Before and After are nil where the point has no value.
	Before *float64 `json:"before"`
	After  *float64 `json:"after"`
	// Relative is the change as a share of the value before; nil where that is missing or 0.
	Relative *float64 `json:"relative"`
}

// Tables compares two tables. The error lists every unknown metric.
func Tables(before, after *results.Table, opt Options) (*Difference, error) {
	p := pairUp(before, after)
	d := &Difference{Settings: constants(before, after), OnlyBefore: p.before.points(p.onlyBefore), OnlyAfter: p.after.points(p.onlyAfter), ByID: p.byID, ByAxes: len(p.pairs) - p.byID,
		Statuses: []StatusChange{}, Metrics: []MetricChange{}, Entered: []Point{}, Left: []Point{}}
	names, err := metricNames(before, after, opt.Metrics)
	if err != nil {
		return nil, err
	}
	endBefore, endAfter := textReader(before, "status"), textReader(after, "status")
	for _, pair := range p.pairs {
		if a, b := endBefore(pair[0]), endAfter(pair[1]); a != b {
			d.Statuses = append(d.Statuses, StatusChange{p.after.point(pair[1]), a, b})
		}
	}
	for _, name := range names {
		m, err := p.metric(before.Column(name), after.Column(name), opt.Tolerance)
		if err != nil {
			return nil, err
		}
		if m.Changed > 0 {
			d.Metrics = append(d.Metrics, m)
		}
	}
	slices.SortStableFunc(d.Metrics, func(a, b MetricChange) int { return cmp.Compare(b.Changes[0].weight(), a.Changes[0].weight()) })
	p.frontiers(before, after, d)
	return d, nil
}

// metricNames are the figures that both tables have, in the order of the second.
func metricNames(before, after *results.Table, asked []string) ([]string, error) {
	var names []string
	var problems []error
	for _, name := range asked {
		for _, t := range []*results.Table{before, after} {
			if _, err := t.Lookup(name); err != nil {
				problems = append(problems, fmt.Errorf("metric %s: %w", gridspec.Excerpt(name), err))
				break
			}
		}
		names = append(names, name)
	}
	if len(asked) > 0 {
		return names, errors.Join(problems...)
	}
	for _, c := range after.Columns {
		old := before.Column(c.Name)
		if old != nil && c.Role == results.RoleMetric && c.Numeric() && old.Numeric() {
			names = append(names, c.Name)
		}
	}
	return names, nil
}

// textReader reads a column as text; all is empty where the table has none.
func textReader(t *results.Table, column string) func(row int) string {
	if c := t.Column(column); c != nil {
		return c.Text
	}
	return func(int) string { return "" }
}

// pairing says which rows of two tables are the same point.
type pairing struct {
	before, after         namer
	pairs                 [][2]int
	onlyBefore, onlyAfter []int
	byID                  int
}

// pairUp pairs rows with equal IDs, and then those with equal axes: IDs differ as soon as the simulator's version does, or a
// setting that is the same at all points.
func pairUp(before, after *results.Table) *pairing {
	p := &pairing{before: newNamer(before), after: newNamer(after)}
	partner := make([]int, after.Rows())
	for i := range partner {
		partner[i] = -1
	}
	taken := make([]bool, before.Rows())
	match := func(keyBefore, keyAfter func(row int) string) (matched int) {
		waiting := map[string][]int{}
		for row, is := range taken {
			if k := keyBefore(row); !is && k != "" {
				waiting[k] = append(waiting[k], row)
			}
		}
		for row := range partner {
			if partner[row] >= 0 {
				continue
			}
			if rows := waiting[keyAfter(row)]; len(rows) > 0 {
				partner[row], taken[rows[0]], waiting[keyAfter(row)] = rows[0], true, rows[1:]
				matched++
			}
		}
		return matched
	}
	p.byID = match(textReader(before, "id"), textReader(after, "id"))
	names := identifying(before, after)
	match(axesReader(before, names), axesReader(after, names))
	for row, from := range partner {
		if from >= 0 {
			p.pairs = append(p.pairs, [2]int{from, row})
		} else {
			p.onlyAfter = append(p.onlyAfter, row)
		}
	}
	for row, is := range taken {
		if !is {
			p.onlyBefore = append(p.onlyBefore, row)
		}
	}
	return p
}

// axesReader joins the settings that say which point a row is.
func axesReader(t *results.Table, names []string) func(row int) string {
	readers := make([]func(int) string, len(names))
	for i, name := range names {
		readers[i] = settingReader(t, name)
	}
	return func(row int) string {
		var key strings.Builder
		for _, read := range readers {
			key.WriteString(read(row))
			key.WriteByte(0)
		}
		return key.String()
	}
}

// identifying are the columns that say which point a row is: the axes of either table, the replicate, and the workload where
// there are several.
func identifying(a, b *results.Table) []string {
	var names []string
	for _, t := range []*results.Table{a, b} {
		for _, c := range t.Columns {
			tells := c.Role == results.RoleAxis || c.Name == "replicate" || c.Name == "workload" && several(c)
			if tells && !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// several reports whether a column has different values.
func several(c *results.Column) bool {
	for row := range c.Len() {
		if c.Text(row) != c.Text(0) {
			return true
		}
	}
	return false
}

// namer names the rows of a table.
type namer struct {
	id   func(row int) string
	axes []*results.Column
}

func newNamer(t *results.Table) namer {
	n := namer{id: textReader(t, "id")}
	for _, name := range identifying(t, t) {
		n.axes = append(n.axes, t.Column(name))
	}
	return n
}

func (n namer) points(rows []int) []Point {
	out := []Point{}
	for _, row := range rows {
		out = append(out, n.point(row))
	}
	return out
}

// point names a row by its ID and its axes.
func (n namer) point(row int) Point {
	var parts []string
	for _, c := range n.axes {
		if !c.Null[row] {
			parts = append(parts, c.Name+"="+c.Text(row))
		}
	}
	return Point{Row: row, ID: n.id(row), Axes: strings.Join(parts, " ")}
}

// metric compares one figure at all pairs.
func (p *pairing) metric(before, after *results.Column, tolerance float64) (MetricChange, error) {
	m := MetricChange{Name: after.Name, Unit: after.Unit}
	figuresBefore, err := before.Float64s()
	if err != nil {
		return m, err
	}
	figuresAfter, err := after.Float64s()
	if err != nil {
		return m, err
	}
	sum, n := 0.0, 0
	for _, pair := range p.pairs {
		c := newFigureChange(figuresBefore[pair[0]], figuresAfter[pair[1]])
		c.Point.Row = pair[1]
		if c.Relative != nil {
			sum, n = sum+*c.Relative, n+1
		}
		if differ(c, tolerance) {
			m.Changes = append(m.Changes, c)
		}
	}
	m.Changed = len(m.Changes)
	if mean := finite(sum / float64(max(n, 1))); mean != nil {
		m.MeanRelative = *mean
	}
	slices.SortStableFunc(m.Changes, func(a, b FigureChange) int { return cmp.Compare(b.weight(), a.weight()) })
	for i := range m.Changes {
		m.Changes[i].Point = p.after.point(m.Changes[i].Point.Row)
	}
	return m, nil
}

// newFigureChange compares two figures, which may be missing.
func newFigureChange(before, after float64) FigureChange {
	c := FigureChange{Before: finite(before), After: finite(after)}
	if c.Before != nil && c.After != nil && before != 0 {
		c.Relative = finite((after - before) / math.Abs(before))
	}
	return c
}

// weight orders changes: those without a relative size come first.
func (c *FigureChange) weight() float64 {
	if c.Relative == nil {
		return math.Inf(1)
	}
	return math.Abs(*c.Relative)
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// differ reports whether a figure changed by more than the tolerance.
func differ(c FigureChange, tolerance float64) bool {
	if c.Before == nil || c.After == nil {
		return (c.Before == nil) != (c.After == nil)
	}
	a, b := *c.Before, *c.After
	return math.Abs(b-a) > tolerance*max(math.Abs(a), math.Abs(b))
}

// frontiers compares the frontiers that the second table's analysis finds in both.
func (p *pairing) frontiers(before, after *results.Table, d *Difference) {
	a := after.Analysis()
	if len(after.Metadata.Objectives) == 0 && slices.ContainsFunc(a.Objectives, func(o results.Objective) bool { return after.Column(o.Name) == nil }) {
		d.FrontierNote = "the second set names no objectives"
		return
	}
	marks := make([][]bool, 2)
	for i, t := range []*results.Table{before, after} {
		own := *t
		own.Columns = slices.Clone(t.Columns)
		if err := results.MarkFrontier(&own, a); err != nil {
			d.FrontierNote = strings.ReplaceAll(err.Error(), "\n", "; ")
			return
		}
		marks[i] = own.Column(results.FrontierColumn).Bools
	}
	both := 0
	partner := make([]int, after.Rows())
	for i := range partner {
		partner[i] = -1
	}
	stays := make([]bool, before.Rows())
	for _, pair := range p.pairs {
		partner[pair[1]] = pair[0]
		stays[pair[0]] = marks[1][pair[1]]
	}
	for row, on := range marks[1] {
		switch was := partner[row] >= 0 && marks[0][partner[row]]; {
		case on && was:
			both++
		case on:
			d.Entered = append(d.Entered, p.after.point(row))
		}
	}
	for row, on := range marks[0] {
		if on && !stays[row] {
			d.Left = append(d.Left, p.before.point(row))
		}
	}
	d.Frontier = &both
}
