package vegalite

import (
	"slices"

	"github.com/servegrid/servegrid/results"
)

// timelines lays what happened over time at the report's points over each other, a plot a figure.
func timelines(s *study) (object, error) {
	var figures []results.TimelineFigure
	data, order := list{}, list{}
	for _, t := range s.Timelines {
		if t.Row < 0 || t.Row >= len(s.of) {
			continue
		}
		label := s.label(s.of[t.Row])
		for slices.Contains(order, any(label)) {
			label += "\u200b" // points that look alike must stay apart
		}
		order = append(order, label)
		for i, at := range t.AtSeconds {
			record := object{"point": label, "second": short(at)}
			for _, f := range t.Figures {
				if i < len(f.Values) && short(f.Values[i]) != nil {
					record[f.Name] = short(f.Values[i])
				}
			}
			data = append(data, record)
		}
		for _, f := range t.Figures {
			if !slices.ContainsFunc(figures, func(known results.TimelineFigure) bool { return known.Name == f.Name }) {
				figures = append(figures, f)
			}
		}
	}
	if len(figures) == 0 {
		return nil, nil
	}
	plots := list{}
	for _, f := range figures {
		heading := f.Title
		if f.Unit != "" {
			heading += " (" + f.Unit + ")"
		}
		plots = append(plots, object{
			"title": object{"text": heading, "subtitle": f.Note, "anchor": "start", "fontSize": 11}, "width": 420, "height": 110,
			"mark": object{"type": "line", "interpolate": "step-after", "strokeWidth": 1.5},
			"encoding": object{
				"x":     object{"field": "second", "type": "quantitative", "title": "seconds"},
				"y":     object{"field": f.Name, "type": "quantitative", "title": nil},
				"color": object{"field": "point", "type": "nominal", "sort": order, "title": nil, "scale": object{"range": append(slices.Clone(palette), "#6d28d9")}},
			},
		})
	}
	return object{"title": s.heading("Over time"), "data": object{"values": data}, "columns": 2, "concat": plots}, nil
}
