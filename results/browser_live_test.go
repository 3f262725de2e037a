package results

import (
	"slices"
	"testing"
)

// TestReportTellsLivePointsApart checks marks, legend and hover text of a sweep and a live run that lies on the frontier too, and
// that the chart for other programs tells them apart.
func TestReportTellsLivePointsApart(t *testing.T) {
	rows := madeUpRows(1)
	sweep := NewTable(rows, Metadata{})
	if err := MarkFrontier(sweep, sweep.Analysis()); err != nil {
		t.Fatal(err)
	}
	best := rows[slices.Index(sweep.Column(FrontierColumn).Bools, true)]
	measured := liveRow(best, false)
	for _, o := range DefaultObjectives() { // somewhere else in the plot
		measured.Metrics[metricPlaces[o.Name]] *= 1.5
	}
	both, err := Combine([]Named{{"sweep", NewTable(rows, Metadata{})}, {"live", NewTable([]Row{measured}, Metadata{})}})
	if err != nil {
		t.Fatal(err)
	}
	b := openReport(t, ReportData{Title: "Live", Table: both, Sources: []string{"runs/sweep", "runs/live"}})
	ringed := map[int]bool{}
	for _, m := range frontierMarks(b) {
		ringed[m.Row] = m.Hole
	}
	if len(ringed) < 2 || !ringed[len(rows)] {
		t.Fatalf("marks in a ring: %v; the live row is %d", ringed, len(rows))
	}
	for row, ring := range ringed {
		if ring != (row == len(rows)) {
			t.Errorf("row %d: in a ring is %v", row, ring)
		}
	}
	expectIn(t, "the legend", textOf(b, "#legend"), "live: measured at an endpoint")
	_, _, tip := hoverOver(b, func(row int) bool { return row == len(rows) })
	expectIn(t, "the live point", tip, "live, measured at an endpoint")
}
