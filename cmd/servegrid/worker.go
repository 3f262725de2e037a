package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/sweep/queue"
)

// workerFlags are those of the worker command.
type workerFlags struct {
	streamFlags
	telemetryFlags
	queue, cache, memory  string
	jobs, maxPoints       int
	maxTries              int
	idleExit, grace, wait time.Duration
	quiet                 bool
	memoryBytes           gridspec.Bytes
}

func newWorker(st *state) *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "worker --queue URL",
		Short: "Simulate points of sweeps that run with --queue",
		Long: `worker pulls points from a NATS server with JetStream, simulates them on all cores and sends back their rows. Any number
may run, on any machines, and come and go: a point whose worker is lost goes to another one, and a point that is simulated twice does no harm.
Workers simulate points of their own simulator version only.

Credentials come from the environment, under the names of the nats command: NATS_CREDS, NATS_NKEY, NATS_USER and NATS_PASSWORD, NATS_TOKEN;
NATS_CA, NATS_CERT and NATS_KEY are for TLS.

On SIGTERM and Ctrl-C a worker takes no more points, finishes what it simulates within --grace, and gives the rest back.

Exit codes: 0 it was told to end by SIGTERM, --max-points or --idle-exit, 2 it was refused, 75 no server answered, 130 interrupted by Ctrl-C.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), st) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.queue, "queue", "", "where the points are: nats://HOST:4222/NAMESPACE, or tls://… for TLS")
	fs.IntVarP(&f.jobs, "jobs", "j", 0, "points simulated at the same time; 0 is one for each core")
	fs.StringVar(&f.memory, "memory", "0", "most memory for workloads and points, such as 8GiB; 0 is three quarters of what is free")
	fs.StringVar(&f.cache, "cache", "", "folder for the files of points; several workers may share it; the default is below the user's cache")
	fs.IntVar(&f.maxPoints, "max-points", 0, "end after so many points; 0 is never")
	fs.DurationVar(&f.idleExit, "idle-exit", 0, "end when there was no point for so long; 0 is never")
	fs.DurationVar(&f.grace, "grace", 25*time.Second, "how long points may go on once the worker is told to end")
	fs.IntVar(&f.maxTries, "max-tries", 5, "how often a point may be begun again in vain, here and elsewhere, until it fails")
	fs.DurationVar(&f.wait, "connect-wait", time.Minute, "how long to try when no server answers")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print errors only")
	f.streamFlags.add(fs)
	f.telemetryFlags.add(fs)
	return cmd
}

// check reports everything that is wrong with the flags.
func (f *workerFlags) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch f.queue {
	case "":
		bad("--queue is missing; say where the points are, such as --queue nats://localhost:4222/%s", queue.DefaultNamespace)
	case queueEmbedded:
		bad("--queue embedded is a sweep's; a worker needs the URL that the sweep prints")
	}
	count := func(name string, n int) {
		if n < 0 {
			bad("--%s: %d is not allowed; give 0 or more", name, n)
		}
	}
	count("jobs", f.jobs)
	count("max-points", f.maxPoints)
	if f.maxTries < 1 {
		bad("--max-tries: %d is not allowed; give 1 or more", f.maxTries)
	}
	duration := func(name string, d time.Duration) {
		if d < 0 {
			bad("--%s: %s is not allowed; give a duration of 0 or more", name, d)
		}
	}
	duration("idle-exit", f.idleExit)
	duration("grace", f.grace)
	duration("connect-wait", f.wait)
	var err error
	if f.memoryBytes, err = gridspec.ParseBytes(f.memory); err != nil {
		bad("--memory: %w", err)
	}
	return errors.Join(errs...)
}

func (f *workerFlags) run(ctx context.Context, st *state) (err error) {
	defer func() {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) && !interrupted(ctx) {
			err = nil // it was told to end before it began
		}
	}()
	limits, limitsErr := f.limits()
	if err := errors.Join(f.check(), limitsErr); err != nil {
		return err
	}
	if f.cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("--cache: %w; name a folder", err)
		}
		f.cache = filepath.Join(dir, "servegrid", "queue")
	}
	tell := func(text string) {
		if !f.quiet {
			_ = printText(st.stderr, "worker: %s\n", text)
		}
	}
	t, err := f.telemetryFlags.start(ctx, st, "", f.queue)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	observer := t.workerObserver()
	connection, err := queue.Connect(ctx, queue.ConnectOptions{
		URL: f.queue, Getenv: st.getenv, Name: "servegrid worker", Wait: max(f.wait, time.Millisecond), Observer: observer, Notice: tell,
	})
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.Prepare(ctx, limits); err != nil {
		return err
	}
	t.setReady(connection.Ready)
	if cores := runtime.GOMAXPROCS(0); f.jobs > 0 && f.jobs < cores {
		// One that was given fewer jobs than cores leaves the others to whoever is there; its collector too.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(f.jobs))
	}
	_ = runAsBatch() // or everything works as well, only slower
	tell("waiting for points")
	out, err := queue.Work(ctx, queue.WorkerOptions{
		Connection: connection, Cache: f.cache, Jobs: f.jobs, Memory: int64(f.memoryBytes), MaxPoints: f.maxPoints, IdleExit: f.idleExit,
		Grace: max(f.grace, time.Millisecond), MaxTries: f.maxTries, Simulate: simulateWithFiles, Observer: observer, Notice: tell,
	})
	if err != nil {
		return err
	}
	ended := fmt.Sprintf("ended: %s finished, %d given back", plural(out.Finished, "point"), out.Returned)
	if out.Left > 0 {
		ended += fmt.Sprintf("; the server is away, so others get %d more after the time of --ack-wait", out.Left)
	}
	tell(ended)
	if interrupted(ctx) {
		return &exitError{exitInterrupted, errors.New("interrupted")}
	}
	return nil
}
