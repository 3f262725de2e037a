package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/sweep"
)

// SweepMetrics are those of a sweep or search. It is a [sweep.JournalObserver].
type SweepMetrics struct {
	points, queued, running, active prometheus.Gauge
	started, last                   prometheus.Gauge
	finished, failed, loads         *prometheus.CounterVec
	duration, load, commit, write   prometheus.Observer
	journalPoints, journalBytes     prometheus.Counter
	writeFailures                   prometheus.Counter

	now     func() time.Time
	reasons *few
	// What the gauges show. An observer is called by one goroutine at a time.
	total, done int
	under       map[int]struct{} // the points that were started and have no row yet
	here        bool             // points are simulated in this process, and running follows them
}

// Sweep adds the metrics of a sweep.
func (m *Metrics) Sweep() *SweepMetrics {
	s := &SweepMetrics{
		points:        m.gauge("servegrid_sweep_points", "Points of the sweep; of a search, about how many it will simulate."),
		active:        m.gauge("servegrid_sweep_running", "1 while the sweep runs, 0 before and after."),
		started:       m.gauge("servegrid_sweep_start_timestamp_seconds", "When the sweep started, in seconds since 1970."),
		last:          m.gauge("servegrid_last_point_timestamp_seconds", "When the last point got its row, in seconds since 1970; at first when the sweep started."),
		queued:        m.gauge("servegrid_points_queued", "Points without a row that have not begun."),
		running:       m.gauge("servegrid_points_running", "Points that are being simulated; with a queue, those that were handed to it."),
		finished:      m.counters("servegrid_points_finished_total", "Points that have their row, by status and by where it came from: simulated, or reused.", "status", "source"),
		failed:        m.counters("servegrid_points_failed_total", "Points whose row is a failure, by its reason.", "reason"),
		duration:      m.histogram("servegrid_point_duration_seconds", "Wall time of the simulation of a point.", pointBuckets),
		loads:         m.counters("servegrid_workload_loads_total", "Workloads that were loaded, by result: ok or error.", "result"),
		load:          m.histogram("servegrid_workload_load_duration_seconds", "Time to load a workload.", pointBuckets),
		commit:        m.histogram("servegrid_journal_commit_duration_seconds", "Time to append finished points to the journal and to sync it.", storageBuckets),
		journalPoints: m.counter("servegrid_journal_points_total", "Finished points that were appended to the journal."),
		journalBytes:  m.counter("servegrid_journal_bytes_total", "Bytes that were appended to the journal."),
		write:         m.histogram("servegrid_results_write_duration_seconds", "Time to write the results file.", storageBuckets),
		writeFailures: m.counter("servegrid_results_write_failures_total", "Times that the results file could not be written."),
		now:           time.Now, reasons: newFew(maxReasons), under: map[int]struct{}{},
	}
	shown(s.loads, "ok", "error")
	for _, status := range []results.Status{results.StatusOK, results.StatusFailed} {
		s.finished.WithLabelValues(string(status), "simulated")
	}
	return s
}

// maxReasons bounds the reasons of failures that metrics tell apart.
const maxReasons = 32

// Load counts what a loader of workloads does; see [sweep.Options.Load].
func (s *SweepMetrics) Load(next LoadFunc) LoadFunc {
	return func(ctx context.Context, spec workload.Spec, src workload.Source) (*workload.Workload, error) {
		start := s.now()
		w, err := next(ctx, spec, src)
		s.loads.WithLabelValues(resultOf(err)).Inc()
		s.load.Observe(s.now().Sub(start).Seconds())
		return w, err
	}
}

// Simulate counts the points that a simulator is at; see [sweep.Options.Simulate], where nil is [sweep.RunJob].
func (s *SweepMetrics) Simulate(next SimulateFunc) SimulateFunc {
	s.here = true
	return during(next, s.running.Inc, s.running.Dec)
}

// during returns a simulator that tells when a point begins and ends.
func during(next SimulateFunc, begins, ends func()) SimulateFunc {
	if next == nil {
		next = sweep.RunJob
	}
	return func(ctx context.Context, job sweep.Job) (*simcore.Report, error) {
		begins()
		defer ends()
		return next(ctx, job)
	}
}

// WriteResults counts what a writer of the results file does; see [sweep.Options.WriteResults].
func (s *SweepMetrics) WriteResults(next func(string, []results.Row) error) func(string, []results.Row) error {
	if next == nil {
		return nil
	}
	return func(path string, rows []results.Row) error {
		start := s.now()
		err := next(path, rows)
		s.write.Observe(s.now().Sub(start).Seconds())
		if err != nil {
			s.writeFailures.Inc()
		}
		return err
	}
}

// SweepStarted sets the number of points.
func (s *SweepMetrics) SweepStarted(total int) {
	s.total = total
	s.points.Set(float64(total))
	s.active.Set(1)
	s.started.Set(seconds(s.now()))
	s.last.Set(seconds(s.now()))
	s.show()
}

// SweepEnded says that the sweep does not run any more.
func (s *SweepMetrics) SweepEnded() { s.active.Set(0) }

// WorkloadLoading does nothing: Load knows more.
func (s *SweepMetrics) WorkloadLoading(string) {}

// PointStarted counts a point as begun.
func (s *SweepMetrics) PointStarted(p gridspec.Point) {
	s.under[p.Index] = struct{}{}
	s.show()
}

// PointFinished counts a row.
func (s *SweepMetrics) PointFinished(f sweep.Finished) {
	delete(s.under, f.Row.Point.Index)
	s.done++
	source := "reused"
	if f.Simulated {
		source = "simulated"
		s.duration.Observe(f.Row.WallSeconds)
	}
	s.finished.WithLabelValues(statusOf(&f.Row), source).Inc()
	if f.Row.Status == results.StatusFailed {
		s.failed.WithLabelValues(s.reasons.label(f.Row.Reason)).Inc()
	}
	s.last.Set(seconds(s.now()))
	s.show()
}

// JournalCommitted counts a commit.
func (s *SweepMetrics) JournalCommitted(points int, bytes int64, took time.Duration) {
	s.commit.Observe(took.Seconds())
	s.journalPoints.Add(float64(points))
	s.journalBytes.Add(float64(bytes))
}

func (s *SweepMetrics) show() {
	if !s.here {
		s.running.Set(float64(len(s.under)))
	}
	s.queued.Set(float64(max(s.total-s.done-len(s.under), 0)))
}

// LoadFunc is [sweep.Options.Load].
type LoadFunc = func(context.Context, workload.Spec, workload.Source) (*workload.Workload, error)

// SimulateFunc is [sweep.Options.Simulate].
type SimulateFunc = func(context.Context, sweep.Job) (*simcore.Report, error)

// statusOf is the status of a row as a label. A worker of others may send any text.
func statusOf(row *results.Row) string {
	switch row.Status {
	case results.StatusOK, results.StatusFailed, results.StatusSkipped, results.StatusStopped:
		return string(row.Status)
	}
	return other
}

func resultOf(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
