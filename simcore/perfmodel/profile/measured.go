package profile

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/problem"
)

// A measured profile is a table with a row for each measured pass. Read rowsProfile for what becomes of it.

// row is one measured pass.
type row struct {
	at    string // where it stands, such as "line 3"
	phase string
	cells [len(columnNames)]float64 // NaN where empty
}

// The number columns, in the order of row.cells.
const (
	columnNewTokens = iota
	columnBatch
	columnPrefix
	columnContext
	columnMs
)

// columnPhase is the column that says what a row measured.
const columnPhase = "phase"

var columnNames = [...]string{columnNewTokens: "new_tokens", columnBatch: "batch", columnPrefix: "prefix", columnContext: "context", columnMs: "ms"}

// columnRange is what the cells of a column may hold.
var columnRange = [...]struct {
	accepts func(float64) bool
	text    string
}{
	columnNewTokens: {func(v float64) bool { return v >= 1 && v <= maxCoordinate }, "a number of tokens, 1 or more"},
	columnBatch:     {func(v float64) bool { return v >= 1 && v <= maxCoordinate }, "a number of requests, 1 or more"},
	columnPrefix:    {func(v float64) bool { return v >= 0 && v <= maxCoordinate }, "a number of tokens, 0 or more"},
	columnContext:   {func(v float64) bool { return v >= 0 && v <= maxCoordinate }, "a number of tokens, 0 or more"},
	columnMs:        {func(v float64) bool { return v > 0 && v <= maxMs }, "a duration in ms, above 0 and finite"},
}

// phase says which columns are the axes of one part of a pass, in the order of its grid.
type phase struct {
	name string
	axes []int
	// main is the axis that must be there and change; the others may be left empty.
	main int
}

var (
	prefillPhase = phase{"prefill", []int{columnBatch, columnNewTokens, columnPrefix}, columnNewTokens}
	decodePhase  = phase{"decode", []int{columnBatch, columnContext}, columnBatch}
)

// rowsProfile makes the grids that the rows form. An axis whose cells are empty does not exist: durations do not
// depend on it. Along one that has a single value they are constant. Prefill rows without a batch, or with just one,
// are over the new tokens of all requests together.
func rowsProfile(rows []row) (*Profile, error) {
	var wrong faults
	byPhase := map[string][]row{}
	for _, r := range rows {
		byPhase[r.phase] = append(byPhase[r.phase], r)
		if r.phase != prefillPhase.name && r.phase != decodePhase.name {
			wrong.add("%s: phase is %q; use prefill or decode", r.at, r.phase)
		}
	}
	var p Profile
	p.prefill = prefillPhase.grid(byPhase[prefillPhase.name], &wrong)
	p.decode = decodePhase.grid(byPhase[decodePhase.name], &wrong)
	if err := wrong.err(); err != nil {
		return nil, err
	}
	if batch := p.prefill.axes[0]; len(batch) == 1 {
		for i := range p.prefill.axes[1] {
			p.prefill.axes[1][i] *= batch[0]
		}
		p.prefill.axes[0] = nil
	}
	return &p, nil
}

// grid makes the grid of a phase's rows, or notes what is wrong with them.
func (p phase) grid(rows []row, wrong *faults) (g grid) {
	if len(rows) == 0 {
		wrong.add("no row has the phase %s; a profile needs both prefill and decode", p.name)
		return g
	}
	before := len(*wrong)
	for _, r := range rows {
		p.checkCells(r, wrong)
	}
	for i, c := range p.axes {
		g.axes[i] = p.axis(rows, c, wrong)
	}
	if len(*wrong) == before {
		g.values = p.values(rows, &g, wrong)
	}
	return g
}

func (p phase) checkCells(r row, wrong *faults) {
	for c, name := range columnNames {
		switch v := r.cells[c]; {
		case c != columnMs && !slices.Contains(p.axes, c):
			if !math.IsNaN(v) {
				wrong.add("%s: %s is %v, but %s does not depend on it; leave it empty", r.at, name, v, p.name)
			}
		case math.IsNaN(v):
			if c == columnMs || c == p.main {
				wrong.add("%s: %s is empty; give %s", r.at, name, columnRange[c].text)
			}
		case !columnRange[c].accepts(v):
			wrong.add("%s: %s is %v; give %s", r.at, name, v, columnRange[c].text)
		}
	}
}

// axis returns the values of a column in increasing order, nil when all its cells are empty.
func (p phase) axis(rows []row, c int, wrong *faults) axis {
	var a axis
	var full, empty *row
	for i := range rows {
		if v := rows[i].cells[c]; math.IsNaN(v) {
			empty = &rows[i]
		} else {
			full = &rows[i]
			a = append(a, v)
		}
	}
	if full != nil && empty != nil && c != p.main {
		wrong.add("%s: %s is empty, but %s has one; give it for all %s rows or for none", empty.at, columnNames[c], full.at, p.name)
	}
	slices.Sort(a)
	a = slices.Compact(a)
	if len(a) > 1 || c == p.main && len(a) == 1 {
		if err := checkAxis(a); err != nil {
			wrong.add("%s of the %s rows %s", columnNames[c], p.name, err)
		}
	}
	return a
}

// values sorts the durations into a grid, which they must fill.
func (p phase) values(rows []row, g *grid, wrong *faults) []float64 {
	cells := 1
	for _, a := range g.axes {
		cells *= max(1, len(a))
		if cells > maxGridCells {
			wrong.add("the %s rows span a grid of more than %d cells; measure on fewer values an axis", p.name, maxGridCells)
			return nil
		}
	}
	values := make([]float64, cells)
	taken := make([]string, cells)
	for _, r := range rows {
		i := p.index(r, g)
		if taken[i] != "" {
			wrong.add("%s repeats the pass of %s; give each once, such as its median", r.at, taken[i])
		}
		values[i], taken[i] = r.cells[columnMs], r.at
	}
	var missing []string
	for i := range taken {
		if taken[i] == "" {
			missing = append(missing, p.name+" "+p.place(i, g))
		}
	}
	if len(missing) > 0 {
		wrong.add("the %s rows do not fill a grid; measure also: %s", p.name, listed(missing, "; "))
	}
	return values
}

// maxGridCells bounds the cells of a grid, so that a few rows can't span one that takes all memory.
const maxGridCells = 1 << 22

// index returns the cell of a row.
func (p phase) index(r row, g *grid) int {
	index := 0
	for i, c := range p.axes {
		if len(g.axes[i]) > 0 {
			j, _ := slices.BinarySearch(g.axes[i], r.cells[c])
			index = index*len(g.axes[i]) + j
		}
	}
	return index
}

// place describes a cell, such as "batch 4, context 1000".
func (p phase) place(index int, g *grid) string {
	var parts []string
	for i := len(p.axes) - 1; i >= 0; i-- {
		if n := len(g.axes[i]); n > 0 {
			parts = append(parts, fmt.Sprintf("%s %v", columnNames[p.axes[i]], g.axes[i][index%n]))
			index /= n
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, ", ")
}

// header finds the columns of a table: the index of each by its name in columnNames, and of the phase.
func header(names []string) (numbers [len(columnNames)]int, phase int, err error) {
	var wrong faults
	known := append([]string{columnPhase}, columnNames[:]...)
	position := map[string]int{}
	for i, name := range names {
		if name == "" || strings.HasPrefix(name, "__index_level_") {
			continue // the row labels that pandas writes
		}
		if _, twice := position[name]; twice {
			wrong.add("column %s is there twice", name)
		}
		position[name] = i
		if !slices.Contains(known, name) {
			hint := ""
			if near := problem.Nearest(name, known); near != "" {
				hint = ", perhaps " + near
			}
			wrong.add("column %q is unknown%s; the columns are: %s", name, hint, strings.Join(known, ", "))
		}
	}
	find := func(name string, needed bool) int {
		i, ok := position[name]
		if !ok {
			if needed {
				wrong.add("column %s is missing", name)
			}
			return -1
		}
		return i
	}
	for c, name := range columnNames {
		numbers[c] = find(name, c == columnNewTokens || c == columnBatch || c == columnMs)
	}
	phase = find(columnPhase, true)
	return numbers, phase, wrong.err()
}

// faults collects what is wrong with a file.
type faults []string

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// err returns the first faults as one error, nil when there is none.
func (f faults) err() error {
	const most = 10
	if len(f) == 0 {
		return nil
	}
	if len(f) > most {
		f = append(f[:most:most], fmt.Sprintf("and %d more problems", len(f)-most))
	}
	return errors.New(strings.Join(f, "\n"))
}
