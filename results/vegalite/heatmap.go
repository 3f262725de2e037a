package vegalite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/results"
)

// mostCells bounds the cells across and up.
const mostCells = 24

// cell is what two values of the axes have in common.
type cell struct {
	x, y         string
	points, kept int
	best         any
	row          int
}

// heatmap colours the two axes with the most values by the best of the first objective; where no point keeps the SLA the
// cell is faint and its text is struck out.
func heatmap(s *study) (object, error) {
	axes := slices.Clone(s.axes)
	slices.SortStableFunc(axes, func(a, b *results.Column) int {
		if a.Numeric() != b.Numeric() {
			if a.Numeric() {
				return -1
			}
			return 1
		}
		return len(s.distinct(b)) - len(s.distinct(a))
	})
	if len(axes) < 2 || len(s.objectives) == 0 {
		return nil, nil
	}
	across, up, goal := axes[0], axes[1], s.objectives[0]
	columns, lines := s.groups(across), s.groups(up)
	cells := s.cells(across, up, goal, columns, lines)
	if len(cells) == 0 {
		return nil, nil
	}
	data := list{}
	var best []float64
	for _, c := range cells {
		record := object{"x": c.x, "y": c.y, "points": c.points, "kept": c.kept}
		if c.best != nil {
			record["value"], record["configuration"] = c.best, s.label(c.row)
			best = append(best, asFloat(c.best))
		}
		data = append(data, record)
	}
	slices.Reverse(lines.labels)
	color := object{"field": "value", "type": "quantitative", "title": "best " + named(goal.column), "scale": object{"scheme": "viridis"}}
	if spansDecades(best) {
		color["scale"] = object{"scheme": "viridis", "type": "log"}
	}
	return object{
		"title": s.heading(s.subtitle("Best of each cell; faint where no point keeps the bounds")),
		"width": object{"step": 46}, "height": object{"step": 34}, "data": object{"values": data},
		"encoding": object{
			"x": object{"field": "x", "type": "ordinal", "sort": columns.labels, "title": named(across), "axis": object{"labelAngle": 0}},
			"y": object{"field": "y", "type": "ordinal", "sort": lines.labels, "title": named(up)},
		},
		"layer": list{
			object{"mark": "rect", "encoding": object{
				"color": color, "opacity": object{"condition": object{"test": "datum.kept > 0", "value": 1}, "value": 0.35},
				"tooltip": list{
					object{"field": "value", "type": "quantitative", "title": named(goal.column)}, object{"field": "configuration", "type": "nominal", "title": "best"},
					object{"field": "points", "type": "quantitative"}, object{"field": "kept", "type": "quantitative", "title": "keep the bounds"},
				},
			}},
			object{"mark": object{"type": "text", "fontSize": 10, "stroke": "black", "strokeWidth": 0.2}, "encoding": object{
				"text":  object{"field": "value", "type": "quantitative", "format": ".3~s"},
				"color": object{"condition": object{"test": "datum.kept > 0", "value": "white"}, "value": "#5b6474"},
			}},
		},
	}, nil
}

// groups are the values of an axis, as they are or, when they are very many, in even groups of neighbours.
type groups struct {
	of     map[any]int
	labels []string
}

func (s *study) groups(c *results.Column) groups {
	values := s.distinct(c)
	n := min(len(values), mostCells)
	g := groups{of: map[any]int{}, labels: make([]string, n)}
	for i, v := range values {
		at := i * n / len(values)
		if g.of[v] = at; g.labels[at] == "" {
			g.labels[at] = fmt.Sprint(v)
			if n < len(values) {
				g.labels[at] += "…"
			}
		}
	}
	for i, label := range g.labels { // texts that look alike must stay apart
		if slices.Index(g.labels, label) != i {
			g.labels[i] += strings.Repeat("\u200b", i)
		}
	}
	return g
}

// cells has those with points, in order of first appearance. The best counts those that keep the bounds where any does.
func (s *study) cells(across, up *results.Column, goal goal, columns, lines groups) []*cell {
	var out []*cell
	at := map[[2]int]*cell{}
	for _, row := range s.rows {
		i, okX := columns.of[value(across, row)]
		j, okY := lines.of[value(up, row)]
		if !okX || !okY {
			continue
		}
		c := at[[2]int{i, j}]
		if c == nil {
			c = &cell{x: columns.labels[i], y: lines.labels[j]}
			at[[2]int{i, j}] = c
			out = append(out, c)
		}
		c.add(s, goal, row)
	}
	return out
}

func (c *cell) add(s *study, goal goal, row int) {
	c.points++
	v := value(goal.column, row)
	first := s.feasible[row] && c.kept == 0 // which beats whatever misses the bounds
	if s.feasible[row] {
		c.kept++
	}
	if v == nil || !s.feasible[row] && c.kept > 0 {
		return
	}
	better := c.best == nil || first || goal.Maximize && asFloat(v) > asFloat(c.best) || !goal.Maximize && asFloat(v) < asFloat(c.best)
	if better {
		c.best, c.row = v, row
	}
}
