package telemetry

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Identity says whose metrics these are.
type Identity struct {
	// Program is the version of servegrid, Simulator the semantic version of the simulator, Build which build it is.
	Program, Simulator, Build string
	// Sweep is the name of the sweep, and Namespace that of the queue. Each becomes a label of every metric unless it is
	// empty.
	Sweep, Namespace string
}

// Metrics are the metrics of one process. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	// ours has just the metrics whose names begin with servegrid_.
	ours  *prometheus.Registry
	into  prometheus.Registerer
	known families
}

// NewMetrics returns metrics that say what the process is and what it takes. Its methods add what it does.
func NewMetrics(id Identity) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), ours: prometheus.NewRegistry()}
	labels := prometheus.Labels{}
	if id.Sweep != "" {
		labels["sweep"] = printable(id.Sweep)
	}
	if id.Namespace != "" {
		labels["queue_namespace"] = id.Namespace
	}
	m.into = prometheus.WrapRegistererWith(labels, m.ours)
	info := m.gauges("servegrid_build_info", "Always 1; the labels say what runs: program and simulator version, build, Go.", "version", "simulator", "build", "go")
	info.WithLabelValues(id.Program, id.Simulator, id.Build, runtime.Version()).Set(1)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Gatherer returns all metrics, those of the Go runtime and of the process among them.
func (m *Metrics) Gatherer() prometheus.Gatherer { return prometheus.Gatherers{m.registry, m.ours} }

// Family is what a metric is called, and which labels it has besides those of [Identity].
type Family struct {
	// Name, Help and Type are as Prometheus shows them; a type is counter, gauge or histogram.
	Name, Help, Type string
	// Labels are the names of the labels.
	Labels []string
}

// Families lists the metrics of all parts, in order of their names: what the documentation, the dashboard and the alerts
// can use. Those of the Go runtime and of the process are not among them.
func Families() []Family {
	m := NewMetrics(Identity{})
	m.Sweep()
	m.Coordinator()
	m.Worker()
	return m.known.sorted()
}

// families is what was registered.
type families struct {
	mu   sync.Mutex
	list []Family
}

func (f *families) add(name, help, kind string, labels []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, Family{name, help, kind, labels})
}

func (f *families) sorted() []Family {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := slices.Clone(f.list)
	slices.SortFunc(out, func(a, b Family) int {
		switch {
		case a.Name < b.Name:
			return -1
		case a.Name > b.Name:
			return 1
		}
		return 0
	})
	return slices.CompactFunc(out, func(a, b Family) bool { return a.Name == b.Name })
}

// register adds a collector, or returns the one that is there: both ends of a queue share a few.
func register[C prometheus.Collector](m *Metrics, c C, name, help, kind string, labels []string) C {
	m.known.add(name, help, kind, labels)
	if err := m.into.Register(c); err != nil {
		if there, ok := err.(prometheus.AlreadyRegisteredError); ok {
			return there.ExistingCollector.(C)
		}
		panic(err) // two metrics of one name and different labels: a mistake of this package, found by any test
	}
	return c
}

// shown makes the counters of these values, which have one label, so that they are 0 from the start and not missing.
func shown(c *prometheus.CounterVec, values ...string) *prometheus.CounterVec {
	for _, value := range values {
		c.WithLabelValues(value)
	}
	return c
}

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return register(m, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels), name, help, "counter", labels)
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	return m.counters(name, help).WithLabelValues()
}

func (m *Metrics) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return register(m, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels), name, help, "gauge", labels)
}

func (m *Metrics) gauge(name, help string) prometheus.Gauge {
	return m.gauges(name, help).WithLabelValues()
}

// histograms have classic buckets for everybody, and native ones for a Prometheus that asks for them: at most a tenth wide,
// with an upper bound of what they take.
func (m *Metrics) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	}, labels)
	return register(m, h, name, help, "histogram", labels)
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Observer {
	return m.histograms(name, help, buckets).WithLabelValues()
}

// The upper bounds of the buckets, in seconds. Points take a millisecond to minutes, storage and messages less.
var (
	pointBuckets   = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	waitBuckets    = []float64{.001, .01, .1, 1, 10, 60, 300, 900, 3600, 14400, 86400}
	storageBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
)

// few bounds the values of a label that come from elsewhere: the first ones are told apart, all others are one.
type few struct {
	mu    sync.Mutex
	limit int
	seen  map[string]bool
}

func newFew(limit int) *few { return &few{limit: limit, seen: map[string]bool{}} }

// other is the value of a label that is one too many.
const other = "other"

// label returns the value that stands for a text.
func (f *few) label(text string) string {
	if !isName(text) {
		return other
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.seen[text] {
		if len(f.seen) >= f.limit {
			return other
		}
		f.seen[text] = true
	}
	return text
}

// isName reports whether a text can be a reason or a version, and no message.
func isName(text string) bool {
	for _, r := range text {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' || r == '+') {
			return false
		}
	}
	return text != "" && len(text) <= 64
}
