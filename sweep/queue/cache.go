package queue

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// Cache is the folder of a worker with the files that points name. What is in it was compared with its digest. Several workers
// may share one. It is safe for concurrent use.
type Cache struct {
	dir   string
	limit int64
	root  *os.Root
	// incoming holds what is not whole yet, on the same disk.
	incoming *incoming

	mu     sync.Mutex
	digest map[string]*cachedDigest
	// reserved is how much is on its way, in bytes.
	reserved int64
}

// cachedDigest is what a process knows of the folder of a digest.
type cachedDigest struct {
	// mu is held while files come or are checked.
	mu sync.Mutex
	// users counts those who keep it, under the lock of the cache.
	users int
	// sound holds the names of the files that were compared with the digest, list the list whose files all were.
	sound   map[string]bool
	list    *wire.FileList
	touched time.Time
}

const (
	// filesFolder is where files are, by their digest.
	filesFolder = "files"
	// listName is the list of a folder, beside what is in it. It is the name of no file.
	listName = ".list.json"
	// touchEvery is how exactly the time of the last use is kept.
	touchEvery = time.Minute
)

// OpenCache opens the cache in a folder, which is made when it does not exist. Its files may take a number of bytes in all.
func OpenCache(dir string, limit int64) (*Cache, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, cacheError(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, cacheError(err)
	}
	coming, err := openIncoming(root)
	if err == nil {
		err = root.MkdirAll(filesFolder, 0o700)
	}
	if err != nil {
		return nil, cacheError(errors.Join(err, root.Close()))
	}
	return &Cache{dir: dir, limit: limit, root: root, incoming: coming, digest: map[string]*cachedDigest{}}, nil
}

// Close gives the folder up. The files stay for the next worker.
func (c *Cache) Close() error { return errors.Join(c.incoming.close(), c.root.Close()) }

// CreateTemp makes a file that is not one of the cache. It goes when the process does, if not before.
func (c *Cache) CreateTemp() (*os.File, error) { return c.incoming.create(c.dir) }

// Dir is the folder below which files have the paths of [wire.File.Path].
func (c *Cache) Dir() string { return filepath.Join(c.dir, filesFolder) }

// Fetched says how a file came to be there.
type Fetched struct {
	Bytes  int64
	Cached bool
	Took   time.Duration
	Err    error
}

// Fetch brings files from a store, unless they are there. Told is called for each; nil means that nobody is. The files stay until
// release is called. A [*DamagedError] says that the store has another file; an error of the store is returned as it is.
func (c *Cache) Fetch(ctx context.Context, s Store, named []wire.File, told func(Fetched)) (release func(), err error) {
	var kept []*cachedDigest
	release = sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, d := range kept {
			d.users--
		}
	})
	for _, f := range named {
		d := c.keep(f.Digest)
		kept = append(kept, d)
		start := time.Now()
		cached, err := c.ensure(ctx, s, f, d)
		if told != nil {
			told(Fetched{Bytes: f.Size, Cached: cached, Took: time.Since(start), Err: err})
		}
		if err != nil {
			release()
			return nil, fmt.Errorf("the file %s: %w", f.Name, err)
		}
	}
	return release, nil
}

// keep notes a user of a digest, whose files are not removed meanwhile.
func (c *Cache) keep(digest string) *cachedDigest {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.digest[digest]
	if d == nil {
		d = &cachedDigest{sound: map[string]bool{}}
		c.digest[digest] = d
	}
	d.users++
	return d
}

// ensure makes a file be there.
func (c *Cache) ensure(ctx context.Context, s Store, f wire.File, d *cachedDigest) (cached bool, err error) {
	if !f.IsLocal() {
		return false, errors.New("it has no name that a file can have here")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	folder := filesFolder + "/" + f.Digest
	if f.Folder {
		cached, err = c.ensureListed(ctx, s, f, d, folder)
	} else {
		cached, err = c.ensureFile(ctx, s, f, d, folder)
	}
	if now := time.Now(); err == nil && now.Sub(d.touched) >= touchEvery {
		d.touched = now
		_ = c.root.Chtimes(folder, now, now) // only says what was used last
	}
	return cached, err
}

// ensureFile makes a file by itself be there. What was compared before only has to have its size still.
func (c *Cache) ensureFile(ctx context.Context, s Store, f wire.File, d *cachedDigest, folder string) (cached bool, err error) {
	at := folder + "/" + f.Name
	if c.isFile(at, f.Size) && (d.sound[f.Name] || c.matches(ctx, at, f.Digest, f.Size)) {
		d.sound[f.Name] = true
		return true, nil
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err := c.makeRoom(f.Size); err != nil {
		return false, err
	}
	defer c.giveRoom(f.Size)
	incoming := c.incoming.path()
	defer func() { _ = c.root.Remove(incoming) }() // it is gone when all is well
	if err := c.download(ctx, s, f.Name, f.Digest, f.Size, incoming); err != nil {
		return false, err
	}
	err = c.place(incoming, at, func() bool { return false })
	d.sound[f.Name] = err == nil
	return false, err
}

// ensureListed makes a list of files be there, with all of them. What was compared before only has to have its list still: files
// go and come with it.
func (c *Cache) ensureListed(ctx context.Context, s Store, f wire.File, d *cachedDigest, folder string) (cached bool, err error) {
	if d.list != nil && c.isThere(folder+"/"+listName) {
		return true, listHolds(d.list, f)
	}
	if l := c.list(folder, f.Digest); l != nil && c.complete(ctx, folder, l) {
		d.list = l
		return true, listHolds(l, f)
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	d.list = nil
	text, l, err := c.fetchList(ctx, s, f)
	if err != nil {
		return false, err
	}
	if err := c.makeRoom(f.Size); err != nil {
		return false, err
	}
	defer c.giveRoom(f.Size)
	incoming := c.incoming.path()
	defer func() { _ = c.root.RemoveAll(incoming) }() // it is gone when all is well
	if err := c.downloadListed(ctx, s, l, text, incoming); err != nil {
		return false, err
	}
	err = c.place(incoming, folder, func() bool { return c.isThere(folder+"/"+listName) && c.complete(ctx, folder, l) })
	if err == nil {
		d.list = l
	}
	return false, err
}

// place moves what is whole to where it belongs, in place of what is not. Other workers may do the same: enough says that what is
// there is whole.
func (c *Cache) place(incoming, at string, enough func() bool) (err error) {
	const tries = 10 // each but the first follows something that another worker did
	for range tries {
		if info, err := c.root.Lstat(path.Dir(at)); err == nil && !info.IsDir() {
			_ = c.root.Remove(path.Dir(at)) // the next step says what is wrong
		}
		if err = errors.Join(c.root.MkdirAll(path.Dir(at), 0o700), c.root.Rename(incoming, at)); err == nil {
			return nil
		}
		if enough() {
			return nil
		}
		c.moveAway(at)
	}
	return err
}

// moveAway removes something at once.
func (c *Cache) moveAway(at string) bool {
	going := c.incoming.path()
	if c.root.Rename(at, going) != nil {
		return false
	}
	_ = c.root.RemoveAll(going) // or who removes the folder does
	return true
}

// listHolds returns an error unless a list is what a message says of it.
func listHolds(l *wire.FileList, f wire.File) error {
	switch {
	case !l.Has(f.Name):
		return &DamagedError{f.Name, "its list of files does not have it"}
	case l.Size() != f.Size:
		return &DamagedError{f.Name, fmt.Sprintf("its list of files has %d bytes in place of %d", l.Size(), f.Size)}
	}
	return nil
}

func (c *Cache) downloadListed(ctx context.Context, s Store, l *wire.FileList, text []byte, into string) error {
	for _, f := range l.Files {
		at := into + "/" + f.Path
		if err := c.root.MkdirAll(path.Dir(at), 0o700); err != nil {
			return err
		}
		if err := c.download(ctx, s, f.Path, f.Digest, f.Size, at); err != nil {
			return err
		}
	}
	return c.root.WriteFile(into+"/"+listName, text, 0o444)
}

// download writes an object of a store to a new file. Name is what the file is called once it is in its place.
func (c *Cache) download(ctx context.Context, s Store, name, digest string, size int64, to string) error {
	object, err := s.Get(ctx, digest)
	if err != nil {
		return err
	}
	defer object.Close()
	out, err := c.root.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o444)
	if err != nil {
		return err
	}
	checked := newCheckedReader(contextReader{ctx, object}, name, digest, size)
	_, err = io.Copy(out, checked)
	return errors.Join(err, out.Close())
}

// fetchList reads the list of a file from a store.
func (c *Cache) fetchList(ctx context.Context, s Store, f wire.File) (text []byte, l *wire.FileList, err error) {
	object, err := s.Get(ctx, f.Digest)
	if err != nil {
		return nil, nil, err
	}
	defer object.Close()
	if text, err = io.ReadAll(io.LimitReader(contextReader{ctx, object}, wire.MaxListBytes+1)); err != nil {
		return nil, nil, err
	}
	if err := checkText(text, f.Digest); err != nil {
		return nil, nil, err
	}
	if l, err = wire.DecodeList(text); err != nil {
		return nil, nil, &DamagedError{f.Name, err.Error()}
	}
	return text, l, listHolds(l, f)
}

// checkText compares a text with its digest.
func checkText(text []byte, digest string) error {
	_, err := io.Copy(io.Discard, newCheckedReader(bytes.NewReader(text), "list of files", digest, int64(len(text))))
	return err
}

// list returns the list that lies in the folder of a digest; nil when there is none that is sound.
func (c *Cache) list(folder, digest string) *wire.FileList {
	at := folder + "/" + listName
	if info, err := c.root.Lstat(at); err != nil || info.Size() > wire.MaxListBytes || !c.isThere(at) {
		return nil
	}
	text, err := c.root.ReadFile(at)
	if err != nil || checkText(text, digest) != nil {
		return nil
	}
	l, err := wire.DecodeList(text)
	if err != nil {
		return nil
	}
	return l
}

// complete reports whether all files of a list are there and what they should be.
func (c *Cache) complete(ctx context.Context, folder string, l *wire.FileList) bool {
	for _, f := range l.Files {
		at := folder + "/" + f.Path
		for dir := path.Dir(at); dir != folder; dir = path.Dir(dir) {
			if info, err := c.root.Lstat(dir); err != nil || !info.IsDir() {
				return false
			}
		}
		if !c.isFile(at, f.Size) || !c.matches(ctx, at, f.Digest, f.Size) {
			return false
		}
	}
	return true
}

// regular describes a regular file that is not behind a link; nil when there is none.
func (c *Cache) regular(at string) os.FileInfo {
	folder, err := c.root.Lstat(path.Dir(at))
	if err != nil || !folder.IsDir() {
		return nil
	}
	if info, err := c.root.Lstat(at); err == nil && info.Mode().IsRegular() {
		return info
	}
	return nil
}

// isThere reports whether there is a regular file.
func (c *Cache) isThere(at string) bool { return c.regular(at) != nil }

// isFile is isThere of a file of so many bytes.
func (c *Cache) isFile(at string, size int64) bool {
	info := c.regular(at)
	return info != nil && info.Size() == size
}

// matches compares a file with its digest.
func (c *Cache) matches(ctx context.Context, at, digest string, size int64) bool {
	f, err := c.root.Open(at)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, newCheckedReader(contextReader{ctx, f}, at, digest, size))
	return err == nil
}

// storedDigest is the folder of a digest on the disk.
type storedDigest struct {
	name  string
	bytes int64
	used  time.Time
}

// makeRoom reserves room for so many bytes, and removes for it what was not used for longest. What this process keeps stays.
func (c *Cache) makeRoom(need int64) error {
	if need > c.limit {
		return fmt.Errorf("it has %d bytes and the cache of this worker takes %d; give it more", need, c.limit)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	stored, total := c.stored()
	total += c.reserved
	for _, s := range stored {
		if total <= c.limit-need {
			break
		}
		if c.remove(s.name) {
			total -= s.bytes
		}
	}
	if total > c.limit-need {
		return fmt.Errorf("it has %d bytes, and of the %d that the cache of this worker takes %d are in use; give it more, or fewer jobs", need, c.limit, total)
	}
	c.reserved += need
	return nil
}

// giveRoom ends a reservation: what it was for is there, or does not come.
func (c *Cache) giveRoom(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reserved -= bytes
}

// remove removes the folder of a digest unless somebody here uses it. The caller holds the lock. The folder goes at once, so that
// nobody finds a part of it.
func (c *Cache) remove(digest string) bool {
	if d := c.digest[digest]; d != nil && d.users > 0 {
		return false
	}
	delete(c.digest, digest)
	return c.moveAway(filesFolder + "/" + digest)
}

// stored lists what is on the disk, the longest unused first, and how much that is in all.
func (c *Cache) stored() (stored []storedDigest, total int64) {
	entries, _ := fs.ReadDir(c.root.FS(), filesFolder) // what cannot be read takes no room
	for _, e := range entries {
		s := storedDigest{name: e.Name()}
		if info, err := e.Info(); err == nil {
			s.used = info.ModTime()
		}
		_ = fs.WalkDir(c.root.FS(), filesFolder+"/"+e.Name(), func(_ string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil // removed by another worker meanwhile
			}
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
				s.bytes += info.Size()
			}
			return nil
		})
		stored, total = append(stored, s), total+s.bytes
	}
	slices.SortFunc(stored, func(a, b storedDigest) int { return cmp.Or(a.used.Compare(b.used), strings.Compare(a.name, b.name)) })
	return stored, total
}
