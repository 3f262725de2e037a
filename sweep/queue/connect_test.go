package queue

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

func TestParseURL(t *testing.T) {
	for _, tt := range []struct{ url, servers, namespace, err string }{
		{"nats://h:4222/team-a", "nats://h:4222", "team-a", ""},
		{"nats://h", "nats://h", DefaultNamespace, ""},
		{"tls://a:1,b:2/x/", "tls://a:1,tls://b:2", "x", ""},
		{"nats://[::1]:4222/x", "nats://[::1]:4222", "x", ""},
		{"h:4222", "", "", "give nats://"},
		{"http://h/x", "", "", "give nats://"},
		{"nats:///x", "", "", "a host is missing"},
		{"nats://h/a.b", "", "", "namespace \"a.b\" is not allowed"},
		{"nats://h/a/b", "", "", "is not allowed"},
		{"nats://h/>", "", "", "is not allowed"},
		{"nats://h/A", "", "", "is not allowed"},
		{"nats://h/" + strings.Repeat("a", 41), "", "", "is not allowed"},
		{"nats://h/x?token=secret", "", "", "nothing may follow"},
		{"nats://user:secret@h/x", "", "", "NATS_USER"},
		{"nats://secret@h/x", "", "", "NATS_TOKEN"},
		{"http://user:secret@h/x", "", "", "give nats://"},
	} {
		servers, namespace, err := parseURL(tt.url)
		if servers != tt.servers || namespace != tt.namespace || (err == nil) != (tt.err == "") {
			t.Errorf("%s: %q, %q, %v", tt.url, servers, namespace, err)
		}
		if err != nil && (!strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v", tt.url, err)
		}
	}
}

// What is wrong with a server is said so that it can be mended.
func TestConnectErrors(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := listener.Addr().String()
	listener.Close()
	locked := startServer(t, func(o *server.Options) { o.Authorization = "right" })
	plain := startServer(t, func(o *server.Options) { o.JetStream = false })
	small := startServer(t, func(o *server.Options) { o.JetStreamMaxStore = 1 << 20 })
	keyed := startServer(t, func(o *server.Options) {
		o.Nkeys = []*server.NkeyUser{{Nkey: "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"}}
	})
	dir := t.TempDir()
	missing, empty, ca := filepath.Join(dir, "missing"), filepath.Join(dir, "empty"), makeAuthority(t, dir)
	write(t, empty, "-----BEGIN NATS USER JWT-----\nx\n------END NATS USER JWT------\n")
	for _, tt := range []struct {
		name, url string
		env       []string
		want      string
	}{
		{"nobody", "nats://" + nobody + "/a", nil, "no server answers there"},
		{"name", "nats://no-such-host.invalid/a", nil, `"no-such-host.invalid" cannot be resolved`},
		{"no credentials", locked.url("a"), nil, "wants credentials; give them in the environment: NATS_CREDS"},
		{"wrong token", locked.url("a"), []string{"NATS_TOKEN=wrong"}, "refuses the credentials of NATS_TOKEN ("},
		{"wrong password", locked.url("a"), []string{"NATS_USER=me", "NATS_PASSWORD=wrong"}, "refuses the credentials of NATS_USER and NATS_PASSWORD ("},
		{"no password", locked.url("a"), []string{"NATS_USER=me"}, "NATS_USER and NATS_PASSWORD belong together"},
		{"no seed", keyed.url("a"), []string{"NATS_CREDS=" + empty}, "the file of NATS_CREDS does not hold the seed"},
		{"missing file", locked.url("a"), []string{"NATS_CREDS=" + missing}, "NATS_CREDS"},
		{"half a certificate", locked.url("a"), []string{"NATS_CERT=" + missing}, "belong together"},
		{"no TLS", strings.Replace(plain.url("a"), "nats:", "tls:", 1), nil, "use nats:// in place of tls://"},
		{"no TLS for an authority", plain.url("a"), []string{"NATS_CA=" + ca.file}, "NATS_CA and NATS_CERT ask for TLS"},
		{"no JetStream", plain.url("a"), nil, "no JetStream"},
		{"no room", small.url("a"), nil, "a limit of the account or the server is reached"},
	} {
		c, err := Connect(t.Context(), ConnectOptions{URL: tt.url, Getenv: environment(tt.env...), Wait: 50 * time.Millisecond})
		if err == nil {
			err = c.Prepare(t.Context(), Limits{})
			c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// A stream of somebody else is not taken.
func TestAdoptsStreams(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	c := s.connectOnly("a")
	if _, err := c.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: c.pointsStream(), Subjects: []string{"other.>"}, MaxMsgSize: 10}); err != nil {
		t.Fatal(err)
	}
	err := c.Prepare(t.Context(), Limits{})
	for _, want := range []string{"will not do", "other.>", "no work queue", "drops old messages", "10 bytes only"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	other := s.connect("b")
	if err := other.Prepare(t.Context(), Limits{MaxPoints: 5}); err != nil { // what is there is good enough
		t.Error(err)
	}
}

// A connection over TLS with a client certificate.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := makeAuthority(t, dir)
	serverCert, serverKey := ca.issue(t, dir, "server")
	clientCert, clientKey := ca.issue(t, dir, "client")
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, func(o *server.Options) {
		o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: ca.pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
		o.TLS, o.TLSVerify, o.TLSTimeout = true, true, 5
	})
	all := []string{"NATS_CA=" + ca.file, "NATS_CERT=" + clientCert, "NATS_KEY=" + clientKey}
	for _, tt := range []struct {
		name, scheme string
		env          []string
		want         string
	}{
		{"all", "tls", all, ""},
		{"as the server asks", "nats", all, ""},
		{"unknown authority", "tls", nil, "NATS_CA"},
		{"no client certificate", "tls", all[:1], "NATS_CERT"},
	} {
		url := tt.scheme + strings.TrimPrefix(s.url("a"), "nats")
		c, err := Connect(t.Context(), ConnectOptions{URL: url, Getenv: environment(tt.env...), Wait: 50 * time.Millisecond})
		if err == nil {
			c.Close()
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	file string
}

func makeAuthority(t *testing.T, dir string) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	a.file = writePEM(t, dir, "ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) issue(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return writePEM(t, dir, name+".pem", "CERTIFICATE", der), writePEM(t, dir, name+".key", "EC PRIVATE KEY", text)
}

func writePEM(t *testing.T, dir, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serverOfDocs starts a server with the configuration that docs/queue.md shows.
func serverOfDocs(t *testing.T) *testServer {
	t.Helper()
	text, err := os.ReadFile("../../docs/queue.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```conf\n")
	conf, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("docs/queue.md shows no configuration")
	}
	dir := t.TempDir()
	conf = strings.Replace(conf, `"data"`, fmt.Sprintf("%q", filepath.Join(dir, "data")), 1)
	path := filepath.Join(dir, "nats-server.conf")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ADMIN", "ALICE", "BOB"} {
		t.Setenv(name+"_PASSWORD", "secret-of-"+strings.ToLower(name))
	}
	return startServer(t, func(o *server.Options) {
		read, err := server.ProcessConfigFile(path)
		if err != nil {
			t.Fatal(err)
		}
		read.Host, read.Port, read.NoSigs, read.NoLog = o.Host, o.Port, true, true
		*o = *read
	})
}

func asUser(name string) []string {
	return []string{"NATS_USER=" + name, "NATS_PASSWORD=secret-of-" + name}
}

// Users that are limited to their namespace can work in it, with files too, and cannot read, publish to or purge another.
func TestPermissions(t *testing.T) {
	s := serverOfDocs(t)
	for _, namespace := range []string{"alice", "bob"} {
		s.connect(namespace, asUser("admin")...)
	}
	points := testPoints(t, 12)
	end := startWorker(t, s.connect("alice", asUser("alice")...))
	alice := s.connect("alice", asUser("alice")...)
	out := testSweep{t: t, conn: alice, dir: t.TempDir()}.mustRun(points)
	if diff := sameRows(locally(t, points), out.Rows); diff != "" {
		t.Fatalf("rows (-local +queue):\n%s", diff)
	}
	store := objects{alice}
	if err := store.Put(t.Context(), "name", strings.NewReader("text")); err != nil {
		t.Fatal(err)
	}
	r, err := store.Get(t.Context(), "name")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4)
	if _, err := r.Read(b); err != nil || string(b) != "text" {
		t.Errorf("%q, %v", b, err)
	}
	r.Close()
	if err := store.remove(t.Context(), "name"); err != nil {
		t.Error(err)
	}
	if _, err := alice.Seen(t.Context()); err != nil {
		t.Error(err)
	}

	end()
	if there, err := alice.workersThere(t.Context()); err != nil || len(there) != 0 {
		t.Errorf("a worker that has ended is there: %v, %v", there, err)
	}

	bobs := names{"bob"}
	for name, try := range map[string]func(context.Context) error{
		"publish points": func(ctx context.Context) error {
			_, err := alice.js.Publish(ctx, bobs.points(thisVersion, "x"), nil)
			return err
		},
		"publish parts": func(ctx context.Context) error {
			_, err := alice.js.Publish(ctx, bobs.parts("x"), nil)
			return err
		},
		"purge": func(ctx context.Context) error {
			_, err := alice.nc.RequestWithContext(ctx, "$JS.API.STREAM.PURGE."+bobs.pointsStream(), nil)
			return err
		},
		"delete": func(ctx context.Context) error {
			_, err := alice.nc.RequestWithContext(ctx, "$JS.API.STREAM.DELETE."+bobs.pointsStream(), nil)
			return err
		},
		"copy": func(ctx context.Context) error {
			_, err := alice.js.CreateStream(ctx, jetstream.StreamConfig{Name: "copy", Sources: []*jetstream.StreamSource{{Name: bobs.pointsStream()}}})
			return err
		},
		"consume": func(ctx context.Context) error {
			_, err := alice.js.CreateConsumer(ctx, bobs.pointsStream(), jetstream.ConsumerConfig{})
			return err
		},
		"pull": func(ctx context.Context) error {
			_, err := alice.nc.RequestWithContext(ctx, "$JS.API.CONSUMER.MSG.NEXT."+bobs.pointsStream()+"."+workersConsumer(thisVersion), nil)
			return err
		},
		"files": func(ctx context.Context) error {
			_, err := alice.js.ObjectStore(ctx, bobs.filesBucket())
			return err
		},
		"listen": func(ctx context.Context) error {
			sub, err := alice.nc.SubscribeSync(bobs.inbox() + ".>")
			if err != nil {
				return err
			}
			defer func() { _ = sub.Unsubscribe() }()
			_, err = sub.NextMsgWithContext(ctx)
			return err
		},
	} {
		refused := new(RefusedError)
		if err := alice.ask(t.Context(), try); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Streams that the admin did not make.
	other := s.connectOnly("carol", asUser("alice")...)
	if err := other.Prepare(t.Context(), Limits{}); err == nil || !strings.Contains(err.Error(), "may not use namespace carol") {
		t.Errorf("another namespace: %v", err)
	}
}

// A worker that loses a permission while it runs ends and says which.
func TestPermissionLost(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "admin", Password: "secret-of-admin"},
			{Username: "worker", Password: "secret-of-worker", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Deny: []string{"servegrid.a.parts.>"}},
			}},
		}
	})
	conn := s.connect("a", asUser("admin")...)
	ended := make(chan error, 1)
	go func() {
		_, err := Work(t.Context(), WorkerOptions{Connection: s.connectOnly("a", asUser("worker")...), Cache: t.TempDir()})
		ended <- err
	}()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = testSweep{t: t, conn: conn, dir: t.TempDir()}.run(ctx, testPoints(t, 2))
	}()
	select {
	case err := <-ended:
		if refused := new(RefusedError); !errors.As(err, &refused) || !strings.HasPrefix(refused.Subject, "servegrid.a.parts.") {
			t.Errorf("the worker ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the worker goes on")
	}
	stop()
	<-done
}

func TestReconnectDelay(t *testing.T) {
	for attempts := range 100 {
		if d := reconnectDelay(attempts); d < leastReconnectDelay/2 || d > mostReconnectDelay {
			t.Errorf("attempt %d waits %s", attempts, d)
		}
	}
}

// Users that may not make streams find all of their namespace again when the server was started again.
func TestLimitedUserAfterRestart(t *testing.T) {
	s := serverOfDocs(t)
	s.connect("alice", asUser("admin")...).Close()
	s.stop()
	s.start()
	if err := s.connectOnly("alice", asUser("alice")...).Prepare(t.Context(), Limits{AckWait: testAckWait}); err != nil {
		t.Error(err)
	}
}

// Such a user who comes first is told who can mend that.
func TestLimitedUserFirst(t *testing.T) {
	s := serverOfDocs(t)
	err := s.connectOnly("alice", asUser("alice")...).Prepare(t.Context(), Limits{})
	if err == nil || !strings.Contains(err.Error(), "servegrid-alice-points is not there, and this user may not make it") {
		t.Errorf("error %v", err)
	}
}

// A namespace that nobody has used is an empty one.
func TestDescribeUnused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	d, err := s.connectOnly("unused").Describe(t.Context())
	if err != nil || len(d.Streams) != 0 || len(d.Workers) != 0 {
		t.Errorf("%+v, %v", d, err)
	}
}

// A worker without a server is idle.
func TestIdleExitWithoutServer(t *testing.T) {
	s := startServer(t)
	conn := s.connect("a")
	ended := make(chan error, 1)
	go func() {
		_, err := Work(t.Context(), WorkerOptions{Connection: conn, Cache: t.TempDir(), IdleExit: time.Second})
		ended <- err
	}()
	waitFor(t, "the worker", func() bool {
		there, err := conn.workersThere(t.Context())
		return err == nil && there[versionToken(thisVersion)] == 1
	})
	s.stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(15 * time.Second):
		t.Error("the worker waits for the server")
	}
}
