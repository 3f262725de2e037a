package results

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
)

// The metrics that say how far to trust the others of a row.
const (
	rejectedColumn = "rejected_requests"
	failedColumn   = "failed_requests"
	arrivedColumn  = "num_requests"
	leftOutColumn  = "left_out_records"
	// extrapolatedColumn is the share of the passes that lie outside of the data behind their timing.
	extrapolatedColumn = "extrapolated_pass_ratio"
)

// Cautions returns what one must know before trusting the frontier of an analysis, a sentence each: that candidates
// reject requests or failed them, and so did less work than the others, that some replayed only what is whole of a damaged trace or
// have no value in a column of the analysis, that most passes lie outside of what was measured, or that some were stopped before it
// was clear whether they keep the constraints. Candidates that are not ok say so themselves.
func (c *Candidates) Cautions(a Analysis) []string {
	ok := c.okRows()
	cautions := append([]string{c.stops(a.Constraints), c.rejections(ok), c.failures(ok), c.leftOut(ok)}, c.missingValues(a, ok)...)
	cautions = append(cautions, c.extrapolations(ok))
	return slices.DeleteFunc(cautions, func(caution string) bool { return caution == "" })
}

// WholePercent writes a share from 0 to 1 as whole percent. What is neither nothing nor everything never looks so.
func WholePercent(share float64) string {
	switch pct := math.Round(100 * share); {
	case share > 0 && pct < 1:
		return "<1 %"
	case share < 1 && pct > 99:
		return ">99 %"
	default:
		return fmt.Sprintf("%.0f %%", pct)
	}
}

// okRows lists the candidates that were simulated; those of a file without a status all were.
func (c *Candidates) okRows() []int {
	if c.Table.Column("status") != nil {
		return c.withStatus(StatusOK)
	}
	rows := make([]int, c.Table.Rows())
	for row := range rows {
		rows[row] = row
	}
	return rows
}

// okMarks marks the candidates of okRows.
func (c *Candidates) okMarks() []bool {
	marks := make([]bool, c.Table.Rows())
	for _, row := range c.okRows() {
		marks[row] = true
	}
	return marks
}

// withStatus lists the candidates that ended so.
func (c *Candidates) withStatus(s Status) []int {
	status := c.Table.Column("status")
	var rows []int
	for row := range c.Table.Rows() {
		if status != nil && status.Text(row) == string(s) {
			rows = append(rows, row)
		}
	}
	return rows
}

// rejections says at how many candidates requests are dropped, and how many where that is the greatest share.
func (c *Candidates) rejections(ok []int) string {
	where, most := c.lost(rejectedColumn, ok)
	if where == "" {
		return ""
	}
	return fmt.Sprintf("Requests are rejected at %s (up to %s: prompts longer than the context or the KV pool); see %s.", where, most, rejectedColumn)
}

// failures says the same of requests of live runs that ended in an error.
func (c *Candidates) failures(ok []int) string {
	where, most := c.lost(failedColumn, ok)
	if where == "" {
		return ""
	}
	return fmt.Sprintf("Requests failed at %s (up to %s); see %s and %s.", where, most, failedColumn, ErrorKindsColumn)
}

// leftOut says how many candidates replayed a trace without what was damaged in it, and how much that was where it was most.
func (c *Candidates) leftOut(ok []int) string {
	records := c.numbers(leftOutColumn)
	rows := above(ok, records, 0)
	if len(rows) == 0 {
		return ""
	}
	most := 0.
	for _, row := range rows {
		most = max(most, records[row])
	}
	return fmt.Sprintf("A damaged trace was replayed without what is damaged at %s (up to %.0f records or files); see %s.", points(len(rows)), most, leftOutColumn)
}

// lost says at how many candidates, and how many of them on the frontier, a column counts requests that came to nothing, and how
// many where that is the greatest share; "" where none does.
func (c *Candidates) lost(column string, ok []int) (where, most string) {
	rejected, arrived := c.numbers(column), c.numbers(arrivedColumn)
	rows := above(ok, rejected, 0)
	if len(rows) == 0 {
		return "", ""
	}
	share := func(row int) float64 {
		if arrived == nil || !(arrived[row] > 0) {
			return 0
		}
		return rejected[row] / arrived[row]
	}
	worst := slices.MaxFunc(rows, func(a, b int) int {
		return cmp.Or(cmp.Compare(share(a), share(b)), cmp.Compare(rejected[a], rejected[b]))
	})
	most = strconv.FormatFloat(math.Ceil(rejected[worst]), 'f', 0, 64)
	if share(worst) > 0 {
		most += " of " + strconv.FormatFloat(arrived[worst], 'f', 0, 64)
	}
	where = points(len(rows))
	if on := c.onFrontier(rows); on > 0 {
		where += fmt.Sprintf(", %d of them on the frontier", on)
	}
	return where, most
}

func (c *Candidates) onFrontier(rows []int) int {
	on, n := c.Table.Column(FrontierColumn), 0
	for _, row := range rows {
		if on != nil && on.Kind == gridspec.KindBool && on.Bools[row] {
			n++
		}
	}
	return n
}

// missingValues says, for each column of the analysis, how many candidates have no value in it, and why when that is
// an unknown price.
func (c *Candidates) missingValues(a Analysis, ok []int) []string {
	var names, out []string
	for _, o := range a.Objectives {
		names = append(names, o.Name)
	}
	for _, b := range a.Constraints {
		names = append(names, b.Column)
	}
	for i, name := range names {
		column := c.Table.Column(name)
		if column == nil || slices.Contains(names[:i], name) {
			continue
		}
		rows := slices.DeleteFunc(slices.Clone(ok), func(row int) bool { return !column.Null[row] })
		if len(rows) > 0 {
			out = append(out, fmt.Sprintf("Without %s and so not compared: %s%s.", name, points(len(rows)), c.unpriced(name, rows)))
		}
	}
	return out
}

// unpriced names the GPUs without a price when that is why the figure is missing.
func (c *Candidates) unpriced(name string, rows []int) string {
	usd, hours := c.Table.Column("cost_usd"), c.numbers("gpu_hours")
	if !strings.HasPrefix(name, "cost_usd") || usd == nil || hours == nil {
		return ""
	}
	var gpus, keys []string
	for _, row := range above(rows, hours, 0) { // what took no time costs nothing, whatever the price
		if gpu := c.Table.gpu(row); gpu != "" && usd.Null[row] && !slices.Contains(gpus, gpu) {
			gpus, keys = append(gpus, gpu), append(keys, "prices."+gpu)
		}
	}
	if len(gpus) == 0 {
		return ""
	}
	return fmt.Sprintf(" (no price of %s; set %s)", strings.Join(gpus, ", "), strings.Join(keys, ", "))
}

// gpu names the GPU of a row, wherever the table has it; empty when it does not say.
func (t *Table) gpu(row int) string {
	const path = "timing.gpu"
	for _, name := range []string{"gpu", flatName(path)} {
		if c := t.Column(name); c != nil && c.Kind == gridspec.KindString {
			return c.Text(row)
		}
	}
	gpu, _ := t.Metadata.Constants[path].(string)
	return gpu
}

// extrapolations warns of candidates whose prices are mostly guessed.
func (c *Candidates) extrapolations(ok []int) string {
	share := c.numbers(extrapolatedColumn)
	rows := above(ok, share, .5)
	if len(rows) == 0 {
		return ""
	}
	most := 0.
	for _, row := range rows {
		most = max(most, share[row])
	}
	return fmt.Sprintf("More than half of the passes lie outside of what was measured at %s, up to %s (%s).",
		points(len(rows)), WholePercent(most), extrapolatedColumn)
}

// numbers are the values of a column; nil when there is no such column of numbers.
func (c *Candidates) numbers(name string) []float64 {
	column := c.Table.Column(name)
	if column == nil {
		return nil
	}
	values, err := column.Float64s()
	if err != nil {
		return nil
	}
	return values
}

// above lists the rows whose value is greater than a bound.
func above(rows []int, values []float64, bound float64) []int {
	if values == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(rows), func(row int) bool { return !(values[row] > bound) })
}

func points(n int) string {
	if n == 1 {
		return "1 point"
	}
	return fmt.Sprintf("%d points", n)
}
