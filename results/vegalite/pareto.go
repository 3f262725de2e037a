package vegalite

import (
	"fmt"
	"slices"

	"github.com/servegrid/servegrid/results"
)

// pareto plots the first two objectives, with the frontier as a line and what misses the SLA as crosses.
func pareto(s *study) (object, error) {
	if len(s.objectives) < 2 || len(s.rows) == 0 {
		return nil, nil
	}
	y, x := s.objectives[0].column, s.objectives[1].column
	if x == y {
		return nil, nil
	}
	used := append(append([]*results.Column{}, s.axes...), s.goals()...)
	traffic := s.traffic()
	used = append(used, traffic...)
	used = append(used, s.sources()...)
	if s.colour != nil {
		used = append(used, s.colour)
	}
	place := object{"x": s.quantity(x, numbers(x, s.rows)), "y": s.quantity(y, numbers(y, s.rows))}
	line := object{"mark": object{"type": "line", "color": "#12151c", "strokeWidth": 1.5}, "transform": list{object{"filter": "datum.on_frontier"}}, "encoding": object{"order": s.field(x, "quantitative")}}
	if len(traffic) > 0 {
		details := list{}
		for _, c := range traffic {
			details = append(details, s.field(c, "nominal"))
		}
		line["encoding"].(object)["detail"] = details
	}
	points := object{
		"mark":   object{"type": "point", "filled": true, "size": 34},
		"params": list{object{"name": "zoom", "select": "interval", "bind": "scales"}},
		"encoding": object{
			"color":   s.colourChannel(),
			"opacity": object{"condition": object{"test": "datum.on_frontier", "value": 1}, "value": 0.32},
			"shape":   s.shapes(),
			"size":    object{"condition": object{"test": "datum.on_frontier", "value": 90}, "value": 30},
			"tooltip": s.tooltips(slices.Concat(s.sources(), s.axes, s.goals())...),
		},
	}
	return object{
		"title": s.heading(s.subtitle("Pareto frontier")), "width": 640, "height": 420,
		"data": object{"values": s.records(s.rows, used...)}, "encoding": place, "layer": list{line, points},
	}, nil
}

// sources is the column that says where figures come from, where there are several; otherwise none.
func (s *study) sources() []*results.Column {
	c := s.table.Column(results.SourceColumn)
	if c == nil || len(s.distinct(c)) < 2 {
		return nil
	}
	return []*results.Column{c}
}

// shapes marks what misses a limit as a cross, and among several sources what was measured live as a diamond.
func (s *study) shapes() object {
	feasible := object{"test": "datum.feasible", "value": "circle"}
	for _, c := range s.sources() {
		live := object{"test": fmt.Sprintf("datum.feasible && datum[%q] === %q", s.keys[c], results.SourceLive), "value": "diamond"}
		return object{"condition": list{live, feasible}, "value": "cross"}
	}
	return object{"condition": feasible, "value": "cross"}
}

// traffic are the columns with a frontier for each value.
func (s *study) traffic() []*results.Column {
	var out []*results.Column
	for _, name := range s.By {
		if c := s.table.Column(name); c != nil {
			out = append(out, c)
		}
	}
	return out
}
