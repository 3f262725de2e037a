package queue

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// BundleOptions say where the files of points are.
type BundleOptions struct {
	// Files opens traces; nil means those of this machine, without URLs.
	Files files.System
	// Stdin is the path of a file with what the standard input had, for traces whose path is "-".
	Stdin string
	// Stored is told of each file that a store has now: its bytes, and whether it had it before; or why it does not have it.
	// Nil means that nobody is.
	Stored func(bytes int64, known bool, err error)
}

// Bundle makes points portable, and brings the files that they name to a store, each once. What a file holds when it is first
// asked for is what it holds for the whole sweep; one that changes later cannot be uploaded any more. It is safe for concurrent
// use.
type Bundle struct {
	opt BundleOptions

	mu sync.Mutex
	// described holds what is known of the files by their settings and paths, sources where to find files by digest.
	described map[string]*once[wire.File]
	sources   map[string]source
	uploaded  map[string]*once[struct{}]
}

// source is where a file can be read: at a path, or the text of a list with the files in it.
type source struct {
	path string
	size int64
	list []byte
	with []wire.File
}

// NotPortableError says that what a point names cannot be had on other machines.
type NotPortableError struct {
	// Key is the setting and Path what it names.
	Key, Path string
	// Err is why.
	Err error
}

// Error names the setting and says why.
func (e *NotPortableError) Error() string {
	return fmt.Sprintf("%s: %s cannot go to workers: %v", e.Key, files.Shown(e.Path), e.Err)
}

// Unwrap returns why.
func (e *NotPortableError) Unwrap() error { return e.Err }

// NewBundle returns an empty bundle.
func NewBundle(opt BundleOptions) *Bundle {
	opt.Files = files.Or(opt.Files)
	if opt.Stored == nil {
		opt.Stored = func(int64, bool, error) {}
	}
	return &Bundle{opt: opt, described: map[string]*once[wire.File]{}, sources: map[string]source{}, uploaded: map[string]*once[struct{}]{}}
}

// Portable returns the spec of a point as it travels, and the files that it names, in the order of their paths on a worker. A
// *NotPortableError says what keeps the point from travelling; other errors are about reading files.
func (b *Bundle) Portable(ctx context.Context, p *gridspec.Point) (spec []byte, named []wire.File, err error) {
	spec, err = p.Portable(func(key, path string) (string, error) {
		f, err := b.describe(ctx, key, path)
		if err != nil {
			return "", err
		}
		named = append(named, f)
		return f.Path(), nil
	})
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(named, func(a, b wire.File) int { return strings.Compare(a.Path(), b.Path()) })
	return spec, slices.Compact(named), nil
}

// Upload brings files that Portable returned to a store, unless it has them. A file is uploaded once, whoever asks.
func (b *Bundle) Upload(ctx context.Context, s Store, named []wire.File) error {
	for _, f := range named {
		if err := b.upload(ctx, s, f.Digest); err != nil {
			return err
		}
	}
	return nil
}

// Forget makes Upload look again whether the store has the files, such as when it lost some.
func (b *Bundle) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.uploaded)
}

// describe returns the file that a setting names.
func (b *Bundle) describe(ctx context.Context, key, path string) (wire.File, error) {
	return share(ctx, &b.mu, b.described, key+" "+path, func() (wire.File, error) {
		f, err := b.read(ctx, key, path)
		if notPortable := new(NotPortableError); err != nil && !errors.As(err, &notPortable) && ctx.Err() == nil {
			err = fmt.Errorf("%s: %s cannot be read: %w", key, files.Shown(path), files.Cause(err))
		}
		return f, err
	})
}

// read finds out what a path names.
func (b *Bundle) read(ctx context.Context, key, path string) (wire.File, error) {
	refuse := func(format string, args ...any) (wire.File, error) {
		return wire.File{}, &NotPortableError{key, path, fmt.Errorf(format, args...)}
	}
	at, name := path, portableName(path)
	if path == "-" {
		if b.opt.Stdin == "" {
			return refuse("the standard input was not kept")
		}
		at, name = b.opt.Stdin, "stdin"
	}
	info, err := b.opt.Files.Stat(ctx, at)
	switch {
	case err != nil:
		return wire.File{}, err
	case info.Folder:
		return b.folder(ctx, key, path, name)
	case !info.Regular && !files.IsURL(at):
		return refuse("it is no regular file; copy what it has into one")
	}
	if beside := b.beside(ctx, key, at); len(beside) > 0 {
		list := make(map[string]string, len(beside))
		for _, other := range beside {
			list[portableName(other)] = files.Join(files.Dir(at), other)
		}
		return b.listed(ctx, key, path, name, list)
	}
	f, err := b.file(ctx, at)
	f.Name = name
	return f, err
}

// beside lists the names of the files in a file's folder that are read together with it, itself included; none when it is read
// alone.
func (b *Bundle) beside(ctx context.Context, key, path string) []string {
	switch {
	case strings.HasPrefix(key, "workload."):
		return workload.CaptureOf(ctx, b.opt.Files, path)
	case strings.HasSuffix(key, "timing.model"):
		const quantisation = "hf_quant_config.json"
		if info, err := b.opt.Files.Stat(ctx, files.Join(files.Dir(path), quantisation)); err == nil && info.Regular {
			return slices.Compact([]string{files.Base(path), quantisation})
		}
	}
	return nil
}

// file reads a file for its digest and remembers where it is.
func (b *Bundle) file(ctx context.Context, path string) (wire.File, error) {
	r, err := b.opt.Files.Open(ctx, path)
	if err != nil {
		return wire.File{}, err
	}
	defer r.Close()
	h := sha256.New()
	size, err := io.Copy(h, contextReader{ctx, r})
	if err != nil {
		return wire.File{}, err
	}
	f := wire.File{Digest: hex.EncodeToString(h.Sum(nil)), Size: size}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sources[f.Digest] = source{path: path, size: size}
	return f, nil
}

// folder describes a folder with all that is in it. Of a folder of traces that is what is read of it.
func (b *Bundle) folder(ctx context.Context, key, path, name string) (wire.File, error) {
	list := map[string]string{}
	var walk func(folder, at string) error
	walk = func(folder, at string) error {
		entries, err := b.opt.Files.List(ctx, folder)
		if err != nil {
			return err
		}
		for _, e := range entries {
			below, inside := files.Join(folder, e.Name), at+"/"+e.Name
			switch {
			case e.Link:
				err = &NotPortableError{key, path, fmt.Errorf("%s is a symbolic link; put the file itself there", inside)}
			case e.Folder:
				err = walk(below, inside)
			case !strings.HasPrefix(key, "workload.") || workload.InFolder(e.Name):
				list[inside] = below
			}
			if len(list) > wire.MaxListedFiles {
				err = &NotPortableError{key, path, fmt.Errorf("it holds more than %d files; name a folder with just what is needed", wire.MaxListedFiles)}
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(path, name); err != nil {
		return wire.File{}, err
	}
	return b.listed(ctx, key, path, name, list)
}

// listed describes files that travel together, by their paths on a worker.
func (b *Bundle) listed(ctx context.Context, key, path, name string, paths map[string]string) (wire.File, error) {
	var l wire.FileList
	var with []wire.File
	for _, at := range slices.Sorted(maps.Keys(paths)) {
		file := paths[at]
		info, err := b.opt.Files.Stat(ctx, file)
		if err == nil && !info.Regular && !files.IsURL(file) {
			return wire.File{}, &NotPortableError{key, path, fmt.Errorf("%s is no regular file", at)}
		}
		if err != nil {
			return wire.File{}, err
		}
		f, err := b.file(ctx, file)
		if err != nil {
			return wire.File{}, err
		}
		l.Files = append(l.Files, wire.ListedFile{Path: at, Digest: f.Digest, Size: f.Size})
		with = append(with, f)
	}
	text, digest, err := l.Encode()
	if err != nil {
		return wire.File{}, &NotPortableError{key, path, err}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sources[digest] = source{list: text, with: with, size: int64(len(text))}
	return wire.File{Digest: digest, Name: name, Size: l.Size(), Folder: true}, nil
}

// upload brings the file of a digest to a store; what a list has before the list.
func (b *Bundle) upload(ctx context.Context, s Store, digest string) error {
	_, err := share(ctx, &b.mu, b.uploaded, digest, func() (struct{}, error) {
		b.mu.Lock()
		from, ok := b.sources[digest]
		b.mu.Unlock()
		if !ok {
			return struct{}{}, fmt.Errorf("no file with the SHA-256 %s is known here", digest)
		}
		if err := b.Upload(ctx, s, from.with); err != nil {
			return struct{}{}, err
		}
		known, err := s.Has(ctx, digest)
		if err == nil && !known {
			err = b.put(ctx, s, digest, from)
		}
		b.opt.Stored(from.size, known, err)
		return struct{}{}, err
	})
	return err
}

// put sends what must still be what was described.
func (b *Bundle) put(ctx context.Context, s Store, digest string, from source) error {
	if from.list != nil {
		return s.Put(ctx, digest, bytes.NewReader(from.list))
	}
	r, err := b.opt.Files.Open(ctx, from.path)
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", files.Shown(from.path), files.Cause(err))
	}
	defer r.Close()
	checked := newCheckedReader(contextReader{ctx, r}, files.Shown(from.path), digest, from.size)
	err = s.Put(ctx, digest, checked)
	if checked.damaged != nil {
		return fmt.Errorf("%s was changed during the sweep (%s); run it again", files.Shown(from.path), checked.damaged.Problem)
	}
	return err
}

// contextReader stops reading when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// once is something that is found out by one goroutine while others wait for it.
type once[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// share returns what find returns for a key, which is called once at a time for it, and not again after it succeeded. Whoever
// waits for another one whose context ends tries itself.
func share[T any](ctx context.Context, mu *sync.Mutex, known map[string]*once[T], key string, find func() (T, error)) (T, error) {
	for {
		mu.Lock()
		o, ok := known[key]
		if !ok {
			o = &once[T]{done: make(chan struct{})}
			known[key] = o
		}
		mu.Unlock()
		if !ok {
			o.value, o.err = find()
			mu.Lock()
			if o.err != nil && known[key] == o {
				delete(known, key)
			}
			mu.Unlock()
			close(o.done)
			return o.value, o.err
		}
		select {
		case <-o.done:
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
		if o.err == nil || !errors.Is(o.err, context.Canceled) && !errors.Is(o.err, context.DeadlineExceeded) {
			return o.value, o.err
		}
	}
}
