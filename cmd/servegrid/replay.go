package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// replayFlags are the flags of python -m dynamo.replay, and the sections of a grid spec that it lacks.
type replayFlags struct {
	engineArgs, prefillArgs, decodeArgs         string
	timing, load, tiers, sla, preset            string
	routerConfig, routerPolicyConfig, modelName string
	compat                                      string
	set                                         []string

	inputTokens, outputTokens, requestCount int
	arrivalIntervalMs                       float64
	turnsPerSession, numPrefixGroups        int
	sharedPrefixRatio, interTurnDelayMs     float64
	workers, prefillWorkers, decodeWorkers  int
	concurrency                             int
	mode, router                            string
	speedup                                 float64
	format                                  string
	traceBlockSize, tracePrefixGroups       int
	traceSharedPrefixRatio                  float64
	pacing, spawnTrigger, joinDelay         string
	nestedTimestampBasis                    string
	strict, salvage                         bool
	reportJSON, reportJSONL, reportParquet  string
	maxSimTimeSeconds                       float64
	slaTTFTMs, slaITLMs, slaE2EMs           float64
	plannerConfig, plannerOutput            string
	granularity                             int

	// page says where the planner's page goes, as far as its configuration does.
	page plannerPage
}

func newReplay(st *state) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay [TRACE...]",
		Short: "Simulate one configuration on a trace or a synthetic workload",
		Long: `replay simulates one configuration and prints its latency and throughput table.

The flags have the names of python -m dynamo.replay, so that its command lines work with the program's name changed.
What the reference lacks is a section of the grid spec as JSON, such as --timing '{"source":"fixed","prefill_ms":30,"decode_ms":8}'.`,
		RunE: func(cmd *cobra.Command, args []string) error { return replay(cmd, st, &f, args) },
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *replayFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.engineArgs, "extra-engine-args", "", "engine arguments of aggregated workers as a JSON object or the path of one, such as '{\"block_size\":64}'")
	fs.StringVar(&f.prefillArgs, "prefill-engine-args", "", "engine arguments of the prefill workers of a disaggregated deployment")
	fs.StringVar(&f.decodeArgs, "decode-engine-args", "", "engine arguments of its decode workers")
	fs.StringVar(&f.routerConfig, "router-config", "", "router arguments as a JSON object or the path of one, such as '{\"router_queue_policy\":\"wspt\"}'")
	fs.StringVar(&f.routerPolicyConfig, "router-policy-config", "", "YAML file with the router's classes of requests")
	fs.StringVar(&f.modelName, "model-name", "", "model whose profile of that file counts")
	fs.StringVar(&f.compat, "compat", "", "rule set: leave out for the newest engines' behaviour, dynamo-1.3 or dynamo-1.2 for the reference's")
	fs.StringVar(&f.timing, "timing", "", "the spec's timing section as JSON")
	fs.StringVar(&f.load, "load", "", "the spec's load section as JSON")
	fs.StringVar(&f.tiers, "tiers", "", "the spec's tiers section as JSON")
	fs.StringVar(&f.preset, "preset", "", "a preset's name ("+strings.Join(workload.PresetNames(), ", ")+"), or the spec's workload.preset section as JSON")
	fs.StringVar(&f.sla, "sla", "", "the spec's sla section as JSON")
	fs.StringArrayVar(&f.set, "set", nil, "override one key of the spec: key.path=value (repeatable)")
	fs.IntVar(&f.inputTokens, "input-tokens", 0, "synthetic workload: input tokens of each request")
	fs.IntVar(&f.outputTokens, "output-tokens", 0, "synthetic workload: output tokens of each request")
	fs.IntVar(&f.requestCount, "request-count", 0, "synthetic workload: number of requests, or of sessions with several turns")
	fs.Float64Var(&f.arrivalIntervalMs, "arrival-interval-ms", 1, "synthetic workload: ms between two arrivals")
	fs.IntVar(&f.turnsPerSession, "turns-per-session", 1, "synthetic workload: turns of a session")
	fs.Float64Var(&f.sharedPrefixRatio, "shared-prefix-ratio", 0, "synthetic workload: share of the prompt that a prefix group has in common")
	fs.IntVar(&f.numPrefixGroups, "num-prefix-groups", 0, "synthetic workload: number of prefix groups")
	fs.Float64Var(&f.interTurnDelayMs, "inter-turn-delay-ms", 0, "synthetic workload: ms between a turn's completion and the next")
	fs.IntVar(&f.workers, "num-workers", 1, "number of aggregated workers")
	fs.IntVar(&f.prefillWorkers, "num-prefill-workers", 1, "number of prefill workers, with --prefill-engine-args")
	fs.IntVar(&f.decodeWorkers, "num-decode-workers", 1, "number of decode workers, with --decode-engine-args")
	fs.IntVar(&f.concurrency, "replay-concurrency", 0, "closed loop with so many sessions in flight")
	fs.StringVar(&f.mode, "replay-mode", "offline", "offline: simulated time")
	fs.StringVar(&f.router, "router-mode", router.PolicyRoundRobin, "routing policy: "+strings.Join(router.Policies(), ", "))
	fs.Float64Var(&f.speedup, "arrival-speedup-ratio", 1, "divide arrival times by this")
	fs.StringVar(&f.format, "trace-format", workload.FormatAuto, "format of the trace: "+strings.Join(workload.Formats(), ", ")+"; with --compat mooncake unless given")
	fs.IntVar(&f.traceBlockSize, "trace-block-size", 0, "tokens per hash id of the trace; the default is the format's own, 512 for mooncake")
	fs.StringVar(&f.pacing, "pacing", "", "traces of agents: when dependent requests start: causal, or causal_with_floor for no earlier than recorded; the default is the format's own")
	fs.StringVar(&f.spawnTrigger, "spawn-trigger", "", "traces of agents: what subagents start after: dispatch or completion of their parent's request, or as recorded")
	fs.StringVar(&f.joinDelay, "join-delay", "", "traces of agents: the wait after a subagent's end: recorded or none")
	fs.StringVar(&f.nestedTimestampBasis, "nested-timestamp-basis", "", "WEKA traces: what subagents' times count from: absolute, relative to their marker, or auto")
	fs.BoolVar(&f.strict, "strict", false, "refuse traces that look incomplete, instead of a note")
	fs.BoolVar(&f.salvage, "salvage", false, "replay what is whole of a damaged trace")
	fs.Float64Var(&f.traceSharedPrefixRatio, sharedPrefixRatioFlag, 0, "applied_compute_agentic traces: share of each first prompt that its prefix group has in common")
	fs.IntVar(&f.tracePrefixGroups, prefixGroupsFlag, 0, "applied_compute_agentic traces: number of prefix groups")
	fs.StringVar(&f.reportJSON, "report-json", "", "where to write the full report; the default is a new file in the working folder")
	fs.StringVar(&f.reportJSONL, "report-jsonl", "", "where to write one JSON object per request")
	fs.StringVar(&f.reportParquet, "report-parquet", "", "where to write the same as a Parquet file, one row per request")
	fs.Float64Var(&f.maxSimTimeSeconds, "max-sim-time-seconds", 0, "stop before the simulated clock passes this")
	fs.Float64Var(&f.slaTTFTMs, "sla-ttft-ms", 0, "goodput: bound on the time to first token")
	fs.Float64Var(&f.slaITLMs, "sla-itl-ms", 0, "goodput: bound on a request's mean inter-token latency")
	fs.Float64Var(&f.slaE2EMs, "sla-e2e-ms", 0, "goodput: bound on the request latency")
	fs.StringVar(&f.plannerConfig, plannerFlag, "", "planner in the loop: its configuration as JSON or YAML, or the path of one, such as '{\"optimization_target\":\"sla\",\"ttft\":1500}'")
	fs.StringVar(&f.plannerOutput, "planner-output", "", "folder for what the planner saw and did: ticks, workers, decisions and events as Parquet and JSON Lines, and its page")
	fs.IntVar(&f.granularity, granularityFlag, 8, "steps in which the planner's performance model is filled before the simulation")
	addAICFlags(fs)
}

func replay(cmd *cobra.Command, st *state, f *replayFlags, traces []string) error {
	point, notes, err := f.point(cmd, traces)
	if err != nil {
		return err
	}
	if err := printNotes(st.stderr, notes); err != nil {
		return err
	}
	set, err := rules.For(point.Config.Compat)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	w, err := point.Workload.Load(ctx, workload.Source{Rules: set, EngineBlockSize: point.Config.BlockSize(), Stdin: st.stdin})
	if err != nil {
		return err
	}
	if err := printNotes(st.stderr, workloadNotes(w)); err != nil {
		return err
	}
	var opt simcore.Options
	records, err := openRecords(f.reportJSONL, f.reportParquet, w, &opt)
	if err != nil {
		return err
	}
	started := time.Now()
	outcome, err := planner.Run(ctx, point.Config.Config, point.Config.Planner, w, opt)
	if err != nil {
		return err
	}
	report := outcome.Report
	wall := time.Since(started)
	if err := printNotes(st.stderr, plannerNotes(outcome.Record)); err != nil {
		return err
	}
	if err := records.close(); err != nil {
		return err
	}
	if point.GPUPrice != (metrics.GPUPrice{}) || point.Config.Stages()[0].Timing.GPU != "" {
		*report = report.WithCost(point.GPUPrice, point.Config.GPUs())
	}
	page, err := f.writePlanner(outcome)
	if err != nil {
		return err
	}
	path, err := writeReportJSON(f.reportJSON, st.now(), report, point.Config.Config, w, wall)
	if err != nil {
		return err
	}
	if err := printText(st.stdout, "%s", scalingText(outcome.Record)); err != nil {
		return err
	}
	if err := printReport(st.stdout, report, point.Config.Config, wall, path); err != nil {
		return err
	}
	return printText(st.stdout, "%s", plannerText(outcome.Record, page))
}

// workloadNotes says what people should know about where the requests come from.
func workloadNotes(w *workload.Workload) []string {
	if w.Detected != "" && w.Format != workload.FormatMooncake {
		return append([]string{w.Detected}, w.Warnings...)
	}
	return w.Warnings
}

func printNotes(w io.Writer, notes []string) error {
	for _, note := range notes {
		if err := printText(w, "Note: %s\n", note); err != nil {
			return err
		}
	}
	return nil
}

// point turns the flags into a spec of one point, so that everything is checked in one place, and returns what changes
// nothing. The error holds all that is wrong.
func (f *replayFlags) point(cmd *cobra.Command, traces []string) (point *gridspec.Point, notes []string, err error) {
	flags := cmd.Flags()
	b := specBuilder{flags: flags, spec: map[string]any{}}
	if f.mode != "offline" {
		b.refuse(fmt.Errorf("--replay-mode: %q is not allowed; use offline, which is simulated time", f.mode))
	}
	b.refuse(checkFinite(flags))
	if f.compat != "" {
		b.spec["compat"] = f.compat
	}
	b.refuse(f.sections(flags, b.spec))
	b.refuse(f.refuseSharedPaths(traces))
	b.noteIdle(len(traces) > 0)
	f.addLoad(&b)
	f.addDeployment(&b)
	f.plannerArgs(&b)
	work, err := f.workload(cmd, traces)
	b.refuse(err)
	b.noWorkload = err != nil
	if work != nil {
		b.spec["workload"] = work
	}
	notes, err = f.routerArgs(flags, b.spec)
	b.refuse(err)
	b.notes = append(b.notes, notes...)
	point, err = b.point(f.set)
	if err == nil && f.plannerOutput != "" && !point.Config.Planned() {
		err = errors.New("--planner-output: there is no planner; give --planner-config, with another policy than static")
	}
	if f.compat != "" { // the reference says nothing either
		b.notes = nil
	}
	return point, append(b.notes, b.cautions...), err
}

// specBuilder collects a spec and all that is wrong with it.
type specBuilder struct {
	flags    *pflag.FlagSet
	spec     map[string]any
	problems []error
	notes    []string
	// cautions are notes that the rules of the reference do not silence.
	cautions []string
	// noWorkload says that what to replay is among the problems already.
	noWorkload bool
}

func (b *specBuilder) refuse(err error) {
	if err != nil {
		b.problems = append(b.problems, err)
	}
}

// point expands the spec to its only point.
func (b *specBuilder) point(set []string) (*gridspec.Point, error) {
	data, err := json.Marshal(b.spec)
	if err != nil {
		return nil, errors.Join(append(b.problems, err)...)
	}
	loaded, err := gridspec.Load(gridspec.Source{Path: flagsSource, Data: data, Format: gridspec.JSON, Set: set, Dir: "."})
	var points []gridspec.Point
	if err == nil {
		points, err = loaded.Expand(gridspec.ExpandOptions{MaxPoints: 1})
	}
	if err != nil {
		b.refuse(blameFlags(b.flags, err, b.noWorkload))
	}
	if len(b.problems) > 0 {
		return nil, errors.Join(b.problems...)
	}
	for _, w := range loaded.Warnings() {
		b.notes = append(b.notes, blameFlag(b.flags, w).Error())
	}
	return &points[0], nil
}

// addLoad says how requests are released.
func (f *replayFlags) addLoad(b *specBuilder) {
	load, _ := b.spec["load"].(map[string]any)
	if load == nil {
		load = map[string]any{}
		b.spec["load"] = load
	}
	if b.flags.Changed("arrival-speedup-ratio") {
		load["speedup"] = finite(f.speedup)
	}
	if b.flags.Changed("max-sim-time-seconds") {
		// In a spec 0 is no limit. Here it is one, which the first moment keeps.
		load["max_sim_time_seconds"] = finite(cmp.Or(f.maxSimTimeSeconds, math.SmallestNonzeroFloat64))
	}
	if b.flags.Changed("replay-concurrency") {
		load["mode"], load["concurrency"] = simcore.LoadConcurrency, f.concurrency
	}
}

// finite keeps out of a spec what JSON cannot hold and is refused already.
func finite(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 1
	}
	return v
}

// addDeployment says which workers serve the requests: with arguments for prefill and decode workers, these.
func (f *replayFlags) addDeployment(b *specBuilder) {
	deployment := map[string]any{}
	b.spec["deployment"] = deployment
	counts := []struct {
		flag, key string
		n         int
		pools     bool
	}{
		{"num-workers", "workers", f.workers, false},
		{"num-prefill-workers", "prefill_workers", f.prefillWorkers, true},
		{"num-decode-workers", "decode_workers", f.decodeWorkers, true},
	}
	prefill, decode := b.flags.Changed("prefill-engine-args"), b.flags.Changed("decode-engine-args")
	pools := prefill || decode
	if pools {
		deployment["mode"] = simcore.ModeDisaggregated
	}
	for _, c := range counts {
		switch {
		case !b.flags.Changed(c.flag):
		case c.pools == pools:
			deployment[c.key] = c.n
		case c.n != 1 && pools:
			b.refuse(fmt.Errorf("--%s is %d, and with --prefill-engine-args there are prefill and decode workers; give --num-prefill-workers and --num-decode-workers", c.flag, c.n))
		case c.n != 1:
			b.refuse(fmt.Errorf("--%s is %d, and all workers are aggregated; give --num-workers, or --prefill-engine-args and --decode-engine-args", c.flag, c.n))
		}
	}
	if pools && b.flags.Changed("extra-engine-args") {
		b.refuse(errors.New("--extra-engine-args is for aggregated workers; give --prefill-engine-args and --decode-engine-args, or it alone"))
	}
	if prefill != decode {
		b.refuse(errors.New("give --prefill-engine-args and --decode-engine-args together"))
	}
	if f.router == router.PolicyKVRouter && b.flags.Changed("router-mode") && !pools && f.workers == 1 {
		b.refuse(errors.New("--router-mode kv_router needs a choice of workers; give --num-workers 2 or more"))
	}
	for _, args := range []struct{ flag, role, text string }{
		{"--extra-engine-args", roleAggregated, f.engineArgs},
		{"--prefill-engine-args", rolePrefill, f.prefillArgs},
		{"--decode-engine-args", roleDecode, f.decodeArgs},
	} {
		if !b.flags.Changed(args.flag[2:]) {
			continue
		}
		engine, err := jsonSection(args.flag, args.text)
		b.refuse(err)
		if err == nil {
			notes, err := moveEngineArgs(args.flag, args.role, engine, b.spec)
			b.refuse(err)
			b.notes = append(b.notes, notes...)
		}
	}
}

// workload describes what to replay: trace files, a preset or synthetic requests.
func (f *replayFlags) workload(cmd *cobra.Command, traces []string) (map[string]any, error) {
	synthetic := firstChanged(cmd.Flags(), "input-tokens", "output-tokens", "request-count")
	if err := oneWorkload(traces, f.preset, synthetic); err != nil {
		return nil, err
	}
	if err := f.onlyOf(cmd.Flags(), len(traces) > 0, synthetic != ""); err != nil {
		return nil, err
	}
	switch {
	case len(traces) > 0:
		trace := map[string]any{"paths": traces, "format": f.format}
		if f.compat != "" && !cmd.Flags().Changed("trace-format") {
			trace["format"] = workload.FormatMooncake // the reference's default
		}
		if cmd.Flags().Changed("trace-block-size") {
			if trace["block_size"] = f.traceBlockSize; f.traceBlockSize == 0 {
				return nil, errors.New("--trace-block-size: 0 is not allowed; give 1 token per hash id or more, or leave it out")
			}
		}
		f.traceSettings(cmd.Flags(), trace)
		return map[string]any{"trace": trace}, nil
	case synthetic != "":
		return map[string]any{"synthetic": map[string]any{
			"input_tokens": f.inputTokens, "output_tokens": f.outputTokens, "requests": f.requestCount,
			"arrival_interval_ms": finite(f.arrivalIntervalMs), "turns_per_session": f.turnsPerSession,
			"shared_prefix_ratio": finite(f.sharedPrefixRatio), "prefix_groups": f.numPrefixGroups, "inter_turn_delay_ms": finite(f.interTurnDelayMs),
		}}, nil
	case f.preset[0] == '{':
		section, err := jsonSection("--preset", f.preset)
		return map[string]any{"preset": section}, err
	}
	return map[string]any{"preset": map[string]any{"name": f.preset}}, nil
}

// traceSettings adds the settings of a trace that are given to its section of the spec.
func (f *replayFlags) traceSettings(flags *pflag.FlagSet, trace map[string]any) {
	for flag, setting := range map[string]any{
		"pacing": f.pacing, "spawn-trigger": f.spawnTrigger, "join-delay": f.joinDelay, "nested-timestamp-basis": f.nestedTimestampBasis, "strict": f.strict, "salvage": f.salvage,
	} {
		if flags.Changed(flag) {
			trace[strings.ReplaceAll(flag, "-", "_")] = setting
		}
	}
	if flags.Changed(sharedPrefixRatioFlag) {
		trace["shared_prefix_ratio"] = finite(f.traceSharedPrefixRatio)
	}
	if flags.Changed(prefixGroupsFlag) {
		trace["prefix_groups"] = f.tracePrefixGroups
	}
}

// onlyOf refuses the flags of another kind of workload than what is replayed: of traces, of synthetic ones, or of neither.
func (f *replayFlags) onlyOf(flags *pflag.FlagSet, trace, synthetic bool) error {
	onlySynthetic := []string{"arrival-interval-ms", "turns-per-session", "shared-prefix-ratio", "num-prefix-groups", "inter-turn-delay-ms"}
	onlyTrace := []string{"trace-format", "trace-block-size", "pacing", "spawn-trigger", "join-delay", "nested-timestamp-basis", "strict", "salvage"}
	if f.compat != "" { // the reference ignores these
		onlySynthetic, onlyTrace = onlySynthetic[1:], onlyTrace[2:]
		if f.format != workload.FormatMooncake {
			onlyTrace = append(onlyTrace, "trace-format")
		}
	}
	var problems []error
	if name := firstChanged(flags, onlySynthetic...); name != "" && !synthetic {
		problems = append(problems, fmt.Errorf("%s is for synthetic workloads; it does nothing with a trace file or preset", name))
	}
	if name := firstChanged(flags, onlyTrace...); name != "" && !trace {
		problems = append(problems, fmt.Errorf("%s is for trace files; it does nothing with a preset or synthetic workload", name))
	}
	return errors.Join(problems...)
}

// oneWorkload refuses none and more than one of trace files, a preset and the flags of a synthetic workload, of
// which one is named.
func oneWorkload(traces []string, preset, synthetic string) error {
	var given []string
	if len(traces) > 0 {
		given = append(given, "the trace "+traces[0])
	}
	if preset != "" {
		given = append(given, "--preset")
	}
	if synthetic != "" {
		given = append(given, synthetic)
	}
	const how = "give either a trace file, or --preset, or --input-tokens, --output-tokens and --request-count for a synthetic workload"
	switch len(given) {
	case 0:
		return errors.New("there is nothing to replay; " + how)
	case 1:
		return nil
	case 2:
		return fmt.Errorf("both %s and %s are given; %s", given[0], given[1], how)
	}
	return fmt.Errorf("%s are all given; %s", strings.Join(given, ", "), how)
}

// firstChanged returns the first of some flags that is given, with its dashes; empty when none is.
func firstChanged(flags *pflag.FlagSet, names ...string) string {
	for _, name := range names {
		if flags.Changed(name) {
			return "--" + name
		}
	}
	return ""
}

// sections adds the parts of the spec that are given as JSON.
func (f *replayFlags) sections(flags *pflag.FlagSet, spec map[string]any) error {
	var problems []error
	for _, s := range []struct{ flag, text, key string }{
		{"--timing", f.timing, "timing"},
		{"--load", f.load, "load"},
		{"--tiers", f.tiers, "tiers"},
		{"--sla", f.sla, "sla"},
	} {
		if !flags.Changed(s.flag[2:]) {
			continue
		}
		section, err := jsonSection(s.flag, s.text)
		if err != nil {
			problems = append(problems, err)
		} else {
			spec[s.key] = section
		}
	}
	sla, _ := spec["sla"].(map[string]any)
	for _, bound := range []struct {
		key   string
		value float64
	}{{"ttft_ms", f.slaTTFTMs}, {"itl_ms", f.slaITLMs}, {"e2e_ms", f.slaE2EMs}} {
		if bound.value != 0 {
			if sla == nil {
				sla = map[string]any{}
				spec["sla"] = sla
			}
			sla[bound.key] = finite(bound.value)
		}
	}
	return errors.Join(problems...)
}
