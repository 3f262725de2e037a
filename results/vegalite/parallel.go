package vegalite

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/servegrid/servegrid/results"
)

// Bounds of the parallel coordinates, which hold a value for each point and axis.
const (
	mostLines     = 2000
	mostPositions = 9
	spacedValues  = 16
)

// parallel draws a line a point through vertical axes: the varied axes, then what is optimised and bounded.
func parallel(s *study) (object, error) {
	columns := s.parallelColumns()
	if len(columns) < 2 || len(s.rows) == 0 {
		return nil, nil
	}
	rows := s.rows
	if len(rows) > mostLines {
		rows = make([]int, mostLines)
		for i := range rows {
			rows[i] = s.rows[i*len(s.rows)/mostLines]
		}
	}
	used := columns
	if s.colour != nil && !slices.Contains(columns, s.colour) {
		used = append(slices.Clone(columns), s.colour)
	}
	lines, ticks, fold, names := s.records(rows, used...), list{}, []string{}, object{}
	for i, c := range columns {
		axis, at := fmt.Sprintf("axis %d", i), s.position(c)
		fold, names[axis] = append(fold, axis), named(c)
		for k, row := range rows {
			if place := at.of(value(c, row)); !math.IsNaN(place) {
				lines[k].(object)[axis] = short(place)
			}
		}
		for _, t := range at.ticks() {
			ticks = append(ticks, object{"axis": axis, "position": short(at.of(t)), "text": fmt.Sprint(t)})
		}
	}
	labels, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	x := object{"field": "axis", "type": "nominal", "sort": fold, "title": nil, "axis": object{"labelExpr": string(labels) + "[datum.value]", "labelAngle": 0, "orient": "top", "domain": false, "ticks": false, "grid": true, "labelOverlap": false, "labelLimit": 112, "labelFontSize": 9}}
	y := object{"field": "position", "type": "quantitative", "axis": nil}
	return object{
		"title": s.heading(s.subtitle("Parallel coordinates; bold lines are on the frontier")), "width": 120 * len(columns), "height": 320,
		"layer": list{
			object{
				"data":      object{"values": lines},
				"transform": list{object{"window": list{object{"op": "row_number", "as": "line"}}}, object{"fold": fold, "as": list{"axis", "position"}}, object{"filter": "isValid(datum.position)"}},
				"mark":      object{"type": "line", "interpolate": "linear"},
				"encoding": object{
					"x": x, "y": y, "color": s.lineColour(), "detail": object{"field": "line", "type": "nominal"},
					"opacity":     object{"condition": list{object{"test": "datum.on_frontier", "value": 0.95}, object{"test": "datum.feasible", "value": 0.25}}, "value": 0.07},
					"strokeWidth": object{"condition": object{"test": "datum.on_frontier", "value": 2}, "value": 1},
					"tooltip":     s.tooltips(used...),
				},
			},
			object{
				"data": object{"values": ticks}, "mark": object{"type": "text", "align": "right", "dx": -5, "fontSize": 10, "stroke": "white", "strokeWidth": 3, "strokeJoin": "round"},
				"encoding": object{"x": x, "y": y, "text": object{"field": "text", "type": "nominal"}},
			},
			object{
				"data": object{"values": ticks}, "mark": object{"type": "text", "align": "right", "dx": -5, "fontSize": 10},
				"encoding": object{"x": x, "y": y, "text": object{"field": "text", "type": "nominal"}},
			},
		},
	}, nil
}

// lineColour is that of the points, with lines in the legend.
func (s *study) lineColour() object {
	channel := s.colourChannel()
	delete(channel, "legend")
	return channel
}

func (s *study) parallelColumns() []*results.Column {
	figures := s.goals()
	for _, c := range s.Constraints {
		figures = append(figures, s.table.Column(c.Column))
	}
	columns := slices.Clone(s.axes)
	if room := mostPositions - min(4, len(figures)); len(columns) > room {
		columns = columns[:room]
	}
	for _, c := range figures {
		if c != nil && c.Numeric() && !slices.Contains(columns, c) && len(s.distinct(c)) > 1 && len(columns) < mostPositions {
			columns = append(columns, c)
		}
	}
	return columns
}

// position maps the values of a column to a vertical axis, from 0 to 1.
type position struct {
	values    list
	spaced    bool
	low, high float64
	log       bool
}

// position puts the few values of a setting, and words, at even distances.
func (s *study) position(c *results.Column) position {
	p := position{values: s.distinct(c)}
	p.spaced = !c.Numeric() || c.Role != results.RoleMetric && len(p.values) <= spacedValues
	if known := numbers(c, s.rows); !p.spaced && len(known) > 0 {
		p.low, p.high, p.log = slices.Min(known), slices.Max(known), spansDecades(known)
	}
	return p
}

func (p position) of(v any) float64 {
	if v == nil {
		return math.NaN()
	}
	if p.spaced {
		if len(p.values) < 2 {
			return 0.5
		}
		return float64(slices.Index(p.values, v)) / float64(len(p.values)-1)
	}
	at, low, high := asFloat(v), p.low, p.high
	if p.log {
		at, low, high = math.Log(at), math.Log(low), math.Log(high)
	}
	if high == low {
		return 0.5
	}
	return (at - low) / (high - low)
}

// ticks are the values written beside the axis.
func (p position) ticks() list {
	if !p.spaced {
		return list{round(p.low), round(p.high)}
	}
	every := (len(p.values) + spacedValues - 1) / spacedValues
	out := list{}
	for i := 0; i < len(p.values); i += max(1, every) {
		out = append(out, p.values[i])
	}
	return out
}

// round keeps three digits.
func round(v float64) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))))
	if r := math.Round(v*scale) / scale; !math.IsNaN(r) && !math.IsInf(r, 0) {
		return r
	}
	return v
}
