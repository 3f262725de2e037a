package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/recommend"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/storage"
)

// recommendFlags say what a configuration is for, and where the figures come from.
type recommendFlags struct {
	sweepFlags
	sla           simcore.SLA
	where         string
	noSLA         bool
	gpus          int
	usdPerHour    float64
	objective     string
	by            []string
	top           int
	tolerance     float64
	allowRejected bool
	asJSON        bool
	answerFile    string
	deploy        string
	space         traceSpace
	// unpriced are the GPU types that were left out since the answer needs a price.
	unpriced []string
}

func newRecommend(st *state) *cobra.Command {
	var f recommendFlags
	cmd := &cobra.Command{
		Use:   "recommend INPUT",
		Short: "Recommend a configuration under an SLA and a budget",
		Long: `recommend names the best configuration that keeps an SLA and a budget, what else is worth considering, how far each is
from its limits, which limit binds, and what the next GPU or a relaxed limit would buy.

INPUT is one of
  a sweep's folder, or any Parquet, CSV or JSON file with one row a point: nothing is simulated;
  a grid spec (YAML or TOML): it is swept first, and what was simulated before is used again;
  a trace, with --model: GPUs, tensor parallelism, workers, prefill and decode pools and routers are tried, up to --gpus GPUs. The spec that says
  so is left in the output folder as spec.yaml, to read and to edit.

The bounds on latency are on 99th percentiles: p99_ttft_ms, p99_tpot_ms, p99_e2e_latency_ms. With results and specs they replace those of the
sweep's SLA. Objectives: cost (USD a million output tokens; GPU-hours where no price is known), throughput, throughput-per-gpu, speed (tokens/s
of a user), max:COLUMN or min:COLUMN.

Exit codes: as those of sweep; 3 when no configuration keeps all limits.`,
		Args: exactlyOne("INPUT"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, st, args[0]) },
	}
	f.add(cmd)
	return cmd
}

func (f *recommendFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.Float64Var(&f.sla.TTFTMs, "ttft-ms", 0, "most time to first token, ms")
	fs.Float64Var(&f.sla.ITLMs, "itl-ms", 0, "most time per output token after the first, ms")
	fs.Float64Var(&f.sla.E2EMs, "e2e-ms", 0, "most request latency, ms")
	fs.StringVar(&f.where, "where", "", "further constraints, joined by &&, such as 'p90_ttft_ms <= 800 && gpu == h200_sxm'")
	fs.BoolVar(&f.noSLA, "no-sla", false, "leave out the constraints of the results, which come from the SLA of their spec")
	fs.IntVar(&f.gpus, "gpus", 0, fmt.Sprintf("most GPUs of a configuration; with a trace %d unless given", defaultSpaceGPUs))
	fs.Float64Var(&f.usdPerHour, "usd-per-hour", 0, "most that the GPUs of a configuration may cost an hour")
	fs.StringVar(&f.objective, "objective", "cost", "what to be best in: "+strings.Join(recommend.ObjectiveNames(), ", ")+", max:COLUMN, min:COLUMN")
	fs.StringSliceVar(&f.by, "by", nil, "columns with an answer for each value, or none; the default is the traffic: workload axes and the model")
	fs.IntVar(&f.top, "top", 3, "runners-up to name")
	fs.Float64Var(&f.tolerance, "tolerance", recommend.DefaultTolerance, "relative difference in the objective that decides nothing")
	fs.BoolVar(&f.allowRejected, "allow-rejected", false, "also take configurations that reject requests which others serve")
	fs.BoolVar(&f.asJSON, "json", false, "print the recommendation as JSON")
	fs.StringVar(&f.answerFile, "answer", "", "file to write the recommendation to as JSON")
	fs.StringVar(&f.deploy, "deploy", "", "folder for files that deploy the best configuration")
	fs.StringVarP(&f.output, "output", "o", "", "output folder of the sweep of a spec or trace; the default is as with sweep")
	fs.IntVarP(&f.jobs, "jobs", "j", 0, "points simulated at the same time; 0 is one for each core")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	f.searchFlags.add(fs)
	f.queueFlags.add(fs)
	f.telemetryFlags.add(fs)
	fs.StringArrayVar(&f.set, "set", nil, "override one key of the spec: key.path=value (repeatable)")
	f.retry = string(sweep.RetryNone)
	f.space.add(fs)
}

func (f *recommendFlags) run(cmd *cobra.Command, st *state, input string) error {
	if err := f.check(cmd, input); err != nil {
		return err
	}
	ctx := cmd.Context()
	switch kind := f.inputKind(input); kind {
	case inputSpec:
		return f.sweepAndAnswer(ctx, st, input)
	case inputTrace:
		f.chooseFolder(input)
		spec, err := f.spaceText(input)
		if err != nil {
			return err
		}
		reader := *st
		reader.stdin = strings.NewReader(spec)
		return f.sweepAndAnswer(ctx, &reader, "-")
	}
	input, err := st.localResults(ctx, input, storage.PullOptions{})
	if err != nil {
		return err
	}
	t, err := readWhere(st, input, "")
	if err != nil {
		return err
	}
	return f.answer(st, t)
}

// What a recommendation can be made from.
const (
	inputResults = "results"
	inputSpec    = "a spec"
	inputTrace   = "a trace"
)

// inputKind tells them apart: specs by their extension, traces by the flags that only they need.
func (f *recommendFlags) inputKind(input string) string {
	if isSpecName(input) {
		return inputSpec
	}
	if f.space.given() {
		return inputTrace
	}
	return inputResults
}

// check refuses what makes no sense, all at once and before anything is read.
func (f *recommendFlags) check(cmd *cobra.Command, input string) error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	kind := f.inputKind(input)
	for _, name := range []string{"ttft-ms", "itl-ms", "e2e-ms", "usd-per-hour", "gpus", "rate", "speedup", "concurrency"} {
		flag := cmd.Flags().Lookup(name)
		var v float64
		if _, err := fmt.Sscan(flag.Value.String(), &v); flag.Changed && (err != nil || !(v > 0) || math.IsInf(v, 0)) {
			bad("--%s: %s is not allowed; give more than 0", name, flag.Value)
		}
	}
	if f.top < 0 {
		bad("--top: %d is not allowed; give 0 or more", f.top)
	}
	if !(f.tolerance >= 0 && f.tolerance < 1) {
		bad("--tolerance: %v is not allowed; give 0 to below 1, such as 0.01 for 1 %%", f.tolerance)
	}
	if f.jobs < 0 {
		bad("--jobs: %d is not allowed; give 1 or more, or 0 for one for each core", f.jobs)
	}
	if kind == inputResults {
		for _, name := range []string{"output", "jobs", "set", "search", "search-points", "queue", "queue-listen", "metrics-listen", "metrics-file"} {
			if cmd.Flags().Changed(name) {
				bad("--%s is for specs and traces; %s is taken for results (a trace needs --model)", name, input)
			}
		}
	}
	if kind != inputTrace {
		problems = append(problems, f.space.refuse(cmd.Flags(), kind)...)
	} else {
		problems = append(problems, f.space.check(input)...)
	}
	return errors.Join(problems...)
}

// sweepAndAnswer sweeps a spec and answers from its rows. The sweep's own exit code counts first.
func (f *recommendFlags) sweepAndAnswer(ctx context.Context, st *state, spec string) error {
	f.set = append(slices.Clone(f.set), f.overrides()...)
	f.aim = f.searchAim
	var missed error
	f.conclusion = func(j *sweepJob, t *results.Table) error {
		err := f.answer(st, t)
		if exit := (*exitError)(nil); errors.As(err, &exit) {
			missed, err = err, nil
		}
		if err != nil || f.asJSON {
			return err
		}
		return printText(st.stdout, "Results: %s\nReport:  %s\n", j.shown(sweep.ResultsFile), j.shown(reportFile))
	}
	return cmp.Or(runSweep(ctx, st, &f.sweepFlags, spec), missed)
}

// overrides are the SLA of the flags, and the load, as settings of a spec.
func (f *recommendFlags) overrides() []string {
	var out []string
	for _, b := range []struct {
		key string
		ms  float64
	}{{"sla.ttft_ms", f.sla.TTFTMs}, {"sla.itl_ms", f.sla.ITLMs}, {"sla.e2e_ms", f.sla.E2EMs}} {
		if b.ms > 0 {
			out = append(out, fmt.Sprintf("%s=%v", b.key, b.ms))
		}
	}
	return append(out, f.space.load()...)
}

// searchAim is what a search has to find: the best in the objective of the recommendation, under its limits and not just the
// SLA. The spec's own objectives would lead it to configurations that are good otherwise. An objective that no metric stands for
// leaves those of the spec.
func (f *recommendFlags) searchAim(a results.Analysis, points []gridspec.Point) results.Analysis {
	priced := slices.ContainsFunc(points, func(p gridspec.Point) bool { return p.GPUPrice.USDPerHour > 0 })
	if o, ok := recommend.SearchObjective(f.objective, priced); ok {
		a.Objectives = []results.Objective{o}
	}
	if len(a.Constraints) == 0 {
		a.Constraints = results.SLAConstraints(f.sla)
	}
	a.Constraints = slices.Clone(a.Constraints)
	where, _ := results.ParseConstraints(f.where) // request refuses what is none
	for _, c := range where {
		if slices.ContainsFunc(metrics.Fields(), func(m metrics.Field) bool { return m.Name == c.Column }) {
			a.Constraints = append(a.Constraints, c)
		}
	}
	if f.gpus > 0 && !f.space.given() { // the space of a trace keeps it anyway
		a.Constraints = append(a.Constraints, results.Constraint{Column: "gpus", Operator: "<=", Bound: gridspec.Value{Kind: gridspec.KindInt, Int: int64(f.gpus)}})
	}
	return a
}

// searched says how much of its space was simulated when a table comes from a search.
func searched(t *results.Table) *recommend.Searched {
	if t.Column(gridspec.SearchRound) == nil {
		return nil
	}
	out := &recommend.Searched{}
	candidates := t.Candidates().Table
	status := candidates.Column("status")
	for row := range candidates.Rows() {
		if status == nil || status.Text(row) != string(results.StatusSkipped) {
			out.Simulated++
		}
	}
	spec, err := gridspec.Load(gridspec.Source{Path: specFile, Data: []byte(t.Metadata.Spec), Format: gridspec.YAML})
	if err != nil { // a file of others, or of another version
		return out
	}
	if s, err := newSearchJob(spec); err == nil {
		out.Combinations = s.combinations()
	}
	return out
}

// answer recommends from a table and prints, writes and deploys what comes out.
func (f *recommendFlags) answer(st *state, t *results.Table) error {
	request, err := f.request(t)
	if err != nil {
		return err
	}
	r, err := recommend.For(t, request)
	if err != nil {
		return fmt.Errorf("%w%s", err, traceHint(t))
	}
	r.Searched = searched(t)
	f.askInCommands(st, r)
	r.Cautions = append(r.Cautions, f.unpricedCautions()...)
	if f.answerFile != "" {
		if err := results.WriteFile(f.answerFile, func(w io.Writer) error { return writeJSON(w, r) }); err != nil {
			return err
		}
	}
	if f.asJSON {
		err = printJSON(st, r)
	} else {
		err = printRecommendation(st.stdout, r)
	}
	if err != nil {
		return err
	}
	if f.deploy != "" {
		if err := f.writeDeployment(st, t, r); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(r.Answers, func(a recommend.Answer) bool { return a.Best != nil }) {
		return &exitError{exitSLAMissed, errors.New("no configuration keeps all limits")}
	}
	return nil
}

// askedSLA is the SLA that was asked for, of a configuration that was simulated under another one.
func (f *recommendFlags) askedSLA(simulated simcore.SLA) simcore.SLA {
	if f.noSLA {
		simulated = simcore.SLA{}
	}
	return simcore.SLA{
		TTFTMs: cmp.Or(f.sla.TTFTMs, simulated.TTFTMs), ITLMs: cmp.Or(f.sla.ITLMs, simulated.ITLMs), E2EMs: cmp.Or(f.sla.E2EMs, simulated.E2EMs),
	}
}

// askInCommands puts the SLA that was asked for into the commands in place of the one of the results, so that a configuration
// by itself is measured by the same bounds. Commands that cannot be read now stay as they are.
func (f *recommendFlags) askInCommands(st *state, r *recommend.Recommendation) {
	if !f.noSLA && !f.sla.Set() {
		return
	}
	for _, c := range r.Choices() {
		point, err := pointOfCommand(st.fileSystem(), c.Command)
		if err != nil || f.askedSLA(point.Config.SLA) == point.Config.SLA {
			continue
		}
		point.Config.SLA = f.askedSLA(point.Config.SLA)
		c.Command = reproduceCommand(point)
	}
}

// traceHint explains tables that are no results.
func traceHint(t *results.Table) string {
	if !t.GuessedRoles || t.Column("gpus") != nil {
		return ""
	}
	return "\nA trace needs --model; --where, --objective and --gpus name columns"
}

// request is what the flags ask of a table.
func (f *recommendFlags) request(t *results.Table) (recommend.Request, error) {
	r := recommend.Request{By: t.Metadata.FrontierBy, RunnersUp: f.top, Tolerance: f.tolerance, AllowRejected: f.allowRejected}
	if len(f.by) > 0 {
		r.By = slices.DeleteFunc(slices.Clone(f.by), func(name string) bool { return name == "none" && len(f.by) == 1 })
	}
	var problems []error
	var err error
	if r.Objective, err = recommend.FindObjective(t, f.objective); err != nil {
		problems = append(problems, fmt.Errorf("--objective: %w%s", err, traceHint(t)))
	}
	own := results.SLAConstraints(f.sla)
	if !f.noSLA {
		for _, c := range fileConstraints(t) {
			if !slices.ContainsFunc(own, func(o results.Constraint) bool { return o.Column == c.Column }) {
				r.Limits = append(r.Limits, c)
			}
		}
	}
	r.Limits = append(r.Limits, own...)
	if f.where != "" {
		where, err := results.ParseConstraints(f.where)
		if err != nil {
			problems = append(problems, fmt.Errorf("--where: %w", err))
		}
		r.Limits = append(r.Limits, where...)
	}
	if r.Limits, err = t.Bind(r.Limits); err != nil {
		problems = append(problems, fmt.Errorf("--where: %w", err))
	}
	r.By = slices.Clone(r.By)
	for i, name := range r.By {
		r.By[i] = t.ColumnName(name)
	}
	if f.gpus > 0 {
		r.Budget = append(r.Budget, recommend.GPUBudget(t, f.gpus))
	}
	if f.usdPerHour > 0 {
		r.Budget = append(r.Budget, recommend.CostBudget(f.usdPerHour))
	}
	return r, errors.Join(problems...)
}

// fileConstraints are those of the results. Where an objective counts how many requests keep the SLA, the file has none,
// but the SLA is among its settings.
func fileConstraints(t *results.Table) []results.Constraint {
	if len(t.Metadata.Constraints) > 0 {
		return t.Metadata.Constraints
	}
	return results.SLAConstraints(t.SLA())
}
