package realtime

import "time"

// clock is how time passes.
type clock interface {
	// elapsed is the real time since the start.
	elapsed() time.Duration
	// wait waits until so much time has elapsed, or something is in wake.
	wait(until time.Duration, wake <-chan struct{})
}

// realClock is the clock of this machine.
type realClock struct {
	start time.Time
	timer *time.Timer
}

func newRealClock(start time.Time) *realClock {
	return &realClock{start: start, timer: time.NewTimer(0)}
}

func (c *realClock) elapsed() time.Duration { return time.Since(c.start) }

func (c *realClock) wait(until time.Duration, wake <-chan struct{}) {
	c.timer.Reset(until - c.elapsed())
	select {
	case <-c.timer.C:
	case <-wake:
	}
}

// forever is longer than any deployment runs.
const forever = 1<<63 - 1

// realTime is the real time at which a simulated one, in ms, has come: never before it.
func (d *Deployment) realTime(simulatedMs float64) time.Duration {
	ns := simulatedMs / d.speedup * 1e6
	if ns >= 1<<62 {
		return forever
	}
	at := time.Duration(ns) + 1
	if d.simulatedMs(at) < simulatedMs { // by a rounding
		at++
	}
	return at
}

// simulatedMs is the simulated time at a real one.
func (d *Deployment) simulatedMs(elapsed time.Duration) float64 {
	return float64(elapsed) / 1e6 * d.speedup
}
