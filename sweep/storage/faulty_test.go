package storage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"
)

// faulty is a bucket in memory that fails as told.
type faulty struct {
	objects
	mu sync.Mutex
	// failWrites and failReads are how often the next writes and reads fail; below 0 means always.
	failWrites, failReads int
	// tear cuts connections after so many bytes; 0 does not.
	tear int
	// corrupt changes what is read.
	corrupt bool
	// err is what fails; nil means a broken connection.
	err error
	// puts counts the writes that succeeded; reads the connections.
	puts, reads int
}

var errBroken = errors.New("connection reset by peer")

func newFaulty(t *testing.T) (*Store, *faulty) {
	t.Helper()
	b := memblob.OpenBucket(nil)
	t.Cleanup(func() { b.Close() })
	f := &faulty{objects: driven{b}}
	return &Store{at: Location{Scheme: "mem", Bucket: "faulty", Key: "runs/x"}, objects: f, pause: time.Microsecond, answered: new(atomic.Bool)}, f
}

func (f *faulty) fails(left *int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if *left == 0 {
		return nil
	}
	*left--
	if f.err != nil {
		return f.err
	}
	return errBroken
}

func (f *faulty) write(ctx context.Context, key string, content io.Reader, size int64, a attributes) error {
	if err := f.fails(&f.failWrites); err != nil {
		_, _ = io.CopyN(io.Discard, content, size/2)
		return err
	}
	f.mu.Lock()
	f.puts++
	f.mu.Unlock()
	return f.objects.write(ctx, key, content, size, a)
}

func (f *faulty) read(ctx context.Context, key string, offset int64) (io.ReadCloser, attributes, error) {
	if err := f.fails(&f.failReads); err != nil {
		return nil, attributes{}, err
	}
	f.mu.Lock()
	f.reads++
	f.mu.Unlock()
	r, a, err := f.objects.read(ctx, key, offset)
	if err != nil {
		return nil, a, err
	}
	if f.corrupt {
		data, _ := io.ReadAll(r)
		r.Close()
		data[len(data)/2] ^= 1
		return io.NopCloser(bytes.NewReader(data)), a, nil
	}
	if f.tear > 0 {
		return torn{io.LimitReader(r, int64(f.tear)), r}, a, nil
	}
	return r, a, nil
}

// torn ends with an error where the content goes on.
type torn struct {
	io.Reader
	rest io.ReadCloser
}

func (r torn) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err == io.EOF {
		var more [1]byte
		if m, _ := r.rest.Read(more[:]); m > 0 {
			return n, errBroken
		}
	}
	return n, err
}

func (r torn) Close() error { return r.rest.Close() }

func TestBrokenUploadsAreRepeated(t *testing.T) {
	s, f := newFaulty(t)
	f.failWrites = 3
	if err := s.Put(t.Context(), "a", []byte("text")); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), "a", 10); err != nil || string(got) != "text" {
		t.Errorf("Get = %q, %v", got, err)
	}
	f.failWrites = -1
	err := s.Put(t.Context(), "b", []byte("text"))
	if err == nil || !strings.Contains(err.Error(), "mem://faulty/runs/x/b cannot be written: connection reset by peer") {
		t.Errorf("Put = %v", err)
	}
	if found, err := s.List(t.Context(), "", false); err != nil || len(found) != 1 || found[0].Key != "a" {
		t.Errorf("List = %v, %v: a failed upload must leave nothing", found, err)
	}
}

func TestTornDownloadsGoOn(t *testing.T) {
	s, f := newFaulty(t)
	data := bytes.Repeat([]byte("0123456789"), 1000)
	if err := s.Put(t.Context(), "a", data); err != nil {
		t.Fatal(err)
	}
	f.tear, f.failReads = 777, 2
	r, err := s.Reader(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if f.reads < 10 {
		t.Errorf("%d connections: none was torn", f.reads)
	}
}

func TestReplacedWhileRead(t *testing.T) {
	s, f := newFaulty(t)
	if err := s.Put(t.Context(), "a", bytes.Repeat([]byte("a"), 1000)); err != nil {
		t.Fatal(err)
	}
	f.tear = 100
	r, err := s.Reader(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 50)); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "a", bytes.Repeat([]byte("b"), 999)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err == nil || !strings.Contains(err.Error(), "replaced while it was read") {
		t.Errorf("err = %v", err)
	}
}

func TestDamagedDownloadsAreRefused(t *testing.T) {
	s, f := newFaulty(t)
	if err := s.Put(t.Context(), "a", []byte("text")); err != nil {
		t.Fatal(err)
	}
	f.corrupt = true
	path := t.TempDir() + "/a"
	if err := s.GetFile(t.Context(), "a", path, 10); err == nil || !strings.Contains(err.Error(), "checksum does not match") {
		t.Errorf("GetFile = %v", err)
	}
	f.corrupt = false
	if err := s.GetFile(t.Context(), "a", path, 3); err == nil || !strings.Contains(err.Error(), "more than the 3 that are allowed") {
		t.Errorf("GetFile = %v", err)
	}
	if _, err := s.Get(t.Context(), "a", 3); err == nil || !strings.Contains(err.Error(), "more than the 3 that are allowed") {
		t.Errorf("Get = %v", err)
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hushhushhush")
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=quietquiet")
	s, f := newFaulty(t)
	f.failWrites = -1
	f.err = errors.New("PUT https://user:hidden@host/bucket/key?X-Amz-Signature=whisper&a=b\r\nAuthorization: AWS4 Credential=murmur, key hushhushhush\nsig=quietquiet")
	err := s.Put(t.Context(), "a", nil)
	for _, secret := range []string{"hush", "quiet", "whisper", "hidden", "murmur", "\n"} {
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q is in: %v", secret, err)
		}
	}
}

func TestCancelledRetriesEnd(t *testing.T) {
	s, f := newFaulty(t)
	s.pause, f.failWrites = time.Hour, -1
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Put(ctx, "a", nil); err == nil {
		t.Error("no error")
	}
}

// A server that has never answered is tried once, another one as often as everything.
func TestServersThatNeverAnswered(t *testing.T) {
	for _, tt := range []struct {
		name          string
		answeredFirst bool
		want          int
	}{{"never answered", false, 1}, {"answered before", true, attempts}} {
		s, f := newFaulty(t)
		if tt.answeredFirst {
			if err := s.below(s.at).Put(t.Context(), "a", nil); err != nil {
				t.Fatal(err)
			}
		}
		f.err, f.failWrites = errRefused, 1000
		if err := s.Put(t.Context(), "a", nil); err == nil || 1000-f.failWrites != tt.want {
			t.Errorf("%s: %d tries, want %d: %v", tt.name, 1000-f.failWrites, tt.want, err)
		}
	}
}
