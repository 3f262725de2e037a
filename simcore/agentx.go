package simcore

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// The presets of the AgentX scenario.
const (
	// AgentXRFC is the benchmark as its request for comments describes it.
	AgentXRFC = "rfc"
	// AgentXInferenceX is the benchmark as InferenceX runs it.
	AgentXInferenceX = "ix"
)

// The values of [AgentX.StartBasis].
const (
	StartByTurns = "turns"
	StartByTime  = "time"
)

// The values of [AgentX.WarmUp].
const (
	WarmUpRepeatedPrefixes = "repeated_prefixes"
	WarmUpLiveTrajectory   = "live_trajectory"
)

// The values of [AgentX.Overflow].
const (
	OverflowTruncate = "truncate"
	OverflowDrop     = "drop"
)

// The values of [AgentX.SpawnWait].
const (
	SpawnWaitRecorded = "recorded"
	SpawnWaitAll      = "all"
)

// AgentX is the scenario of that benchmark (spec/workloads.md §3): users who each play one conversation of an agent after
// another. The first ones start somewhere in the middle, after their beginnings have been put into the cache; then the
// measured window runs. load.concurrency is the number of users. What is -1 (null in a spec) or empty is as the preset has it.
type AgentX struct {
	// Preset is "rfc", the benchmark as its request for comments describes it, or "ix", as InferenceX runs it; empty means no
	// such scenario.
	Preset string `json:"preset"`
	// Seed draws the order of conversations and where the first ones start.
	Seed uint64 `json:"seed"`
	// DurationS is how long the measured window lasts, in s; no request starts after it.
	DurationS float64 `json:"duration_s"`
	// GraceS is how long requests under way at its end may take to be measured, in s.
	GraceS float64 `json:"grace_s"`
	// StartMin is the least share of a conversation that a user's first one has behind it.
	StartMin float64 `json:"start_min"`
	// StartMax is the most of it.
	StartMax float64 `json:"start_max"`
	// StartBasis says what start_min and start_max are shares of: the main agent's "turns", or the "time" from the first request to
	// the last; "" is as the preset has it.
	StartBasis string `json:"start_basis"`
	// GapCapS bounds the time between an answer and the next request, in s; 0 means no bound.
	GapCapS float64 `json:"gap_cap_s"`
	// TreeIdleCapS bounds how long a conversation does nothing, in s; 0 means no bound.
	TreeIdleCapS float64 `json:"tree_idle_cap_s"`
	// GlobalIdleCapS bounds how long all conversations do nothing, in s; 0 means no bound.
	GlobalIdleCapS float64 `json:"global_idle_cap_s"`
	// PrimersPerUser is how many more requests of each user warm the cache up than one for each agent that goes on.
	PrimersPerUser int `json:"primers_per_user"`
	// WarmUp says what primers_per_user counts: "repeated_prefixes", the same requests again, or "live_trajectory", the next ones of
	// the user's conversations, without pauses; "" is as the preset has it.
	WarmUp string `json:"warm_up"`
	// SpawnWait says for which of its subagents an agent waits before its next turn: for those that it waited for as "recorded", or
	// for "all"; "" is as the preset has it.
	SpawnWait string `json:"spawn_wait"`
	// Overflow says what becomes of a conversation with a request that does not fit engine.context_length: "truncate" ends it before
	// that request, "drop" leaves it out; "" is as the preset has it.
	Overflow string `json:"overflow"`
	// Salt says whose prompts share KV blocks: "play", no two plays of a conversation, "user", the plays of a conversation by
	// one user, or "none", all plays as in the recording.
	Salt string `json:"salt"`
}

// DefaultAgentX has no scenario, and all settings as the preset has them.
func DefaultAgentX() AgentX {
	return AgentX{Seed: 42, DurationS: -1, GraceS: -1, StartMin: -1, StartMax: -1, GapCapS: -1, TreeIdleCapS: -1, GlobalIdleCapS: -1, PrimersPerUser: -1, Salt: workload.SaltPlay}
}

// Enabled reports whether there is such a scenario.
func (a AgentX) Enabled() bool { return a.Preset != "" }

// agentXPresets are the settings of the presets (spec/workloads.md §3.1, §3.3).
var agentXPresets = map[string]AgentX{
	AgentXRFC: {
		DurationS: 1800, GraceS: 0, StartMin: 0, StartMax: .7, StartBasis: StartByTurns, GapCapS: 60, TreeIdleCapS: 0, GlobalIdleCapS: 0, PrimersPerUser: 0,
		WarmUp: WarmUpRepeatedPrefixes, SpawnWait: SpawnWaitAll, Overflow: OverflowTruncate,
	},
	AgentXInferenceX: {
		DurationS: 3600, GraceS: 30, StartMin: .25, StartMax: .75, StartBasis: StartByTime, GapCapS: 0, TreeIdleCapS: 300, GlobalIdleCapS: 10, PrimersPerUser: 10,
		WarmUp: WarmUpRepeatedPrefixes, SpawnWait: SpawnWaitRecorded, Overflow: OverflowDrop,
	},
}

// settings lists the settings that a preset fills in.
func (a *AgentX) settings() []struct {
	key   string
	value *float64
} {
	return []struct {
		key   string
		value *float64
	}{
		{"duration_s", &a.DurationS}, {"grace_s", &a.GraceS}, {"start_min", &a.StartMin}, {"start_max", &a.StartMax}, {"gap_cap_s", &a.GapCapS},
		{"tree_idle_cap_s", &a.TreeIdleCapS}, {"global_idle_cap_s", &a.GlobalIdleCapS},
	}
}

// choices lists the settings that a preset chooses, and what there is to choose from.
func (a *AgentX) choices() []struct {
	key    string
	value  *string
	values []string
} {
	return []struct {
		key    string
		value  *string
		values []string
	}{
		{"start_basis", &a.StartBasis, []string{StartByTurns, StartByTime}},
		{"warm_up", &a.WarmUp, []string{WarmUpRepeatedPrefixes, WarmUpLiveTrajectory}},
		{"spawn_wait", &a.SpawnWait, []string{SpawnWaitRecorded, SpawnWaitAll}},
		{"overflow", &a.Overflow, []string{OverflowTruncate, OverflowDrop}},
	}
}

// Filled is the scenario with what its preset has.
func (a AgentX) Filled() AgentX {
	preset := agentXPresets[a.Preset]
	own, given := a.settings(), preset.settings()
	for i := range own {
		if *own[i].value == -1 {
			*own[i].value = *given[i].value
		}
	}
	if a.PrimersPerUser == -1 {
		a.PrimersPerUser = preset.PrimersPerUser
	}
	chosen, usual := a.choices(), preset.choices()
	for i := range chosen {
		*chosen[i].value = cmp.Or(*chosen[i].value, *usual[i].value)
	}
	return a
}

// What the scenario's settings are at most.
const (
	maxAgentXSeconds = 1e6
	maxPrimers       = 1000
)

// validateAgentX returns the problems of the scenario, by key path.
func (c Config) validateAgentX(set rules.Set) problem.List {
	var l problem.List
	a := c.AgentX
	if !a.Enabled() {
		return nil
	}
	if _, known := agentXPresets[a.Preset]; !known {
		l.Add("agentx.preset", a.Preset, "use one of: %s; or leave it out", strings.Join([]string{AgentXRFC, AgentXInferenceX}, ", "))
		return l
	}
	if c.Load.Mode != LoadConcurrency {
		l.Add("load.mode", c.Load.Mode, "the AgentX scenario has a number of users: use mode %s, and give it as load.concurrency", LoadConcurrency)
	}
	if c.Load.MaxSimTimeSeconds > 0 {
		l.Add("load.max_sim_time_seconds", c.Load.MaxSimTimeSeconds, "the AgentX scenario ends by itself; use agentx.duration_s")
	}
	if set.NoGraphLanes {
		l.Add("agentx.preset", a.Preset, "the releases that compat stands for have no such scenario; leave compat or agentx out")
	}
	for _, s := range a.settings() {
		if v := *s.value; v != -1 && !(v >= 0 && v <= maxAgentXSeconds) {
			l.Add("agentx."+s.key, v, "give 0 to %g, or null for the preset's", float64(maxAgentXSeconds))
		}
	}
	if a.PrimersPerUser < -1 || a.PrimersPerUser > maxPrimers {
		l.Add("agentx.primers_per_user", a.PrimersPerUser, "give 0 to %d, or null for the preset's", maxPrimers)
	}
	if salts := []string{workload.SaltPlay, workload.SaltUser, workload.SaltNone}; !slices.Contains(salts, a.Salt) {
		l.Add("agentx.salt", a.Salt, "use one of: %s", strings.Join(salts, ", "))
	}
	for _, choice := range a.choices() {
		if v := *choice.value; v != "" && !slices.Contains(choice.values, v) {
			l.Add("agentx."+choice.key, v, "use one of: %s; or leave it out for the preset's", strings.Join(choice.values, ", "))
		}
	}
	if c.Load.Speedup != 1 {
		l.Add("load.speedup", c.Load.Speedup, "the AgentX scenario plays conversations at their recorded speed; leave it out")
	}
	if f := a.Filled(); f.DurationS == 0 {
		l.Add("agentx.duration_s", f.DurationS, "give a window above 0 seconds")
	} else if f.StartMin > f.StartMax || f.StartMax > 1 {
		l.Add("agentx.start_max", f.StartMax, "give a share from start_min, %v, to 1", f.StartMin)
	}
	return l
}

// playsAhead is how many conversations a user is expected to play after the first one; a run that needs more starts again.
const playsAhead = 3

// simulateAgentX expands the conversations of a workload to those of the scenario, and simulates them.
func simulateAgentX(ctx context.Context, cfg Config, base *workload.Workload, opt Options) (*simulation, error) {
	if base.Graph == nil {
		return nil, errNoGraph
	}
	plan := cfg.agentXPlan()
	if opt.plan != nil {
		opt.plan(&plan)
	}
	for {
		scenario, err := workload.AgentX(ctx, base, plan)
		if err != nil {
			return nil, err
		}
		s, err := newSimulation(ctx, cfg, scenario.Workload, opt)
		if err != nil {
			return nil, err
		}
		s.scenario = &agentXRun{AgentXScenario: *scenario, base: base, cfg: cfg.AgentX.Filled()}
		if err := s.run(); err != nil || !s.scenario.exhausted() {
			return s, s.scenario.ofBase(err)
		}
		if scenario.Cut {
			return nil, workload.ErrTooManyAgentXRequests
		}
		plan.Plays = s.scenario.morePlays() - plan.Users
		if opt.Autoscaler != nil {
			if opt.Autoscaler, err = opt.restart(); err != nil {
				return nil, err
			}
		}
	}
}

// restart returns the autoscaler of a simulation that begins anew.
func (o Options) restart() (Autoscaler, error) {
	if o.Restarted == nil {
		return nil, errors.New("agentx.preset: the scenario begins anew when its users play more conversations than were planned, and this autoscaler cannot; use a fixed number of workers")
	}
	return o.Restarted()
}

// ofBase makes an error about a request one about the request of the conversations that it repeats.
func (r *agentXRun) ofBase(err error) error {
	var stuck *StuckError
	if !errors.As(err, &stuck) {
		return err
	}
	of := *stuck
	of.Request = int(r.Base[stuck.Request])
	return &of
}

// The least and the most that a plan grows by when it did not last.
const (
	leastGrowth, mostGrowth = 2, 16
	growthReserve           = 1.1
)

// morePlays is how many plays users will start if they go on like until there were no more, and some for safety.
func (r *agentXRun) morePlays() int {
	growth := growthReserve * (r.cutoffMs - r.startMs) / (r.exhaustedMs - r.startMs)
	return int(float64(r.started) * min(max(growth, leastGrowth), mostGrowth))
}

// AgentXPlays is the number of plays that conversations are expanded to at first.
func (c Config) AgentXPlays() int { return (1 + playsAhead) * c.Load.Concurrency }

// agentXPlan is what a workload is expanded to.
func (c Config) agentXPlan() workload.AgentXPlan {
	a := c.AgentX.Filled()
	cap := a.GapCapS * 1000
	if cap == 0 {
		cap = math.Inf(1)
	}
	return workload.AgentXPlan{
		Users: c.Load.Concurrency, Seed: a.Seed, Shuffle: true, StartMin: a.StartMin, StartMax: a.StartMax, ByTurn: a.StartBasis == StartByTurns,
		PrimerTokens: 1, PrimersPerUser: a.PrimersPerUser, PlayOn: a.WarmUp == WarmUpLiveTrajectory, GapCapMs: cap, ContextLength: c.Stages()[0].Engine.ContextLength,
		DropLong: a.Overflow == OverflowDrop, WaitForSubagents: a.SpawnWait == SpawnWaitAll, Salt: a.Salt, Plays: playsAhead * c.Load.Concurrency,
	}
}

var errNoGraph = errors.New("agentx: the scenario plays conversations of agents; use a trace of format weka, dynamo with sessions, or agentic_mooncake")
