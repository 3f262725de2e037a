package main

import "fmt"

const (
	sharedPrefixRatioFlag = "trace-shared-prefix-ratio"
	prefixGroupsFlag      = "trace-num-prefix-groups"
)

// noteIdle notes flags of the reference that change nothing where no trace is replayed: the reference ignores them there.
func (b *specBuilder) noteIdle(trace bool) {
	if trace {
		return
	}
	for _, name := range []string{sharedPrefixRatioFlag, prefixGroupsFlag} {
		if b.flags.Changed(name) {
			b.notes = append(b.notes, fmt.Sprintf("--%s changes nothing here: only traces of format applied_compute_agentic have it", name))
		}
	}
}
