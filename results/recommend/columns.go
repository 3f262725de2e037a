package recommend

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// withComputed returns the table with the hourly cost, where what it follows from is there.
func withComputed(t *results.Table) *results.Table {
	own := *t
	own.Columns = slices.Clone(t.Columns)
	number := func(name string) []float64 {
		if c := t.Column(name); c != nil {
			if values, err := c.Float64s(); err == nil {
				return values
			}
		}
		return slices.Repeat([]float64{math.NaN()}, t.Rows())
	}
	usd, hours, mean, gpus := number("cost_usd"), number("gpu_hours"), number("mean_gpus"), number(gpusColumn)
	addComputed(&own, HourlyCostColumn, "USD/h", "Cost of the GPUs in an hour.", func(row int) float64 {
		if mean[row] > 0 {
			return usd[row] / hours[row] * mean[row]
		}
		return usd[row] / hours[row] * gpus[row]
	})
	return &own
}

// addComputed adds a metric unless the table has the column or no row has a value.
func addComputed(t *results.Table, name, unit, doc string, of func(row int) float64) {
	if t.Column(name) != nil {
		return
	}
	c := results.NewColumn(name, gridspec.KindFloat, t.Rows())
	c.Unit, c.Doc, c.Role = unit, doc, results.RoleMetric
	for row := range c.Len() {
		if v := of(row); finite(v) {
			c.Set(row, gridspec.Value{Kind: gridspec.KindFloat, Float: v})
		}
	}
	if slices.Contains(c.Null, false) {
		t.Add(c)
	}
}

// GPUBudget bounds the GPUs of a table's configurations: at their peak, where a planner changes them.
func GPUBudget(t *results.Table, most int) results.Constraint {
	column := gpusColumn
	if peakDiffers(t) {
		column = peakGPUsColumn
	}
	return results.Constraint{Column: column, Operator: "<=", Bound: gridspec.Value{Kind: gridspec.KindInt, Int: int64(most)}}
}

// peakDiffers reports whether some row had more GPUs at a time than its configuration asks for.
func peakDiffers(t *results.Table) bool {
	gpus, peak := t.Column(gpusColumn), t.Column(peakGPUsColumn)
	if peak == nil {
		return false
	}
	for row := range t.Rows() {
		if !peak.Null[row] && (gpus == nil || peak.Text(row) != gpus.Text(row)) {
			return true
		}
	}
	return false
}

// CostBudget bounds what a configuration costs an hour, in USD.
func CostBudget(usdPerHour float64) results.Constraint {
	return results.Constraint{Column: HourlyCostColumn, Operator: "<=", Bound: gridspec.Value{Kind: gridspec.KindFloat, Float: usdPerHour}}
}

// The objectives that have a name of their own, with the columns that stand for them, the first that a table has.
var named = map[string][]results.Objective{
	"cost": {
		{Name: "cost_usd_per_mtok_output"}, {Name: HourlyCostColumn}, {Name: "gpu_hours"}, {Name: gpusColumn},
	},
	"throughput": {
		{Name: "output_throughput_tok_s", Maximize: true}, {Name: "total_throughput_tok_s", Maximize: true},
		{Name: "request_throughput_rps", Maximize: true},
	},
	"throughput-per-gpu": {{Name: "output_throughput_tok_s_per_gpu", Maximize: true}},
	"speed": {
		{Name: "mean_output_token_throughput_per_user", Maximize: true}, {Name: "mean_tpot_ms"}, {Name: "mean_itl_ms"},
	},
}

// ObjectiveNames lists the objectives that have a name of their own.
func ObjectiveNames() []string { return []string{"cost", "throughput", "throughput-per-gpu", "speed"} }

// FindObjective returns the objective that a word means in a table: one of [ObjectiveNames], max:COLUMN or min:COLUMN, or
// the column of a metric whose better direction is known.
func FindObjective(t *results.Table, word string) (results.Objective, error) {
	own := withComputed(t)
	if choices, ok := named[word]; ok {
		for _, o := range choices {
			if c := own.Column(o.Name); c != nil && slices.Contains(c.Null, false) {
				return o, nil
			}
		}
		return choices[0], nil // an empty table, or one that lacks them all, which its reader says
	}
	direction, name, given := strings.Cut(word, ":")
	if given && (direction == "max" || direction == "min") {
		_, err := own.Lookup(name)
		return results.Objective{Name: name, Maximize: direction == "max"}, err
	}
	if _, err := own.Lookup(word); err != nil {
		return results.Objective{}, fmt.Errorf("%w; or use one of: %s", err, strings.Join(ObjectiveNames(), ", "))
	}
	for _, f := range metrics.Fields() {
		if f.Name == word && f.Better != metrics.Neutral {
			return results.Objective{Name: word, Maximize: f.Better == metrics.HigherIsBetter}, nil
		}
	}
	if word == HourlyCostColumn || word == gpusColumn {
		return results.Objective{Name: word}, nil
	}
	return results.Objective{}, fmt.Errorf("nothing says whether %s should be high or low; write max:%s or min:%s", word, word, word)
}

// SearchObjective is the objective that a search for a word of [FindObjective] goes after, before there is a table: a metric.
// Without any price the cost is that of GPU-hours. It is not ok when no metric stands for the word.
func SearchObjective(word string, priced bool) (o results.Objective, ok bool) {
	if choices, known := named[word]; known {
		if word == "cost" && !priced {
			return results.Objective{Name: "gpu_hours"}, true
		}
		return choices[0], true
	}
	direction, name, given := strings.Cut(word, ":")
	if !given {
		direction, name = "", word
	}
	for _, f := range metrics.Fields() {
		switch {
		case f.Name != name:
		case direction == "max" || direction == "min":
			return results.Objective{Name: name, Maximize: direction == "max"}, true
		case !given && f.Better != metrics.Neutral:
			return results.Objective{Name: name, Maximize: f.Better == metrics.HigherIsBetter}, true
		}
	}
	return results.Objective{}, false
}

// variedColumns are the columns that tell configurations apart.
func (s *scale) variedColumns() []*results.Column {
	var out []*results.Column
	for _, c := range s.table.Columns {
		if s.isSetting(c) || c.Role == results.RoleDerived || c.Role == results.RoleConfig {
			out = append(out, c)
		}
	}
	return out
}

// isSetting reports whether a column is a setting that was varied. A file without roles may have so few rows that its
// settings look measured, so their usual names count too.
func (s *scale) isSetting(c *results.Column) bool {
	return c.Role == results.RoleAxis || s.table.GuessedRoles && slices.Contains(structural, c.Name)
}

// hardware are the settings of what one rents and installs, structural also those of how it is divided. A column has the
// setting's name, or ends with it after a section.
var (
	hardware   = []string{"gpu", "deployment_mode", "backend", "engine_type", "dtype", "model"}
	structural = append([]string{"tp", "dp", "ep", "workers", "prefill_workers", "decode_workers", "case"}, hardware...)
)

// loads are the settings of what is asked of a deployment.
var loads = []string{"concurrency", "rate", "speedup"}

// isLoad reports whether a column says how much is asked of a deployment.
func isLoad(c *results.Column) bool {
	return c.Role == results.RoleAxis && slices.Contains(loads, strings.TrimPrefix(c.Name, "load_"))
}

func namedLike(name string, settings []string) bool {
	return slices.ContainsFunc(settings, func(s string) bool { return name == s || strings.HasSuffix(name, "_"+s) })
}

// otherLoads cautions that configurations under different loads were compared, unless a limit chooses one.
func (s *scale) otherLoads() []string {
	var out []string
	for _, c := range s.table.Columns {
		chosen := slices.ContainsFunc(s.request.Limits, func(l results.Constraint) bool { return l.Column == c.Name })
		if !isLoad(c) || chosen || slices.Contains(s.request.By, c.Name) {
			continue
		}
		var first, values = "", map[string]bool{}
		for row := range c.Len() {
			if text := c.Text(row); text != "" && !values[text] {
				first, values[text] = cmp.Or(first, text), true
			}
		}
		if len(values) > 1 {
			out = append(out, fmt.Sprintf("Loads differ (%s): the best of all of them is named. A constraint such as %s == %s chooses one.", c.Name, c.Name, first))
		}
	}
	return out
}

// analytic cautions that choices come from a roofline, whose error is larger than most differences between them.
func (s *scale) analytic(answers []Answer) []string {
	var out []string
	for i := range answers {
		for _, c := range answers[i].named() {
			row := s.candidate(c.choice.Row)
			if !strings.Contains(s.text("timing_source", row), perfmodel.SourceAnalytic) {
				continue
			}
			caution := fmt.Sprintf("%s is priced by a roofline (analytic timing), ±%s %% in prefill, ±%s %% in decode: its rank is a reason to measure, not a result.",
				c.title, s.percent("timing_prefill_error_pct", row), s.percent("timing_decode_error_pct", row))
			if !slices.Contains(out, caution) {
				out = append(out, caution)
			}
		}
	}
	return out
}

// titled is a choice with what it is called.
type titled struct {
	title  string
	choice *Choice
}

// named are all choices of an answer, the best first.
func (a *Answer) named() []titled {
	var out []titled
	if a.Best != nil {
		out = append(out, titled{"The best configuration", a.Best})
	}
	for i := range a.RunnersUp {
		out = append(out, titled{fmt.Sprintf("Runner-up %d", i+1), &a.RunnersUp[i].Choice})
	}
	if a.Next != nil {
		out = append(out, titled{"The one with the next GPUs", &a.Next.Choice})
	}
	if a.Closest != nil {
		out = append(out, titled{"The closest configuration", a.Closest})
	}
	return out
}

// candidate is the configuration whose first replicate is in a row of the table as it was.
func (s *scale) candidate(row int) int {
	return slices.IndexFunc(s.candidates.Counted, func(runs []int) bool { return slices.Contains(runs, row) })
}

// percent is a figure in percent, or ? where the table does not say.
func (s *scale) percent(name string, row int) string {
	if v := s.optional(name)[row]; finite(v) {
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	return "?"
}
