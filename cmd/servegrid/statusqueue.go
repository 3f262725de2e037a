package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/servegrid/servegrid/sweep/queue"
)

// queueView is a queue as status shows it.
type queueView struct {
	Namespace string `json:"namespace"`
	// Versions has a simulator version for which points wait or workers are there.
	Versions []versionView `json:"versions"`
	Sweeps   []sweepView   `json:"sweeps"`
	Workers  []workerView  `json:"workers"`
	Streams  []streamView  `json:"streams"`
	// Warnings are sentences about what somebody should look at.
	Warnings []string `json:"warnings,omitempty"`
}

type versionView struct {
	Simulator   string `json:"simulator"`
	Waiting     int64  `json:"waiting"`
	InProgress  int64  `json:"in_progress"`
	Redelivered int64  `json:"redelivered"`
	Workers     int    `json:"workers"`
}

type sweepView struct {
	Sweep     string `json:"sweep"`
	Simulator string `json:"simulator,omitempty"`
	// Points wait or are in progress; Parts wait for the coordinator.
	Points int64 `json:"points"`
	Parts  int64 `json:"parts"`
}

type workerView struct {
	Host      string    `json:"host"`
	PID       int       `json:"pid"`
	Jobs      int       `json:"jobs"`
	Simulator string    `json:"simulator"`
	Started   time.Time `json:"started"`
	Seen      time.Time `json:"seen"`
	Points    int       `json:"points"`
	// Seconds is what a point took lately.
	Seconds float64 `json:"seconds_per_point"`
}

type streamView struct {
	Stream      string `json:"stream"`
	Messages    int64  `json:"messages"`
	MaxMessages int64  `json:"max_messages,omitempty"`
	Bytes       int64  `json:"bytes"`
	MaxBytes    int64  `json:"max_bytes,omitempty"`
}

// nearlyFull is the share of a stream's limit from which on there is a warning.
const nearlyFull = 0.8

func lookAtQueue(ctx context.Context, c *queue.Connection) (*queueView, error) {
	d, err := c.Describe(ctx)
	if err != nil {
		return nil, err
	}
	return newQueueView(c.Namespace(), d), nil
}

func newQueueView(namespace string, d queue.Description) *queueView {
	v := &queueView{Namespace: namespace, Versions: versionsOf(d), Sweeps: []sweepView{}, Workers: []workerView{}, Streams: []streamView{}}
	for _, s := range d.Sweeps {
		v.Sweeps = append(v.Sweeps, sweepView{s.Sweep, s.Version, s.Points, s.Parts})
	}
	for _, w := range d.There {
		v.Workers = append(v.Workers, workerView(w))
	}
	for _, s := range d.Streams {
		v.Streams = append(v.Streams, streamView{s.Kind, s.Messages, max(s.MaxMessages, 0), s.Bytes, max(s.MaxBytes, 0)})
	}
	v.warn()
	return v
}

// versionsOf puts what waits for a version and who is of it together.
func versionsOf(d queue.Description) []versionView {
	byVersion := map[string]*versionView{}
	of := func(version string) *versionView {
		if byVersion[version] == nil {
			byVersion[version] = &versionView{Simulator: version}
		}
		return byVersion[version]
	}
	for _, c := range d.Consumers {
		v := of(c.Version)
		v.Waiting, v.InProgress, v.Redelivered = c.Waiting, c.InProgress, c.Redelivered
	}
	for version, n := range d.Workers {
		of(version).Workers = n
	}
	for _, s := range d.Sweeps {
		if s.Version != "" && byVersion[s.Version] == nil { // no worker of this version was ever there
			of(s.Version).Waiting = s.Points
		}
	}
	out := []versionView{}
	for _, version := range slices.Sorted(maps.Keys(byVersion)) {
		out = append(out, *byVersion[version])
	}
	return out
}

func (v *queueView) warn() {
	warn := func(format string, args ...any) { v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...)) }
	if len(v.Streams) == 0 {
		warn("nothing is in this namespace: no sweep and no worker has used it yet; is its name right?")
	}
	var missed []string
	for _, s := range v.Versions {
		if s.Workers == 0 && s.Waiting+s.InProgress > 0 {
			missed = append(missed, s.Simulator)
			warn("%s of simulator version %s, but no worker of that version is there; start some, or sweep with another servegrid", plural(int(s.Waiting+s.InProgress), "point"), s.Simulator)
		}
	}
	for _, s := range v.Versions {
		if s.Workers > 0 && s.Waiting+s.InProgress == 0 && len(missed) > 0 {
			warn("%s of simulator version %s with nothing to do, while points wait for version %s", plural(s.Workers, "worker"), s.Simulator, strings.Join(missed, ", "))
		}
	}
	for _, s := range v.Streams {
		if s.MaxBytes > 0 && float64(s.Bytes) >= nearlyFull*float64(s.MaxBytes) {
			warn("the stream of %s holds %s of at most %s", s.Stream, bytesText(s.Bytes), bytesText(s.MaxBytes))
		}
		if s.MaxMessages > 0 && float64(s.Messages) >= nearlyFull*float64(s.MaxMessages) {
			warn("the stream of %s holds %d messages of at most %d", s.Stream, s.Messages, s.MaxMessages)
		}
	}
}

// maxShownWorkers bounds the workers in the text; JSON has all that were asked.
const maxShownWorkers = 20

func (v *queueView) text(now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "queue       %s\n", v.Namespace)
	show := func(title string, header table.Row, rows []table.Row) {
		if len(rows) == 0 {
			fmt.Fprintf(&b, "%-11s none\n", title)
			return
		}
		out := newTableWriter()
		out.SetTitle(title)
		out.AppendHeader(header)
		out.AppendRows(rows)
		fmt.Fprintln(&b, out.Render())
	}
	var rows []table.Row
	for _, s := range v.Versions {
		rows = append(rows, table.Row{cellText(s.Simulator), s.Waiting, s.InProgress, s.Redelivered, s.Workers})
	}
	show("versions", table.Row{"simulator", "waiting", "in progress", "redelivered", "workers"}, rows)
	rows = nil
	for _, s := range v.Sweeps {
		rows = append(rows, table.Row{cellText(s.Sweep), cellText(s.Simulator), s.Points, s.Parts})
	}
	show("sweeps", table.Row{"sweep", "simulator", "points", "parts not taken"}, rows)
	rows = nil
	for _, w := range v.Workers[:min(len(v.Workers), maxShownWorkers)] {
		rows = append(rows, table.Row{
			cellText(w.Host), w.PID, cellText(w.Simulator), w.Jobs, w.Points, fmt.Sprintf("%s s", figure(w.Seconds)), age(now, w.Started), age(now, w.Seen),
		})
	}
	show("workers", table.Row{"host", "process", "simulator", "jobs", "points done", "a point", "started", "seen"}, rows)
	if more := len(v.Workers) - maxShownWorkers; more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	rows = nil
	for _, s := range v.Streams {
		limit := "none"
		if s.MaxBytes > 0 {
			limit = bytesText(s.MaxBytes)
		}
		rows = append(rows, table.Row{s.Stream, s.Messages, bytesText(s.Bytes), limit})
	}
	show("streams", table.Row{"stream", "messages", "size", "limit"}, rows)
	for _, w := range v.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}
