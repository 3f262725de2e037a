package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/tracereport"
	"github.com/servegrid/servegrid/simcore/workload"
)

// traceStatsFlags say what to measure and where it goes.
type traceStatsFlags struct {
	in     traceInput
	caches []int
	rates  workload.ServiceRates
	html   string
	force  bool
	json   bool
}

func newTraceStats(st *state) *cobra.Command {
	var f traceStatsFlags
	cmd := &cobra.Command{
		Use:   "stats TRACE...",
		Short: "Show lengths, arrivals, concurrency, reuse and sessions of a trace",
		Long: `stats measures a trace without simulating it: how long prompts and answers are, when sessions start, how many requests
and tokens are in flight, what part of the prompts a prefix cache could reuse, without a limit and by its size, the gaps
between turns, and subagents. Several files are one trace.

How long a request takes is what the trace states; where it states nothing, --prefill-rate and --decode-rate give it.
Reuse counts full blocks of the trace's own size whose whole prefix an earlier request had.`,
		Args: atLeastOne("TRACE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(checkFinite(cmd.Flags()), f.check()); err != nil {
				return err
			}
			return f.run(cmd, st, args)
		},
	}
	fs := cmd.Flags()
	f.in.add(fs)
	fs.IntSliceVar(&f.caches, "cache-blocks", nil, "sizes of prefix caches in blocks; the default is a range up to all blocks of the trace")
	fs.Float64Var(&f.rates.PrefillTokensPerSecond, "prefill-rate", 10_000, "assumed prompt tokens per second of a request; 0 means no time")
	fs.Float64Var(&f.rates.DecodeTokensPerSecond, "decode-rate", 50, "assumed output tokens per second of a request; 0 means no time")
	fs.StringVar(&f.html, "html", "", "file for a page with plots, which opens offline")
	fs.BoolVar(&f.force, "force", false, "replace the file if it exists")
	fs.BoolVar(&f.json, "json", false, "print everything as one JSON object")
	return cmd
}

func (f *traceStatsFlags) check() error {
	var problems []error
	for _, size := range f.caches {
		if size < 1 {
			problems = append(problems, fmt.Errorf("--cache-blocks: %d is not allowed; give 1 block or more", size))
		}
	}
	if f.rates.PrefillTokensPerSecond < 0 {
		problems = append(problems, fmt.Errorf("--prefill-rate: %v is not allowed; give 0 or more", f.rates.PrefillTokensPerSecond))
	}
	if f.rates.DecodeTokensPerSecond < 0 {
		problems = append(problems, fmt.Errorf("--decode-rate: %v is not allowed; give 0 or more", f.rates.DecodeTokensPerSecond))
	}
	return errors.Join(problems...)
}

// timelineWindows is how finely the page and the JSON show what happens over time.
const timelineWindows = 240

func (f *traceStatsFlags) run(cmd *cobra.Command, st *state, paths []string) error {
	if f.html != "" {
		if err := notThere(f.html, f.force); err != nil {
			return err
		}
	}
	w, err := f.in.load(cmd.Context(), st, paths)
	if err != nil {
		return err
	}
	s := tracereport.Summary{
		Name: w.Name, Format: w.Format, Detected: w.Detected, Digest: w.Digest(), LeftOut: w.LeftOut, Warnings: w.Warnings,
		Statistics: workload.Stats(w, f.caches...), Histograms: workload.NewHistograms(w), Timeline: workload.NewTimeline(w, f.rates, timelineWindows), Rates: f.rates,
	}
	if s.Statistics.Reuse != nil && len(f.caches) == 0 {
		s.Statistics = workload.Stats(w, workload.CacheSizes(leastCache, s.Statistics.Reuse.UniqueBlocks, 4)...)
	}
	if f.html != "" {
		if err := writeNew(f.html, f.force, func(out io.Writer) error { return tracereport.Write(out, s) }); err != nil {
			return err
		}
	}
	if f.json {
		return printJSON(st, s)
	}
	if err := printText(st.stdout, "%s", traceText(s, len(f.caches) > 0)); err != nil || f.html == "" {
		return err
	}
	return printText(st.stdout, "Page: %s\n", f.html)
}

// leastCache is the smallest cache of the curve of hit ratios, in blocks.
const leastCache = 16

// traceText is what people see of a trace, with all sizes of caches or those that show the curve.
func traceText(s tracereport.Summary, allCaches bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s in %s", s.Name, s.Format, counted(s.Requests, "request"), counted(s.Sessions, "session"))
	if s.MultiTurnSessions > 0 {
		fmt.Fprintf(&b, ", %s of several turns", count(s.MultiTurnSessions))
	}
	if s.LeftOut > 0 {
		fmt.Fprintf(&b, "; %s left out", counted(s.LeftOut, "damaged record"))
	}
	fmt.Fprintf(&b, "\nDigest %s\n%s\n", s.Digest, lengthsTable(s.Statistics))
	if a := s.Arrivals; a != nil && a.SpanMs == 0 {
		fmt.Fprintf(&b, "Arrivals: all %s start together\n", count(a.IntervalMs.Count+1))
	} else if a != nil {
		fmt.Fprintf(&b, "Arrivals: %s per second over %s; variation of intervals %s, dispersion %s in 10 s and %s in 60 s\n",
			rounded(a.Rate), duration(a.SpanMs), rounded(a.IntervalCV), rounded(a.Dispersion10s), rounded(a.Dispersion60s))
	} else {
		b.WriteString("Arrivals: the trace does not say when sessions start\n")
	}
	fmt.Fprintf(&b, "In flight at most: %s, %s (%s)\n", counted(s.Timeline.PeakRequests, "request"), counted(s.Timeline.PeakTokens, "token"), s.ServiceText())
	if a := s.Agents; a != nil {
		b.WriteString(agentsText(a))
	}
	if r := s.Reuse; r != nil {
		fmt.Fprintf(&b, "Reuse: %.1f %% of %s of %s, %s of them different, with a cache without limit\n%s\n", 100*r.Ideal,
			counted(r.Blocks, "block"), counted(r.BlockSize, "token"), count(r.UniqueBlocks), reuseTable(r, allCaches))
	} else {
		b.WriteString("Reuse: the trace does not say what prompts share\n")
	}
	return b.String()
}

func agentsText(a *workload.AgentStatistics) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Plays: %s of requests that wait for each other", count(a.Plays))
	for _, relation := range slices.Sorted(maps.Keys(a.Edges)) {
		fmt.Fprintf(&b, ", %s %s", count(a.Edges[relation]), relation)
	}
	fmt.Fprintf(&b, "\nSubagents: %s", count(a.Subagents))
	if a.Subagents > 0 {
		fmt.Fprintf(&b, " with %s and %s; %s joined, nested %d deep, at most %s in a play", counted(a.SubagentRequests, "request"), counted(a.SubagentInputTokens, "input token"), count(a.Joined), a.Depth, settingFigure(a.PerPlay.Max))
	}
	b.WriteString("\n")
	if len(a.Models) > 0 {
		b.WriteString("Models:")
		for _, name := range slices.Sorted(maps.Keys(a.Models)) {
			fmt.Fprintf(&b, " %s %s", cellText(name), count(a.Models[name]))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func lengthsTable(s workload.Statistics) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"", "mean", "min", "p10", "p50", "p90", "p99", "max"})
	out.SetColumnConfigs(rightAligned(2, 8))
	add := func(name string, d workload.Distribution, scale float64) {
		if d.Count == 0 {
			return
		}
		row := table.Row{name}
		for _, v := range []float64{d.Mean, d.Min, d.P10, d.P50, d.P90, d.P99, d.Max} {
			row = append(row, rounded(v*scale))
		}
		out.AppendRow(row)
	}
	add("input tokens", s.InputTokens, 1)
	add("output tokens", s.OutputTokens, 1)
	if s.MultiTurnSessions > 0 {
		add("turns of a session", s.Turns, 1)
		add("gap between turns, s", s.DelayMs, .001)
	}
	if s.Arrivals != nil {
		add("interval of arrivals, s", s.Arrivals.IntervalMs, .001)
	}
	return out.Render()
}

func reuseTable(r *workload.ReuseStatistics, all bool) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"cache blocks", "tokens", "hit ratio"})
	out.SetColumnConfigs(rightAligned(1, 3))
	shown, size := "", 0
	for i, c := range r.LRU {
		hit := fmt.Sprintf("%.1f %%", 100*c.HitRatio)
		if between := i > 0 && i < len(r.LRU)-1 && c.CacheBlocks < 2*size; !all && (between || hit == shown) {
			continue
		}
		shown, size = hit, c.CacheBlocks
		out.AppendRow(table.Row{count(c.CacheBlocks), count(c.CacheBlocks * r.BlockSize), hit})
	}
	return out.Render()
}

// rounded shows a figure with as many digits as people need.
func rounded(v float64) string {
	switch size := math.Abs(v); {
	case size >= 100 || v == math.Trunc(v):
		return results.WithSeparators(fmt.Sprintf("%.0f", v))
	case size >= 10:
		return fmt.Sprintf("%.1f", v)
	case size >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// duration shows a time in ms in the unit that suits it.
func duration(ms float64) string {
	for _, unit := range []struct {
		ms   float64
		name string
	}{{86_400_000, "days"}, {3_600_000, "h"}, {60_000, "min"}, {1000, "s"}} {
		if ms >= 2*unit.ms {
			return rounded(ms/unit.ms) + " " + unit.name
		}
	}
	return rounded(ms) + " ms"
}
