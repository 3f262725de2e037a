package storage

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
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

	"github.com/servegrid/servegrid/simcore/files"
)

// System is a [files.System] that knows URLs, besides the files of this machine.
type System struct {
	// Cache is the folder for copies of what cannot be read as it comes; empty means the user's.
	Cache string
	// Roots are the only places that may be read; nil means all.
	Roots *Roots

	mu     sync.Mutex
	stores map[string]*Store
}

// MaxCopied bounds what is copied at a time, in bytes: a file, or a folder with everything in it. maxCopiedFiles bounds the
// number of files.
const (
	MaxCopied      = 16 << 30
	maxCopiedFiles = 100_000
)

// CacheFolder is where copies lie when nothing else is said: below the user's cache, or else in the folder for temporary files.
func CacheFolder() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "servegrid")
}

// Allowed refuses what leads out of the roots.
func (s *System) Allowed(name string) error { return s.Roots.Check(name) }

// AllowedFolder refuses a folder to write to that leads out of the roots, or has links in it that do.
func (s *System) AllowedFolder(name string) error {
	if err := s.Roots.Check(name); err != nil || files.IsURL(name) {
		return err
	}
	err := s.Roots.checkLinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it will be made
	}
	return err
}

// Open opens a file or an object. Objects are read as they come.
func (s *System) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := s.Roots.Check(name); err != nil {
		return nil, err
	}
	if !files.IsURL(name) {
		return s.Roots.open(name)
	}
	store, l, err := s.at(ctx, name)
	if err != nil {
		return nil, err
	}
	return store.below(l).Reader(ctx, "")
}

// Stat describes a file, an object, or a folder of them.
func (s *System) Stat(ctx context.Context, name string) (files.Info, error) {
	if err := s.Roots.Check(name); err != nil {
		return files.Info{}, err
	}
	if !files.IsURL(name) {
		return files.Local{}.Stat(ctx, name)
	}
	store, l, err := s.at(ctx, name)
	if err != nil {
		return files.Info{}, err
	}
	store = store.below(l)
	if l.Key != "" && !strings.HasSuffix(withoutParameters(name), "/") {
		o, err := store.Stat(ctx, "")
		if err == nil {
			return files.Info{Regular: true, Size: o.Size, Modified: o.Modified}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return files.Info{}, err
		}
	}
	switch found, err := store.holdsAny(ctx); {
	case err != nil:
		return files.Info{}, err
	case found:
		return files.Info{Folder: true}, nil
	}
	return files.Info{}, &Error{Doing: "read", Where: l.String(), Kind: fs.ErrNotExist, text: "there is no such object, nor any below it" + l.fleeting()}
}

func withoutParameters(url string) string {
	before, _, _ := strings.Cut(url, "?")
	return before
}

// holdsAny reports whether there is any object in the store.
func (s *Store) holdsAny(ctx context.Context) (bool, error) {
	found, enough := false, errors.New("enough")
	prefix := s.at.Key
	if prefix != "" {
		prefix += "/"
	}
	err := s.retry(ctx, func() error {
		err := s.objects.list(ctx, prefix, true, func(Object) error {
			found = true
			return enough
		})
		if found {
			return nil
		}
		return err
	})
	return found, explain("listed", s.at, err)
}

// List lists a folder of files or objects.
func (s *System) List(ctx context.Context, folder string) ([]files.Entry, error) {
	if err := s.Roots.Check(folder); err != nil {
		return nil, err
	}
	if !files.IsURL(folder) {
		return files.Local{}.List(ctx, folder)
	}
	store, l, err := s.at(ctx, folder)
	if err != nil {
		return nil, err
	}
	found, err := store.below(l).List(ctx, "", true)
	if err != nil {
		return nil, err
	}
	entries := make([]files.Entry, len(found))
	for i, o := range found {
		entries[i] = files.Entry{Name: path.Base(o.Key), Folder: o.Folder}
	}
	slices.SortFunc(entries, func(a, b files.Entry) int { return cmp.Compare(a.Name, b.Name) })
	return entries, nil
}

// Local returns a path of this machine with the content of a file, an object, or a folder of objects. Copies are kept and used
// again while the object is the same.
func (s *System) Local(ctx context.Context, name string) (string, error) {
	if err := s.Roots.Check(name); err != nil {
		return "", err
	}
	if !files.IsURL(name) {
		return name, errors.Join(s.Roots.checkLinks(name), s.Roots.Check(companion(name)))
	}
	info, err := s.Stat(ctx, name)
	if err != nil {
		return "", err
	}
	store, l, err := s.at(ctx, name)
	if err != nil {
		return "", err
	}
	store = store.below(l)
	if info.Folder {
		return s.copyFolder(ctx, store)
	}
	return s.copyFile(ctx, store)
}

// at returns a store in the bucket of a URL.
func (s *System) at(ctx context.Context, url string) (*Store, Location, error) {
	l, err := Parse(url)
	if err != nil {
		return nil, l, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if store := s.stores[l.bucketURL()]; store != nil {
		return store, l, nil
	}
	store, err := openLocation(ctx, l) // which an error names
	if err != nil {
		return nil, l, err
	}
	if s.stores == nil {
		s.stores = map[string]*Store{}
	}
	s.stores[l.bucketURL()] = store
	return store, l, nil
}

// Close gives back what the system holds.
func (s *System) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, store := range s.stores {
		errs = append(errs, store.Close())
	}
	s.stores = nil
	return errors.Join(errs...)
}

// cacheFor is the folder for the copy of something with this name and these marks.
func (s *System) cacheFor(marks ...any) string {
	sum := sha256.Sum256([]byte(fmt.Sprint(marks...)))
	return filepath.Join(cmp.Or(s.Cache, CacheFolder()), "files", hex.EncodeToString(sum[:16]))
}

// copyFile copies the object that a store names itself.
func (s *System) copyFile(ctx context.Context, store *Store) (string, error) {
	var a attributes
	err := store.retry(ctx, func() (err error) {
		a, err = store.objects.attributes(ctx, store.at.Key)
		return err
	})
	if err != nil {
		return "", explain("read", store.at, err)
	}
	marks := []any{store.URL(), a.size, a.modified.UnixNano(), a.version, a.sha256}
	beside := companion(store.at.Key)
	var b attributes
	if beside != "" {
		err := store.retry(ctx, func() (err error) {
			b, err = store.objects.attributes(ctx, beside)
			return err
		})
		if err = explain("read", store.at, err); errors.Is(err, fs.ErrNotExist) {
			beside = ""
		} else if err != nil {
			return "", err
		}
		marks = append(marks, b.size, b.modified.UnixNano(), b.version, b.sha256)
	}
	// A model is named by the folder of its file.
	folder := filepath.Join(s.cacheFor(marks...), localName(files.Base(files.Dir(store.URL()))))
	to := filepath.Join(folder, localName(path.Base(store.at.Key)))
	if beside != "" {
		if err := s.copyObject(ctx, store.below(Location{Scheme: store.at.Scheme, Bucket: store.at.Bucket, Key: beside, parameters: store.at.parameters}), filepath.Join(folder, path.Base(beside)), b); err != nil {
			return "", err
		}
	}
	return to, s.copyObject(ctx, store, to, a)
}

// copyObject copies the object that a store names itself, unless the copy is there.
func (s *System) copyObject(ctx context.Context, store *Store, to string, a attributes) error {
	if sameContent(to, a) {
		return nil
	}
	return store.GetFile(ctx, "", to, MaxCopied)
}

// companion is the file that is read together with a file; empty when there is none. The config.json of a model may have its
// quantisation beside it.
func companion(name string) string {
	const quantisation = "hf_quant_config.json"
	if !strings.HasSuffix(strings.ToLower(name), ".json") || path.Base(filepath.ToSlash(name)) == quantisation {
		return ""
	}
	return path.Join(path.Dir(filepath.ToSlash(name)), quantisation)
}

// sameContent reports whether a file has the content of an object, as far as its attributes tell.
func sameContent(file string, a attributes) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	sums := newChecksums()
	size, err := io.Copy(sums, f)
	return err == nil && sums.check(a, size) == nil
}

// copyFolder copies everything below a store.
func (s *System) copyFolder(ctx context.Context, store *Store) (string, error) {
	found, err := store.List(ctx, "", false)
	if err != nil {
		return "", err
	}
	total := int64(0)
	marks := []any{store.URL()}
	for _, o := range found {
		total += o.Size
		marks = append(marks, "\n", o.Key, " ", o.Size, " ", o.Modified.UnixNano())
	}
	if total > MaxCopied || len(found) > maxCopiedFiles {
		return "", &Error{Doing: "copied", Where: store.URL(), text: fmt.Sprintf("it holds %d objects with %d bytes; at most %d with %d bytes are copied", len(found), total, maxCopiedFiles, int64(MaxCopied))}
	}
	to := filepath.Join(s.cacheFor(marks...), localName(files.Base(store.at.String())))
	if _, err := os.Stat(to + ".whole"); err == nil {
		return to, nil
	}
	if err := store.Pull(ctx, found, to); err != nil {
		return "", err
	}
	return to, os.WriteFile(to+".whole", nil, 0o666)
}

// localName makes the name of an object one of a file here.
func localName(name string) string {
	if !filepath.IsLocal(name) || name == "." {
		return "object"
	}
	return name
}

// Pull copies objects into a folder of this machine, several at a time. Names that would lead out of it are refused.
func (s *Store) Pull(ctx context.Context, found []Object, to string) error {
	return each(ctx, len(found), func(ctx context.Context, i int) error {
		name := filepath.FromSlash(found[i].Key)
		if !filepath.IsLocal(name) {
			return &Error{Doing: "copied", Where: s.at.Join(found[i].Key).String(), text: "its name leads out of the folder"}
		}
		return s.GetFile(ctx, found[i].Key, filepath.Join(to, name), MaxCopied)
	})
}
