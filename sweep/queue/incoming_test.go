package queue

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// stuckStore has files of which only the first half comes.
type stuckStore struct {
	Store
	half func()
}

func (s stuckStore) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() {
		_, err := io.WriteString(w, strings.Repeat("x", 1<<20))
		if err == nil {
			_, err = io.WriteString(w, "y") // the first part is written by now
		}
		s.half()
		<-ctx.Done()
		_ = w.CloseWithError(errors.Join(err, ctx.Err())) // never fails
	}()
	return r, nil
}

// killedFetchFolder names the folder of the cache in which TestFetchUntilKilled is stopped.
const killedFetchFolder = "SERVEGRID_TEST_KILLED_FETCH"

// TestFetchUntilKilled is the process that TestKilledWhileFetching kills.
func TestFetchUntilKilled(t *testing.T) {
	dir := os.Getenv(killedFetchFolder)
	if dir == "" {
		t.Skip("runs as a process of TestKilledWhileFetching")
	}
	c, err := OpenCache(dir, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := c.CreateTemp(); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	f := wire.File{Digest: strings.Repeat("a", 64), Name: "trace.jsonl", Size: 2 << 20}
	_, err = c.Fetch(t.Context(), stuckStore{half: func() { _, _ = os.Stdout.WriteString("half\n") }}, []wire.File{f}, nil)
	t.Fatal(err)
}

// What a process leaves that is killed in the middle of a transfer goes when the next one opens the cache; that of one that lives
// stays.
func TestKilledWhileFetching(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestFetchUntilKilled$")
	cmd.Env = append(os.Environ(), killedFetchFolder+"="+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "half\n" {
		t.Fatalf("the process says %q, %v", line, err)
	}
	coming := func() (n int, bytes int64) {
		names, _ := filepath.Glob(filepath.Join(dir, incomingPrefix+"*", "*"))
		for _, name := range names {
			if info, err := os.Stat(name); err == nil && filepath.Base(name) != incomingLock {
				n, bytes = n+1, bytes+info.Size()
			}
		}
		return n, bytes
	}
	openCache(t, dir, 1<<30)
	if n, bytes := coming(); n != 2 || bytes < 1<<20 {
		t.Fatalf("%d files with %d bytes are coming, want 2 with half of the trace", n, bytes)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if n, _ := coming(); n != 2 {
		t.Fatalf("%d files are left, want 2", n)
	}
	c := openCache(t, dir, 1<<30)
	if n, _ := coming(); n != 0 {
		t.Errorf("%d files of a killed process are left", n)
	}
	if left, _ := os.ReadDir(c.Dir()); len(left) != 0 {
		t.Errorf("%v is taken for whole", left)
	}
}

// A cache works on after somebody emptied its folder, and folders without a lock go when they are old.
func TestCacheEmptied(t *testing.T) {
	dir, store := t.TempDir(), newMemoryStore()
	f := store.put("x", "one")
	c := openCache(t, dir, 1<<20)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	release, _ := mustFetch(t, c, store, f)
	release()
	made, err := c.CreateTemp()
	if err != nil || made.Close() != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"young": time.Hour, "old": 2 * staleAfter} {
		at := filepath.Join(dir, incomingPrefix+name)
		then := time.Now().Add(-age)
		if err := errors.Join(os.Mkdir(at, 0o777), os.Chtimes(at, then, then)); err != nil {
			t.Fatal(err)
		}
	}
	openCache(t, dir, 1<<20)
	for name, want := range map[string]bool{"young": true, "old": false} {
		if _, err := os.Stat(filepath.Join(dir, incomingPrefix+name)); (err == nil) != want {
			t.Errorf("the %s folder: %v", name, err)
		}
	}
}
