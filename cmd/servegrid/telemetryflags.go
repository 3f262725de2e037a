package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"

	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/queue"
	"github.com/servegrid/servegrid/sweep/telemetry"
)

// telemetryFlags say where the metrics of a command go.
type telemetryFlags struct{ metricsListen, metricsFile string }

func (f *telemetryFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.metricsListen, "metrics-listen", "", "address for Prometheus: /metrics, /healthz, /readyz; HOST:PORT, or PORT on this machine only, 0 for any free one")
	fs.StringVar(&f.metricsFile, "metrics-file", "", "file for the textfile collector of node_exporter, such as servegrid.prom")
}

// commandTelemetry is what a command says about itself while it runs. Its parts are nil when nobody asked for them.
type commandTelemetry struct {
	metrics *telemetry.Metrics
	server  *telemetry.Server
	file    *telemetry.TextFile
	tracing *telemetry.Tracing
	// Of a sweep.
	sweep       *telemetry.SweepMetrics
	coordinator *telemetry.CoordinatorMetrics
	traces      *telemetry.SweepTraces
	status      *telemetry.StatusFile
	about       telemetry.Status
}

// start begins to offer metrics and to trace. Sweep is the name of the one that runs, queueURL the queue of its points; both
// may be empty.
func (f *telemetryFlags) start(ctx context.Context, st *state, sweep, queueURL string) (*commandTelemetry, error) {
	t := &commandTelemetry{about: statusOf(sweep)}
	t.about.Queue = queueNamespace(queueURL)
	var err error
	if t.tracing, err = telemetry.StartTracing(ctx, st.getenv, buildVersion(), st.stderr); err != nil {
		_ = printText(st.stderr, "%v\n", err) // a sweep without traces is still one
	}
	if f.metricsListen == "" && f.metricsFile == "" {
		return t, nil
	}
	t.metrics = telemetry.NewMetrics(telemetry.Identity{
		Program: buildVersion(), Simulator: simcore.SemanticVersion, Build: telemetry.Build, Sweep: sweep, Namespace: t.about.Queue,
	})
	if f.metricsListen != "" {
		if t.server, err = telemetry.Serve(f.metricsListen, t.metrics); err != nil {
			return nil, errors.Join(err, t.close())
		}
		t.about.Metrics = "http://" + t.server.Address() + "/metrics"
		_ = printText(st.stderr, "metrics: %s\n", t.about.Metrics)
	}
	if f.metricsFile != "" {
		if t.file, err = telemetry.WriteTextFile(f.metricsFile, t.metrics); err != nil {
			return nil, errors.Join(err, t.close())
		}
	}
	return t, nil
}

// statusOf begins the status of a sweep of this process.
func statusOf(sweep string) telemetry.Status {
	host, _ := os.Hostname() // a status without it is still one
	return telemetry.Status{Sweep: sweep, PID: os.Getpid(), Host: host, Program: buildVersion(), Simulator: simcore.SemanticVersion}
}

// specDigest stands for a spec with what the environment and --set changed, wherever the results go.
func specDigest(spec *gridspec.Spec) (string, error) {
	text, err := spec.Resolved(spec.Dir)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), err
}

// queueNamespace is the namespace of a queue, or nothing for what is no queue's URL.
func queueNamespace(url string) string {
	if url == queueEmbedded {
		return queue.DefaultNamespace
	}
	namespace, _ := queue.NamespaceOf(url)
	return namespace
}

// setReady says what decides whether /readyz answers 200: nil, or why the command cannot do its work.
func (t *commandTelemetry) setReady(ready func() error) {
	if t.server != nil {
		t.server.SetReady(ready)
	}
}

// close stops what was started.
func (t *commandTelemetry) close() error {
	var errs []error
	if t.file != nil {
		errs = append(errs, t.file.Close())
	}
	if t.server != nil {
		errs = append(errs, t.server.Close())
	}
	return errors.Join(append(errs, t.tracing.Close())...)
}

// withTelemetry runs a sweep while its metrics are offered and its traces made.
func (j *sweepJob) withTelemetry(ctx context.Context, sweep func() error) error {
	flags, env := j.flags.telemetryFlags, *j.state
	if j.flags.dryRun {
		flags, env.env = telemetryFlags{}, nil
	}
	var err error
	if j.telemetry, err = flags.start(ctx, &env, j.spec.Name, j.flags.queue); err != nil {
		return err
	}
	if j.telemetry.about.Spec, err = specDigest(j.spec); err != nil {
		return errors.Join(err, j.telemetry.close())
	}
	if j.telemetry.tracing != nil {
		j.telemetry.traces = j.telemetry.tracing.Sweep(ctx, j.spec.Name)
	}
	err = sweep()
	if j.telemetry.traces != nil {
		j.telemetry.traces.End(err)
	}
	return cmp.Or(err, j.telemetry.close())
}

// coordinatorObserver observes the queue of a sweep.
func (t *commandTelemetry) coordinatorObserver() queue.Observer {
	var all []queue.Observer
	if t.metrics != nil {
		t.coordinator = t.metrics.Coordinator()
		all = append(all, t.coordinator)
	}
	if t.traces != nil {
		all = append(all, t.traces.Queue())
	}
	return telemetry.QueueObservers(all...)
}

// workerObserver observes a worker.
func (t *commandTelemetry) workerObserver() queue.Observer {
	var all []queue.Observer
	if t.metrics != nil {
		all = append(all, t.metrics.Worker())
	}
	if t.tracing != nil {
		all = append(all, t.tracing.Worker())
	}
	return telemetry.QueueObservers(all...)
}

// observe adds the observers of a sweep to its options, which have their executor by now.
func (t *commandTelemetry) observe(job *sweepJob, opt *sweep.Options, p *progress) {
	t.status = telemetry.NewStatusFile(opt.Dir, t.about, p.objective, job.state.now)
	all := []sweep.Observer{p, t.status}
	if opt.Executor == nil {
		opt.Simulate = t.status.Simulate(opt.Simulate)
	}
	if t.metrics != nil {
		t.sweep = t.metrics.Sweep()
		if opt.Executor == nil {
			opt.Simulate = t.sweep.Simulate(opt.Simulate)
		}
		opt.Load = t.sweep.Load(opt.Load)
		opt.WriteResults = t.sweep.WriteResults(opt.WriteResults)
		all = append(all, t.sweep)
	}
	if t.coordinator != nil {
		opt.Executor = t.coordinator.Executor(opt.Executor)
	}
	if t.traces != nil {
		opt.Load = t.traces.Load(opt.Load)
		opt.WriteResults = t.traces.WriteResults(opt.WriteResults)
		if opt.Executor != nil {
			opt.Executor = t.traces.Executor(opt.Executor)
		} else {
			opt.Simulate = t.traces.Simulate(opt.Simulate)
		}
		all = append(all, t.traces)
	}
	opt.Observer = telemetry.Observers(all...)
	t.setReady(func() error { return nil })
}

// ended tells how the sweep ended.
func (t *commandTelemetry) ended(ctx context.Context, out sweep.Outcome, err error) {
	if t.sweep != nil {
		t.sweep.SweepEnded()
	}
	if t.status == nil { // the sweep never came so far
		return
	}
	state := telemetry.StateComplete
	switch {
	case out.Interrupted, ctx.Err() != nil && (err != nil || out.Counts.Left > 0):
		state = telemetry.StateInterrupted
	case err != nil:
		state = telemetry.StateStopped
	}
	_ = t.status.Close(state, out.Counts.Total) // for those who ask; the sweep itself says what is wrong with its folder
}
