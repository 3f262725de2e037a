package vegalite

import (
	"slices"
	"strings"

	"github.com/servegrid/servegrid/results"
)

// Bounds of the cliffs: axes, and curves along each.
const (
	mostCliffAxes   = 4
	mostCliffCurves = 24
)

// cliffs shows along each axis of numbers where the SLA is kept and where it is lost.
func cliffs(s *study) (object, error) {
	plots := list{}
	for _, axis := range s.axes {
		if !axis.Numeric() || len(plots) == mostCliffAxes {
			continue
		}
		found, err := s.Table.Cliffs(results.CliffSearch{Axis: axis.Name, Constraints: s.Constraints})
		if err != nil {
			continue // nothing is bounded, or the axis never varies alone: there is nothing to show
		}
		if plot := cliffPlot(axis, found); plot != nil {
			plots = append(plots, plot)
		}
	}
	if len(plots) == 0 {
		return nil, nil
	}
	return object{"title": s.heading(s.subtitle("Where the bounds are lost")), "concat": plots, "columns": 1}, nil
}

// cliffPlot has a line of marks for each curve that loses the SLA somewhere but not everywhere.
func cliffPlot(axis *results.Column, found []results.Cliff) object {
	data, curves := list{}, list{}
	for i := range found {
		c := &found[i]
		if c.FirstLost == nil || c.Edge != nil && c.Edge.Kept == nil || len(curves) == mostCliffCurves {
			continue
		}
		of := make([]string, len(c.Of))
		for k, column := range c.Of {
			of[k] = column.Name + " " + column.Value
		}
		label := strings.Join(of, " · ")
		if label == "" {
			label = "all points"
		}
		curves = append(curves, label)
		for _, p := range c.Points {
			outcome := "lost"
			if p.Kept {
				outcome = "kept"
			}
			data = append(data, object{"curve": label, "at": short(p.Value), "outcome": outcome, "runs": p.Runs})
		}
	}
	if len(curves) == 0 {
		return nil
	}
	var values []float64
	for _, record := range data {
		values = append(values, asFloat(record.(object)["at"]))
	}
	slices.Sort(values)
	return object{
		"width": 480, "height": object{"step": 20}, "data": object{"values": data}, "mark": object{"type": "point", "filled": true, "size": 70},
		"encoding": object{
			"x":       object{"field": "at", "type": "ordinal", "sort": slices.Compact(values), "title": named(axis), "axis": object{"labelAngle": 0}},
			"y":       object{"field": "curve", "type": "nominal", "sort": curves, "title": nil},
			"color":   object{"field": "outcome", "type": "nominal", "title": "the bounds are", "scale": object{"domain": list{"kept", "lost"}, "range": list{palette[2], palette[4]}}},
			"shape":   object{"field": "outcome", "type": "nominal", "title": "the bounds are", "scale": object{"domain": list{"kept", "lost"}, "range": list{"circle", "cross"}}},
			"tooltip": list{object{"field": "curve", "type": "nominal"}, object{"field": "at", "type": "quantitative", "title": named(axis)}, object{"field": "outcome", "type": "nominal"}, object{"field": "runs", "type": "quantitative"}},
		},
	}
}
