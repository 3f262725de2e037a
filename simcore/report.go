package simcore

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// RequestRecord is the life of one request. Times are simulated ms, or [engine.Never] where the request did not
// get there.
type RequestRecord struct {
	// Request and Session number the request and its session in the workload; Turn counts from 0.
	Request, Session, Turn int
	// Play numbers the conversations of a scenario in the order in which users start them; -1 without a scenario. Requests
	// that warm the cache up for one have its number, and WarmUp set.
	Play   int
	WarmUp bool
	// Life holds lengths, times and counts.
	Life engine.Request
	// Handoff is how it went from prefill to decode in a disaggregated deployment; nil otherwise.
	Handoff *Handoff
	// Parts says where its time went until its latest token; zero without one.
	Parts LatencyParts
}

// completed reports whether a request counts as completed under the rule set.
func (s *simulation) completed(r *engine.Request) bool {
	return r.State == engine.Completed || s.rules.CompletedNeedsToken && r.AdmittedMs >= 0 && r.Tokens > 0
}

// count adds what a worker counted.
func (s *simulation) count(w engine.Worker) {
	s.limited.Add(w.Limited())
	passes, extrapolated := w.Passes()
	s.passes += passes
	s.extrapolated += extrapolated
	s.preemptions += w.Preemptions()
}

// countedOutput is the output that a completed request counts with.
func (s *simulation) countedOutput(q *engine.Request) int64 {
	if s.measured != nil {
		return int64(q.Tokens)
	}
	if _, limited := s.cfg.Engine.OutputRoom(int(q.Input)); limited && s.rules.CompletedNeedsToken {
		return int64(s.workload.Output[q.Number])
	}
	return int64(q.Output)
}

// totals adds up requests as they are over.
type totals struct {
	rejected, unfinished, truncated, completed, good int64
	input, output, goodOutput, reused, reusedFirst   int64
	durationMs                                       float64
	firstMs                                          float64 // of a scenario: when the first measured request was released
	warmUps                                          int64   // requests of a scenario that are not measured
	agentX                                           agentXTotals
	ttft, ttst, tpot, e2e                            metrics.Values
	queued, handoff                                  metrics.Values
	parts                                            metrics.LatencyPartsSum
	byPriority                                       map[int32]*classTotals
	byPolicyClass                                    map[string]*classTotals
}

// classTotals adds up the requests of one class under an SLA.
type classTotals struct{ arrived, good, goodOutput int64 }

// classes returns the classes of a request whose goodput is reported: that of its priority and that which it names.
func (s *simulation) classes(q *engine.Request) (ofPriority, ofPolicyClass *classTotals) {
	t := &s.totals
	if t.byPriority == nil {
		t.byPriority, t.byPolicyClass = map[int32]*classTotals{}, map[string]*classTotals{}
	}
	hints := s.workload.Hints(int(q.Number))
	if ofPriority = t.byPriority[hints.Priority]; ofPriority == nil {
		ofPriority = &classTotals{}
		t.byPriority[hints.Priority] = ofPriority
	}
	if ofPolicyClass = t.byPolicyClass[hints.PolicyClass]; ofPolicyClass == nil {
		ofPolicyClass = &classTotals{}
		t.byPolicyClass[hints.PolicyClass] = ofPolicyClass
	}
	return ofPriority, ofPolicyClass
}

func (t *totals) grow(n int) {
	for _, v := range t.ofAllRequests() {
		v.Grow(n)
	}
}

func (t *totals) free() {
	for _, v := range t.ofAllRequests() {
		v.Free()
	}
}

// ofAllRequests are the distributions that have a value of each request.
func (t *totals) ofAllRequests() []*metrics.Values {
	return []*metrics.Values{&t.ttft, &t.ttst, &t.tpot, &t.e2e}
}

// collect adds the requests of workers that are done.
func (s *simulation) collect(env *engine.Environment) {
	t := &s.totals
	for i := range env.Requests {
		q := &env.Requests[i]
		if q.State == engine.Pending {
			continue
		}
		if s.emit != nil {
			s.records = append(s.records, s.record(q))
		}
		if s.scenario != nil {
			t.agentX.add(q.Number, q, s.completed(q), s.warmsUp(q.Number))
		}
		s.countRequest(q, s.warmsUp(q.Number))
	}
	t.durationMs = max(t.durationMs, env.PromptsEndMs)
}

// countRequest adds a request that is over to the totals. One that only warmed the cache up is not measured.
func (s *simulation) countRequest(q *engine.Request, warmUp bool) {
	t := &s.totals
	if warmUp {
		t.warmUps++
		return
	}
	if q.Truncated {
		t.truncated++
	}
	if s.classified() {
		s.countClasses(q)
	}
	switch {
	case q.State == engine.Rejected, q.State == engine.Failed:
		t.rejected++
	case s.completed(q):
		s.collectCompleted(q)
	default:
		t.unfinished++
	}
}

// windowed reports whether only requests of a window are measured, so that the duration counts from the first of them.
func (s *simulation) windowed() bool {
	return s.scenario != nil || s.measured != nil && s.measured.Scenario != nil
}

// warmsUp reports whether a request only warms the cache up, so that it is not measured.
func (s *simulation) warmsUp(request int32) bool {
	return s.scenario != nil && s.scenario.WarmUp(s.workload.Graph.Play[request])
}

// classified reports whether goodput is reported by class.
func (s *simulation) classified() bool { return s.cfg.SLA.Set() && s.workload.HasHints() }

func (s *simulation) countClasses(q *engine.Request) {
	ofPriority, ofPolicyClass := s.classes(q)
	for _, c := range []*classTotals{ofPriority, ofPolicyClass} {
		c.arrived++
		if s.completed(q) && q.Tokens > 0 && s.cfg.SLA.KeptBy(q) {
			c.good++
			c.goodOutput += s.countedOutput(q)
		}
	}
}

func (s *simulation) collectCompleted(q *engine.Request) {
	t := &s.totals
	t.completed++
	t.input += int64(q.Input)
	t.output += s.countedOutput(q)
	t.reused += int64(q.Reused)
	t.reusedFirst += int64(q.ReusedFirst)
	if s.cfg.Router.UsesIndex() && s.measured == nil {
		t.queued.Add(q.RoutedMs - q.ArrivalMs)
	}
	if s.handoffs != nil {
		h := &s.handoffs[q.Number]
		t.handoff.Add(h.ActivatedMs - h.SourceHeldMs)
	}
	if q.Tokens == 0 {
		return
	}
	if s.windowed() {
		if t.durationMs == 0 {
			t.firstMs = q.ArrivalMs
		}
		t.firstMs = min(t.firstMs, q.ArrivalMs)
	}
	t.durationMs = max(t.durationMs, q.LastTokenMs)
	t.ttft.Add(q.FirstTokenMs - q.ArrivalMs)
	t.e2e.Add(q.LastTokenMs - q.ArrivalMs)
	if s.measured == nil {
		t.parts.Add(s.latencyParts(q))
	}
	if q.Tokens > 1 {
		t.ttst.Add(q.SecondTokenMs - q.FirstTokenMs)
		t.tpot.Add((q.LastTokenMs - q.FirstTokenMs) / float64(q.Tokens-1))
	}
	if s.cfg.SLA.Set() && s.cfg.SLA.KeptBy(q) {
		t.good++
		t.goodOutput += s.countedOutput(q)
	}
}

// report sums the simulation up.
func (s *simulation) report() *Report {
	t := &s.totals
	durationMs := max(0, t.durationMs-t.firstMs)
	seconds := max(durationMs/1000, 1e-9)
	r := &Report{
		NumRequests: s.arrived - t.warmUps, CompletedRequests: t.completed, RejectedRequests: t.rejected,
		TruncatedRequests: t.truncated, UnfinishedRequests: t.unfinished,
		LeftOutRecords:   int64(s.workload.LeftOut),
		Preemptions:      s.preemptions,
		Passes:           s.passes,
		TotalInputTokens: t.input, TotalOutputTokens: t.output,
		DurationMs:           durationMs,
		RequestThroughputRPS: float64(t.completed) / seconds,
		InputThroughputTokS:  float64(t.input) / seconds,
		OutputThroughputTokS: float64(t.output) / seconds,
		TotalThroughputTokS:  float64(t.input+t.output) / seconds,
		TTFT:                 t.ttft.Summary(), TTST: t.ttst.Summary(), TPOT: t.tpot.Summary(), E2ELatency: t.e2e.Summary(),
		ITL:                          s.gaps.ITL(),
		OutputTokenThroughputPerUser: s.gaps.ThroughputPerUser(),
		SimulatorVersion:             SemanticVersion,
		WorkloadDigest:               s.workload.Digest(),
	}
	if t.input > 0 {
		r.PrefixCacheReusedRatio = float64(t.reused) / float64(t.input)
		r.FirstAdmissionReusedRatio = float64(t.reusedFirst) / float64(t.input)
	}
	if s.passes > 0 {
		r.ExtrapolatedPassRatio = float64(s.extrapolated) / float64(s.passes)
	}
	s.reportWorkers(r, seconds)
	s.reportBreakdown(r)
	r.OutputThroughputTokSPerGPU = r.OutputThroughputTokS / float64(s.cfg.GPUs())
	if s.scaling != nil {
		r.OutputThroughputTokSPerGPU = float64(t.output) / max(r.GPUHours*3600, 1e-9)
	}
	r.Tiers = s.tiers.Report(s.endMs)
	if s.cfg.SLA.Set() {
		r.Goodput = &metrics.Goodput{
			CompletedRequests:    t.good,
			RequestThroughputRPS: float64(t.good) / seconds,
			OutputThroughputTokS: float64(t.goodOutput) / seconds,
		}
		if r.NumRequests > 0 {
			r.Goodput.SLAAttainment = float64(t.good) / float64(r.NumRequests)
		}
		r.GoodputByPriority = classGoodput(t.byPriority, seconds, func(p int32) string { return strconv.Itoa(int(p)) })
		r.GoodputByPolicyClass = classGoodput(t.byPolicyClass, seconds, func(name string) string { return name })
	}
	return r
}

// classGoodput lists the goodput of classes in their order.
func classGoodput[K cmp.Ordered](classes map[K]*classTotals, seconds float64, name func(K) string) []metrics.ClassGoodput {
	var out []metrics.ClassGoodput
	for _, k := range slices.Sorted(maps.Keys(classes)) {
		c := classes[k]
		out = append(out, metrics.ClassGoodput{Class: name(k), Requests: c.arrived, Goodput: metrics.Goodput{
			CompletedRequests:    c.good,
			RequestThroughputRPS: float64(c.good) / seconds,
			OutputThroughputTokS: float64(c.goodOutput) / seconds,
			SLAAttainment:        float64(c.good) / float64(c.arrived),
		}})
	}
	return out
}

// reportWorkers adds the time of the workers. An aggregated deployment has it under decode.
func (s *simulation) reportWorkers(r *Report, seconds float64) {
	t := &s.totals
	pools := s.cfg.Stages()
	decode := pools[len(pools)-1]
	r.DecodeWorkerSeconds = float64(decode.Workers) * s.endMs / 1000
	r.DecodeGPUsPerWorker = int64(decode.GPUsPerWorker())
	if len(pools) > 1 {
		r.PrefillWorkerSeconds = float64(pools[0].Workers) * s.endMs / 1000
		r.PrefillGPUsPerWorker = int64(pools[0].GPUsPerWorker())
	} else if s.rules.SingleWorkerLoop && decode.Workers == 1 && s.scaling == nil {
		r.DecodeWorkerSeconds = seconds
	}
	if s.scaling != nil {
		s.endMs = max(s.endMs, s.scaling.latestMs())
		r.Scaling = s.scaling.end(s.endMs)
		r.PrefillWorkerSeconds, r.DecodeWorkerSeconds = r.Scaling.Prefill.WorkerSeconds(), r.Scaling.Decode.WorkerSeconds()
	}
	r.DecodeUtilisation = utilisation(s.busy[len(pools)-1], r.DecodeWorkerSeconds)
	if len(pools) > 1 {
		r.PrefillUtilisation = utilisation(s.busy[0], r.PrefillWorkerSeconds)
		if s.measured == nil {
			handoff := t.handoff.Summary()
			r.Handoff = &handoff
		}
	}
	if s.cfg.Router.UsesIndex() && s.measured == nil {
		queued := t.queued.Summary()
		r.RouterQueue = &queued
	}
	r.GPUHours = (r.PrefillWorkerSeconds*float64(r.PrefillGPUsPerWorker) + r.DecodeWorkerSeconds*float64(r.DecodeGPUsPerWorker)) / 3600
	r.MeanGPUs, r.PeakGPUs = float64(s.cfg.GPUs()), int64(s.cfg.GPUs())
	if s.scaling != nil {
		r.PeakGPUs = s.scaling.peakGPUs
	}
	if s.scaling != nil && s.scaling.changed() && s.endMs > 0 {
		r.MeanGPUs = r.GPUHours * 3600 / (s.endMs / 1000)
	}
}

// utilisation is the share of the workers' time in which they were busy.
func utilisation(busyNanoseconds int64, workerSeconds float64) float64 {
	if workerSeconds <= 0 {
		return 0
	}
	return min(1, float64(busyNanoseconds)/1e9/workerSeconds)
}

// wholeNanoseconds rounds a time in ms.
func wholeNanoseconds(ms float64) int64 { return int64(math.Round(ms * 1e6)) }

// record describes one request by session and turn.
func (s *simulation) record(q *engine.Request) RequestRecord {
	number, starts := q.Number, s.workload.SessionStart
	if s.scenario != nil {
		number, starts = s.scenario.Base[number], s.scenario.base.SessionStart
	}
	session, first := slices.BinarySearch(starts[:len(starts)-1], number)
	if !first {
		session--
	}
	record := RequestRecord{Request: int(number), Session: session, Turn: int(number - starts[session]), Play: -1, Life: *q, Parts: s.latencyParts(q)}
	if s.scenario != nil {
		record.WarmUp, record.Play = s.warmsUp(q.Number), s.scenario.Instance(int(s.workload.Graph.Play[q.Number]))
	}
	if s.handoffs != nil {
		record.Handoff = &s.handoffs[q.Number]
	}
	return record
}

// emitRecords hands out the records of all requests that arrived, in order of arrival.
func (s *simulation) emitRecords() {
	slices.SortFunc(s.records, func(a, b RequestRecord) int {
		return cmp.Or(cmp.Compare(a.Life.ArrivalMs, b.Life.ArrivalMs), cmp.Compare(a.Request, b.Request))
	})
	for _, r := range s.records {
		s.emit(r)
	}
}
