package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/servegrid/servegrid/simcore/files"
)

// Roots are the folders and buckets that may be read and written. Nil means all.
type Roots struct {
	// folders are those of this machine, absolute and without links; locations those at URLs.
	folders   []string
	locations []Location
}

// ErrOutside says that a path leads out of what is allowed.
var ErrOutside = errors.New("leads out of what --allow names")

// NewRoots reads folders and URLs; without any it returns nil, which allows everything.
func NewRoots(allowed []string) (*Roots, error) {
	if len(allowed) == 0 {
		return nil, nil
	}
	r := &Roots{}
	var problems []error
	for _, text := range allowed {
		if files.IsURL(text) {
			l, err := Parse(text)
			if err == nil && l.Scheme == "file" {
				text = filepath.FromSlash("/" + l.Key)
			} else if err != nil {
				problems = append(problems, fmt.Errorf("--allow: %w", err))
				continue
			} else {
				r.locations = append(r.locations, l)
				continue
			}
		}
		folder, err := real(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("--allow %s: %w", text, files.Cause(err)))
			continue
		}
		r.folders = append(r.folders, folder)
	}
	return r, errors.Join(problems...)
}

// real is the absolute path without links. What does not exist yet, which may be written, is named by what exists of it.
func real(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for at := path; ; {
		found, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(found, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if _, linkErr := os.Lstat(at); linkErr == nil {
			return "", fmt.Errorf("%s is a link to nothing", at)
		}
		parent := filepath.Dir(at)
		if parent == at {
			return path, nil
		}
		at, rest = parent, filepath.Join(filepath.Base(at), rest)
	}
}

// Check refuses a path or URL that leads out of the roots, also by links and by "..". The standard input, "-", is allowed.
func (r *Roots) Check(name string) error {
	if r == nil || name == "" || name == "-" {
		return nil
	}
	if !files.IsURL(name) {
		return r.checkPath(name)
	}
	l, err := Parse(name)
	if err != nil {
		return err
	}
	if l.Scheme == "file" {
		return r.checkPath(filepath.FromSlash("/" + l.Key))
	}
	for _, root := range r.locations {
		if l.Below(root) {
			return nil
		}
	}
	return &fs.PathError{Op: "open", Path: l.String(), Err: ErrOutside}
}

func (r *Roots) checkPath(name string) error {
	path, err := real(name)
	if err != nil {
		return &fs.PathError{Op: "open", Path: name, Err: files.Cause(err)}
	}
	if _, _, ok := r.folderOf(path); !ok {
		return &fs.PathError{Op: "open", Path: name, Err: ErrOutside}
	}
	return nil
}

// checkLinks refuses a folder with links in it that lead out of the roots.
func (r *Roots) checkLinks(folder string) error {
	if r == nil {
		return nil
	}
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type()&fs.ModeSymlink != 0 {
			err = r.checkPath(path)
		}
		return err
	})
}

// folderOf finds the root that a path without links lies in.
func (r *Roots) folderOf(path string) (folder, below string, ok bool) {
	for _, folder := range r.folders {
		if rel, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(rel) {
			return folder, rel, true
		}
	}
	return "", "", false
}

// open opens a file of this machine. The operating system makes sure that no link leads out of its root, also when the link was
// made just now.
func (r *Roots) open(name string) (io.ReadCloser, error) {
	if r == nil {
		return files.Local{}.Open(context.Background(), name)
	}
	path, err := real(name)
	if err != nil {
		return nil, err
	}
	folder, below, ok := r.folderOf(path)
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrOutside}
	}
	if info, err := os.Stat(folder); err == nil && !info.IsDir() {
		return os.Open(folder) // the root is the file itself
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Open(below)
}

// String lists what is allowed.
func (r *Roots) String() string {
	names := append([]string{}, r.folders...)
	for _, l := range r.locations {
		names = append(names, l.String())
	}
	return strings.Join(names, ", ")
}

// each does something for n things, several at a time, and returns the first error.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	const atATime = 16
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(atATime)
	for i := range n {
		if inner.Err() != nil {
			break
		}
		g.Go(func() error { return do(inner, i) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}
