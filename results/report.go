package results

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
)

// ReportData is what a report shows.
type ReportData struct {
	// Title heads the page.
	Title string
	// Table holds the points: from [NewTable], or [ReadTable] for a file of any origin. Its commands, when it has any
	// (see [Table.AddCommands]), are shown with each point.
	Table *Table
	// Analysis says what the frontier optimises; infeasible points are crosses. Without objectives those of the
	// table's metadata count, then [DefaultObjectives]. Objectives that are no numeric column of the table are left
	// out of the report.
	Analysis
}

//go:embed report
var reportFiles embed.FS

// The report's style sheet and scripts, in the order in which the page needs them.
var (
	reportStyles  = []string{"report/page.css", "report/chart.css", "report/table.css", "report/print.css"}
	reportScripts = []string{
		"report/data.js", "report/dom.js", "report/timing.js", "report/scale.js", "report/color.js", "report/frontier.js", "report/chart.js",
		"report/legend.js", "report/details.js", "report/filter.js", "report/table.js", "report/multiples.js", "report/main.js",
	}
)

// WriteReport writes the report as one HTML file that opens offline. It holds no clock time, so equal data gives
// equal bytes. The error lists constraints on unknown columns.
func WriteReport(w io.Writer, d ReportData) error {
	payload, err := newReportPayload(d)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	data, err := json.Marshal(payload) // escapes <, > and &, so that no value can end the script element
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	styles, err := joinFiles(reportStyles)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	scripts, err := joinFiles(reportScripts)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	page, err := template.ParseFS(reportFiles, "report/page.html")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	err = page.Execute(w, struct {
		Title  string
		Style  template.CSS
		Script template.JS
		Data   template.JS
	}{d.Title, template.CSS(styles), template.JS(scripts), template.JS(data)})
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// PageStyle is the style sheet that the report shares with the other pages of the program.
func PageStyle() (string, error) { return joinFiles([]string{"report/page.css", "report/print.css"}) }

func joinFiles(names []string) (string, error) {
	var b strings.Builder
	for _, name := range names {
		content, err := reportFiles.ReadFile(name)
		if err != nil {
			return "", err
		}
		b.Write(content)
	}
	return b.String(), nil
}
