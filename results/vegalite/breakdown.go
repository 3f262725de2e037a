package vegalite

import (
	"slices"

	"github.com/servegrid/servegrid/results"
)

// mostBars bounds the bars of a breakdown.
const mostBars = 30

// timeParts are the parts of a request's time in their order, with the colours of the report.
var timeParts = []struct{ name, colour string }{
	{"queue", palette[1]}, {"prefill", palette[0]}, {"transfer", palette[3]}, {"decode", palette[2]}, {"stall", palette[4]},
}

// breakdown says where the time of requests goes at the points of the frontier. Files without the columns have none.
func breakdown(s *study) (object, error) {
	type part struct {
		column *results.Column
		at     int
	}
	var parts []part
	for i, p := range timeParts {
		if c := s.table.Column(p.name + "_time_share"); c != nil && c.Numeric() {
			parts = append(parts, part{c, i})
		}
	}
	rows := s.frontierRows(mostBars)
	if len(parts) < 2 || len(rows) == 0 {
		return nil, nil
	}
	limit := s.table.Column("limiting_resource")
	data, order := list{}, list{}
	for _, row := range rows {
		label := s.label(row)
		for slices.Contains(order, any(label)) {
			label += "\u200b" // points that look alike must stay apart
		}
		order = append(order, label)
		for _, p := range parts {
			v := value(p.column, row)
			if v == nil {
				continue
			}
			record := object{"point": label, "part": timeParts[p.at].name, "order": p.at, "share": v}
			if limit != nil && !limit.Null[row] {
				record["limiting_resource"] = limit.Text(row)
			}
			data = append(data, record)
		}
	}
	names, colours := []string{}, []string{}
	for _, p := range parts {
		names, colours = append(names, timeParts[p.at].name), append(colours, timeParts[p.at].colour)
	}
	return object{
		"title": s.heading(s.subtitle("Where the time of a request goes, at the points of the frontier")), "width": 480, "height": object{"step": 20},
		"data": object{"values": data}, "mark": "bar",
		"encoding": object{
			"y":     object{"field": "point", "type": "nominal", "sort": order, "title": nil},
			"x":     object{"field": "share", "type": "quantitative", "stack": "zero", "title": "share of the time", "axis": object{"format": "%"}},
			"color": object{"field": "part", "type": "nominal", "sort": names, "scale": object{"domain": names, "range": colours}, "title": nil},
			"order": object{"field": "order", "type": "quantitative"},
			"tooltip": list{
				object{"field": "point", "type": "nominal"}, object{"field": "part", "type": "nominal"}, object{"field": "share", "type": "quantitative", "format": ".1%"},
				object{"field": "limiting_resource", "type": "nominal", "title": "limited by"},
			},
		},
	}, nil
}

// frontierRows are the points of the frontier from the best in the first objective on, evenly thinned.
func (s *study) frontierRows(most int) []int {
	var rows []int
	for _, row := range s.rows {
		if s.frontier[row] {
			rows = append(rows, row)
		}
	}
	if len(s.objectives) > 0 {
		first := s.objectives[0]
		slices.SortStableFunc(rows, func(a, b int) int {
			x, y := asFloat(value(first.column, a)), asFloat(value(first.column, b))
			if first.Maximize {
				x, y = y, x
			}
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		})
	}
	if len(rows) <= most {
		return rows
	}
	out := make([]int, most)
	for i := range out {
		out[i] = rows[i*len(rows)/most]
	}
	return out
}
