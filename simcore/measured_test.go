package simcore

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// TestSummariseAgreesWithRun sums up the records of a simulation as if they had been measured, and compares all figures that a
// measurement knows.
func TestSummariseAgreesWithRun(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, cfg := drawWorkload(rt, shape{noZeroOutput: true}), drawConfig(rt, shape{noZeroOutput: true})
		cfg.Compat, cfg.SLA = rules.Default, SLA{TTFTMs: 100, E2EMs: 1000}
		o := simulate(rt, cfg, w, Options{})
		resolved, problems := cfg.Resolve()
		if o.Err != nil || problems.Err() != nil {
			return
		}
		m := Measured{Live: metrics.Live{PlannedRequests: int64(w.Requests()), KnowsReuse: true}}
		for _, r := range o.Records {
			m.Requests = append(m.Requests, MeasuredRequest{RequestRecord: r})
		}
		got, err := Summarise(resolved, w, m)
		if err != nil {
			rt.Fatal(err)
		}
		for _, f := range metrics.Fields() {
			if strings.HasSuffix(f.Name, "_output_token_throughput_per_user") {
				continue // of requests, where a simulation has it of every gap
			}
			a, known := f.Value(got)
			if f.Name == "rejected_requests" { // those that failed count by themselves
				a += float64(got.Live.FailedRequests)
			}
			if b, has := f.Value(o.Report); known && has && a != b {
				rt.Errorf("%s: %v simulated, %v measured", f.Name, b, a)
			}
		}
	})
}

// TestSummariseCounts checks that each request counts once, by how it ended.
func TestSummariseCounts(t *testing.T) {
	w := build(t, 16, []workload.Request{{Input: 10, Output: 4}})
	request := func(state engine.State, tokens int32) MeasuredRequest {
		return MeasuredRequest{LagMs: 2, RequestRecord: RequestRecord{Life: engine.Request{
			State: state, Input: 10, Output: 4, Tokens: tokens, AdmittedMs: engine.Never, ArrivalMs: 100, FirstTokenMs: 110, SecondTokenMs: 115, LastTokenMs: 130,
		}}}
	}
	warm := request(engine.Completed, 4)
	warm.WarmUp, warm.LagMs = true, 1000
	gone := request(engine.Completed, 4)
	gone.Cancelled = true
	cfg := DefaultConfig()
	cfg.Engine.BlockSize, cfg.Load.Mode, cfg.Load.Concurrency, cfg.AgentX.Preset = 16, LoadConcurrency, 1, AgentXRFC
	b := workload.NewGraphBuilder("made", 16)
	b.Add(workload.GraphRequest{Request: workload.Request{Input: 10, Output: 4, Hashes: []uint64{1}}})
	conversation, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	releases, err := NewReleases(t.Context(), cfg, conversation, Window{})
	if err != nil {
		t.Fatal(err)
	}
	m := Measured{Scenario: releases.Scenario(), EndMs: 200, Requests: []MeasuredRequest{
		warm, gone, request(engine.Completed, 4), request(engine.Completed, 3), request(engine.Failed, 2), request(engine.Rejected, 0), request(engine.Pending, 1),
	}}
	r, err := Summarise(cfg, w, m)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{
		"all": r.NumRequests, "completed": r.CompletedRequests, "rejected": r.RejectedRequests, "unfinished": r.UnfinishedRequests, "failed": r.Live.FailedRequests,
		"cancelled": r.Live.CancelledRequests, "mismatches": r.Live.OutputMismatches, "output": r.TotalOutputTokens, "warm-ups": r.AgentX.WarmUpRequests,
	}
	want := map[string]int64{"all": 6, "completed": 2, "rejected": 1, "unfinished": 1, "failed": 1, "cancelled": 1, "mismatches": 1, "output": 7, "warm-ups": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r.DurationMs != 30 || r.Live.ScheduleLag.Max != 2 || r.TTFT.Mean != 10 {
		t.Errorf("duration %v, lag %v, TTFT %v", r.DurationMs, r.Live.ScheduleLag, r.TTFT)
	}
}
