package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep/queue"
)

// maxVersions bounds the simulator versions that metrics tell apart.
const maxVersions = 8

// connection is what both ends of a queue say about their connection. It ignores everything else.
type connection struct {
	queue.NopObserver
	connected prometheus.Gauge
	lost      prometheus.Counter
}

func (m *Metrics) connection() connection {
	return connection{
		connected: m.gauge("servegrid_queue_connected", "1 while there is a connection to the queue's server."),
		lost:      m.counter("servegrid_queue_disconnects_total", "Times that the connection to the queue's server was lost."),
	}
}

// Connected notes that there is a connection.
func (c connection) Connected() { c.connected.Set(1) }

// Disconnected counts a lost connection.
func (c connection) Disconnected(error) {
	c.connected.Set(0)
	c.lost.Inc()
}

// CoordinatorMetrics are those of a sweep that hands its points to a queue.
type CoordinatorMetrics struct {
	connection
	published, stored                       *prometheus.CounterVec
	publishedBytes, storedBytes             prometheus.Counter
	parts, rows, duplicates, receivedBytes  prometheus.Counter
	out                                     prometheus.Gauge
	submit                                  prometheus.Observer
	waiting, inProgress, redelivered        *prometheus.GaugeVec
	messages, maxMessages, size, limitBytes *prometheus.GaugeVec
	workers                                 *prometheus.GaugeVec

	versions *few
	mu       sync.Mutex // one state after another
}

// Coordinator adds the metrics of a coordinator.
func (m *Metrics) Coordinator() *CoordinatorMetrics {
	c := &CoordinatorMetrics{
		connection:     m.connection(),
		published:      m.counters("servegrid_queue_points_published_total", "Points that were sent to the queue, by result: ok or error.", "result"),
		publishedBytes: m.counter("servegrid_queue_points_published_bytes_total", "Bytes of the points that the queue took."),
		submit:         m.histogram("servegrid_queue_submit_duration_seconds", "Time to hand a point to the queue, with what it waited because too many were out.", waitBuckets),
		out:            m.gauge("servegrid_queue_points_out", "Points that the queue or a worker has, and that have no result yet."),
		parts:          m.counter("servegrid_queue_parts_received_total", "Messages with finished points that came from workers."),
		receivedBytes:  m.counter("servegrid_queue_parts_received_bytes_total", "Bytes of the messages with finished points that came from workers."),
		rows:           m.counter("servegrid_queue_rows_received_total", "Finished points that came from workers."),
		duplicates:     m.counter("servegrid_queue_rows_duplicate_total", "Finished points that came from workers and were known already."),
		stored:         m.counters("servegrid_queue_files_stored_total", "Files of points that were put into the object store, by result: ok, known (it had them) or error.", "result"),
		storedBytes:    m.counter("servegrid_queue_files_stored_bytes_total", "Bytes of the files that were put into the object store."),
		waiting:        m.gauges("servegrid_queue_points_waiting", "Points in the queue that no worker has, by the simulator version they are for.", "simulator"),
		inProgress:     m.gauges("servegrid_queue_points_in_progress", "Points that a worker has, by simulator version.", "simulator"),
		redelivered:    m.gauges("servegrid_queue_points_redelivered", "Points that a worker has and that were delivered more than once, by simulator version.", "simulator"),
		workers:        m.gauges("servegrid_queue_workers", "Workers that are there, by simulator version.", "simulator"),
		messages:       m.gauges("servegrid_queue_stream_messages", "Messages of a stream: points, parts, files or workers.", "stream"),
		maxMessages:    m.gauges("servegrid_queue_stream_limit_messages", "Most messages of a stream; not there when it has no limit.", "stream"),
		size:           m.gauges("servegrid_queue_stream_bytes", "Size of a stream.", "stream"),
		limitBytes:     m.gauges("servegrid_queue_stream_limit_bytes", "Largest size of a stream; not there when it has no limit.", "stream"),
		versions:       newFew(maxVersions),
	}
	shown(c.published, "ok", "error")
	shown(c.stored, "ok", "known", "error")
	return c
}

// PointPublished counts a point that was sent.
func (c *CoordinatorMetrics) PointPublished(_ context.Context, _ string, bytes int, err error) {
	c.published.WithLabelValues(resultOf(err)).Inc()
	if err == nil {
		c.publishedBytes.Add(float64(bytes))
	}
}

// PointsOut shows how many points are out.
func (c *CoordinatorMetrics) PointsOut(n int) { c.out.Set(float64(n)) }

// PartReceived counts finished points.
func (c *CoordinatorMetrics) PartReceived(rows, duplicates, bytes int) {
	c.parts.Inc()
	c.rows.Add(float64(rows))
	c.duplicates.Add(float64(duplicates))
	c.receivedBytes.Add(float64(bytes))
}

// FileStored counts a file.
func (c *CoordinatorMetrics) FileStored(bytes int64, known bool, err error) {
	switch {
	case err != nil:
		c.stored.WithLabelValues("error").Inc()
	case known:
		c.stored.WithLabelValues("known").Inc()
	default:
		c.stored.WithLabelValues("ok").Inc()
		c.storedBytes.Add(float64(bytes))
	}
}

// QueueSeen shows the state of the queue in place of what was shown before.
func (c *CoordinatorMetrics) QueueSeen(s queue.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range []*prometheus.GaugeVec{c.waiting, c.inProgress, c.redelivered, c.workers, c.messages, c.maxMessages, c.size, c.limitBytes} {
		v.Reset()
	}
	for _, consumer := range s.Consumers {
		version := c.versions.label(consumer.Version)
		c.waiting.WithLabelValues(version).Add(float64(consumer.Waiting))
		c.inProgress.WithLabelValues(version).Add(float64(consumer.InProgress))
		c.redelivered.WithLabelValues(version).Add(float64(consumer.Redelivered))
		c.workers.WithLabelValues(version).Add(0) // none is a figure too
	}
	for version, n := range s.Workers {
		c.workers.WithLabelValues(c.versions.label(version)).Add(float64(n))
	}
	for _, stream := range s.Streams {
		kind := streamKind(stream.Kind)
		c.messages.WithLabelValues(kind).Add(float64(stream.Messages))
		c.size.WithLabelValues(kind).Add(float64(stream.Bytes))
		if stream.MaxMessages > 0 {
			c.maxMessages.WithLabelValues(kind).Add(float64(stream.MaxMessages))
		}
		if stream.MaxBytes > 0 {
			c.limitBytes.WithLabelValues(kind).Add(float64(stream.MaxBytes))
		}
	}
}

func streamKind(kind string) string {
	switch kind {
	case "points", "parts", "files", "workers":
		return kind
	}
	return other
}

// WorkerMetrics are those of a worker.
type WorkerMetrics struct {
	connection
	slots, busy                              prometheus.Gauge
	received, redelivered                    prometheus.Counter
	finished, failed, settled, parts, files  *prometheus.CounterVec
	duration, wait, publish, fetch           prometheus.Observer
	publishedBytes, publishedRows, fileBytes prometheus.Counter

	now     func() time.Time
	reasons *few
}

// Worker adds the metrics of a worker.
func (m *Metrics) Worker() *WorkerMetrics {
	w := &WorkerMetrics{
		connection:     m.connection(),
		slots:          m.gauge("servegrid_worker_slots", "Points that the worker simulates at the same time at most."),
		busy:           m.gauge("servegrid_worker_slots_busy", "Points that the worker simulates now."),
		received:       m.counter("servegrid_worker_points_received_total", "Points that came to the worker, each time that they came."),
		redelivered:    m.counter("servegrid_points_redelivered_total", "Points that came to the worker and had been delivered before."),
		wait:           m.histogram("servegrid_worker_queue_wait_seconds", "Time between the publication of a point and its first delivery.", waitBuckets),
		finished:       m.counters("servegrid_worker_points_finished_total", "Points that the worker simulated, by status; error when nothing can be said about the point.", "status"),
		failed:         m.counters("servegrid_worker_points_failed_total", "Points that the worker simulated and whose row is a failure, by its reason.", "reason"),
		duration:       m.histogram("servegrid_worker_point_duration_seconds", "Wall time of the simulation of a point on the worker.", pointBuckets),
		settled:        m.counters("servegrid_worker_points_settled_total", "Messages of points by how they ended: acked, returned, dead (delivered too often) or refused.", "how"),
		parts:          m.counters("servegrid_worker_parts_published_total", "Messages with finished points that the worker sent, by result: ok or error.", "result"),
		publishedRows:  m.counter("servegrid_worker_rows_published_total", "Finished points that the worker sent."),
		publishedBytes: m.counter("servegrid_worker_parts_published_bytes_total", "Bytes of the messages with finished points that the worker sent."),
		publish:        m.histogram("servegrid_worker_part_publish_duration_seconds", "Time to send a message with finished points, up to the server's answer.", storageBuckets),
		files:          m.counters("servegrid_worker_files_total", "Files of points that the worker needed, by where they were: cached, fetched or error.", "source"),
		fileBytes:      m.counter("servegrid_worker_files_fetched_bytes_total", "Bytes of the files that the worker fetched from the object store."),
		fetch:          m.histogram("servegrid_worker_file_fetch_duration_seconds", "Time to fetch a file from the object store.", pointBuckets),
		now:            time.Now, reasons: newFew(maxReasons),
	}
	shown(w.finished, string(results.StatusOK), string(results.StatusFailed), "error")
	shown(w.settled, string(queue.SettledAcked), string(queue.SettledReturned), string(queue.SettledDead), string(queue.SettledRefused))
	shown(w.parts, "ok", "error")
	shown(w.files, "cached", "fetched", "error")
	return w
}

// WorkerStarted shows the slots.
func (w *WorkerMetrics) WorkerStarted(slots int) { w.slots.Set(float64(slots)) }

// PointReceived counts a delivery.
func (w *WorkerMetrics) PointReceived(ctx context.Context, _ queue.Header, _ string, published time.Time, delivery int) context.Context {
	w.received.Inc()
	if delivery > 1 {
		w.redelivered.Inc()
	} else if !published.IsZero() {
		w.wait.Observe(max(0, w.now().Sub(published).Seconds())) // clocks of two machines differ
	}
	return ctx
}

// PointStarted takes a slot.
func (w *WorkerMetrics) PointStarted(context.Context) { w.busy.Inc() }

// PointFinished gives the slot back.
func (w *WorkerMetrics) PointFinished(_ context.Context, row *results.Row, took time.Duration, err error) {
	w.busy.Dec()
	if err != nil || row == nil {
		w.finished.WithLabelValues("error").Inc()
		return
	}
	w.finished.WithLabelValues(statusOf(row)).Inc()
	w.duration.Observe(took.Seconds())
	if row.Status == results.StatusFailed {
		w.failed.WithLabelValues(w.reasons.label(row.Reason)).Inc()
	}
}

// PartPublished counts finished points that were sent.
func (w *WorkerMetrics) PartPublished(_ context.Context, rows, bytes int, took time.Duration, err error) {
	w.parts.WithLabelValues(resultOf(err)).Inc()
	w.publish.Observe(took.Seconds())
	if err == nil {
		w.publishedRows.Add(float64(rows))
		w.publishedBytes.Add(float64(bytes))
	}
}

// PointSettled counts how a message ended.
func (w *WorkerMetrics) PointSettled(_ context.Context, how queue.Settled) {
	w.settled.WithLabelValues(string(how)).Inc()
}

// FileFetched counts a file.
func (w *WorkerMetrics) FileFetched(_ context.Context, bytes int64, cached bool, took time.Duration, err error) {
	switch {
	case err != nil:
		w.files.WithLabelValues("error").Inc()
	case cached:
		w.files.WithLabelValues("cached").Inc()
	default:
		w.files.WithLabelValues("fetched").Inc()
		w.fileBytes.Add(float64(bytes))
		w.fetch.Observe(took.Seconds())
	}
}
