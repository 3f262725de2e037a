package results

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/servegrid/servegrid/gridspec"
)

// reportPayload is the data inside a report, column by column to keep the file small.
type reportPayload struct {
	Title       string        `json:"title"`
	Rows        int           `json:"rows"`
	Objectives  []Objective   `json:"objectives"`
	Constraints []reportBound `json:"constraints"`
	By          []string      `json:"by"`
	// KeepFirst and Epsilon are the options of the frontier.
	KeepFirst bool      `json:"keepFirst"`
	Epsilon   []Epsilon `json:"epsilon"`
	// Limits are the figures that the page offers to bound.
	Limits []reportLimit `json:"limits"`
	// Marks has the bits mark… of each row.
	Marks []byte `json:"marks"`
	// Candidates holds the candidate of each row as little-endian uint32; only with replicates. TQuantiles are then the
	// factors of the intervals, by the number of rows that count.
	Candidates []byte    `json:"candidates,omitempty"`
	TQuantiles []float64 `json:"tQuantiles,omitempty"`
	// Cliffs say where axes lose the SLA.
	Cliffs    []reportCliff    `json:"cliffs"`
	Timelines []reportTimeline `json:"timelines,omitempty"`
	// Cautions are those of [Candidates.Cautions].
	Cautions  []string          `json:"cautions"`
	Commands  *reportCommands   `json:"commands,omitempty"`
	Spec      string            `json:"spec"`
	Versions  map[string]string `json:"versions"`
	Workloads map[string]string `json:"workloads"`
	Constants []reportConstant  `json:"constants"`
	// Sources name the results for command lines; the others are what they state themselves.
	Sources        []string    `json:"sources"`
	OwnBy          []string    `json:"ownBy"`
	OwnConstraints []string    `json:"ownConstraints"`
	OwnObjectives  []Objective `json:"ownObjectives"`

	data    ReportData
	columns []*Column
}

// The bits of a row's marks.
const (
	markFrontier   = 1 << iota // on the frontier
	markInfeasible             // misses a constraint
	markFixed                  // misses a constraint that the page cannot move
	markCounted                // counts among the replicates of its candidate
)

// reportBound is a constraint. Bound is null when the page cannot move it, since it bounds no range of numbers.
type reportBound struct {
	Text     string   `json:"text"`
	Column   string   `json:"column"`
	Operator string   `json:"operator"`
	Bound    *float64 `json:"bound"`
}

// reportLimit is something to bound, with the columns that measure it, the usual one first.
type reportLimit struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
}

// reportConstant is a setting or column with one value.
type reportConstant struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func newReportPayload(d ReportData) (*reportPayload, error) {
	marked := *d.Table
	marked.deleteColumns(FrontierColumn, FeasibleColumn, NoiseColumn)
	commands := marked.Column(CommandColumn)
	marked.deleteColumns(CommandColumn)
	d.Table = &marked
	d.Objectives = reportObjectives(d)
	p := &reportPayload{
		Title: d.Title, Rows: marked.Rows(), Objectives: d.Objectives, Constraints: reportBounds(d.Constraints), By: []string{},
		KeepFirst: d.Ties == KeepFirst, Epsilon: d.Epsilon, Limits: []reportLimit{}, Marks: make([]byte, marked.Rows()),
		Cliffs: []reportCliff{}, Cautions: []string{}, Spec: marked.Metadata.Spec, Versions: marked.Metadata.Versions,
		Workloads: marked.Metadata.Workloads, Commands: newReportCommands(commands), Sources: d.Sources,
		OwnConstraints: []string{},
	}
	if len(p.Sources) == 0 {
		p.Sources = []string{"results.parquet"}
	}
	own := d.Own
	if own == nil {
		own = &d.Analysis
	}
	p.OwnObjectives, p.OwnBy = own.Objectives, own.By
	for _, c := range own.Constraints {
		p.OwnConstraints = append(p.OwnConstraints, c.String())
	}
	p.By = append(p.By, d.By...)
	if len(d.Objectives) > 0 {
		if err := p.mark(d); err != nil {
			return nil, err
		}
	}
	marked.deleteColumns(FrontierColumn, FeasibleColumn, NoiseColumn)
	p.Cliffs = reportCliffs(d)
	var err error
	if p.Timelines, err = newReportTimelines(d.Timelines, marked.Rows()); err != nil {
		return nil, err
	}
	p.Constants = reportConstants(d)
	p.data = d
	for _, c := range marked.Columns {
		if !d.hides(c) {
			p.columns = append(p.columns, c)
		}
	}
	p.Limits = append(p.Limits, reportLimits(p.columns)...)
	return p, nil
}

// WriteJSON writes the payload a column at a time, so that a large table is never in memory twice.
func (p *reportPayload) WriteJSON(w io.Writer) error {
	head, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, `%s,"columns":[`, head[:len(head)-1]); err != nil {
		return err
	}
	exact := p.exact()
	for i, c := range p.columns {
		column, err := json.Marshal(newReportColumn(c, exact[c.Name])) // escapes <, > and &
		if err != nil {
			return err
		}
		if i > 0 {
			column = append([]byte(",\n"), column...)
		}
		if _, err := w.Write(column); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, "]}")
	return err
}

// exact names the columns that the page computes with.
func (p *reportPayload) exact() map[string]bool {
	names := map[string]bool{}
	for _, o := range p.Objectives {
		names[o.Name] = true
	}
	for _, c := range p.Constraints {
		names[c.Column] = true
	}
	for _, l := range p.Limits {
		for _, name := range l.Columns {
			names[name] = true
		}
	}
	return names
}

// mark fills in the frontier and what else follows from the analysis.
func (p *reportPayload) mark(d ReportData) error {
	if err := MarkFrontier(d.Table, d.Analysis); err != nil {
		return err
	}
	p.setMarks(d.Table.Column(FrontierColumn), true, markFrontier)
	p.setMarks(d.Table.Column(FeasibleColumn), false, markInfeasible)
	c := d.Table.Candidates()
	var fixed []Constraint
	for i, bound := range p.Constraints {
		if bound.Bound == nil {
			fixed = append(fixed, d.Constraints[i])
		}
	}
	keeps, err := Feasible(c.Table, fixed)
	if err != nil {
		return err
	}
	ended := c.okMarks()
	for row, candidate := range c.Of {
		if !keeps[candidate] || !ended[candidate] {
			p.Marks[row] |= markFixed
		}
	}
	p.Cautions = append(p.Cautions, c.Cautions(d.Analysis)...)
	if wider := c.WiderLimits(d.Constraints); wider != "" {
		p.Cautions = append(p.Cautions, wider) // the page's limits can be moved
	}
	if c.Replicated() {
		p.addCandidates(c)
	}
	return nil
}

// setMarks sets a bit of the rows where a column, if there is one, has a value.
func (p *reportPayload) setMarks(c *Column, value bool, bit byte) {
	if c == nil {
		return
	}
	for row, v := range c.Bools {
		if v == value {
			p.Marks[row] |= bit
		}
	}
}

func (p *reportPayload) addCandidates(c *Candidates) {
	most := 0
	for _, rows := range c.Counted {
		most = max(most, len(rows))
		for _, row := range rows {
			p.Marks[row] |= markCounted
		}
	}
	for _, candidate := range c.Of {
		p.Candidates = binary.LittleEndian.AppendUint32(p.Candidates, uint32(candidate))
	}
	for n := range most + 1 {
		p.TQuantiles = append(p.TQuantiles, tFactor(n))
	}
}

func reportBounds(constraints []Constraint) []reportBound {
	out := []reportBound{}
	for _, c := range constraints {
		b := reportBound{Text: c.String(), Column: c.Column, Operator: c.Operator}
		if size := c.size(); !math.IsNaN(size) && !math.IsInf(size, 0) && c.Operator != "==" && c.Operator != "!=" {
			b.Bound = &size
		}
		out = append(out, b)
	}
	return out
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

// reportLimits finds what the page offers to bound: latencies, GPUs and cost, as far as they differ between rows.
func reportLimits(columns []*Column) []reportLimit {
	var out []reportLimit
	for _, family := range limitFamilies {
		l := reportLimit{Name: family.name, Columns: []string{}}
		for _, name := range family.columns {
			if slices.ContainsFunc(columns, func(c *Column) bool { return c.Name == name && c.Numeric() && !c.constant() }) {
				l.Columns = append(l.Columns, name)
			}
		}
		if len(l.Columns) > 0 {
			out = append(out, l)
		}
	}
	return out
}

type limitFamily struct {
	name    string
	columns []string
}

// limitFamilies are the figures that SLAs and budgets bound; of a latency the tail first, since that is what is promised.
var limitFamilies = []limitFamily{
	{"First token", statisticsOf("ttft_ms")},
	{"Time per token", append(statisticsOf("tpot_ms"), statisticsOf("itl_ms")...)},
	{"Request latency", statisticsOf("e2e_latency_ms")},
	{"GPUs", []string{"gpus", "mean_gpus"}},
	{"Cost", []string{"cost_usd_per_mtok_output", "cost_usd_per_mtok_input", "cost_usd"}},
}

func statisticsOf(figure string) []string {
	columns := []string{}
	for _, s := range []string{"p99_", "p95_", "p90_", "median_", "mean_"} {
		columns = append(columns, s+figure)
	}
	return columns
}

// hides leaves out the columns whose rows are all equal, apart from the status, the axes, what the analysis uses and what
// qualifies the other figures.
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
	case rejectedColumn, failedColumn:
		return slices.ContainsFunc(c.Ints, func(n int64) bool { return n > 0 })
	case arrivedColumn:
		return slices.ContainsFunc(d.Table.Columns, func(c *Column) bool { return (c.Name == rejectedColumn || c.Name == failedColumn) && d.qualifies(c) })
	}
	return false
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
