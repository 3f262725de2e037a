package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/servegrid/servegrid/sweep"
)

// chaosSize says how much chaos there is. The environment makes it larger: see tools/chaos.sh.
type chaosSize struct {
	points, requests int
	// killEvery is the mean time between two kills of a worker.
	killEvery, ackWait time.Duration
	seed               uint64
}

func chaosSizeOf(t *testing.T) chaosSize {
	t.Helper()
	number := func(name string, or int) int {
		text := os.Getenv(name)
		if text == "" {
			return or
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s=%q is no number above 0", name, text)
		}
		return n
	}
	return chaosSize{
		points: number("CHAOS_POINTS", 200), requests: number("CHAOS_REQUESTS", 1500),
		killEvery: time.Duration(number("CHAOS_KILL_EVERY_MS", 1500)) * time.Millisecond,
		ackWait:   time.Duration(number("CHAOS_ACK_WAIT_MS", 1500)) * time.Millisecond,
		seed:      uint64(number("CHAOS_SEED", int(time.Now().UnixNano()%1_000_000)+1)),
	}
}

// chaosSpec has points of different cost on four workloads, one of which is a file that travels to the workers.
func chaosSpec(t *testing.T, size chaosSize) string {
	t.Helper()
	dir := t.TempDir()
	var trace strings.Builder
	for i := range size.requests * 2 {
		fmt.Fprintf(&trace, `{"timestamp": %d, "input_length": 1024, "output_length": %d, "hash_ids": [%d, %d]}`+"\n", i*40, 16+i%64, i%17, 100+i)
	}
	workers := size.points / 40
	text := fmt.Sprintf(`
name: chaos
workload:
  - trace: {path: trace.jsonl, format: mooncake, block_size: 512}
  - preset: {name: chat, requests: %[1]d, rate: 8, seed: 1}
  - synthetic: {input_tokens: 512, output_tokens: 64, requests: %[2]d, arrival_interval_ms: 10}
  - synthetic: {input_tokens: 64, output_tokens: 16, requests: %[3]d, arrival_interval_ms: 5}
grid:
  engine.max_num_seqs: [2, 3, 4, 6, 8, 12, 16, 24, 32, 64]
  deployment.workers: {range: [1, %[4]d, 1]}
`, size.requests, size.requests*4, size.requests/4+1, workers)
	for name, data := range map[string]string{"trace.jsonl": trace.String(), "grid.yaml": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "grid.yaml")
}

// chaosNamespace is the namespace of the test.
const chaosNamespace = "chaos"

// chaos is a sweep through a queue where everything that can fail does.
type chaos struct {
	t    *testing.T
	size chaosSize
	rand *rand.Rand
	spec string
	// Each has a small disk: the coordinator, the workers and the server.
	out, cache, store string
	server            *service
	coordinator       *service
	workers           []*service
	// network is that of the workers, office that of the coordinator.
	network, office *proxy
	watching        *watching

	mu sync.Mutex
	// full is the disk that is full, "" when none is.
	full string
	// late is how many messages with finished points came after the sweep had ended.
	late int
	// troubled counts the programs that ended by themselves because of a full disk.
	troubled map[string]int
	told     []string
}

// TestChaos runs a sweep through the queue while its workers, server and coordinator are killed, the network fails and disks
// are full. Every point is in the results once, and the results are those of one machine.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes about 15 s")
	}
	size := chaosSizeOf(t)
	spec := chaosSpec(t, size)
	straight := filepath.Join(t.TempDir(), "straight")
	began := time.Now()
	mustRun(t, "sweep", spec, "-q", "-o", straight)
	alone := time.Since(began)

	c := &chaos{t: t, size: size, rand: rand.New(rand.NewPCG(size.seed, 0)), spec: spec, troubled: map[string]int{}}
	t.Logf("CHAOS_SEED=%d", size.seed)
	began = time.Now()
	c.begin()
	c.rage()
	c.end()
	c.verify(straight)
	c.summarise(alone, time.Since(began))
}

// begin starts everything.
func (c *chaos) begin() {
	c.out = filepath.Join(mountTmpfs(c.t, "size=256m"), "out")
	c.cache = mountTmpfs(c.t, "size=64m")
	c.store = mountTmpfs(c.t, "size=512m")
	address := fmt.Sprintf("127.0.0.1:%d", freePort(c.t))
	config := filepath.Join(c.t.TempDir(), "nats.conf")
	text := fmt.Sprintf("listen: %q\njetstream: {store_dir: %q, max_file_store: 64GB}\n", address, c.store) // more than there is, to find the end
	if err := os.WriteFile(config, []byte(text), 0o666); err != nil {
		c.t.Fatal(err)
	}
	c.server = startService(c.t, "nats-server", func() []string {
		if c.server != nil { // it is away for a while
			time.Sleep(500 * time.Millisecond)
		}
		return []string{"nats-server", "-c", config}
	}, c.unexpected("server"))
	c.network, c.office = startProxy(c.t, address), startProxy(c.t, address)
	c.watching = startWatching(c.t, address)
	c.coordinator = startService(c.t, "coordinator", func() []string {
		return []string{
			"servegrid", "sweep", c.spec, "-o", c.out, "--json", "--queue", c.url(c.office), "--ack-wait", c.size.ackWait.String(), "--queue-window", strconv.Itoa(c.size.points / 5),
		}
	}, c.coordinatorEnded)
	for i := range 4 {
		c.workers = append(c.workers, startService(c.t, fmt.Sprintf("worker %d", i), func() []string {
			return []string{"servegrid", "worker", "--queue", c.url(c.network), "--jobs", "1", "--cache", c.cache, "--ack-wait", c.size.ackWait.String(), "--grace", "2s"}
		}, c.unexpected("workers")))
	}
}

func (c *chaos) url(p *proxy) string { return "nats://" + p.address() + "/" + chaosNamespace }

// unexpected says that a program is started again, and that it should not have ended unless its disk is full.
func (c *chaos) unexpected(disk string) func(int, string) bool {
	return func(code int, stderr string) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.full == disk {
			c.troubled[disk]++
		} else {
			c.t.Errorf("a program of the %s ended by itself with exit code %d:\n%s", disk, code, tail(stderr))
		}
		time.Sleep(100 * time.Millisecond) // as a supervisor does
		return false
	}
}

// coordinatorEnded says whether the sweep is finished.
func (c *chaos) coordinatorEnded(code int, stderr string) bool {
	if code == exitOK {
		return true
	}
	if code == exitSomeFailed {
		c.t.Errorf("points failed:\n%s", tail(stderr))
		return true
	}
	c.mu.Lock()
	full := c.full
	c.mu.Unlock()
	if code == exitAway && full == "server" { // one that starts then is told so, and the same command goes on
		return c.unexpected("server")(code, stderr)
	}
	return c.unexpected("coordinator")(code, stderr)
}

// rage goes through the disasters while workers are killed, one after another as the sweep goes on.
func (c *chaos) rage() {
	ctx, stop := context.WithCancel(c.t.Context())
	var killing sync.WaitGroup
	for i, w := range c.workers {
		r := rand.New(rand.NewPCG(c.size.seed, uint64(i)+1))
		killing.Go(func() {
			for ctx.Err() == nil {
				rest(ctx, time.Duration((0.5+r.Float64())*float64(c.size.killEvery)))
				w.signal(syscall.SIGKILL)
			}
		})
	}
	defer killing.Wait()
	defer stop()

	disasters := c.disasters()
	c.rand.Shuffle(len(disasters), func(i, k int) { disasters[i], disasters[k] = disasters[k], disasters[i] })
	for i, d := range disasters {
		if !c.await(func() bool { return c.finished() >= c.size.points*(i+1)/(len(disasters)+2) }, "disaster "+d.name) {
			return
		}
		at, began := c.finished(), time.Now()
		d.happens()
		c.told = append(c.told, fmt.Sprintf("after %d points: %s, %.1f s", at, d.name, time.Since(began).Seconds()))
	}
	c.await(func() bool { return false }, "the end")
}

// finished is how many points are on the coordinator's disk.
func (c *chaos) finished() int { return max(lines(filepath.Join(c.out, sweep.JournalFile))-1, 0) }

// await waits for something; it returns false when the sweep has ended before.
func (c *chaos) await(ok func() bool, what string) bool {
	began, last, since := time.Now(), -1, time.Now()
	for !ok() {
		select {
		case <-c.coordinator.done.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
		if c.t.Failed() {
			c.t.FailNow()
		}
		if n := c.finished(); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) > time.Minute {
			c.coordinator.signal(syscall.SIGQUIT)
			time.Sleep(time.Second)
			c.t.Fatalf("nothing for a minute, %v after the wait for %s began; %d of %d points are finished; so far: %s\ncoordinator:\n%s\nworker:\n%s",
				time.Since(began), what, last, c.size.points, strings.Join(c.told, "; "), tail(c.coordinator.last), tail(c.workers[0].last))
		}
	}
	return true
}

// disaster is what happens once.
type disaster struct {
	name    string
	happens func()
}

// kill waits until a program runs, and ends it.
func (c *chaos) kill(s *service, signal os.Signal) func() {
	return func() { c.await(func() bool { return s.signal(signal) }, s.name+" to run") }
}

func (c *chaos) disasters() []disaster {
	partition := func(p *proxy) func() {
		return func() {
			p.partition()
			time.Sleep(c.size.ackWait * 3 / 2)
			p.heal()
		}
	}
	cut := func(p *proxy) func() {
		return func() {
			for range 3 {
				p.cut()
				time.Sleep(time.Duration(c.rand.IntN(200)) * time.Millisecond)
			}
			p.refuse()
			time.Sleep(500 * time.Millisecond)
			p.heal()
		}
	}
	return []disaster{
		{"server killed", c.kill(c.server, syscall.SIGKILL)},
		{"server killed again", c.kill(c.server, syscall.SIGKILL)},
		{"server restarted", c.kill(c.server, syscall.SIGTERM)},
		{"coordinator killed", c.kill(c.coordinator, syscall.SIGKILL)},
		{"coordinator killed again", c.kill(c.coordinator, syscall.SIGKILL)},
		{"workers cut off, silently", partition(c.network)},
		{"coordinator cut off, silently", partition(c.office)},
		{"connections of the workers closed", cut(c.network)},
		{"connections of the coordinator closed", cut(c.office)},
		{"coordinator's disk full", c.fillCoordinator},
		{"workers' disk full", c.fillWorkers},
		{"server's disk full", c.fillServer},
	}
}

// fillCoordinator leaves the coordinator no room until it has given up.
func (c *chaos) fillCoordinator() {
	empty := c.fill("coordinator", filepath.Dir(c.out))
	before := c.coordinator.ended()
	c.await(func() bool { return c.coordinator.ended() > before }, "the coordinator to give up")
	empty()
}

// fillWorkers leaves the workers no room, not even for what they had.
func (c *chaos) fillWorkers() {
	for _, w := range c.workers {
		w.signal(syscall.SIGKILL)
	}
	entries, _ := os.ReadDir(c.cache)
	for _, e := range entries {
		_ = os.RemoveAll(filepath.Join(c.cache, e.Name()))
	}
	empty := c.fill("workers", c.cache)
	time.Sleep(time.Second)
	empty()
}

// fillServer leaves the server no room. It stops storing anything until it is started again.
func (c *chaos) fillServer() {
	empty := c.fill("server", c.store)
	time.Sleep(time.Second)
	empty()
	c.kill(c.server, syscall.SIGTERM)()
}

func (c *chaos) fill(disk, dir string) (empty func()) {
	c.mu.Lock()
	c.full = disk
	c.mu.Unlock()
	removeFiller, err := fillDisk(dir)
	if err != nil {
		c.t.Fatal(err)
	}
	return func() {
		removeFiller()
		time.Sleep(300 * time.Millisecond) // for those that end of it now
		c.mu.Lock()
		c.full = ""
		c.mu.Unlock()
	}
}

// end stops the workers as a machine that shuts down does.
func (c *chaos) end() {
	var stopping sync.WaitGroup
	for _, w := range c.workers {
		stopping.Go(func() { w.stop(syscall.SIGTERM) })
	}
	stopping.Wait()
}

// verify compares the results with those of one machine, and looks for what was left behind.
func (c *chaos) verify(straight string) {
	want := rowsWithoutWallTime(c.t, filepath.Join(straight, sweep.ResultsFile))
	if len(want) != c.size.points+1 {
		c.t.Fatalf("%d points instead of %d", len(want)-1, c.size.points)
	}
	if diff := cmp.Diff(want, rowsWithoutWallTime(c.t, filepath.Join(c.out, sweep.ResultsFile))); diff != "" {
		c.t.Errorf("the results differ (-one machine +chaos):\n%s", tail(diff))
	}
	if n := c.finished(); n != c.size.points {
		c.t.Errorf("the journal has %d rows of %d points", n, c.size.points)
	}
	if text := c.coordinator.last; strings.Contains(text, "conflict") || strings.Contains(text, "differ") {
		c.t.Errorf("the coordinator complains:\n%s", tail(text))
	}
	c.late = c.watching.lateParts(c.t, want)
	// The same command again finds nothing to do, and takes in the late copies.
	again := mustRun(c.t, "sweep", c.spec, "-o", c.out, "--queue", c.url(c.office))
	if text := fmt.Sprintf("%d points: %[1]d ok", c.size.points); !strings.Contains(again.stdout, text) || !strings.Contains(again.stdout, "0 simulated now") {
		c.t.Errorf("the same command again says:\n%s", tail(again.stdout))
	}
	c.watching.verify(c.t)
}

func (c *chaos) summarise(alone, took time.Duration) {
	kills := 0
	for _, w := range c.workers {
		kills += w.kills
	}
	sent, rows, again := c.watching.counts()
	c.t.Logf("seed %d: %d points in %.1f s (%.1f s on one machine, undisturbed): %d kills of 4 workers, %d starts of the server, %d of the coordinator, "+
		"%d points sent, %d delivered again, %d rows sent, so %d of them twice, %d messages after the end; ended for a full disk: %v\n%s",
		c.size.seed, c.size.points, took.Seconds(), alone.Seconds(), kills, c.server.starts, c.coordinator.starts, sent, again, rows, rows-c.watching.different(), c.late, c.troubled,
		strings.Join(c.told, "\n"))
}

// watching listens to what passes the server.
type watching struct {
	nc *nats.Conn

	mu          sync.Mutex
	points      int
	rows        map[string]int
	redelivered map[string]bool // by their place in the stream
}

func startWatching(t *testing.T, address string) *watching {
	t.Helper()
	w := &watching{rows: map[string]int{}, redelivered: map[string]bool{}}
	var err error
	w.nc, err = nats.Connect("nats://"+address, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.nc.Close)
	for subject, handle := range map[string]nats.MsgHandler{
		"servegrid." + chaosNamespace + ".points.>": w.point, "servegrid." + chaosNamespace + ".parts.*": w.part,
		"$JS.ACK.servegrid-" + chaosNamespace + "-points.>": w.acknowledged,
	} {
		if _, err := w.nc.Subscribe(subject, handle); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *watching) point(*nats.Msg) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.points++
}

func (w *watching) part(m *nats.Msg) {
	rows, err := sweep.DecodeRows(m.Data)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.rows["unreadable"] += 2
	}
	for _, r := range rows {
		w.rows[r.ID]++
	}
}

// acknowledged sees $JS.ACK.<stream>.<consumer>.<deliveries>.<place in the stream>.….
func (w *watching) acknowledged(m *nats.Msg) {
	if parts := strings.Split(m.Subject, "."); len(parts) > 5 && parts[4] != "1" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.redelivered[parts[5]] = true
	}
}

func (w *watching) counts() (points, rows, redelivered int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.rows {
		rows += n
	}
	return w.points, rows, len(w.redelivered)
}

func (w *watching) different() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.rows)
}

// lateParts counts the messages with finished points that no sweep waits for. There may be copies of results only, of workers
// that were thought lost and were late.
func (w *watching) lateParts(t *testing.T, results [][]string) (n int) {
	js, err := jetstream.New(w.nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	stream := chaosStream(ctx, t, js, "parts")
	id := slices.Index(results[0], "id")
	for sequence := stream.CachedInfo().State.FirstSeq; sequence <= stream.CachedInfo().State.LastSeq; sequence++ {
		m, err := stream.GetMsg(ctx, sequence)
		if err != nil {
			continue // it was taken in
		}
		n++
		rows, err := sweep.DecodeRows(m.Data)
		for _, row := range rows {
			if !slices.ContainsFunc(results[1:], func(r []string) bool { return r[id] == row.ID }) {
				t.Errorf("the point %s was finished after the end, and is not in the results", row.ID)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
	return n
}

// chaosStream asks for a stream until a server answers: a request gets lost when the last disaster is the server's.
func chaosStream(ctx context.Context, t *testing.T, js jetstream.JetStream, kind string) jetstream.Stream {
	t.Helper()
	for {
		timed, stop := context.WithTimeout(ctx, 2*time.Second)
		stream, err := js.Stream(timed, "servegrid-"+chaosNamespace+"-"+kind)
		stop()
		if err == nil {
			return stream
		}
		if rest(ctx, 100*time.Millisecond); ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// verify asks the server for what is left: the trace, and nothing else.
func (w *watching) verify(t *testing.T) {
	js, err := jetstream.New(w.nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	for _, name := range []string{"points", "parts"} {
		stream := chaosStream(ctx, t, js, name)
		if info := stream.CachedInfo(); info.State.Msgs > 0 {
			t.Errorf("%d messages are left in the stream of %s", info.State.Msgs, name)
		}
		consumers := stream.ConsumerNames(ctx)
		var left []string
		for c := range consumers.Name() {
			left = append(left, c)
		}
		if slices.ContainsFunc(left, func(c string) bool { return strings.HasPrefix(c, "sweep-") }) {
			t.Errorf("the stream of %s has the consumers %q", name, left)
		}
	}
	store, err := js.ObjectStore(ctx, "servegrid-"+chaosNamespace+"-files")
	if err != nil {
		t.Fatal(err)
	}
	if objects, err := store.List(ctx); err != nil || len(objects) != 1 {
		t.Errorf("the object store has %d files, not only the trace (%v)", len(objects), err)
	}
}
