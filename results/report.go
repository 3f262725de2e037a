package results

import (
	"embed"
	"fmt"
	"io"

	"github.com/servegrid/servegrid/results/htmlpage"
)

// ReportData is what a report shows.
type ReportData struct {
	// Title heads the page.
	Title string
	// Table holds the points: from [NewTable], or [ReadTable] for a file of any origin. Its commands, when it has any
	// (see [Table.AddCommands]), are shown with each point.
	Table *Table
	// Own is the analysis that the results state themselves, from which the page's command lines differ; nil when it is
	// Analysis.
	Own *Analysis
	// Sources name the results in the command lines that the page shows; none means results.parquet.
	Sources []string
	// Analysis says what the frontier optimises; infeasible points are crosses. Without objectives those of the
	// table's metadata count, then [DefaultObjectives]. Objectives that are no numeric column of the table are left
	// out of the report.
	Analysis
	// Timelines say what happened over time at some points, at most [MostReportTimelines].
	Timelines []ReportTimeline
}

//go:embed report
var reportFiles embed.FS

// The report's style sheet and scripts, in the order in which the page needs them.
var (
	reportStyles  = []string{"report/chart.css", "report/limits.css", "report/table.css", "report/charts.css"}
	reportScripts = []string{
		"report/data.js", "report/selection.js", "report/timing.js", "report/color.js", "report/frontier.js", "report/bounds.js", "report/chart.js",
		"report/brush.js", "report/legend.js", "report/details.js", "report/filter.js", "report/table.js", "report/multiples.js", "report/limits.js",
		"report/parallelaxis.js", "report/parallel.js", "report/heatmap.js", "report/breakdown.js", "report/timelines.js", "report/linked.js",
		"report/sections.js", "report/link.js", "report/main.js",
	}
)

// WriteReport writes the report as one HTML file that opens offline. It holds no clock time, so equal data gives
// equal bytes. The error lists constraints on unknown columns.
func WriteReport(w io.Writer, d ReportData) error {
	payload, err := newReportPayload(d)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	err = htmlpage.Write(w, htmlpage.Page{
		Title: d.Title, Files: reportFiles, Body: "report/body.html", Styles: reportStyles, Scripts: reportScripts, Data: payload,
	})
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
