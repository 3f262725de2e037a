package endpoint

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/servegrid/servegrid/live/endpoint/fault"
	"github.com/servegrid/servegrid/live/realtime"
	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/simcore/engine"
)

// metrics are what Prometheus sees, under the names of the engine that is simulated. Times are real ones, as clients see them.
type metrics struct {
	registry *prometheus.Registry
	faults   *prometheus.CounterVec
	realMs   float64 // how many real ms a simulated one takes
	// open counts the requests that are under way.
	open atomic.Int64
	// newEngine makes the meters of the worker that makes tokens at a seat.
	newEngine func(seat int) *engineMeters

	mu      sync.RWMutex    // guards what follows
	engines []*engineMeters // by seat
}

// engineMeters are what is counted of the requests of a worker. What an engine does not have is nil.
type engineMeters struct {
	promptTokens, cachedTokens, outputTokens, queries prometheus.Counter
	// finished counts requests by the reason for which they ended.
	finished func(reason string)
	// Seconds.
	firstToken, betweenTokens, meanBetween, total, queue, prefill, decode, inference prometheus.Observer
	// Tokens.
	prompt, generation prometheus.Observer
	// output counts tokens as outputTokens does.
	output atomic.Int64
}

// The reasons for which requests end, besides stop and length.
const (
	reasonAbort = "abort"
	reasonError = "error"
)

func newMetrics(s *Server) *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), realMs: 1 / s.opt.Speedup}
	m.faults = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "servegrid_faults_total", Help: "Faults that the server was told to make, by kind."}, []string{"kind"})
	for _, kind := range fault.Kinds() {
		m.faults.WithLabelValues(string(kind))
	}
	m.registry.MustRegister(m.faults, &ownCollector{server: s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	into := prometheus.WrapRegistererWith(prometheus.Labels{"model_name": s.opt.Models[0]}, m.registry)
	stages := s.opt.Config.Stages()
	if stages[0].Engine.Type == engine.TypeSGLang {
		m.newEngine = sglangMetrics(into, s, stages)
	} else {
		m.newEngine = vllmMetrics(into, s, stages)
	}
	m.engine(stages[len(stages)-1].Workers - 1)
	if s.opt.Planner != nil {
		m.registry.MustRegister(newPlannerCollector(s.opt.Planner))
	}
	return m
}

// engine returns the meters of the worker that makes tokens at a seat; those of the first one for a worker that is not known.
func (m *metrics) engine(seat int) *engineMeters {
	seat = max(seat, 0)
	m.mu.RLock()
	known := m.engines
	m.mu.RUnlock()
	if seat < len(known) {
		return known[seat]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.engines) <= seat {
		m.engines = append(m.engines, m.newEngine(len(m.engines)))
	}
	return m.engines[seat]
}

// named makes metrics whose names begin with that of an engine, with the labels that tell its workers apart.
type named struct {
	engine string
	labels []string
}

func (n named) counters(into prometheus.Registerer, name, help string, more ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: n.engine + name, Help: help}, slices.Concat(n.labels, more))
	into.MustRegister(v)
	return v
}

func (n named) histograms(into prometheus.Registerer, name, help string, buckets []float64) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: n.engine + name, Help: help, Buckets: buckets}, n.labels)
	into.MustRegister(v)
	return v
}

func (n named) desc(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc(n.engine+name, help, slices.Concat(n.labels, more), nil)
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 8, Timeout: 10 * time.Second})
}

// count counts faults of a request.
func (m *metrics) count(kinds []fault.Kind) {
	for _, kind := range kinds {
		m.faults.WithLabelValues(string(kind)).Inc()
	}
}

// meter counts one request.
type meter struct {
	metrics *metrics
	tokens  int
	lastMs  float64
}

// came counts tokens. The first of them says that the prompt is computed.
func (m *meter) came(p *realtime.Progress, input int) {
	if p.Tokens == 0 {
		return
	}
	e := m.metrics.engine(p.Seat)
	if m.tokens == 0 {
		e.promptTokens.Add(float64(input))
		e.cachedTokens.Add(float64(p.Cached))
		if e.queries != nil {
			e.queries.Add(float64(input))
		}
	}
	m.between(e, p)
	m.tokens += p.Tokens
	m.lastMs = p.AtMs
	e.outputTokens.Add(float64(p.Tokens))
	e.output.Add(int64(p.Tokens))
}

// between counts the time since the tokens before. Tokens that one pass gave count once, as engines do it; those of several
// passes, which came together since the reader was late, count as if they had come evenly.
func (m *meter) between(e *engineMeters, p *realtime.Progress) {
	if m.tokens > 0 {
		e.betweenTokens.Observe(m.seconds(p.FirstMs - m.lastMs))
	}
	if p.AtMs == p.FirstMs {
		return
	}
	gap := m.seconds(p.AtMs-p.FirstMs) / float64(p.Tokens-1)
	for range p.Tokens - 1 {
		e.betweenTokens.Observe(gap)
	}
}

func (m *meter) seconds(simulatedMs float64) float64 { return simulatedMs * m.metrics.realMs / 1000 }

// ended counts the end of a request.
func (m *meter) ended(p *realtime.Progress, finish string) {
	r, e := p.Record, m.metrics.engine(p.Seat)
	life := &r.Life
	switch life.State {
	case engine.Completed:
	case engine.Rejected, engine.Failed:
		e.finished(reasonError)
		return
	default:
		e.finished(reasonAbort)
		return
	}
	e.finished(finish)
	total := life.LastTokenMs - life.ArrivalMs
	observe := func(o prometheus.Observer, v float64) {
		if o != nil {
			o.Observe(v)
		}
	}
	observe(e.firstToken, m.seconds(life.FirstTokenMs-life.ArrivalMs))
	observe(e.total, m.seconds(total))
	observe(e.queue, m.seconds(r.Parts.QueueMs))
	observe(e.prefill, m.seconds(r.Parts.PrefillMs))
	observe(e.decode, m.seconds(r.Parts.DecodeMs+r.Parts.StallMs))
	observe(e.inference, m.seconds(total-r.Parts.QueueMs))
	if life.Tokens > 1 {
		observe(e.meanBetween, m.seconds(life.LastTokenMs-life.FirstTokenMs)/float64(life.Tokens-1))
	}
	observe(e.prompt, float64(life.Input))
	observe(e.generation, float64(life.Tokens))
}

// ownCollector says what no engine does: how the server itself gets on.
type ownCollector struct{ server *Server }

var (
	openRequests  = prometheus.NewDesc("servegrid_open_requests", "Requests that are under way.", nil, nil)
	keptRequests  = prometheus.NewDesc("servegrid_router_requests", "Requests that wait in the router, or for a worker to be ready.", nil, nil)
	simulatedTime = prometheus.NewDesc("servegrid_simulated_seconds_total", "Simulated time since the start.", nil, nil)
	poolWorkers   = prometheus.NewDesc("servegrid_workers", "Workers by pool and state: ready ones take requests, draining ones finish those that they have.", []string{"pool", "state"}, nil)
	lateEvents    = prometheus.NewDesc("servegrid_lateness_seconds", "How long after their time tokens were told. Much of it says that the machine is too slow.", nil, nil)
)

// Describe is as Prometheus wants it.
func (c *ownCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{openRequests, keptRequests, simulatedTime, poolWorkers, lateEvents} {
		to <- d
	}
}

// Collect is as Prometheus wants it.
func (c *ownCollector) Collect(to chan<- prometheus.Metric) {
	snapshot := c.server.opt.Deployment.Snapshot()
	late := snapshot.Lateness
	to <- prometheus.MustNewConstMetric(openRequests, prometheus.GaugeValue, float64(c.server.metrics.open.Load()))
	to <- prometheus.MustNewConstMetric(keptRequests, prometheus.GaugeValue, float64(snapshot.Kept))
	to <- prometheus.MustNewConstMetric(simulatedTime, prometheus.CounterValue, snapshot.NowMs/1000)
	names := planner.PoolNames(c.server.opt.Config)
	for i, pool := range snapshot.Pools {
		for _, state := range []struct {
			name    string
			workers int
		}{{"ready", pool.Ready}, {"starting", pool.Starting}, {"draining", pool.Draining}} {
			to <- prometheus.MustNewConstMetric(poolWorkers, prometheus.GaugeValue, float64(state.workers), names[i], state.name)
		}
	}
	to <- prometheus.MustNewConstSummary(lateEvents, uint64(late.Events), late.Sum.Seconds(),
		map[float64]float64{0.5: late.P50.Seconds(), 0.99: late.P99.Seconds(), 1: late.Max.Seconds()})
}

// tokenBuckets are bounds of numbers of tokens: 1, 2, 5, 10 and so on up to a limit.
func tokenBuckets(limit int) []float64 {
	var out []float64
	for power := 1; power <= limit; power *= 10 {
		for _, m := range []int{1, 2, 5} {
			if m*power <= limit {
				out = append(out, float64(m*power))
			}
		}
	}
	return out
}

// label is a number as a label.
func label(n int) string { return strconv.Itoa(n) }
