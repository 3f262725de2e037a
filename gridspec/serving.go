package gridspec

import (
	"slices"
	"strings"
)

// servingSections are the sections of a spec that say what serves requests.
var servingSections = []string{"deployment", "engine", "prefill", "decode", "timing", "router", "tiers", "planner"}

// StatesDeployment reports whether the spec says anything of what serves requests, instead of leaving all of it at the defaults.
func (s *Spec) StatesDeployment() bool {
	return slices.ContainsFunc(servingSections, func(section string) bool {
		varied := func(a *axis) bool {
			first, _, _ := strings.Cut(a.path, ".")
			return first == section
		}
		return s.layers.koanf.Exists(section) || slices.ContainsFunc(s.axes, varied)
	})
}
