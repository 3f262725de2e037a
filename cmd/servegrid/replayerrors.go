package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/gridspec"
)

// flagsSource is what gridspec calls the spec that replay's flags make up.
const flagsSource = "(flags)"

// flagOfKey names the flag that sets a key of the spec, or a section of it.
var flagOfKey = map[string]string{
	"compat":                                 "--compat",
	"deployment.workers":                     "--num-workers",
	"deployment.prefill_workers":             "--num-prefill-workers",
	"deployment.decode_workers":              "--num-decode-workers",
	"prefill":                                "--prefill-engine-args",
	"decode":                                 "--decode-engine-args",
	"router":                                 "--router-config",
	"router.policy":                          "--router-mode",
	"router.router_policy_config":            "--router-policy-config",
	"router.model_name":                      "--model-name",
	"router.prefill_timing":                  "--aic-*",
	"planner":                                "--" + plannerFlag,
	"planner.benchmark_granularity":          "--" + granularityFlag,
	"tiers":                                  "--tiers",
	"load":                                   "--load",
	"load.speedup":                           "--arrival-speedup-ratio",
	"load.concurrency":                       "--replay-concurrency",
	"load.rate":                              "--request-rate",
	"load.mode":                              "--replay-concurrency",
	"load.max_sim_time_seconds":              "--max-sim-time-seconds",
	"engine":                                 "--extra-engine-args",
	"timing":                                 "--timing",
	"sla":                                    "--sla",
	"sla.ttft_ms":                            "--sla-ttft-ms",
	"sla.itl_ms":                             "--sla-itl-ms",
	"sla.e2e_ms":                             "--sla-e2e-ms",
	"workload.preset":                        "--preset",
	"workload.trace":                         "the trace",
	"workload.trace.format":                  "--trace-format",
	"workload.trace.block_size":              "--trace-block-size",
	"workload.trace.shared_prefix_ratio":     "--" + sharedPrefixRatioFlag,
	"workload.trace.prefix_groups":           "--" + prefixGroupsFlag,
	"workload.trace.pacing":                  "--pacing",
	"workload.trace.spawn_trigger":           "--spawn-trigger",
	"workload.trace.join_delay":              "--join-delay",
	"workload.trace.nested_timestamp_basis":  "--nested-timestamp-basis",
	"workload.trace.strict":                  "--strict",
	"workload.trace.salvage":                 "--salvage",
	"workload.synthetic.input_tokens":        "--input-tokens",
	"workload.synthetic.output_tokens":       "--output-tokens",
	"workload.synthetic.requests":            "--request-count",
	"workload.synthetic.arrival_interval_ms": "--arrival-interval-ms",
	"workload.synthetic.turns_per_session":   "--turns-per-session",
	"workload.synthetic.shared_prefix_ratio": "--shared-prefix-ratio",
	"workload.synthetic.prefix_groups":       "--num-prefix-groups",
	"workload.synthetic.inter_turn_delay_ms": "--inter-turn-delay-ms",
}

// blameFlags says of the problems in the spec that the flags make up which flag caused each. Problems of the workload
// are left out when there is none that could be read.
func blameFlags(flags *pflag.FlagSet, err error, noWorkload bool) error {
	var problems gridspec.Problems
	if !errors.As(err, &problems) {
		return err
	}
	var blamed gridspec.Problems
	for _, p := range problems {
		if noWorkload && strings.HasPrefix(p.Path, "workload") {
			continue
		}
		blamed = append(blamed, blameFlag(flags, p))
	}
	if len(blamed) == 0 {
		return nil
	}
	return blamed
}

func blameFlag(flags *pflag.FlagSet, p gridspec.Problem) gridspec.Problem {
	if strings.HasPrefix(p.Where, flagsSource) {
		p.Where = flagOf(flags, p.Path)
	}
	return p
}

// inJSON lists the sections that a flag gives as JSON while others give some of their keys.
var inJSON = map[string]bool{"sla": true, "load": true, "router": true, "planner": true}

// flagOf finds the flag of a key path, or of the nearest section around it. Some keys have two flags, of which the more
// special one wins when it is given.
func flagOf(flags *pflag.FlagSet, path string) string {
	for path != "" {
		flag, ok := flagOfKey[path]
		section, _, _ := strings.Cut(path, ".")
		if ok && (section == path || !inJSON[section] || flags.Changed(strings.TrimPrefix(flag, "--"))) {
			return flag
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return ""
}

// checkFinite refuses NaN and infinity, which JSON and thus a spec cannot hold.
func checkFinite(flags *pflag.FlagSet) error {
	var problems []error
	flags.Visit(func(f *pflag.Flag) {
		if f.Value.Type() != "float64" {
			return
		}
		if v, err := strconv.ParseFloat(f.Value.String(), 64); err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			problems = append(problems, fmt.Errorf("--%s: %v is not allowed; give a finite number", f.Name, v))
		}
	})
	return errors.Join(problems...)
}
