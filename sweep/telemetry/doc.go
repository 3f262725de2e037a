// Package telemetry says what sweeps and their workers do while they run: Prometheus metrics, OpenTelemetry traces, and a
// small file in the output folder that `servegrid status` reads.
//
// [Metrics] has a registry of its own and nothing is global, so that several sweeps of one process do not mix. Its parts
// are observers: [Metrics.Sweep] of a sweep, [Metrics.Coordinator] and [Metrics.Worker] of the two ends of a queue.
// [Server] offers the metrics over HTTP, [TextFile] as a file for the textfile collector of node_exporter. Names follow
// https://prometheus.io/docs/practices/naming/. Labels have few values whatever specs and points say.
//
// Read metrics.go first, then sweepmetrics.go and queuemetrics.go, server.go and textfile.go.
package telemetry
