package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/queue"
)

// queueEmbedded is the queue of a sweep that starts its own server.
const queueEmbedded = "embedded"

// streamFlags say how the streams of a queue are made.
type streamFlags struct {
	replicas int
	ackWait  time.Duration
}

func (f *streamFlags) add(fs *pflag.FlagSet) {
	fs.IntVar(&f.replicas, "queue-replicas", 1, "servers of a cluster that hold each stream, when this makes the streams")
	fs.DurationVar(&f.ackWait, "ack-wait", 30*time.Second, "how long a worker may be silent before its points go to others, when this makes the streams")
}

func (f *streamFlags) limits() (queue.Limits, error) {
	var errs []error
	if f.replicas < 1 || f.replicas > 5 {
		errs = append(errs, fmt.Errorf("--queue-replicas: %d is not allowed; give 1 to 5", f.replicas))
	}
	if f.ackWait < 100*time.Millisecond {
		errs = append(errs, fmt.Errorf("--ack-wait: %s is not allowed; give 100ms or more", f.ackWait))
	}
	return queue.Limits{Replicas: f.replicas, AckWait: f.ackWait}, errors.Join(errs...)
}

// queueFlags send the points of a sweep to workers.
type queueFlags struct {
	streamFlags
	queue, queueListen string
	window             int
	connectWait        time.Duration
	// flags are those of the command, with what was given.
	flags *pflag.FlagSet
}

func (f *queueFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.queue, "queue", "", "simulate on workers behind a NATS server with JetStream: nats://HOST:4222/NAMESPACE, tls://…, or embedded for a server in this process")
	fs.StringVar(&f.queueListen, "queue-listen", "", "where --queue embedded listens, so that workers of other machines can join: HOST:PORT, HOST for any free port, or PORT on this machine only, which is the default")
	fs.IntVar(&f.window, "queue-window", 10_000, "most points that are in the queue at a time")
	fs.DurationVar(&f.connectWait, "connect-wait", 10*time.Second, "how long to try when the queue's server does not answer at the start")
	f.streamFlags.add(fs)
	f.flags = fs
}

// withoutQueue lists the flags that say how a queue is used and mean nothing without one.
var withoutQueue = []string{"queue-listen", "queue-window", "connect-wait", "queue-replicas", "ack-wait"}

// check reports what is wrong with the flags of a sweep.
func (f *queueFlags) check() error {
	var errs []error
	for _, name := range withoutQueue {
		if f.queue == "" && f.flags != nil && f.flags.Changed(name) {
			errs = append(errs, fmt.Errorf("--%s: it is about a queue, and there is none; add --queue", name))
		}
	}
	if f.queue != "" && f.queueListen != "" && f.queue != queueEmbedded {
		errs = append(errs, errors.New("--queue-listen is for --queue embedded; another server listens where its own configuration says"))
	}
	if f.queue != "" && f.window < 1 {
		errs = append(errs, fmt.Errorf("--queue-window: %d is not allowed; give 1 or more", f.window))
	}
	if f.queue != "" && f.connectWait < 0 {
		errs = append(errs, fmt.Errorf("--connect-wait: %s is not allowed; give a duration of 0 or more", f.connectWait))
	}
	if f.queue != "" {
		_, err := f.limits()
		errs = append(errs, err)
	}
	switch f.queue {
	case "":
	case queueEmbedded:
		errs = append(errs, queue.CheckServer())
	default:
		_, err := queue.NamespaceOf(f.queue)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// sweepQueue is a sweep's place in a queue while it runs. Nil is none.
type sweepQueue struct {
	connection  *queue.Connection
	coordinator *queue.Coordinator
	server      *queue.Server
	token       string   // the file of the server's token
	stdin       *os.File // a copy of the standard input, for workers whose trace it is
	stopWorker  context.CancelFunc
	worker      chan error
}

// withQueue runs a sweep, with the workers of its queue when it has one.
func (j *sweepJob) withQueue(ctx context.Context, opt *sweep.Options, run func() (sweep.Outcome, error)) (sweep.Outcome, error) {
	q, err := j.startQueue(ctx, opt)
	if err != nil {
		return sweep.Outcome{}, err
	}
	out, err := run()
	if closeErr := q.close(ctx, err == nil && !out.Interrupted); closeErr != nil {
		_ = printText(j.state.stderr, "note: %v\n", closeErr) // the sweep is what it is
	}
	return out, err
}

// startQueue connects a sweep to its queue, when it has one, and makes that its executor.
func (j *sweepJob) startQueue(ctx context.Context, opt *sweep.Options) (*sweepQueue, error) {
	f := &j.flags.queueFlags
	if f.queue == "" {
		return nil, nil
	}
	limits, err := f.limits()
	if err != nil {
		return nil, err
	}
	q := &sweepQueue{}
	if q.stdin, err = os.CreateTemp("", "servegrid-stdin-*"); err != nil {
		return nil, fmt.Errorf("keeping the standard input for workers: %w", err)
	}
	at := queue.ConnectOptions{URL: f.queue, Getenv: j.state.getenv, Name: "servegrid sweep " + j.spec.Name, Wait: max(f.connectWait, time.Millisecond), Observer: j.telemetry.coordinatorObserver(), Notice: j.tellQueue}
	if f.queue == queueEmbedded {
		limits.MaxPointsBytes, limits.MaxPartsBytes = embeddedBytes, embeddedBytes
		if err := q.startServer(j, &at); err != nil {
			return nil, errors.Join(err, q.close(ctx, false))
		}
	}
	if q.connection, err = queue.Connect(ctx, at); err == nil {
		err = q.connection.Prepare(ctx, limits)
	}
	if err != nil {
		return nil, errors.Join(err, q.close(ctx, false))
	}
	q.coordinator = queue.NewCoordinator(queue.CoordinatorOptions{
		Connection: q.connection, Observer: at.Observer, Dir: j.dir, Fresh: j.flags.fresh, Window: f.window, StopLost: opt.StopLost,
		Kept: kindsAsked(j.spec.Output), KeepFile: j.placePointFile,
		Files: j.state.fileSystem(), Stdin: q.stdin.Name(), Notice: j.tellQueue, Started: q.removeLeftovers(j.dir), WithWorkers: q.server != nil,
	})
	opt.Executor = q.coordinator
	opt.Stdin = io.TeeReader(opt.Stdin, q.stdin)
	if q.server != nil {
		q.startWorker(ctx, j, opt.Jobs, at)
	}
	return q, nil
}

// tellQueue tells people what they should know about the queue.
func (j *sweepJob) tellQueue(text string) {
	for _, said := range []string{"queue: ", "queue "} { // as errors begin
		text = strings.TrimPrefix(text, said)
	}
	if !j.flags.quiet {
		_ = printText(j.state.stderr, "queue: %s\n", text)
	}
}

// embeddedBytes bounds each stream of an embedded server, which serves one sweep: a server reserves what its streams may take.
const embeddedBytes = 256 << 20

// embeddedStore begins the name of the folder of an embedded server, in the output folder.
const embeddedStore = ".queue-server-"

// startServer starts a server in this process and says how others join.
func (q *sweepQueue) startServer(j *sweepJob, at *queue.ConnectOptions) error {
	if err := os.MkdirAll(j.dir, 0o777); err != nil {
		return err
	}
	store, err := os.MkdirTemp(j.dir, embeddedStore)
	if err != nil {
		return err
	}
	if q.server, err = queue.StartServer(queue.ServerOptions{Listen: j.flags.queueListen, Store: store}); err != nil {
		_ = os.RemoveAll(store)
		_ = os.Remove(j.dir) // unless it was there before
		return err
	}
	at.URL = q.server.URL(queue.DefaultNamespace)
	token := q.server.Token()
	at.Getenv = func(name string) string {
		if name == "NATS_TOKEN" {
			return token
		}
		return ""
	}
	q.token = filepath.Join(store, "token")
	if err := os.WriteFile(q.token, []byte(token+"\n"), 0o600); err != nil {
		return err
	}
	j.tellQueue("listening; " + q.howToJoin(at.URL))
	return nil
}

// howToJoin says how workers get to the server. Those of other machines do not see its files.
func (q *sweepQueue) howToJoin(here string) string {
	join := fmt.Sprintf("more workers join with: NATS_TOKEN=$(cat %s) servegrid worker --idle-exit 1m --queue %s", q.token, here)
	if elsewhere := q.server.URLElsewhere(queue.DefaultNamespace); elsewhere != here {
		join += fmt.Sprintf("; on other machines: NATS_TOKEN=… servegrid worker --idle-exit 1m --queue %s, with the token that the file holds, and whatever name or address of this machine they know", elsewhere)
	}
	return join
}

// removeLeftovers returns a function that removes the folders of servers that were killed. It is called once the output folder is
// this sweep's.
func (q *sweepQueue) removeLeftovers(dir string) func() {
	return func() {
		left, _ := filepath.Glob(filepath.Join(dir, embeddedStore+"*"))
		for _, path := range left {
			if q.token == "" || path != filepath.Dir(q.token) {
				_ = os.RemoveAll(path) // the next sweep tries again
			}
		}
	}
}

// startWorker starts the workers of this process.
func (q *sweepQueue) startWorker(ctx context.Context, j *sweepJob, jobs int, at queue.ConnectOptions) {
	ctx, q.stopWorker = context.WithCancel(ctx)
	q.worker = make(chan error, 1)
	go func() {
		connection, err := queue.Connect(ctx, at)
		if err != nil {
			q.worker <- err
			return
		}
		defer connection.Close()
		_, err = queue.Work(ctx, queue.WorkerOptions{
			Connection: connection, Cache: filepath.Join(filepath.Dir(q.token), "cache"),
			Jobs: cmp.Or(jobs, runtime.GOMAXPROCS(0)), Memory: int64(j.spec.Execution.MaxMemory),
			Grace: time.Millisecond, Simulate: simulateWithFiles, Observer: j.telemetry.workerObserver(), Notice: j.tellQueue,
		})
		q.worker <- err
	}()
}

// close ends a sweep's place in the queue. Complete says that the sweep has all its rows.
func (q *sweepQueue) close(ctx context.Context, complete bool) error {
	if q == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), queueCloseTime)
	defer stop()
	var errs []error
	if q.coordinator != nil {
		errs = append(errs, q.coordinator.Close(ctx, complete))
	}
	if q.stopWorker != nil {
		q.stopWorker()
		errs = append(errs, <-q.worker)
	}
	if q.connection != nil {
		q.connection.Close()
	}
	if q.server != nil {
		errs = append(errs, q.server.Close())
	}
	if q.stdin != nil {
		errs = append(errs, q.stdin.Close(), os.Remove(q.stdin.Name()))
	}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, context.Canceled) })...)
}

// queueCloseTime bounds the time to leave a queue.
const queueCloseTime = 15 * time.Second

// getenv looks up a variable.
func (st *state) getenv(name string) string {
	value, _ := lookupIn(st.env)(name)
	return value
}
