package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/servegrid/servegrid/live/fidelity/calibrate"
)

// calibrationLines are a calibration as the terminal shows it: the terms, the errors before and after, and what goes into a spec.
func calibrationLines(r *calibrate.Result) []string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"term", "before", "after", "±", ""})
	for _, t := range r.Terms {
		exactness := ""
		if t.Left == "" {
			exactness = fmt.Sprintf("%.2g", t.StandardError)
		}
		out.AppendRow(table.Row{t.Key, yamlNumber(t.Before), yamlNumber(t.After), exactness, whyLeft(t)})
	}
	out.SetColumnConfigs(rightAligned(2, 4))
	lines := []string{
		fmt.Sprintf("Fitted to %s, %d held out, in %s", counted(r.Fitted.Requests, "request"), r.HeldOut.Requests, counted(r.Simulations, "simulation")),
		out.Render(), errorsTable(r),
	}
	if r.LeftOut > 0 {
		lines = append(lines, fmt.Sprintf("Note: %s of the run did not complete or are not in the workload, and were left out", counted(r.LeftOut, "request")))
	}
	if r.Unordered() {
		lines = append(lines, fmt.Sprintf("Note: %s started within 1 ms of another one, and the run does not say which of them came to which worker, and when: do not use these terms, which make up for that. "+
			"Calibrate with requests that start apart, or with one worker", counted(r.Together, "request")))
	}
	for _, latency := range r.NoNearer() {
		lines = append(lines, fmt.Sprintf("Note: the %s of requests that were held out is no nearer to the run with these terms than before: do not use them. Calibrate at a lower load, with requests that do not start at the same moment", latency))
	}
	return append(lines, "For the spec:", timingYAML(r))
}

func whyLeft(t calibrate.Term) string {
	if t.Left == "" {
		return ""
	}
	return "left: " + t.Left
}

// errorsTable shows how far simulation and run are apart, in the mean and request by request.
func errorsTable(r *calibrate.Result) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"", "measured", "simulated before", "after", "mean off by, before", "after", "requests off by, before", "after"})
	for _, part := range []struct {
		name string
		of   calibrate.Part
	}{{"fitted", r.Fitted}, {"held out", r.HeldOut}} {
		for _, latency := range []struct {
			name string
			of   *calibrate.Errors
		}{{"TTFT", part.of.TTFT}, {"ITL", part.of.ITL}} {
			e := latency.of
			if e == nil {
				continue
			}
			out.AppendRow(table.Row{
				fmt.Sprintf("%s, %s, ms", latency.name, part.name), grouped(e.MeasuredMs), grouped(e.Before.SimulatedMs), grouped(e.After.SimulatedMs),
				offBy(e.Before.Bias), offBy(e.After.Bias), shareOf(e.Before.MeanAbsolute), shareOf(e.After.MeanAbsolute),
			})
		}
	}
	out.SetColumnConfigs(rightAligned(2, 8))
	return out.Render()
}

func offBy(share float64) string   { return fmt.Sprintf("%+.2f %%", 100*share) }
func shareOf(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }

// timingYAML is the part of a spec with the terms that are not what they are without any.
func timingYAML(r *calibrate.Result) string {
	var parts []string
	for _, t := range r.Terms {
		if neutral := map[bool]float64{true: 1}[strings.HasSuffix(t.Key, "_scale")]; t.After != neutral || t.Before != neutral {
			parts = append(parts, t.Key+": "+yamlNumber(t.After))
		}
	}
	if len(parts) == 0 {
		return "timing: {} # every term stays as it is"
	}
	return "timing: {" + strings.Join(parts, ", ") + "}"
}

func yamlNumber(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
