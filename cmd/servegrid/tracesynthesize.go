package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/simcore/workload/tracetools"
)

func newTraceSynthesize(st *state) *cobra.Command {
	var in traceInput
	var out traceOutput
	s := tracetools.DefaultSynthesis()
	cmd := &cobra.Command{
		Use:   "synthesize TRACE...",
		Short: "Make more, less, longer or shorter traffic of the kind of a trace",
		Long: `synthesize repeats the users of a trace, and compares the statistics of both. All factors are 1 unless given:

  --requests 2       the trace goes on for twice as long
  --users 2          twice as many users at the same time
  --rate 2           as many requests in half the time, from twice as many users; their pauses stay as they are
  --input-length 2   prompts are twice as long, shared parts included
  --output-length 2  answers are twice as long
  --sharing 0.5      a cache without limit would hit half as much

Users are sessions, or plays of sessions that wait for each other, together with those that share prompts with them. Each
repetition has prompts of its own, except for what a fiftieth of all sessions have in common, and is turned round in time
by an amount that the seed draws.`,
		Args: atLeastOne("TRACE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(checkFinite(cmd.Flags()), asFlags(s.Validate()), out.check()); err != nil {
				return err
			}
			w, err := in.load(cmd.Context(), st, args)
			if err != nil {
				return err
			}
			made, notes, err := tracetools.Synthesize(cmd.Context(), w, s)
			if err != nil {
				return err
			}
			if err := printNotes(st.stderr, notes); err != nil {
				return err
			}
			if err := out.write(cmd.Context(), st, made); err != nil {
				return err
			}
			to := st.stdout
			if out.path == "" {
				to = st.stderr // the trace itself went to the standard output
			}
			return printText(to, "%s\n", comparisonTable(w, made))
		},
	}
	fs := cmd.Flags()
	in.add(fs)
	out.add(fs, "; the default is mooncake, or agentic_mooncake where sessions wait for each other")
	fs.Float64Var(&s.Requests, "requests", s.Requests, "factor on the number of requests, which come one after another")
	fs.Float64Var(&s.Users, "users", s.Users, "factor on the number of users at the same time")
	fs.Float64Var(&s.Rate, "rate", s.Rate, "factor on how fast users come")
	fs.Float64Var(&s.InputLength, "input-length", s.InputLength, "factor on the lengths of prompts")
	fs.Float64Var(&s.OutputLength, "output-length", s.OutputLength, "factor on the lengths of answers")
	fs.Float64Var(&s.Sharing, "sharing", s.Sharing, "factor from 0 to 1 on the share of prompts that a cache without limit would hit")
	fs.Uint64Var(&s.Seed, "seed", 0, "makes another trace of the same kind")
	return cmd
}

// comparisonTable shows the statistics of a trace and of what was made of it.
func comparisonTable(source, made *workload.Workload) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"", "trace", "synthesized", "factor"})
	out.SetColumnConfigs(rightAligned(2, 4))
	var caches []int
	a := workload.Stats(source)
	if a.Reuse != nil {
		caches = []int{max(a.Reuse.UniqueBlocks/16, 1), max(a.Reuse.UniqueBlocks/4, 1)}
		a = workload.Stats(source, caches...)
	}
	b := workload.Stats(made, caches...)
	add := func(name string, x, y float64) {
		factor := "–"
		if x != 0 {
			factor = fmt.Sprintf("%.2f", y/x)
		}
		out.AppendRow(table.Row{name, rounded(x), rounded(y), factor})
	}
	add("requests", float64(a.Requests), float64(b.Requests))
	add("sessions", float64(a.Sessions), float64(b.Sessions))
	if a.Arrivals != nil && b.Arrivals != nil {
		add("starts per second", a.Arrivals.Rate, b.Arrivals.Rate)
		add("interval, coefficient of variation", a.Arrivals.IntervalCV, b.Arrivals.IntervalCV)
		add("dispersion in 10 s", a.Arrivals.Dispersion10s, b.Arrivals.Dispersion10s)
		add("dispersion in 60 s", a.Arrivals.Dispersion60s, b.Arrivals.Dispersion60s)
	}
	for _, d := range []struct {
		name string
		x, y workload.Distribution
	}{{"input tokens", a.InputTokens, b.InputTokens}, {"output tokens", a.OutputTokens, b.OutputTokens}} {
		add(d.name+", mean", d.x.Mean, d.y.Mean)
		add(d.name+", p50", d.x.P50, d.y.P50)
		add(d.name+", p99", d.x.P99, d.y.P99)
	}
	if a.MultiTurnSessions > 0 {
		add("turns, mean", a.Turns.Mean, b.Turns.Mean)
		add("gap between turns s, p50", a.DelayMs.P50/1000, b.DelayMs.P50/1000)
	}
	if a.Agents != nil && b.Agents != nil {
		add("subagents", float64(a.Agents.Subagents), float64(b.Agents.Subagents))
	}
	if a.Reuse != nil && b.Reuse != nil {
		add("ideal reuse %", 100*a.Reuse.Ideal, 100*b.Reuse.Ideal)
		for i, size := range caches {
			add(fmt.Sprintf("reuse %% with %s blocks", count(size)), percent(a.Reuse.LRU[i]), percent(b.Reuse.LRU[i]))
		}
	}
	return out.Render()
}

func percent(c workload.CacheReuse) float64 { return math.Round(1000*c.HitRatio) / 10 }
