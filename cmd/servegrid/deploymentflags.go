package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/router"
)

// deploymentFlags are the flags of python -m dynamo.replay that describe what serves requests, and the sections of a grid spec
// that it lacks. Every command that takes a deployment without a spec has them.
type deploymentFlags struct {
	engineArgs, prefillArgs, decodeArgs         string
	timing, tiers                               string
	routerConfig, routerPolicyConfig, modelName string
	compat                                      string
	set                                         []string
	workers, prefillWorkers, decodeWorkers      int
	router                                      string
}

func (f *deploymentFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.engineArgs, "extra-engine-args", "", "engine arguments of aggregated workers as a JSON object or the path of one, such as '{\"block_size\":64}'")
	fs.StringVar(&f.prefillArgs, "prefill-engine-args", "", "engine arguments of the prefill workers of a disaggregated deployment")
	fs.StringVar(&f.decodeArgs, "decode-engine-args", "", "engine arguments of its decode workers")
	fs.StringVar(&f.routerConfig, "router-config", "", "router arguments as a JSON object or the path of one, such as '{\"router_queue_policy\":\"wspt\"}'")
	fs.StringVar(&f.routerPolicyConfig, "router-policy-config", "", "YAML file with the router's classes of requests")
	fs.StringVar(&f.modelName, "model-name", "", "model whose profile of that file counts")
	fs.StringVar(&f.compat, "compat", "", "rule set: leave out for the newest engines' behaviour, dynamo-1.3 or dynamo-1.2 for the reference's")
	fs.StringVar(&f.timing, "timing", "", "the spec's timing section as JSON")
	fs.StringVar(&f.tiers, "tiers", "", "the spec's tiers section as JSON")
	fs.StringArrayVar(&f.set, "set", nil, "override one key of the spec: key.path=value (repeatable)")
	fs.IntVar(&f.workers, "num-workers", 1, "number of aggregated workers")
	fs.IntVar(&f.prefillWorkers, "num-prefill-workers", 1, "number of prefill workers, with --prefill-engine-args")
	fs.IntVar(&f.decodeWorkers, "num-decode-workers", 1, "number of decode workers, with --decode-engine-args")
	fs.StringVar(&f.router, "router-mode", router.PolicyRoundRobin, "routing policy: "+strings.Join(router.Policies(), ", "))
	addAICFlags(fs)
}

// addSections adds the parts of a spec that say how a deployment behaves and that are no engine or router arguments.
func (f *deploymentFlags) addSections(b *specBuilder) {
	if f.compat != "" {
		b.spec["compat"] = f.compat
	}
	for _, err := range jsonSections(b.flags, b.spec, []jsonFlag{{"--timing", f.timing, "timing"}, {"--tiers", f.tiers, "tiers"}}) {
		b.refuse(err)
	}
}

// addDeployment says which workers serve the requests: with arguments for prefill and decode workers, these.
func (f *deploymentFlags) addDeployment(b *specBuilder) {
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

// jsonFlag is a flag whose text is a section of a spec as JSON.
type jsonFlag struct{ flag, text, key string }

// jsonSections adds to a spec the sections that flags give, and returns what is wrong with them.
func jsonSections(flags *pflag.FlagSet, spec map[string]any, sections []jsonFlag) []error {
	var problems []error
	for _, s := range sections {
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
	return problems
}
