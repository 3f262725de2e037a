package vegalite

// multiples plots every varied axis against every objective: all points, and the medians of those that keep the SLA.
func multiples(s *study) (object, error) {
	if len(s.axes) == 0 || len(s.objectives) == 0 || len(s.rows) == 0 {
		return nil, nil
	}
	lines := list{}
	for _, g := range s.objectives {
		plots := list{}
		for _, axis := range s.axes {
			y := s.quantity(g.column, numbers(g.column, s.rows))
			y["title"] = nil
			x := s.ordinal(axis, false)
			x["axis"] = object{"labelLimit": 80}
			median := s.quantity(g.column, numbers(g.column, s.rows))
			median["aggregate"], median["title"] = "median", nil
			plots = append(plots, object{
				"width": 190, "height": 130, "encoding": object{"x": x},
				"layer": list{
					object{"mark": object{"type": "point", "filled": true, "size": 12, "color": palette[0]}, "encoding": object{
						"y": y, "opacity": object{"condition": object{"test": "datum.feasible", "value": 0.4}, "value": 0.12}, "tooltip": s.tooltips(append(s.axes, g.column)...),
					}},
					object{"mark": object{"type": "line", "color": "#12151c", "point": object{"color": "#12151c", "size": 25}}, "transform": list{object{"filter": "datum.feasible"}}, "encoding": object{"y": median}},
				},
			})
		}
		lines = append(lines, object{"title": object{"text": named(g.column), "anchor": "start", "fontSize": 11}, "hconcat": plots})
	}
	return object{
		"title": s.heading(s.subtitle("Axis by axis; the line joins the medians")),
		"data":  object{"values": s.records(s.rows, append(s.axes, s.goals()...)...)}, "vconcat": lines,
	}, nil
}
