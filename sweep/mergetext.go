package sweep

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// differences lists where two results differ.
func differences(a, b *result) []Difference {
	var out []Difference
	differ := func(column, x, y string) {
		if x != y {
			out = append(out, Difference{column, [2]string{x, y}})
		}
	}
	differ("status", string(a.Status), string(b.Status))
	differ("reason", a.Reason, b.Reason)
	differ("workload_digest", a.WorkloadDigest, b.WorkloadDigest)
	if a.Status != b.Status {
		differ("error", a.Error, b.Error)
		return out
	}
	if a.Status == results.StatusStopped {
		differ("lost", a.Lost.String(), b.Lost.String())
	}
	for i, name := range metricNames() {
		if a.Status == results.StatusOK {
			differ(name, figureText(a.Metrics[i]), figureText(b.Metrics[i]))
		}
	}
	return out
}

// figureText writes a figure so that no two read the same.
func figureText(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Error names the conflicts, with the columns and both values of each.
func (e *ConflictError) Error() string {
	var b strings.Builder
	verb, points := "have", "points"
	if e.Total == 1 {
		verb, points = "has", "point"
	}
	fmt.Fprintf(&b, "%d %s %s two different results, so nothing is merged; leave out the folder whose machine or files are wrong, or simulate its points again with --retry all:",
		e.Total, points, verb)
	for _, c := range e.Conflicts {
		fmt.Fprintf(&b, "\n  %s%s, in %s and in %s:", c.ID, axesText(c.Axes), c.Folders[0], c.Folders[1])
		for i, d := range c.Differences {
			if i == maxDifferences {
				fmt.Fprintf(&b, "\n    and %d more columns", len(c.Differences)-i)
				break
			}
			fmt.Fprintf(&b, "\n    %s: %s and %s", d.Column, orNone(d.Values[0]), orNone(d.Values[1]))
		}
	}
	if more := e.Total - len(e.Conflicts); more > 0 {
		fmt.Fprintf(&b, "\n  and %d more", more)
	}
	return b.String()
}

func axesText(axes []gridspec.AxisValue) string {
	if len(axes) == 0 {
		return ""
	}
	parts := make([]string, len(axes))
	for i, a := range axes {
		parts[i] = a.Column + "=" + a.Value.String()
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
