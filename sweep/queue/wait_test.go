package queue

import (
	"crypto/tls"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/servegrid/servegrid/gridspec"
)

// Attempts go on until the very end of the time, and only while a server may come.
func TestInsist(t *testing.T) {
	t.Parallel()
	away := &AwayError{errors.New("nobody answers")}
	for _, tt := range []struct {
		name           string
		wait           time.Duration
		err            error
		least, most    time.Duration
		attempts, told int
	}{
		{"at once", time.Hour, nil, 0, time.Second, 1, 0},
		{"of no use", time.Hour, errors.New("refused"), 0, time.Second, 1, 0},
		{"once", 0, away, 0, time.Second, 1, 0},
		{"to the end", 1500 * time.Millisecond, away, 1500 * time.Millisecond, 5 * time.Second, 5, 1},
	} {
		told, attempts, start := 0, 0, time.Now()
		err := insist(t.Context(), tt.wait, func(string) { told++ }, func() error {
			attempts++
			return tt.err
		})
		took := time.Since(start)
		if !errors.Is(err, tt.err) || took < tt.least || took > tt.most || attempts < tt.attempts || told != tt.told {
			t.Errorf("%s: %v after %s and %d attempts, told %d times", tt.name, err, took, attempts, told)
		}
	}
}

// A server without JetStream may have it a moment later; who waits is told what is missing.
func TestPrepareWaits(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(o *server.Options) { o.JetStream = false })
	c, err := Connect(t.Context(), ConnectOptions{URL: s.url("a"), Getenv: environment(), Wait: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	go func() {
		time.Sleep(300 * time.Millisecond)
		s.stop()
		s.opts.JetStream = true
		s.start()
	}()
	if err := c.Prepare(t.Context(), Limits{}); err != nil {
		t.Error(err)
	}
	s.stop()
	s.opts.JetStream = false
	s.start()
	c.wait = time.Millisecond
	err = c.Prepare(t.Context(), Limits{})
	if away := new(AwayError); !errors.As(err, &away) || !strings.Contains(err.Error(), "start it with -js") {
		t.Errorf("error %v", err)
	}
}

// Credentials that the server takes no longer are told, once, and not tried in silence for ever.
func TestShutOut(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(o *server.Options) { o.Username, o.Password = "me", "secret-one" })
	s.shutsOut([]string{"NATS_USER=me", "NATS_PASSWORD=secret-one"}, "refuses the credentials of NATS_USER and NATS_PASSWORD (",
		func() { s.opts.Password = "secret-two" }, func() { s.opts.Password = "secret-one" })
}

// So is a server with a certificate of an unknown authority, and one that does not know this client's any more.
func TestShutOutByTLS(t *testing.T) {
	t.Parallel()
	dir, strangers := t.TempDir(), t.TempDir()
	ca, stranger := makeAuthority(t, dir), makeAuthority(t, strangers)
	configured := func(of *authority, clients *authority, dir string) *tls.Config {
		pair, err := tls.LoadX509KeyPair(of.issue(t, dir, "server"))
		if err != nil {
			t.Fatal(err)
		}
		return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients.pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	}
	right := configured(ca, ca, dir)
	cert, key := ca.issue(t, dir, "client")
	for name, wrong := range map[string]*tls.Config{"of the server": configured(stranger, ca, strangers), "of the client": configured(ca, stranger, dir)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, func(o *server.Options) { o.TLSConfig, o.TLS, o.TLSVerify, o.TLSTimeout = right, true, true, 5 })
			s.shutsOut([]string{"NATS_CA=" + ca.file, "NATS_CERT=" + cert, "NATS_KEY=" + key}, "TLS failed; NATS_CA names",
				func() { s.opts.TLSConfig = wrong }, func() { s.opts.TLSConfig = right })
		})
	}
}

// shutsOut checks that people are told once when a server that starts again does not let a client in, and that it comes back once
// the server does.
func (s *testServer) shutsOut(env []string, want string, wrong, right func()) {
	s.t.Helper()
	t := s.t
	var mu sync.Mutex
	var told []string
	c, err := Connect(t.Context(), ConnectOptions{URL: s.url("a"), Getenv: environment(env...), Notice: func(text string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, text)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	restart := func(change func()) {
		s.stop()
		change()
		s.start()
	}
	count := func(part string) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, text := range told {
			if strings.Contains(text, part) {
				n++
			}
			if strings.Contains(text, "secret-") {
				t.Errorf("a secret is told: %s", text)
			}
		}
		return n
	}
	restart(wrong)
	waitFor(t, "the notice", func() bool { return count(want) > 0 })
	time.Sleep(time.Second)
	if n := count(want); n != 1 {
		t.Errorf("people were told %d times", n)
	}
	restart(right)
	waitFor(t, "the connection", func() bool { return count("is back") == 1 })
}

// Buckets that are there are taken if they are what is needed.
func TestAdoptsBuckets(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		make func(*testing.T, *Connection) error
		want []string
	}{
		"as ours": {func(t *testing.T, c *Connection) error {
			_, err := c.js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: c.workersBucket(), TTL: presenceTTL, MaxBytes: 1 << 20})
			return err
		}, nil},
		"in memory": {func(t *testing.T, c *Connection) error {
			_, err := c.js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: c.triesBucket(), TTL: streamAge, Storage: jetstream.MemoryStorage})
			return err
		}, []string{"KV_servegrid-a-tries", "in the memory of the server", "nats stream rm"}},
		"for ever": {func(t *testing.T, c *Connection) error {
			_, err := c.js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: c.workersBucket()})
			return err
		}, []string{"KV_servegrid-a-workers", "for ever and not for 30s"}},
		"no object store": {func(t *testing.T, c *Connection) error {
			_, err := c.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: c.filesStream(), Subjects: []string{"other.>"}})
			return err
		}, []string{"the object store", "other.>"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startServer(t).connectOnly("a")
			if err := tt.make(t, c); err != nil {
				t.Fatal(err)
			}
			err := c.Prepare(t.Context(), Limits{})
			if (err == nil) != (tt.want == nil) {
				t.Fatalf("error %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

// What is under the name of a trace in the store and is another one is replaced before a worker asks for it.
func TestPoisonedTrace(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connect("a")
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace.jsonl")
	write(t, trace, `{"timestamp":0,"input_length":40,"output_length":4,"hash_ids":[1,2,3]}`+"\n")
	points := []gridspec.Point{pointOf(t, dir, "workload: {trace: {path: trace.jsonl, format: mooncake, block_size: 16}}\n")}
	named, err := NewBundle(BundleOptions{}).file(t.Context(), trace)
	if err != nil {
		t.Fatal(err)
	}
	poison := `{"timestamp":0,"input_length":40,"output_length":9,"hash_ids":[1,2,3]}` + "\n"
	if err := (objects{conn}).Put(t.Context(), named.Digest, strings.NewReader(poison)); err != nil {
		t.Fatal(err)
	}
	startWorker(t, s.connect("a"))
	out := testSweep{t: t, conn: conn, dir: t.TempDir()}.mustRun(points)
	if diff := sameRows(locally(t, points), out.Rows); diff != "" {
		t.Errorf("rows (-local +queue):\n%s", diff)
	}
	if out.Counts.OK != 1 {
		t.Errorf("counts %+v: %s", out.Counts, out.Rows[0].Error)
	}
}
