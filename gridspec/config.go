package gridspec

import (
	"strings"

	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/problem"
)

// Config is everything that decides the outcome of a point besides its workload: the tree of settings of a spec.
type Config struct {
	// Config is what the simulation needs.
	simcore.Config
	// Planner says what changes the number of workers while the simulation runs.
	Planner planner.Config `json:"planner"`
}

// DefaultConfig is what an empty spec says.
func DefaultConfig() Config {
	return Config{Config: simcore.DefaultConfig(), Planner: planner.DefaultConfig()}
}

// Planned reports whether a planner changes the number of workers.
func (c *Config) Planned() bool { return c.Planner.Policy != planner.PolicyStatic }

// needsPlanner reports whether a setting changes nothing without a planner.
func needsPlanner(path string) bool {
	return strings.HasPrefix(path, plannerPrefix) && path != plannerPrefix+"policy" || commonPath(path) == "engine.startup_time"
}

const plannerPrefix = "planner."

// plans reports whether a setting can change anything, as far as the planner says.
func (c *Config) plans(path string) bool {
	if key, ok := strings.CutPrefix(path, plannerPrefix); ok {
		return c.Planner.Uses(key)
	}
	return c.Planned() || !needsPlanner(path)
}

// Resolve fills in what the configuration leaves open. What changes nothing without a planner is as if it were not there.
// The list holds all that is wrong; the configuration is then incomplete.
func (c Config) Resolve() (Config, problem.List) {
	simulation, l := c.Config.Resolve()
	plan, problems := c.Planner.Resolve(simulation)
	if !c.Planned() {
		simulation.Engine.StartupTime, simulation.Prefill.Engine.StartupTime, simulation.Decode.Engine.StartupTime = 0, 0, 0
	}
	return Config{Config: simulation, Planner: plan}, append(l, problems.Under("planner")...)
}
