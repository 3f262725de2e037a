package results

import "strings"

// reportCliff is an axis with the curves along it that lose the SLA.
type reportCliff struct {
	Axis  string            `json:"axis"`
	Lines []reportCliffLine `json:"lines"`
	// Kept and Lost count the curves that keep or lose the SLA at all values, More those that are not listed.
	Kept int `json:"kept"`
	Lost int `json:"lost"`
	More int `json:"more"`
}

// reportCliffLine is a curve: which one, and what happens.
type reportCliffLine struct {
	Of   string `json:"of"`
	Text string `json:"text"`
}

// mostCliffLines bounds the curves that a report lists for an axis.
const mostCliffLines = 8

// reportCliffs looks for cliffs along every axis of numbers; axes along which nothing is lost are left out.
func reportCliffs(d ReportData) []reportCliff {
	out := []reportCliff{}
	for _, c := range d.Table.Columns {
		if c.Role != RoleAxis || !c.Numeric() || c.constant() {
			continue
		}
		cliffs, err := d.Table.Cliffs(CliffSearch{Axis: c.Name, Constraints: d.Constraints})
		if err != nil {
			continue // nothing is bounded, or the axis never varies alone: there is nothing to show
		}
		axis := reportCliff{Axis: c.Name, Lines: []reportCliffLine{}}
		for i := range cliffs {
			axis.add(&cliffs[i])
		}
		if len(axis.Lines) > 0 {
			out = append(out, axis)
		}
	}
	return out
}

func (r *reportCliff) add(c *Cliff) {
	switch {
	case c.FirstLost == nil:
		r.Kept++
	case c.Edge != nil && c.Edge.Kept == nil:
		r.Lost++
	case len(r.Lines) == mostCliffLines:
		r.More++
	default:
		of := make([]string, len(c.Of))
		for i, column := range c.Of {
			of[i] = column.Name + " " + column.Value
		}
		r.Lines = append(r.Lines, reportCliffLine{Of: strings.Join(of, " · "), Text: c.Text(r.Axis)})
	}
}
