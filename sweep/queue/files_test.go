package queue

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// memoryStore is a store in memory.
type memoryStore struct {
	mu      sync.Mutex
	objects map[string][]byte
	puts    map[string]int
	gets    int
	// change damages what is read.
	change func([]byte) []byte
}

func newMemoryStore() *memoryStore {
	return &memoryStore{objects: map[string][]byte{}, puts: map[string]int{}}
}

func (m *memoryStore) Has(_ context.Context, name string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.objects[name]
	return ok, nil
}

func (m *memoryStore) Put(_ context.Context, name string, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return errors.New("the store says nothing of why") // as one may
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[name] = data
	m.puts[name]++
	return nil
}

func (m *memoryStore) Get(_ context.Context, name string) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.objects[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	m.gets++
	if m.change != nil {
		data = m.change(slices.Clone(data))
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// takeGets returns how many objects were read since the last call.
func (m *memoryStore) takeGets() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.gets
	m.gets = 0
	return n
}

// put stores a text as a file.
func (m *memoryStore) put(name, text string) wire.File {
	sum := sha256.Sum256([]byte(text))
	f := wire.File{Digest: hex.EncodeToString(sum[:]), Name: name, Size: int64(len(text))}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[f.Digest] = []byte(text)
	return f
}

// putList stores a list of files.
func (m *memoryStore) putList(t *testing.T, name string, texts map[string]string) wire.File {
	t.Helper()
	var l wire.FileList
	for at, text := range texts {
		f := m.put("x", text)
		l.Files = append(l.Files, wire.ListedFile{Path: at, Digest: f.Digest, Size: f.Size})
	}
	text, digest, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	m.put("list", string(text))
	return wire.File{Digest: digest, Name: name, Size: l.Size(), Folder: true}
}

func openCache(t *testing.T, dir string, limit int64) *Cache {
	t.Helper()
	c, err := OpenCache(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *Cache) read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.Dir(), filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
		t.Fatal(err)
	}
}

func mustFetch(t *testing.T, c *Cache, s Store, named ...wire.File) (release func(), cached bool) {
	t.Helper()
	cached = true
	release, err := c.Fetch(t.Context(), s, named, func(f Fetched) { cached = cached && f.Cached })
	if err != nil {
		t.Fatal(err)
	}
	return release, cached
}

// filesBelow returns the names of all files below a folder, but those that say that a process uses it.
func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != incomingLock {
			rel, _ := filepath.Rel(dir, path)
			found = append(found, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A file that is there is not read again, neither by the process nor, once it was compared, by the next.
func TestFetchOnce(t *testing.T) {
	dir, store := t.TempDir(), newMemoryStore()
	f := store.put("trace.jsonl", "one\ntwo\n")
	folder := store.putList(t, "tables", map[string]string{"tables/a/x.json": "1", "tables/b.json": "22"})
	c := openCache(t, dir, 1<<20)
	release, cached := mustFetch(t, c, store, f, folder)
	if gets := store.takeGets(); gets != 4 || cached {
		t.Errorf("%d objects were read, cached %v", gets, cached)
	}
	if got := c.read(t, f.Path()); got != "one\ntwo\n" {
		t.Errorf("%q", got)
	}
	if got := c.read(t, folder.Path()+"/b.json"); got != "22" {
		t.Errorf("%q", got)
	}
	if info, err := os.Stat(filepath.Join(c.Dir(), f.Path())); err != nil || info.Mode().Perm() != 0o444 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	release()
	release()
	for _, c := range []*Cache{c, openCache(t, dir, 1<<20)} {
		release, cached := mustFetch(t, c, store, f, folder)
		release()
		if gets := store.takeGets(); gets != 0 || !cached {
			t.Errorf("%d objects were read again, cached %v", gets, cached)
		}
	}
	other := f
	other.Name = "same.jsonl"
	release, _ = mustFetch(t, c, store, other, f)
	release()
	if c.read(t, other.Path()) != c.read(t, f.Path()) {
		t.Error("a second name has other content")
	}
	for _, name := range filesBelow(t, dir) {
		if strings.HasPrefix(name, incomingPrefix) {
			t.Errorf("%s is left", name)
		}
	}
}

// What the store has wrong is noticed, and nothing of it stays.
func TestFetchDamaged(t *testing.T) {
	store := newMemoryStore()
	f := store.put("trace.jsonl", strings.Repeat("x", 100_000))
	folder := store.putList(t, "tables", map[string]string{"tables/a/x.json": "1"})
	changes := map[string]func([]byte) []byte{
		"cut off": func(b []byte) []byte { return b[:len(b)-1] },
		"empty":   func([]byte) []byte { return nil },
		"longer":  func(b []byte) []byte { return append(b, '\n') },
		"changed": func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
	}
	for name, change := range changes {
		for _, f := range []wire.File{f, folder} {
			dir := t.TempDir()
			c := openCache(t, dir, 1<<20)
			store.change = change
			_, err := c.Fetch(t.Context(), store, []wire.File{f}, nil)
			damaged := new(DamagedError)
			if !errors.As(err, &damaged) {
				t.Fatalf("%s, %s: error %v", f.Name, name, err)
			}
			if want := []string{"trace.jsonl", "tables", "tables/a/x.json", "list of files"}; !slices.Contains(want, damaged.Name) {
				t.Errorf("%s, %s: %q is damaged, which is no name that people gave", f.Name, name, damaged.Name)
			}
			if left := filesBelow(t, dir); len(left) > 0 {
				t.Errorf("%s, %s: %v is left", f.Name, name, left)
			}
			store.change = nil
			release, _ := mustFetch(t, c, store, f)
			release()
		}
	}
	lies := []wire.File{
		{Digest: f.Digest, Name: f.Name, Size: 5},
		{Digest: f.Digest, Name: f.Name, Size: 1 << 30},
		{Digest: folder.Digest, Name: "other", Size: folder.Size, Folder: true},
		{Digest: folder.Digest, Name: folder.Name, Size: 7, Folder: true},
		{Digest: f.Digest, Name: f.Name, Size: f.Size, Folder: true},
	}
	for _, lie := range lies {
		c := openCache(t, t.TempDir(), 1<<40)
		for range 2 {
			if _, err := c.Fetch(t.Context(), store, []wire.File{lie}, nil); !errors.As(err, new(*DamagedError)) {
				t.Errorf("%+v: error %v", lie, err)
			}
		}
	}
	c := openCache(t, t.TempDir(), 1<<40)
	mustFetch(t, c, store, folder)
	if _, err := c.Fetch(t.Context(), store, lies[2:3], nil); !errors.As(err, new(*DamagedError)) {
		t.Errorf("a folder that is there has any name: %v", err)
	}
	for _, name := range []string{"../x", "a/b", "", ".list.json", "-", "x\\y"} {
		if _, err := c.Fetch(t.Context(), store, []wire.File{{Digest: f.Digest, Name: name, Size: f.Size}}, nil); err == nil {
			t.Errorf("the name %q is taken", name)
		}
	}
	if _, err := c.Fetch(t.Context(), store, []wire.File{{Digest: strings.Repeat("0", 64), Name: "gone"}}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that the store does not have: %v", err)
	}
}

// What somebody did to the cache is noticed by the next process, and by this one when the size or the kind is another.
func TestCacheDamaged(t *testing.T) {
	store := newMemoryStore()
	f := store.put("trace.jsonl", "one\n")
	folder := store.putList(t, "tables", map[string]string{"tables/a/x.json": "1", "tables/b.json": "22"})
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, outside, "one\n")
	damage := map[string]func(t *testing.T, c *Cache) error{
		"changed": func(t *testing.T, c *Cache) error {
			at := filepath.Join(c.Dir(), f.Path())
			return errors.Join(os.Chmod(at, 0o644), os.WriteFile(at, []byte("two\n"), 0o644))
		},
		"link": func(t *testing.T, c *Cache) error {
			at := filepath.Join(c.Dir(), f.Path())
			return errors.Join(os.Remove(at), os.Symlink(outside, at))
		},
		"link to the folder": func(t *testing.T, c *Cache) error {
			at := filepath.Join(c.Dir(), f.Digest)
			write(t, filepath.Join(filepath.Dir(outside), f.Name), "one\n")
			return errors.Join(os.RemoveAll(at), os.Symlink(filepath.Dir(outside), at))
		},
		"folder": func(t *testing.T, c *Cache) error {
			at := filepath.Join(c.Dir(), f.Path())
			return errors.Join(os.Remove(at), os.MkdirAll(filepath.Join(at, "x"), 0o777))
		},
		"gone": func(t *testing.T, c *Cache) error { return os.RemoveAll(c.Dir()) },
		"listed file": func(t *testing.T, c *Cache) error {
			at := filepath.Join(c.Dir(), folder.Path(), "b.json")
			return errors.Join(os.Remove(at), os.WriteFile(at, []byte("23"), 0o644))
		},
		"listed link": func(t *testing.T, c *Cache) error {
			at := filepath.Join(c.Dir(), folder.Path(), "a")
			return errors.Join(os.RemoveAll(at), os.Symlink(filepath.Dir(outside), at))
		},
		"list": func(t *testing.T, c *Cache) error {
			at := filepath.Join(c.Dir(), folder.Digest, listName)
			return errors.Join(os.Remove(at), os.WriteFile(at, []byte("{}"), 0o644))
		},
	}
	for name, harm := range damage {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := openCache(t, dir, 1<<20)
			release, _ := mustFetch(t, first, store, f, folder)
			release()
			if err := harm(t, first); err != nil {
				t.Fatal(err)
			}
			next := openCache(t, dir, 1<<20)
			release, cached := mustFetch(t, next, store, f, folder)
			defer release()
			if cached {
				t.Error("nothing was noticed")
			}
			if next.read(t, f.Path()) != "one\n" || next.read(t, folder.Path()+"/b.json") != "22" || next.read(t, folder.Path()+"/a/x.json") != "1" {
				t.Error("it was not repaired")
			}
			for _, path := range []string{f.Digest, f.Path(), folder.Path() + "/a"} {
				if info, err := os.Lstat(filepath.Join(next.Dir(), path)); err != nil || info.Mode()&fs.ModeSymlink != 0 {
					t.Errorf("%s is a link, or %v", path, err)
				}
			}
		})
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "one\n" {
		t.Errorf("something outside the cache was changed: %q, %v", text, err)
	}
}

// The longest unused files make room, but never those that are in use.
func TestCacheBound(t *testing.T) {
	store := newMemoryStore()
	c := openCache(t, t.TempDir(), 250)
	var named []wire.File
	for i := range 4 {
		named = append(named, store.put("x", strings.Repeat(fmt.Sprint(i), 100)))
	}
	there := func(f wire.File) bool {
		_, err := os.Stat(filepath.Join(c.Dir(), f.Path()))
		return err == nil
	}
	age := func(f wire.File, d time.Duration) {
		then := time.Now().Add(-d)
		if err := os.Chtimes(filepath.Join(c.Dir(), f.Digest), then, then); err != nil {
			t.Fatal(err)
		}
	}
	release0, _ := mustFetch(t, c, store, named[0])
	release1, _ := mustFetch(t, c, store, named[1])
	age(named[0], time.Hour)
	if _, err := c.Fetch(t.Context(), store, named[2:3], nil); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("error %v", err)
	}
	release0()
	release1()
	mustFetch(t, c, store, named[2])
	if there(named[0]) || !there(named[1]) || !there(named[2]) {
		t.Errorf("there are %v %v %v", there(named[0]), there(named[1]), there(named[2]))
	}
	release0, _ = mustFetch(t, c, store, named[0]) // again, in place of 1
	if !there(named[0]) || there(named[1]) {
		t.Error("what was removed does not come again")
	}
	release0()
	if _, err := c.Fetch(t.Context(), store, []wire.File{store.put("x", strings.Repeat("x", 251))}, nil); err == nil || !strings.Contains(err.Error(), "250") {
		t.Errorf("a file larger than the cache: %v", err)
	}
}

// Several workers with one folder, and many points in each, have each file whole.
func TestCacheShared(t *testing.T) {
	dir, store := t.TempDir(), newMemoryStore()
	var named []wire.File
	for i := range 5 {
		named = append(named, store.put("x", strings.Repeat(fmt.Sprint(i), 5000)))
		named = append(named, store.putList(t, "y", map[string]string{"y/a": strings.Repeat(fmt.Sprint(i), 3000), "y/b/c": "d"}))
	}
	var all sync.WaitGroup
	for range 3 {
		c := openCache(t, dir, 1<<20)
		for i := range 8 {
			all.Go(func() {
				mine := slices.Concat(named[i:], named[:i])
				release, err := c.Fetch(context.Background(), store, mine, nil)
				if err != nil {
					t.Error(err)
					return
				}
				defer release()
				for _, f := range mine {
					if f.Folder {
						continue
					}
					if text, err := os.ReadFile(filepath.Join(c.Dir(), f.Path())); err != nil || len(text) != 5000 {
						t.Errorf("%d bytes, %v", len(text), err)
					}
				}
			})
		}
	}
	all.Wait()
}

// A cancelled transfer leaves nothing.
func TestFetchCancelled(t *testing.T) {
	dir, store := t.TempDir(), newMemoryStore()
	f := store.put("x", strings.Repeat("x", 1<<20))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := openCache(t, dir, 1<<30)
	if _, err := c.Fetch(ctx, store, []wire.File{f}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if left := filesBelow(t, dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// pointOf is the only point of a spec.
func pointOf(t testing.TB, dir, text string) gridspec.Point {
	t.Helper()
	spec, err := gridspec.Load(gridspec.Source{Data: []byte(text), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	points, err := spec.Expand(gridspec.ExpandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return points[0]
}

// Many points with one trace upload it once, also at the same time.
func TestUploadOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "t.jsonl"), "x\n")
	p := pointOf(t, dir, "workload: {trace: {path: t.jsonl}}")
	store := newMemoryStore()
	var mu sync.Mutex
	stored := 0
	b := NewBundle(BundleOptions{Stored: func(bytes int64, known bool, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			stored++
		}
		if bytes != 2 || known {
			t.Errorf("%d bytes, known %v", bytes, known)
		}
	}})
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			_, named, err := b.Portable(t.Context(), &p)
			if err = errors.Join(err, b.Upload(t.Context(), store, named)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	_, named, err := b.Portable(t.Context(), &p)
	if err != nil || len(named) != 1 || named[0].Name != "t.jsonl" {
		t.Fatalf("%+v, %v", named, err)
	}
	if store.puts[named[0].Digest] != 1 || stored != 1 {
		t.Errorf("%d uploads, told of %d", store.puts[named[0].Digest], stored)
	}
	clear(store.objects)
	b.Forget()
	if err := b.Upload(t.Context(), store, named); err != nil || len(store.objects) != 1 {
		t.Errorf("%d objects after the store lost them, %v", len(store.objects), err)
	}
	write(t, filepath.Join(dir, "t.jsonl"), "y\n")
	b.Forget()
	clear(store.objects)
	if err := b.Upload(t.Context(), store, named); err == nil || !strings.Contains(err.Error(), "changed during the sweep") {
		t.Errorf("a file that changed: %v", err)
	}
}

// What cannot travel is named with its setting.
func TestNotPortable(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "linked", "a.json"), "{}")
	if err := os.Symlink("a.json", filepath.Join(dir, "linked", "b.json")); err != nil {
		t.Skip(err)
	}
	write(t, filepath.Join(dir, "odd", "a:b.json"), "{}")
	write(t, filepath.Join(dir, "none", "a.txt"), "{}")
	for text, want := range map[string]string{
		"linked": "symbolic link", "odd": `"odd/a:b.json" cannot be used`, "none": "0 files", `"-"`: "standard input",
	} {
		p := pointOf(t, dir, "workload: {trace: {format: weka, path: "+text+"}}")
		_, _, err := NewBundle(BundleOptions{}).Portable(t.Context(), &p)
		if refused := new(NotPortableError); !errors.As(err, &refused) || refused.Key != "workload.trace.path" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", text, err)
		}
	}
	p := pointOf(t, dir, "workload: {trace: {path: gone.jsonl}}")
	if _, _, err := NewBundle(BundleOptions{}).Portable(t.Context(), &p); !errors.Is(err, fs.ErrNotExist) && (err == nil || !strings.Contains(err.Error(), "workload.trace.path")) {
		t.Errorf("error %v", err)
	}
}

// The standard input travels as a file like any other.
func TestStdinTravels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "copy of it")
	write(t, path, "x\n")
	p := pointOf(t, t.TempDir(), `workload: {trace: {path: "-"}}`)
	b, store := NewBundle(BundleOptions{Stdin: path}), newMemoryStore()
	spec, named, err := b.Portable(t.Context(), &p)
	if err = errors.Join(err, b.Upload(t.Context(), store, named)); err != nil {
		t.Fatal(err)
	}
	if len(named) != 1 || named[0].Name != "stdin" || !strings.Contains(string(spec), named[0].Path()) {
		t.Errorf("%+v in %s", named, spec)
	}
}

func TestPortableName(t *testing.T) {
	for name, want := range map[string]string{
		"trace.jsonl": "trace.jsonl", "cap.000001.jsonl.gz": "cap.000001.jsonl.gz", "/a/b c.jsonl": "b_c.jsonl",
		".hidden": "_.hidden", "-": "_-", "ü.csv": "_.csv", "..": "___", "x.": "x_", "s3://b/k.jsonl?region=x": "k.jsonl",
		strings.Repeat("a", 300) + ".npz": strings.Repeat("a", 96) + ".npz",
	} {
		if got := portableName(name); got != want || !(wire.File{Digest: strings.Repeat("a", 64), Name: got}).IsLocal() {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}
