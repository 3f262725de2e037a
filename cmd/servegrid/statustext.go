package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/servegrid/servegrid/sweep/telemetry"
)

// text shows a look: one folder in full, several as a table, and the queue.
func (v statusView) text(now time.Time) string {
	var parts []string
	switch {
	case len(v.Folders) == 1:
		parts = append(parts, v.Folders[0].text(now))
	case len(v.Folders) > 1:
		parts = append(parts, v.foldersText(now)+"\n")
	}
	if len(v.Warnings) > 0 {
		parts = append(parts, "warning: "+strings.Join(v.Warnings, "\nwarning: ")+"\n")
	}
	if v.Queue != nil {
		parts = append(parts, v.Queue.text(now))
	}
	return strings.Join(parts, "\n")
}

func (v statusView) foldersText(now time.Time) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"folder", "state", "points", "ok", "failed", "left", "running", "per second", "time left", "last point"})
	sum := telemetry.PointCounts{}
	rate := 0.0
	missing := 0
	for _, f := range v.Folders {
		if f.State == stateMissing {
			if missing++; missing <= maxNamed {
				out.AppendRow(table.Row{folderCell(f.Dir), f.State})
			}
			continue
		}
		s := f.Status
		if s == nil {
			row := table.Row{folderCell(f.Dir), f.State, "", "", "", "", "", "", "", age(now, f.Journal.Written)}
			if f.Journal.Results != nil {
				row[3], row[4] = *f.Journal.Results-*f.Journal.Failed, *f.Journal.Failed
			}
			out.AppendRow(row)
			continue
		}
		p := s.Points
		row := table.Row{folderCell(f.Dir), f.State, p.Total, p.OK, p.Failed, p.Left, "", "", "", lastPoint(now, s)}
		if f.State == string(telemetry.StateRunning) {
			row[6], row[7], row[8] = outOrRunning(s), figure(s.PointsPerSecond), timeLeft(s)
			rate += s.PointsPerSecond
		}
		out.AppendRow(row)
		sum.Total, sum.OK, sum.Failed, sum.Left, sum.Running = sum.Total+p.Total, sum.OK+p.OK, sum.Failed+p.Failed, sum.Left+p.Left, sum.Running+running(f)
	}
	state := ""
	if missing > 0 {
		state = plural(missing, "shard") + " missing"
	}
	if v.mixed || v.overlap {
		if state != "" {
			out.AppendFooter(table.Row{"all", state})
		}
		return out.Render()
	}
	footer := table.Row{"all", state, sum.Total, sum.OK, sum.Failed, sum.Left, "", "", "", ""}
	if sum.Running > 0 {
		footer[6] = sum.Running
	}
	if rate > 0 {
		footer[7] = figure(rate)
		footer[8] = (time.Duration(float64(sum.Left)/rate) * time.Second).String()
	}
	out.AppendFooter(footer)
	return out.Render()
}

// folderCell is a folder as a table shows it: what tells it from its neighbours is at its end.
func folderCell(dir string) string {
	runes := []rune(visible(dir))
	if more := len(runes) - maxCellWidth; more > 0 {
		return "…" + string(runes[more+1:])
	}
	return string(runes)
}

// text shows a folder in full.
func (f folderView) text(now time.Time) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	name, s := f.Dir, f.Status
	if s != nil && s.Sweep != "" {
		name = fmt.Sprintf("%s (%s)", f.Dir, s.Sweep)
	}
	line("sweep", "%s", name)
	line("state", "%s", f.stateText(now))
	if s != nil {
		line("points", "%s", f.pointsText())
		for _, reason := range slices.Sorted(maps.Keys(s.Failures)) {
			line("  failed", "%s: %d", reason, s.Failures[reason])
		}
		if f.State == string(telemetry.StateRunning) {
			line("speed", "%s points a second, %s", figure(s.PointsPerSecond), leftText(s))
			if s.Loading != "" {
				line("loading", "%s", s.Loading)
			}
		}
		line("last point", "%s", lastPoint(now, s))
		if s.Best != nil {
			line("best", "%s %s: %s", s.Best.Metric, figure(s.Best.Value), bestText(s.Best))
		}
		if s.Metrics != "" && f.State == string(telemetry.StateRunning) {
			line("metrics", "%s", s.Metrics)
		}
	}
	line("journal", "%s", f.Journal.text(now))
	return b.String()
}

func (f folderView) stateText(now time.Time) string {
	text := f.State
	if f.PID != 0 {
		text += fmt.Sprintf(", process %d", f.PID)
	}
	s := f.Status
	if s == nil {
		return text
	}
	if f.State == string(telemetry.StateRunning) {
		if s.Host != "" {
			text += " on " + s.Host
		}
		return text + ", started " + age(now, s.Started)
	}
	switch f.State {
	case stateKilled:
		text += ": it ended without a word; the same command goes on"
	case string(telemetry.StateIncomplete):
		text += ": points are missing; servegrid sweep with its spec and --output simulates them there"
	case string(telemetry.StateInterrupted):
		text += ": the same command goes on"
	case string(telemetry.StateStopped):
		text += ": it ended with an error; the same command goes on once that is mended"
	}
	return text + ", last seen " + age(now, s.Updated)
}

// running counts the points that a sweep simulates on its machine at this moment. What was handed to a queue may wait there.
func running(f folderView) int {
	if f.State != string(telemetry.StateRunning) || f.Status == nil || f.Status.Queue != "" {
		return 0
	}
	return f.Status.Points.Running
}

// outOrRunning says how many points run, or are out when there is a queue.
func outOrRunning(s *telemetry.Status) string {
	if s.Queue != "" {
		return fmt.Sprintf("%d out", s.Points.Running)
	}
	return fmt.Sprint(s.Points.Running)
}

func (f folderView) pointsText() string {
	p := f.Status.Points
	parts := []string{fmt.Sprintf("%d ok", p.OK), fmt.Sprintf("%d failed", p.Failed)}
	for _, more := range []struct {
		n    int
		what string
	}{{p.Skipped, "skipped"}, {p.Stopped, "stopped"}, {p.Left, "left"}} {
		if more.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", more.n, more.what))
		}
	}
	text := fmt.Sprintf("%d: %s", p.Total, strings.Join(parts, ", "))
	switch n := running(f); {
	case n > 0:
		text += fmt.Sprintf(", of which %d run", n)
	case f.State == string(telemetry.StateRunning) && p.Running > 0:
		text += fmt.Sprintf(", of which %d are out in the queue", p.Running)
	}
	if n := f.Status.MergedFolders; n > 0 {
		text += "; from " + plural(n, "folder")
	} else if p.Reused > 0 {
		text += fmt.Sprintf("; %d had a result before", p.Reused)
	}
	if p.Shortened > 0 {
		text += fmt.Sprintf("; %d more on a part of the workload", p.Shortened)
	}
	return text
}

func leftText(s *telemetry.Status) string {
	if t := timeLeft(s); t != "" {
		return t + " left"
	}
	return "time left not known yet"
}

func timeLeft(s *telemetry.Status) string {
	if s.ETASeconds == nil {
		return ""
	}
	return time.Duration(*s.ETASeconds * float64(time.Second)).Round(time.Second).String()
}

func lastPoint(now time.Time, s *telemetry.Status) string {
	if s.LastPoint == nil {
		return "none yet"
	}
	return age(now, *s.LastPoint)
}

func bestText(b *telemetry.BestPoint) string {
	var parts []string
	for _, column := range slices.Sorted(maps.Keys(b.Axes)) {
		parts = append(parts, fmt.Sprintf("%s=%s", cellText(column), cellText(fmt.Sprint(b.Axes[column]))))
	}
	return strings.Join(append(parts, fmt.Sprintf("(point %d)", b.Index)), " ")
}

func (j journalView) text(now time.Time) string {
	parts := []string{bytesText(j.Bytes), "written " + age(now, j.Written)}
	if j.Results != nil {
		parts = append([]string{plural(*j.Results, "result")}, parts...)
	} else {
		parts = append(parts, "too long to be read here")
	}
	switch {
	case j.Damaged > 0:
		parts = append(parts, plural(j.Damaged, "unreadable line"))
	case j.Results != nil:
		parts = append(parts, "in order")
	}
	if j.OtherVersions > 0 {
		parts = append(parts, fmt.Sprintf("%d of another simulator version", j.OtherVersions))
	}
	return strings.Join(parts, ", ")
}

// age says how long ago something was.
func age(now, then time.Time) string {
	d := now.Sub(then)
	switch {
	case d < time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

// bytesText is a size in the largest unit that leaves a figure of 1 or more.
func bytesText(n int64) string {
	if n < 1000 {
		return plural(int(n), "byte")
	}
	v, units := float64(n), []string{"bytes", "kB", "MB", "GB", "TB"}
	for v >= 1000 && len(units) > 1 {
		v, units = v/1000, units[1:]
	}
	return figure(v) + " " + units[0]
}
