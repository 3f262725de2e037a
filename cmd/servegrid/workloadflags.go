package main

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// workloadFlags are the flags of python -m dynamo.replay that say what is replayed, how its requests are released and which
// latencies are wanted, and the sections of a grid spec that it lacks. Every command that takes a workload without a spec has them.
type workloadFlags struct {
	load, sla, preset string

	inputTokens, outputTokens, requestCount int
	arrivalIntervalMs                       float64
	turnsPerSession, numPrefixGroups        int
	sharedPrefixRatio, interTurnDelayMs     float64
	concurrency                             int
	rate, speedup                           float64
	format                                  string
	traceBlockSize, tracePrefixGroups       int
	traceSharedPrefixRatio                  float64
	pacing, spawnTrigger, joinDelay         string
	nestedTimestampBasis                    string
	strict, salvage                         bool
	slaTTFTMs, slaITLMs, slaE2EMs           float64
}

func (f *workloadFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.load, "load", "", "the spec's load section as JSON")
	fs.StringVar(&f.preset, "preset", "", "a preset's name ("+strings.Join(workload.PresetNames(), ", ")+"), or the spec's workload.preset section as JSON")
	fs.StringVar(&f.sla, "sla", "", "the spec's sla section as JSON")
	fs.IntVar(&f.inputTokens, "input-tokens", 0, "synthetic workload: input tokens of each request")
	fs.IntVar(&f.outputTokens, "output-tokens", 0, "synthetic workload: output tokens of each request")
	fs.IntVar(&f.requestCount, "request-count", 0, "synthetic workload: number of requests, or of sessions with several turns")
	fs.Float64Var(&f.arrivalIntervalMs, "arrival-interval-ms", 1, "synthetic workload: ms between two arrivals")
	fs.IntVar(&f.turnsPerSession, "turns-per-session", 1, "synthetic workload: turns of a session")
	fs.Float64Var(&f.sharedPrefixRatio, "shared-prefix-ratio", 0, "synthetic workload: share of the prompt that a prefix group has in common")
	fs.IntVar(&f.numPrefixGroups, "num-prefix-groups", 0, "synthetic workload: number of prefix groups")
	fs.Float64Var(&f.interTurnDelayMs, "inter-turn-delay-ms", 0, "synthetic workload: ms between a turn's completion and the next")
	fs.IntVar(&f.concurrency, "replay-concurrency", 0, "closed loop with so many sessions in flight")
	fs.Float64Var(&f.rate, "request-rate", 0, "start so many sessions per second, evenly spaced, instead of at their own times")
	fs.Float64Var(&f.speedup, "arrival-speedup-ratio", 1, "divide arrival times by this")
	fs.StringVar(&f.format, "trace-format", workload.FormatAuto, "format of the trace: "+strings.Join(workload.Formats(), ", ")+"; with --compat mooncake unless given")
	fs.IntVar(&f.traceBlockSize, "trace-block-size", 0, "tokens per hash id of the trace; the default is the format's own, 512 for mooncake")
	fs.StringVar(&f.pacing, "pacing", "", "traces of agents: when dependent requests start: causal, or causal_with_floor for no earlier than recorded; the default is the format's own")
	fs.StringVar(&f.spawnTrigger, "spawn-trigger", "", "traces of agents: what subagents start after: dispatch or completion of their parent's request, or as recorded")
	fs.StringVar(&f.joinDelay, "join-delay", "", "traces of agents: the wait after a subagent's end: recorded or none")
	fs.StringVar(&f.nestedTimestampBasis, "nested-timestamp-basis", "", "WEKA traces: what subagents' times count from: absolute, relative to their marker, or auto")
	fs.BoolVar(&f.strict, "strict", false, "refuse traces that look incomplete, instead of a note")
	fs.BoolVar(&f.salvage, "salvage", false, "replay what is whole of a damaged trace; the report counts what is left out")
	fs.Float64Var(&f.traceSharedPrefixRatio, sharedPrefixRatioFlag, 0, "applied_compute_agentic traces: share of each first prompt that its prefix group has in common")
	fs.IntVar(&f.tracePrefixGroups, prefixGroupsFlag, 0, "applied_compute_agentic traces: number of prefix groups")
	fs.Float64Var(&f.slaTTFTMs, "sla-ttft-ms", 0, "goodput: bound on the time to first token")
	fs.Float64Var(&f.slaITLMs, "sla-itl-ms", 0, "goodput: bound on a request's mean inter-token latency")
	fs.Float64Var(&f.slaE2EMs, "sla-e2e-ms", 0, "goodput: bound on the request latency")
}

// addLoad says how requests are released.
func (f *workloadFlags) addLoad(b *specBuilder) {
	load, _ := b.spec["load"].(map[string]any)
	if load == nil {
		load = map[string]any{}
		b.spec["load"] = load
	}
	if b.flags.Changed("arrival-speedup-ratio") {
		load["speedup"] = finite(f.speedup)
	}
	if b.flags.Changed("replay-concurrency") {
		load["mode"], load["concurrency"] = simcore.LoadConcurrency, f.concurrency
	}
	if b.flags.Changed("request-rate") {
		load["mode"], load["rate"] = simcore.LoadRate, finite(f.rate)
		if b.flags.Changed("replay-concurrency") {
			b.refuse(errors.New("--request-rate and --replay-concurrency are two ways to release requests; give one of them"))
		}
	}
}

// finite keeps out of a spec what JSON cannot hold and is refused already.
func finite(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 1
	}
	return v
}

// addWorkload says what to replay.
func (f *workloadFlags) addWorkload(b *specBuilder, traces []string, compat string) {
	work, err := f.workload(b.flags, traces, compat)
	b.refuse(err)
	b.noWorkload = err != nil
	if work != nil {
		b.spec["workload"] = work
	}
}

// workload describes what to replay: trace files, a preset or synthetic requests.
func (f *workloadFlags) workload(flags *pflag.FlagSet, traces []string, compat string) (map[string]any, error) {
	synthetic := firstChanged(flags, "input-tokens", "output-tokens", "request-count")
	if err := oneWorkload(traces, f.preset, synthetic); err != nil {
		return nil, err
	}
	if err := f.onlyOf(flags, compat, len(traces) > 0, synthetic != ""); err != nil {
		return nil, err
	}
	switch {
	case len(traces) > 0:
		trace := map[string]any{"paths": traces, "format": f.format}
		if compat != "" && !flags.Changed("trace-format") {
			trace["format"] = workload.FormatMooncake // the reference's default
		}
		if flags.Changed("trace-block-size") {
			if trace["block_size"] = f.traceBlockSize; f.traceBlockSize == 0 {
				return nil, errors.New("--trace-block-size: 0 is not allowed; give 1 token per hash id or more, or leave it out")
			}
		}
		f.traceSettings(flags, trace)
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
func (f *workloadFlags) traceSettings(flags *pflag.FlagSet, trace map[string]any) {
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
func (f *workloadFlags) onlyOf(flags *pflag.FlagSet, compat string, trace, synthetic bool) error {
	onlySynthetic := []string{"arrival-interval-ms", "turns-per-session", "shared-prefix-ratio", "num-prefix-groups", "inter-turn-delay-ms"}
	onlyTrace := []string{"trace-format", "trace-block-size", "pacing", "spawn-trigger", "join-delay", "nested-timestamp-basis", "strict", "salvage"}
	if compat != "" { // the reference ignores these
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

// sections adds the parts of the spec that say how requests come and what is wanted.
func (f *workloadFlags) sections(flags *pflag.FlagSet, spec map[string]any) error {
	problems := jsonSections(flags, spec, []jsonFlag{{"--load", f.load, "load"}, {"--sla", f.sla, "sla"}})
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
