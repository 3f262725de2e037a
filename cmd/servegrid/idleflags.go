package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// idleFlags are flags of the reference that need what a replay does not have: the reference ignores them there.
var idleFlags = []struct{ name, needs string }{
	{"trace-shared-prefix-ratio", "only --trace-format applied_compute_agentic has it"},
	{"trace-num-prefix-groups", "only --trace-format applied_compute_agentic has it"},
	{"benchmark-granularity", "only a planner's models have it"},
}

const plannerFlag = "planner-config"

func addIdleFlags(fs *pflag.FlagSet) {
	for _, f := range idleFlags {
		fs.Float64(f.name, 0, f.needs)
		fs.Lookup(f.name).Hidden = true
	}
	fs.String(plannerFlag, "", "planner in the loop, which this version does not have")
	fs.Lookup(plannerFlag).Hidden = true
}

// refuseIdle refuses a planner and notes flags that change nothing.
func (b *specBuilder) refuseIdle() {
	if b.flags.Changed(plannerFlag) {
		b.refuse(errors.New("--" + plannerFlag + ": replays with a planner in the loop are not supported by this version; leave it out for a fixed number of workers"))
	}
	for _, f := range idleFlags {
		if b.flags.Changed(f.name) {
			b.notes = append(b.notes, fmt.Sprintf("--%s changes nothing here: %s", f.name, f.needs))
		}
	}
}
