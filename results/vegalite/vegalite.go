// Package vegalite writes the charts of a report as Vega-Lite specifications: JSON that Jupyter, VS Code, Observable,
// Altair and vl2svg draw, with the data inside. The marks, colours and the choice of what is shown are the report's, so a
// chart can be restyled for a paper or a slide without a screenshot.
//
// Read vegalite.go for what there is, study.go for what is taken from the table, and a file a chart for the rest.
package vegalite

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/servegrid/servegrid/results"
)

// Schema is the schema that the specifications follow.
const Schema = "https://vega.github.io/schema/vega-lite/v5.json"

// Chart is a chart as a specification.
type Chart struct {
	// Name is what the chart is called in file names: pareto, parallel, heatmap, multiples, breakdown, timelines, cliffs.
	Name string
	// Spec is the specification, as indented JSON.
	Spec []byte
}

// object is a JSON object; its keys are written in order.
type object = map[string]any

// list is a JSON array.
type list = []any

// builders make the charts. One without anything to show returns nil.
var builders = []struct {
	name  string
	build func(*study) (object, error)
}{
	{"pareto", pareto}, {"parallel", parallel}, {"heatmap", heatmap}, {"multiples", multiples}, {"breakdown", breakdown},
	{"timelines", timelines}, {"cliffs", cliffs},
}

// Charts returns the charts of a report for which there is data, in the report's order. They hold no clock time, so equal
// data gives equal bytes. The error lists what the analysis names and the table lacks.
func Charts(d results.ReportData) ([]Chart, error) {
	s, err := newStudy(d)
	if err != nil {
		return nil, fmt.Errorf("Vega-Lite charts: %w", err)
	}
	var out []Chart
	for _, b := range builders {
		spec, err := b.build(s)
		if err != nil {
			return nil, fmt.Errorf("Vega-Lite chart %s: %w", b.name, err)
		}
		if spec == nil {
			continue
		}
		spec["$schema"] = Schema
		spec["config"] = object{"font": "sans-serif", "view": object{"stroke": nil}, "legend": object{"labelLimit": 300, "titleLimit": 400}, "axis": object{"labelLimit": 300}}
		var content bytes.Buffer
		encoder := json.NewEncoder(&content)
		encoder.SetEscapeHTML(false) // the files stand alone
		encoder.SetIndent("", " ")
		if err := encoder.Encode(spec); err != nil {
			return nil, fmt.Errorf("Vega-Lite chart %s: %w", b.name, err)
		}
		out = append(out, Chart{Name: b.name, Spec: content.Bytes()})
	}
	return out, nil
}

// heading is the title of a chart.
func (s *study) heading(subtitle string) object {
	return object{"text": s.Title, "subtitle": subtitle, "anchor": "start"}
}
