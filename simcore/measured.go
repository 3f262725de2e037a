package simcore

import (
	"cmp"
	"math"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Measured is what became of the requests of a workload that [Run] did not simulate: those that were sent to an endpoint.
type Measured struct {
	// Requests are those that were sent, in any order.
	Requests []MeasuredRequest
	// Gaps are the gaps between the tokens of requests that are measured; nil where they are not known. UserGaps are those that the
	// throughput per user is taken from, where they are others; without either it is taken from each request's mean gap.
	Gaps, UserGaps *metrics.GapRecorder
	// EndMs is when the last request had ended, in ms since the run began.
	EndMs float64
	// Scenario is how the AgentX scenario went ([Releases.Scenario]); nil without one, or when its window did not begin.
	Scenario *Scenario
	// Live says what else the report tells, and what it does not know. The counts of requests by how they ended, and the lag,
	// are filled in.
	Live metrics.Live
}

// MeasuredRequest is a request that was sent.
type MeasuredRequest struct {
	// RequestRecord has the request's lengths and times, as far as they are known; its Life.State is completed, rejected or
	// failed, and anything else for one that has not ended.
	RequestRecord
	// Number is that of its release ([Release.Number]), of the AgentX scenario only.
	Number int32
	// Cancelled says that whoever sent it ended it.
	Cancelled bool
	// LagMs is how long after its time it was sent.
	LagMs float64
}

// Summarise reports what was measured with the figures that [Run] reports of a simulation. cfg is resolved, and w is what was
// sent. The error is that of an unknown rule set.
func Summarise(cfg Config, w *workload.Workload, m Measured) (*Report, error) {
	set, err := rules.For(cfg.Compat)
	if err != nil {
		return nil, err
	}
	s := &simulation{released: released{cfg: cfg, workload: w}, rules: set, endMs: m.EndMs, measured: &m}
	s.totals.grow(len(m.Requests))
	var lag metrics.Values
	m.Live.FailedRequests, m.Live.CancelledRequests, m.Live.OutputMismatches = 0, 0, 0
	for i := range m.Requests {
		q := &m.Requests[i]
		s.arrived++
		if !q.WarmUp {
			lag.Add(q.LagMs)
		}
		s.addMeasured(q)
	}
	m.Live.ScheduleLag = lag.Summary()
	s.gaps = cmp.Or(m.Gaps, &metrics.GapRecorder{})
	r := s.report()
	r.Live, r.SimulatorVersion = &m.Live, ""
	if m.UserGaps == nil && m.Gaps == nil {
		m.UserGaps = s.meanGaps()
	}
	if m.UserGaps != nil {
		r.OutputTokenThroughputPerUser = m.UserGaps.ThroughputPerUser()
	}
	if m.Scenario != nil {
		r.AgentX = s.measuredAgentX(r)
	}
	return r, nil
}

// meanGaps are the gaps between tokens if each request had equal ones.
func (s *simulation) meanGaps() *metrics.GapRecorder {
	var gaps metrics.GapRecorder
	for i := range s.measured.Requests {
		q := &s.measured.Requests[i]
		if life := &q.Life; !q.WarmUp && !q.Cancelled && life.State == engine.Completed && life.Tokens > 1 {
			n := int64(life.Tokens - 1)
			gaps.RecordGaps(perfmodel.Nanoseconds(math.Round((life.LastTokenMs-life.FirstTokenMs)*1e6/float64(n))), n)
		}
	}
	return &gaps
}

// addMeasured adds a request by how it ended.
func (s *simulation) addMeasured(q *MeasuredRequest) {
	live := &s.measured.Live
	switch {
	case q.WarmUp:
	case q.Cancelled:
		live.CancelledRequests++
	case q.Life.State == engine.Failed:
		live.FailedRequests++
	case q.Life.State == engine.Completed && q.Life.Tokens != q.Life.Output:
		live.OutputMismatches++
	}
	if !q.WarmUp && (q.Cancelled || q.Life.State == engine.Failed) {
		if s.classified() {
			s.countClasses(&q.Life)
		}
		return
	}
	s.countRequest(&q.Life, q.WarmUp)
}

// measuredAgentX is what only the AgentX scenario reports. What a cache without limit would have had is NaN if it has too many blocks
// to tell: that is no reason to lose what was measured.
func (s *simulation) measuredAgentX(r *Report) *metrics.AgentX {
	t := &s.totals.agentX
	for i := range s.measured.Requests {
		q := &s.measured.Requests[i]
		t.add(q.Number, &q.Life, !q.Cancelled && q.Life.State == engine.Completed, q.WarmUp)
	}
	a, _ := t.report(*s.measured.Scenario, r, s.totals.warmUps, s.cfg.Stages()[0].Engine.BlockSize, math.Max(r.MeanGPUs, 1))
	return a
}
