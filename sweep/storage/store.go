package storage

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// Store is a folder in a bucket. Keys are relative to it. It is safe for concurrent use.
type Store struct {
	at      Location
	objects objects
	// pause is the first pause before something is tried again.
	pause time.Duration
	// answered is set once the storage has answered; all stores of a bucket share it.
	answered *atomic.Bool
}

// Object is an object of a store, or a folder of objects.
type Object struct {
	// Key is relative to the store.
	Key    string
	Folder bool
	// Size is in bytes; Modified is when it was written.
	Size     int64
	Modified time.Time
}

// Open opens the folder that a URL names; see [Parse]. Whether the bucket is there shows when it is used.
func Open(ctx context.Context, url string) (*Store, error) {
	l, err := Parse(url)
	if err != nil {
		return nil, err
	}
	return openLocation(ctx, l)
}

func openLocation(ctx context.Context, l Location) (*Store, error) {
	o, err := openObjects(ctx, l)
	if err != nil {
		return nil, explain("opened", l, err)
	}
	return &Store{at: l, objects: o, pause: firstPause, answered: new(atomic.Bool)}, nil
}

// Close gives back what the store holds.
func (s *Store) Close() error {
	if d, ok := s.objects.(driven); ok && s.at.Scheme != "mem" {
		return d.Bucket.Close()
	}
	return nil
}

// URL is that of the store. It holds nothing secret.
func (s *Store) URL() string { return s.at.String() }

// below is the store of another folder of the bucket.
func (s *Store) below(l Location) *Store {
	below := *s
	below.at = l
	return &below
}

func (s *Store) key(key string) string { return s.at.Join(key).Key }

// Put writes an object as a whole: nobody ever sees a part of it. Storage checks what arrives.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	sum := sha256.Sum256(data)
	a := attributes{md5: md5Of(data), sha256: hex.EncodeToString(sum[:])}
	err := s.retry(ctx, func() error {
		return s.objects.write(ctx, s.key(key), bytes.NewReader(data), int64(len(data)), a)
	})
	return explain("written", s.at.Join(key), err)
}

// PutFile writes a file of this machine as an object, as [Store.Put] does.
func (s *Store) PutFile(ctx context.Context, key, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sums := newChecksums()
	size, err := io.Copy(sums, f)
	if err != nil {
		return err
	}
	err = s.retry(ctx, func() error {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return s.objects.write(ctx, s.key(key), io.LimitReader(f, size), size, sums.attributes())
	})
	return explain("written", s.at.Join(key), err)
}

// Get reads a whole object of at most limit bytes.
func (s *Store) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	var data []byte
	l := s.at.Join(key)
	err := s.retry(ctx, func() error {
		r, a, err := s.objects.read(ctx, l.Key, 0)
		if err != nil {
			return err
		}
		defer r.Close()
		if a.size > limit {
			return tooLarge(l, a.size, limit)
		}
		if data, err = io.ReadAll(io.LimitReader(r, a.size+1)); err != nil {
			return err
		}
		if int64(len(data)) != a.size {
			return fmt.Errorf("%d of %d bytes arrived", len(data), a.size)
		}
		return nil
	})
	return data, explain("read", l, err)
}

// GetFile reads an object of at most limit bytes into a file of this machine, which is there as a whole or not at all, and
// checks it against what is known of the object.
func (s *Store) GetFile(ctx context.Context, key, path string, limit int64) error {
	l := s.at.Join(key)
	err := s.retry(ctx, func() error {
		a, err := s.objects.attributes(ctx, l.Key)
		if err != nil {
			return err
		}
		if a.size > limit {
			return tooLarge(l, a.size, limit)
		}
		return s.download(ctx, l, path, a)
	})
	return explain("read", l, err)
}

func (s *Store) download(ctx context.Context, l Location, path string, a attributes) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return &Error{Doing: "copied", Where: l.String(), text: err.Error()}
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return &Error{Doing: "copied", Where: l.String(), text: err.Error()}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(f.Name())))
		}
	}()
	r, _, err := s.objects.read(ctx, l.Key, 0)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	sums := newChecksums()
	size, err := io.Copy(io.MultiWriter(f, sums), io.LimitReader(r, a.size+1))
	if err = errors.Join(err, r.Close(), f.Close()); err != nil {
		return err
	}
	if err := sums.check(a, size); err != nil {
		return err
	}
	return errors.Join(os.Chmod(f.Name(), 0o644), os.Rename(f.Name(), path))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Stat describes an object. The error is an [fs.ErrNotExist] when there is none.
func (s *Store) Stat(ctx context.Context, key string) (Object, error) {
	var a attributes
	l := s.at.Join(key)
	err := s.retry(ctx, func() (err error) {
		a, err = s.objects.attributes(ctx, l.Key)
		return err
	})
	return Object{Key: key, Size: a.size, Modified: a.modified}, explain("read", l, err)
}

// List lists the objects below a folder of the store, "" for all, in the order of their keys. With shallow, folders in it are
// listed in the place of what is in them.
func (s *Store) List(ctx context.Context, folder string, shallow bool) ([]Object, error) {
	l := s.at.Join(folder)
	prefix, own := l.Key, s.at.Key
	if prefix != "" {
		prefix += "/"
	}
	if own != "" {
		own += "/"
	}
	var found []Object
	err := s.retry(ctx, func() error {
		found = found[:0]
		return s.objects.list(ctx, prefix, shallow, func(o Object) error {
			if len(found) == maxListed {
				return &Error{Doing: "listed", Where: l.String(), text: fmt.Sprintf("it holds more than %d objects", maxListed)}
			}
			if o.Key = strings.TrimPrefix(o.Key, own); o.Key != "" && o.Key != strings.TrimSuffix(own, "/") {
				found = append(found, o)
			}
			return nil
		})
	})
	return found, explain("listed", l, err)
}

// maxListed bounds the memory that a listing takes.
const maxListed = 10_000_000

// Remove deletes an object. One that is not there is no error.
func (s *Store) Remove(ctx context.Context, key string) error {
	l := s.at.Join(key)
	err := explain("deleted", l, s.retry(ctx, func() error { return s.objects.remove(ctx, l.Key) }))
	return ignoreMissing(err)
}

// checksums are those of what is written to it.
type checksums struct{ md5, sha256 hash.Hash }

func newChecksums() checksums { return checksums{md5.New(), sha256.New()} }

// Write adds bytes; it never fails.
func (c checksums) Write(p []byte) (int, error) {
	c.md5.Write(p)
	return c.sha256.Write(p)
}

func (c checksums) attributes() attributes {
	return attributes{md5: c.md5.Sum(nil), sha256: hex.EncodeToString(c.sha256.Sum(nil))}
}

// check compares with what is known of an object.
func (c checksums) check(want attributes, size int64) error {
	got := c.attributes()
	switch {
	case size != want.size:
		return fmt.Errorf("%d bytes arrived, and it has %d", size, want.size)
	case want.sha256 != "" && got.sha256 != want.sha256, len(want.md5) > 0 && want.sha256 == "" && !bytes.Equal(got.md5, want.md5):
		return errors.New("what arrived differs from what was written: its checksum does not match")
	}
	return nil
}
