package workload

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/servegrid/servegrid/simcore/problem"
)

// The presets.
const (
	// PresetChat resembles the Mooncake conversation trace: people chatting, each request with the whole
	// conversation so far, arrivals recorded in ticks of 3 s.
	PresetChat = "chat"
	// PresetAgentic resembles the coding agents of the kv-cache-tester corpus: closed-loop sessions whose prompt
	// grows from turn to turn until it is compacted.
	PresetAgentic = "agentic"
	// PresetToolAgent resembles the published figures of the Mooncake tool-and-agent trace: short work behind
	// long fixed system prompts.
	PresetToolAgent = "tool-agent"
	// PresetLongContext resembles the Mooncake synthetic trace: several questions about one long document,
	// mixed with short one-off prompts.
	PresetLongContext = "long-context"
	// PresetBursty resembles no trace: its rate rises to seven times the least one and falls again every 400 s, with
	// bursts on top, for studies of how fast a deployment must follow its load.
	PresetBursty = "bursty"
)

// PresetNames lists the accepted values of PresetSpec.Name.
func PresetNames() []string {
	return []string{PresetChat, PresetAgentic, PresetToolAgent, PresetLongContext, PresetBursty}
}

// PresetDefaults returns the number of requests and the mean rate per second that a preset has when its spec
// leaves them out: those of the trace it is fitted to, if any. Both are 0 for an unknown name.
//
//	chat          12,031 requests   3.4014/s
//	agentic        1,806 requests   0.5/s in 34 sessions
//	tool-agent    23,608 requests   6.5578/s
//	long-context   3,993 requests   3.9069/s
//	bursty         4,800 requests   4/s
func PresetDefaults(name string) (requests int, rate float64) {
	if f, ok := conversationPreset(name); ok {
		return f.requests, f.rate
	}
	if name == PresetAgentic {
		return agenticFit.requests, agenticFit.rate
	}
	return 0, 0
}

// Generate makes the workload. Equal specs give equal workloads on every machine.
//
// Rate moves arrivals closer together or further apart and leaves the pauses of one user as they are, so that a
// higher rate means more users at a time. Scale multiplies all lengths, shared parts included. Neither changes
// the random draws, and a larger Requests or DurationSeconds continues the smaller workload.
func (s PresetSpec) Generate() (*Workload, error) {
	if err := s.validate().Err(); err != nil {
		return nil, err
	}
	s = s.withDefaults()
	if f, ok := conversationPreset(s.Name); ok {
		return f.generate(s)
	}
	return agenticFit.generate(s)
}

// withDefaults fills in what the spec leaves out. Without an end of either kind the preset's own size is it.
func (s PresetSpec) withDefaults() PresetSpec {
	requests, rate := PresetDefaults(s.Name)
	if s.Rate == 0 {
		s.Rate = rate
	}
	if s.Scale == 0 {
		s.Scale = 1
	}
	if s.Requests == 0 {
		s.Requests = requests
		if s.DurationSeconds > 0 {
			s.Requests = maxPresetRequests
		}
	}
	if s.DurationSeconds == 0 {
		s.DurationSeconds = math.Inf(1)
	}
	return s
}

// Bounds that keep lengths, times and memory representable.
const (
	maxPresetRequests = 1_000_000
	minPresetRate     = 1e-4
	maxPresetRate     = 1000
	minPresetScale    = 1e-3
	maxPresetScale    = 100
)

func (s PresetSpec) validate() problem.List {
	var l problem.List
	_, own := PresetDefaults(s.Name)
	if own == 0 {
		names := PresetNames()
		allowed := "use one of: " + strings.Join(names, ", ")
		if meant := problem.Nearest(s.Name, names); meant != "" {
			allowed += fmt.Sprintf("; did you mean %q?", meant)
		}
		l.Add("name", fmt.Sprintf("%q", s.Name), "%s", allowed)
	}
	if s.Requests < 0 || s.Requests > maxPresetRequests {
		l.Add("requests", s.Requests, "give 1 to %d requests, or 0 for as many as duration_s holds", maxPresetRequests)
	}
	if s.Rate != 0 && !(s.Rate >= minPresetRate && s.Rate <= maxPresetRate) {
		l.Add("rate", s.Rate, "give %g to %g requests per second, or 0 for the preset's own", minPresetRate, float64(maxPresetRate))
	}
	if s.Scale != 0 && !(s.Scale >= minPresetScale && s.Scale <= maxPresetScale) {
		l.Add("scale", s.Scale, "give a factor from %g to %g, or 0 for 1", minPresetScale, float64(maxPresetScale))
	}
	if !(s.DurationSeconds >= 0 && s.DurationSeconds <= maxTimeMs/1000) {
		l.Add("duration_s", s.DurationSeconds, "give up to %g seconds, or 0 to end with requests", maxTimeMs/1000)
	} else if rate := cmp.Or(s.Rate, own); s.Requests == 0 && s.DurationSeconds*rate > maxPresetRequests {
		l.Add("duration_s", s.DurationSeconds, "at %g requests per second give at most %g seconds, or limit requests", rate, math.Floor(float64(maxPresetRequests)/rate))
	}
	return l
}
