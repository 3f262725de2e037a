package planner

// schedule says when to look at what. Times are in simulated seconds.
type schedule struct {
	rules ruleSet
	// load and throughput are the intervals; throughput is 0 when nobody looks at traffic. step is the time between ticks.
	load, throughput, step float64
	// at is when the next tick is due.
	at float64
	// lastLoad and lastThroughput are when each was looked at last.
	lastLoad, lastThroughput float64
}

// newSchedule makes the schedule of a configuration.
func newSchedule(c *Config, r ruleSet) *schedule {
	s := &schedule{rules: r, load: float64(c.LoadAdjustmentIntervalSeconds)}
	s.step = s.load
	if c.OptimizationTarget == "sla" && c.EnableThroughputScaling {
		s.throughput = float64(c.ThroughputAdjustmentIntervalSeconds)
		s.step = float64(gcd(c.LoadAdjustmentIntervalSeconds, c.ThroughputAdjustmentIntervalSeconds))
	}
	if c.ScaleIntervalSeconds > 0 {
		s.step = c.ScaleIntervalSeconds
	}
	s.at = s.following(0)
	return s
}

// due tells what is due at the tick that the schedule has come to.
func (s *schedule) due() (load, throughput bool) {
	const together = 0.5 // looks that are due within half a second are one tick, by the rules with drifting ticks
	slack := 1e-9
	if s.rules.DriftingTicks {
		slack = together
	}
	return s.lastLoad+s.load <= s.at+slack, s.throughput > 0 && s.lastThroughput+s.throughput <= s.at+slack
}

// advance goes to the next tick when the clock shows now at this one.
func (s *schedule) advance(now float64) {
	load, throughput := s.due()
	if load {
		s.lastLoad = now
	}
	if throughput {
		s.lastThroughput = now
	}
	last := s.at
	if s.at = s.following(now); s.at <= last {
		// Nothing has happened since the last tick, so that the clock stands still: as if it had moved with the ticks.
		if load {
			s.lastLoad = last
		}
		if throughput {
			s.lastThroughput = last
		}
		s.at = s.following(last)
	}
}

// following returns when the tick after a time is due.
func (s *schedule) following(now float64) float64 {
	if !s.rules.DriftingTicks {
		return now + s.step
	}
	at := s.lastLoad + s.load
	if s.throughput > 0 {
		at = min(at, s.lastThroughput+s.throughput)
	}
	return at
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
