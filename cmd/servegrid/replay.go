package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// replayFlags are the flags of python -m dynamo.replay, and the sections of a grid spec that it lacks.
type replayFlags struct {
	engineArgs, timing, sla, preset string
	compat                          string
	set                             []string

	inputTokens, outputTokens, requestCount int
	arrivalIntervalMs                       float64
	turnsPerSession, numPrefixGroups        int
	sharedPrefixRatio, interTurnDelayMs     float64
	workers, concurrency                    int
	mode, router                            string
	speedup                                 float64
	format                                  string
	traceBlockSize                          int
	reportJSON, reportJSONL                 string
	maxSimTimeSeconds                       float64
	slaTTFTMs, slaITLMs, slaE2EMs           float64
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
	fs := cmd.Flags()
	fs.StringVar(&f.engineArgs, "extra-engine-args", "", "engine arguments as a JSON object, such as '{\"block_size\":64}'")
	fs.StringVar(&f.compat, "compat", "", "rule set: leave out for the newest engines' behaviour, dynamo-1.3 or dynamo-1.2 for the reference's")
	fs.StringVar(&f.timing, "timing", "", "the spec's timing section as JSON")
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
	fs.IntVar(&f.concurrency, "replay-concurrency", 0, "closed loop with so many sessions in flight")
	fs.StringVar(&f.mode, "replay-mode", "offline", "offline: simulated time")
	fs.StringVar(&f.router, "router-mode", "round_robin", "routing policy")
	fs.Float64Var(&f.speedup, "arrival-speedup-ratio", 1, "divide arrival times by this")
	fs.StringVar(&f.format, "trace-format", workload.FormatMooncake, "format of the trace")
	fs.IntVar(&f.traceBlockSize, "trace-block-size", workload.DefaultTraceBlockSize, "tokens per hash id of the trace")
	fs.StringVar(&f.reportJSON, "report-json", "", "where to write the full report; the default is a new file in the working folder")
	fs.StringVar(&f.reportJSONL, "report-jsonl", "", "where to write one JSON object per request")
	fs.Float64Var(&f.maxSimTimeSeconds, "max-sim-time-seconds", 0, "stop before the simulated clock passes this")
	fs.Float64Var(&f.slaTTFTMs, "sla-ttft-ms", 0, "goodput: bound on the time to first token")
	fs.Float64Var(&f.slaITLMs, "sla-itl-ms", 0, "goodput: bound on a request's mean inter-token latency")
	fs.Float64Var(&f.slaE2EMs, "sla-e2e-ms", 0, "goodput: bound on the request latency")
	addAICFlags(fs)
	return cmd
}

func replay(cmd *cobra.Command, st *state, f *replayFlags, traces []string) error {
	point, err := f.point(cmd, traces)
	if err != nil {
		return err
	}
	set, err := rules.For(point.Config.Compat)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	w, err := point.Workload.Load(ctx, workload.Source{Rules: set, EngineBlockSize: point.Config.Engine.BlockSize, Stdin: st.stdin})
	if err != nil {
		return err
	}
	var opt simcore.Options
	records, err := openRecords(f.reportJSONL, w, &opt)
	if err != nil {
		return err
	}
	started := time.Now()
	report, err := simcore.Run(ctx, point.Config, w, opt)
	if err != nil {
		return err
	}
	wall := time.Since(started)
	if err := records.close(); err != nil {
		return err
	}
	if point.Config.Timing.GPU != "" {
		*report = report.WithCost(point.GPUPrice, point.Config.GPUs())
	}
	path, err := writeReportJSON(f.reportJSON, st.now(), report, point.Config, wall)
	if err != nil {
		return err
	}
	return printReport(st.stdout, report, point.Config, wall, path)
}

// point turns the flags into a spec of one point, so that everything is checked in one place.
func (f *replayFlags) point(cmd *cobra.Command, traces []string) (*gridspec.Point, error) {
	if f.mode != "offline" {
		return nil, fmt.Errorf("--replay-mode: %q is not allowed; use offline", f.mode)
	}
	if err := checkFinite(cmd.Flags()); err != nil {
		return nil, err
	}
	if err := checkAICFlags(cmd.Flags(), f.router); err != nil {
		return nil, err
	}
	spec := map[string]any{
		"deployment": map[string]any{"workers": f.workers},
		"router":     map[string]any{"policy": f.router},
	}
	if f.compat != "" {
		spec["compat"] = f.compat
	}
	load := map[string]any{"speedup": f.speedup, "max_sim_time_seconds": f.maxSimTimeSeconds}
	if cmd.Flags().Changed("replay-concurrency") {
		load["mode"], load["concurrency"] = simcore.LoadConcurrency, f.concurrency
	}
	spec["load"] = load
	work, err := f.workload(cmd, traces)
	if err != nil {
		return nil, err
	}
	spec["workload"] = work
	if err := f.sections(spec); err != nil {
		return nil, err
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	loaded, err := gridspec.Load(gridspec.Source{Path: flagsSource, Data: data, Format: gridspec.JSON, Set: f.set, Dir: "."})
	if err != nil {
		return nil, blameFlags(cmd.Flags(), err)
	}
	points, err := loaded.Expand(gridspec.ExpandOptions{MaxPoints: 1})
	if err != nil {
		return nil, blameFlags(cmd.Flags(), err)
	}
	return &points[0], nil
}

// workload describes what to replay: trace files, a preset or synthetic requests.
func (f *replayFlags) workload(cmd *cobra.Command, traces []string) (map[string]any, error) {
	synthetic := firstChanged(cmd.Flags(), "input-tokens", "output-tokens", "request-count")
	if err := oneWorkload(traces, f.preset, synthetic); err != nil {
		return nil, err
	}
	if synthetic == "" {
		if name := firstChanged(cmd.Flags(), "arrival-interval-ms", "turns-per-session", "shared-prefix-ratio", "num-prefix-groups", "inter-turn-delay-ms"); name != "" {
			return nil, fmt.Errorf("%s is for synthetic workloads; it does nothing with a trace file or preset", name)
		}
	}
	switch {
	case len(traces) > 0:
		return map[string]any{"trace": map[string]any{"paths": traces, "format": f.format, "block_size": f.traceBlockSize}}, nil
	case synthetic != "":
		return map[string]any{"synthetic": map[string]any{
			"input_tokens": f.inputTokens, "output_tokens": f.outputTokens, "requests": f.requestCount,
			"arrival_interval_ms": f.arrivalIntervalMs, "turns_per_session": f.turnsPerSession,
			"shared_prefix_ratio": f.sharedPrefixRatio, "prefix_groups": f.numPrefixGroups, "inter_turn_delay_ms": f.interTurnDelayMs,
		}}, nil
	case f.preset[0] == '{':
		section, err := jsonSection("--preset", f.preset)
		return map[string]any{"preset": section}, err
	}
	return map[string]any{"preset": map[string]any{"name": f.preset}}, nil
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
func (f *replayFlags) sections(spec map[string]any) error {
	for _, s := range []struct{ flag, text, key string }{
		{"--extra-engine-args", f.engineArgs, "engine"},
		{"--timing", f.timing, "timing"},
		{"--sla", f.sla, "sla"},
	} {
		if s.text == "" {
			continue
		}
		section, err := jsonSection(s.flag, s.text)
		if err != nil {
			return err
		}
		spec[s.key] = section
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
			sla[bound.key] = bound.value
		}
	}
	engine, ok := spec["engine"].(map[string]any)
	if !ok {
		return nil
	}
	return moveEngineArgs(engine, spec)
}

func jsonSection(flag, text string) (map[string]any, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber() // seeds have 64 bits
	var value any
	err := decoder.Decode(&value)
	if err == nil && decoder.More() {
		err = errors.New("there is more text after it")
	}
	section, isObject := value.(map[string]any)
	if err == nil && !isObject {
		err = errors.New("write it in braces")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s is not a JSON object: %w", flag, gridspec.Excerpt(text), err)
	}
	again := json.NewDecoder(strings.NewReader(text))
	again.UseNumber() // which number is too large shows when it is bound
	twice, err := repeatedKeys(again)
	if err == nil && len(twice) > 0 {
		err = fmt.Errorf("%s holds the same key twice: %s; write it once", gridspec.Excerpt(text), gridspec.Excerpt(strings.Join(twice, ", ")))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return section, nil
}

// repeatedKeys lists the keys that an object of the next value holds more than once. Decoding into a map would keep
// the last.
func repeatedKeys(d *json.Decoder) ([]string, error) {
	open, err := d.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return nil, err
	}
	var twice []string
	seen := map[json.Token]bool{}
	for d.More() {
		if open == json.Delim('{') {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			if seen[key] {
				twice = append(twice, fmt.Sprint(key))
			}
			seen[key] = true
		}
		inner, err := repeatedKeys(d)
		if err != nil {
			return nil, err
		}
		twice = append(twice, inner...)
	}
	_, err = d.Token()
	return twice, err
}
