package endpoint

import (
	"math"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/servegrid/servegrid/planner"
)

// Planner is what changes the number of workers of a deployment, such as a [planner.Online]. It is safe for concurrent use.
type Planner interface {
	// Policy is what decides.
	Policy() planner.Policy
	// State is what it knew and wanted at its latest tick.
	State() planner.OnlineState
}

// What there is of every policy.
var (
	plannerTicks     = prometheus.NewDesc("servegrid_planner_ticks_total", "Times that the planner decided.", nil, nil)
	plannerDecisions = prometheus.NewDesc("servegrid_planner_decisions_total", "Decisions that changed the number of workers of a pool.", []string{"pool", "direction"}, nil)
	workersAdded     = prometheus.NewDesc("servegrid_workers_added_total", "Workers that were asked for.", []string{"pool"}, nil)
	workersRemoved   = prometheus.NewDesc("servegrid_workers_removed_total", "Workers that are gone, or were given up before they were ready.", []string{"pool"}, nil)
)

// plannerCollector says what a planner saw and did: of every policy under the program's own names, of the policy dynamo under those
// of Dynamo's planner, of target_tracking under those by which kube-state-metrics tells of a horizontal pod autoscaler. Times are
// simulated ones, as the SLA is.
type plannerCollector struct {
	planner Planner
	dynamo  dynamoDescs
	current *prometheus.Desc // of target_tracking
	desired *prometheus.Desc
}

// dynamoDescs are metrics of Dynamo's planner. In a deployment without prefill workers, all workers count as decode workers.
type dynamoDescs struct {
	observed, predicted                           loadDescs
	observedTTFT, observedITL                     *prometheus.Desc
	replicas, wanted, capacity                    [2]*prometheus.Desc // of prefill and of decode workers
	estimatedTTFT, estimatedITL, gpuHours         *prometheus.Desc
	byLoad, byThroughput                          *prometheus.Desc
	queuedPrefill, queuedDecode, inflightDecodeKV *prometheus.Desc
}

// loadDescs are about traffic.
type loadDescs struct{ rate, input, output *prometheus.Desc }

func newPlannerCollector(p Planner) *plannerCollector {
	c := &plannerCollector{planner: p}
	hpa := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("kube_horizontalpodautoscaler_status_"+name, help, []string{"horizontalpodautoscaler"}, nil)
	}
	c.current, c.desired = hpa("current_replicas", "Workers of a pool that there are, those that start included."), hpa("desired_replicas", "Workers that a pool shall have.")
	const prefix = "dynamo_planner_"
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prefix+name, help, labels, nil)
	}
	load := func(what, help string) loadDescs {
		return loadDescs{
			rate:   desc(what+"_requests_per_second", help+" requests per second."),
			input:  desc(what+"_input_sequence_tokens", help+" mean length of prompts."),
			output: desc(what+"_output_sequence_tokens", help+" mean length of answers."),
		}
	}
	d := &c.dynamo
	d.observed, d.predicted = load("observed", "Observed"), load("predicted", "Predicted")
	d.observedTTFT, d.observedITL = desc("observed_ttft_ms", "Observed mean time to first token."), desc("observed_itl_ms", "Observed mean time between tokens.")
	for i, kind := range []string{"prefill", "decode"} {
		d.replicas[i] = desc("num_"+kind+"_replicas", "Ready "+kind+" workers at the latest tick.")
		d.wanted[i] = desc("predicted_num_"+kind+"_replicas", "Number of "+kind+" workers that was decided on.")
		d.capacity[i] = desc("engine_"+kind+"_capacity_requests_per_second", "Requests per second that a "+kind+" worker is reckoned to serve within the SLA.")
	}
	d.estimatedTTFT, d.estimatedITL = desc("estimated_ttft_ms", "Greatest estimate of any worker."), desc("estimated_itl_ms", "Greatest estimate of any worker.")
	d.gpuHours = desc("gpu_hours", "GPU hours of all workers until the latest tick.")
	d.byLoad = desc("load_scaling_decision", "1 for the reason of the latest look at the engines.", prefix+"load_scaling_decision")
	d.byThroughput = desc("throughput_scaling_decision", "1 for the reason of the latest look at the traffic.", prefix+"throughput_scaling_decision")
	worker := []string{"worker_id", "dp_rank"}
	d.queuedPrefill = desc("engine_queued_prefill_tokens", "Prompt tokens that wait at a worker.", worker...)
	d.queuedDecode = desc("engine_queued_decode_kv_tokens", "Tokens of preempted requests that wait at a worker.", worker...)
	d.inflightDecodeKV = desc("engine_inflight_decode_kv_tokens", "Tokens of the requests that a worker decodes.", worker...)
	return c
}

// Describe is as Prometheus wants it.
func (c *plannerCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{plannerTicks, plannerDecisions, workersAdded, workersRemoved} {
		to <- d
	}
	switch c.planner.Policy() {
	case planner.PolicyTargetTracking:
		to <- c.current
		to <- c.desired
	case planner.PolicyDynamo:
		d := &c.dynamo
		for _, d := range slices.Concat(
			[]*prometheus.Desc{d.observed.rate, d.observed.input, d.observed.output, d.predicted.rate, d.predicted.input, d.predicted.output, d.observedTTFT, d.observedITL},
			d.replicas[:], d.wanted[:], d.capacity[:],
			[]*prometheus.Desc{d.estimatedTTFT, d.estimatedITL, d.gpuHours, d.byLoad, d.byThroughput, d.queuedPrefill, d.queuedDecode, d.inflightDecodeKV},
		) {
			to <- d
		}
	}
}

// gauge sends a value that may not be known.
func gauge(to chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	if !math.IsNaN(v) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
}

// Collect is as Prometheus wants it.
func (c *plannerCollector) Collect(to chan<- prometheus.Metric) {
	s := c.planner.State()
	count := func(d *prometheus.Desc, n int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	count(plannerTicks, s.Ticks)
	for _, p := range s.Pools {
		count(plannerDecisions, p.ScaleUps, p.Name, "up")
		count(plannerDecisions, p.ScaleDowns, p.Name, "down")
		count(workersAdded, p.Added, p.Name)
		count(workersRemoved, p.Removed, p.Name)
	}
	switch {
	case len(s.Latest.Pools) == 0: // no tick yet
	case c.planner.Policy() == planner.PolicyTargetTracking:
		for i, p := range s.Pools {
			gauge(to, c.current, float64(s.Latest.Pools[i].Ready+s.Latest.Pools[i].Starting), p.Name)
			gauge(to, c.desired, float64(p.Wanted), p.Name)
		}
	case c.planner.Policy() == planner.PolicyDynamo:
		c.dynamo.collect(&s, to)
	}
}

func (d *dynamoDescs) collect(s *planner.OnlineState, to chan<- prometheus.Metric) {
	for _, l := range []struct {
		descs loadDescs
		load  planner.Load
	}{{d.observed, s.Observed}, {d.predicted, s.Predicted}} {
		gauge(to, l.descs.rate, l.load.Requests/l.load.DurationSeconds)
		gauge(to, l.descs.input, l.load.InputTokens)
		gauge(to, l.descs.output, l.load.OutputTokens)
	}
	gauge(to, d.observedTTFT, s.Observed.TTFTMs)
	gauge(to, d.observedITL, s.Observed.ITLMs)
	gauge(to, d.gpuHours, s.Latest.GPUHours)
	ttft, itl := math.NaN(), math.NaN()
	for i := range s.Pools {
		p, now := &s.Pools[i], &s.Latest.Pools[i]
		kind := len(d.replicas) - len(s.Pools) + i
		gauge(to, d.replicas[kind], float64(now.Ready))
		gauge(to, d.wanted[kind], float64(p.Wanted))
		gauge(to, d.capacity[kind], p.RequestsPerSecond)
		ttft, itl = greatest(ttft, p.EstimatedTTFTMs), greatest(itl, p.EstimatedITLMs)
		for _, w := range now.Workers {
			id := strconv.Itoa(int(w.Worker))
			if len(s.Pools) > 1 {
				id = p.Name + "-" + id
			}
			gauge(to, d.queuedPrefill, float64(w.QueuedPrefillTokens), id, "0")
			gauge(to, d.queuedDecode, float64(w.QueuedDecodeKVTokens), id, "0")
			gauge(to, d.inflightDecodeKV, float64(w.DecodeKVTokens), id, "0")
		}
	}
	gauge(to, d.estimatedTTFT, ttft)
	gauge(to, d.estimatedITL, itl)
	states(to, d.byLoad, planner.LoadReasons(), s.LoadReason)
	states(to, d.byThroughput, planner.ThroughputReasons(), s.ThroughputReason)
}

// greatest is the greater of two values, as far as they are known.
func greatest(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

// states sends 1 for one of several states and 0 for the others; that which is none is "unset".
func states(to chan<- prometheus.Metric, d *prometheus.Desc, all []string, now string) {
	const unset = "unset"
	if now == "" {
		now = unset
	}
	for _, state := range append(all, unset) {
		value := 0.0
		if state == now {
			value = 1
		}
		gauge(to, d, value, state)
	}
}
