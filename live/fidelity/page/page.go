// Package page shows a comparison of two runs as one HTML page that opens offline. Read page.go, then tables.go and charts.go.
package page

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"math"

	"github.com/servegrid/servegrid/live/fidelity"
	"github.com/servegrid/servegrid/results/htmlpage"
	"github.com/servegrid/servegrid/results/xyplot"
)

//go:embed body.html
var files embed.FS

// Write writes the page. It holds no clock time, so equal comparisons give equal bytes.
func Write(w io.Writer, c *fidelity.Comparison) error {
	plots, err := xyplot.HTML(charts(c))
	if err == nil {
		err = htmlpage.Write(w, htmlpage.Page{
			Title: "Fidelity", Subtitle: fmt.Sprintf("A: %s (%s) · B: %s (%s)", c.A.Name, c.A.Kind, c.B.Name, c.B.Kind),
			Files: files, Body: "body.html", Style: xyplot.Style(),
			Content: struct {
				Verdict  string
				Cautions []string
				Tiles    []htmlpage.Tile
				Tables   []htmlpage.Table
				Charts   template.HTML
			}{c.Verdict.Sentence, append(append([]string(nil), c.Verdict.Failures...), c.Verdict.Cautions...), tiles(c), tables(c), plots},
		})
	}
	if err != nil {
		return fmt.Errorf("fidelity page: %w", err)
	}
	return nil
}

func tiles(c *fidelity.Comparison) []htmlpage.Tile {
	verdict := "agree"
	if !c.Verdict.Agrees {
		verdict = "differ"
	}
	out := []htmlpage.Tile{{Label: "They", Figure: verdict, Note: fmt.Sprintf("%s pairs of requests, by %s", htmlpage.Whole(c.Pairs), c.Join)}}
	for i := range c.Deltas {
		d := &c.Deltas[i]
		switch change := d.MeanChange(); {
		case d.Metric == "arrival":
			out = append(out, htmlpage.Tile{Label: d.Title, Figure: htmlpage.Number(d.Absolute.P99), Unit: "ms apart, p99", Note: fmt.Sprintf("mean %s ms", htmlpage.Number(d.Absolute.Mean))})
		case d.Ratio != nil && !math.IsNaN(change):
			out = append(out, htmlpage.Tile{
				Label: d.Title, Figure: fmt.Sprintf("%+.2f", 100*change), Unit: "% in the mean",
				Note: fmt.Sprintf("%s in A, %s ms in B; half of the pairs within %s ms", htmlpage.Number(d.A.Mean), htmlpage.Number(d.B.Mean), htmlpage.Number(d.Absolute.P50)),
			})
		case d.Metric == "reuse":
			out = append(out, htmlpage.Tile{Label: d.Title, Figure: fmt.Sprintf("%+.2f", 100*(d.B.Mean-d.A.Mean)), Unit: "points in the mean", Note: fmt.Sprintf("%s %% in A, %s %% in B", htmlpage.Number(100*d.A.Mean), htmlpage.Number(100*d.B.Mean))})
		}
	}
	return out
}
