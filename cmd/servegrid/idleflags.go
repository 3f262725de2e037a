package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
)

// idleFlag is a flag that changes nothing, and why.
type idleFlag struct{ name, needs string }

// idleFlags are flags of the reference that need what a replay does not have: the reference ignores them there.
var idleFlags = []idleFlag{
	{"benchmark-granularity", "only a planner's models have it"},
}

const (
	plannerFlag           = "planner-config"
	sharedPrefixRatioFlag = "trace-shared-prefix-ratio"
	prefixGroupsFlag      = "trace-num-prefix-groups"
)

func addIdleFlags(fs *pflag.FlagSet) {
	for _, f := range idleFlags {
		fs.Float64(f.name, 0, f.needs)
		fs.Lookup(f.name).Hidden = true
	}
	fs.String(plannerFlag, "", "planner in the loop, which this version does not have")
	fs.Lookup(plannerFlag).Hidden = true
}

// refuseIdle refuses a planner and notes flags that change nothing, those of traces where there is none included.
func (b *specBuilder) refuseIdle(trace bool) {
	if b.flags.Changed(plannerFlag) {
		b.refuse(errors.New("--" + plannerFlag + ": replays with a planner in the loop are not supported by this version; leave it out for a fixed number of workers"))
	}
	idle := idleFlags
	if !trace {
		const needs = "only traces of format applied_compute_agentic have it"
		idle = append(slices.Clip(idle), idleFlag{sharedPrefixRatioFlag, needs}, idleFlag{prefixGroupsFlag, needs})
	}
	for _, f := range idle {
		if b.flags.Changed(f.name) {
			b.notes = append(b.notes, fmt.Sprintf("--%s changes nothing here: %s", f.name, f.needs))
		}
	}
}
