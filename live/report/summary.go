package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Summary is a live run in figures.
type Summary struct {
	// Report has the figures that a simulation's report has, as far as they are known.
	Report *simcore.Report
	// Errors counts the requests that failed by what went wrong, warm-up included.
	Errors map[live.ErrorKind]int
	// Examples are what the first request that failed in each of these ways was told.
	Examples map[live.ErrorKind]string
	// Interrupted says that the run was ended before its time.
	Interrupted bool
}

// Summarise sums a live run up. deployment says whether the point states what is behind the endpoint; the costs of its GPUs
// are part of the report then. The error is that of an unknown rule set.
func Summarise(point gridspec.Point, w *workload.Workload, run *live.Run, deployment bool) (*Summary, error) {
	return summarise(point, w, run, measuredOf(w, run), deployment)
}

func summarise(point gridspec.Point, w *workload.Workload, run *live.Run, requests []simcore.MeasuredRequest, deployment bool) (*Summary, error) {
	m := simcore.Measured{
		Requests: requests, Gaps: run.Gaps, UserGaps: run.EvenGaps,
		Scenario: run.Scenario,
		Live:     metrics.Live{PlannedRequests: int64(run.Planned), KnowsDeployment: deployment, KnowsReuse: knowsReuse(run.Records), KnowsGaps: run.Gaps != nil},
	}
	out := &Summary{Errors: map[live.ErrorKind]int{}, Examples: map[live.ErrorKind]string{}, Interrupted: run.Interrupted}
	for i := range run.Records {
		r := &run.Records[i]
		m.EndMs = max(m.EndMs, r.EndMs)
		if r.Err != nil {
			if out.Errors[r.Err.Kind]++; out.Errors[r.Err.Kind] == 1 {
				out.Examples[r.Err.Kind] = r.Err.Message
			}
		}
	}
	count, known := preemptions(run.Samples)
	m.Live.KnowsPreemptions = known
	var err error
	if out.Report, err = simcore.Summarise(point.Config.Config, w, m); err != nil {
		return nil, err
	}
	out.Report.Preemptions = count
	if deployment && point.GPUPrice != (metrics.GPUPrice{}) {
		*out.Report = out.Report.WithCost(point.GPUPrice, point.Config.GPUs())
	}
	return out, nil
}

// errorKinds are the ways in which requests failed, most frequent first.
func (s *Summary) errorKinds() []live.ErrorKind {
	return slices.SortedFunc(maps.Keys(s.Errors), func(a, b live.ErrorKind) int {
		return cmp.Or(cmp.Compare(s.Errors[b], s.Errors[a]), cmp.Compare(a, b))
	})
}

// ErrorText lists what went wrong and how often, most frequent first; "" when nothing did.
func (s *Summary) ErrorText() string {
	kinds := s.errorKinds()
	parts := make([]string, len(kinds))
	for i, kind := range kinds {
		parts[i] = fmt.Sprintf("%s %d", kind, s.Errors[kind])
	}
	return strings.Join(parts, ", ")
}

// Text says in a few lines what the table of a report does not: how well the schedule was kept, and what went wrong.
func (s *Summary) Text() string {
	var b strings.Builder
	l, r := s.Report.Live, s.Report
	planned := ""
	if l.PlannedRequests >= 0 && l.PlannedRequests != r.NumRequests {
		planned = fmt.Sprintf(" of %d planned", l.PlannedRequests)
	}
	fmt.Fprintf(&b, "Sent Requests: %d%s; %d completed, %d failed, %d rejected, %d cancelled\n", r.NumRequests, planned, r.CompletedRequests, l.FailedRequests, r.RejectedRequests, l.CancelledRequests)
	if text := s.ErrorText(); text != "" {
		fmt.Fprintf(&b, "Errors: %s\n", text)
	}
	for _, kind := range s.errorKinds() {
		fmt.Fprintf(&b, "First %s: %.300q\n", kind, s.Examples[kind])
	}
	if l.OutputMismatches > 0 {
		fmt.Fprintf(&b, "Answers of another length than the workload states: %d\n", l.OutputMismatches)
	}
	fmt.Fprintf(&b, "Schedule Lag (ms): p50 %.2f, p90 %.2f, p99 %.2f, max %.2f\n", l.ScheduleLag.Median, l.ScheduleLag.P90, l.ScheduleLag.P99, l.ScheduleLag.Max)
	return b.String()
}
