// Package files is how the simulator reaches files that users name: paths of this machine, and URLs of objects in a
// bucket when a program brings a [System] that knows them. The simulator itself knows no storage.
package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// System opens what paths and URLs name.
type System interface {
	// Open opens a file for reading from its beginning.
	Open(ctx context.Context, path string) (io.ReadCloser, error)
	// Stat says what a path names. The error is an [fs.ErrNotExist] when it names nothing.
	Stat(ctx context.Context, path string) (Info, error)
	// List returns what lies in a folder, in the order of the names. A folder at a URL is what begins with its name and a
	// slash.
	List(ctx context.Context, folder string) ([]Entry, error)
	// Local returns the path of a file or folder of this machine with the same content, for formats that need random access.
	Local(ctx context.Context, path string) (string, error)
}

// Guard is a [System] that keeps to declared places.
type Guard interface {
	// Allowed refuses a path or URL that leads out of them.
	Allowed(path string) error
}

// Info describes what a path names.
type Info struct {
	// Folder says that it is a folder of files; Regular that it is a file that can be read more than once, unlike a pipe.
	Folder, Regular bool
	// Size is that of a regular file, in bytes.
	Size int64
	// Modified is when it was last written; zero when that is not known.
	Modified time.Time
}

// Entry is a file or a folder in a folder.
type Entry struct {
	Name string
	// Folder says that it has entries itself; Link that it is a symbolic link, which is neither.
	Folder, Link bool
}

// Local is the file system of this machine. It knows no URLs.
type Local struct{}

// Or returns a system, or that of this machine for nil.
func Or(s System) System {
	if s == nil {
		return Local{}
	}
	return s
}

// errNoStorage is what a URL is answered where no storage was given.
var errNoStorage = errors.New("URLs cannot be read here; copy it to this machine and name its path")

// Open opens a file of this machine.
func (Local) Open(_ context.Context, path string) (io.ReadCloser, error) {
	if IsURL(path) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNoStorage}
	}
	return os.Open(path)
}

// Stat describes a file of this machine.
func (Local) Stat(_ context.Context, path string) (Info, error) {
	if IsURL(path) {
		return Info{}, &fs.PathError{Op: "stat", Path: path, Err: errNoStorage}
	}
	info, err := os.Stat(path)
	if err != nil {
		return Info{}, err
	}
	return Info{Folder: info.IsDir(), Regular: info.Mode().IsRegular(), Size: info.Size(), Modified: info.ModTime()}, nil
}

// List lists a folder of this machine.
func (Local) List(_ context.Context, folder string) ([]Entry, error) {
	if IsURL(folder) {
		return nil, &fs.PathError{Op: "open", Path: folder, Err: errNoStorage}
	}
	found, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(found))
	for i, e := range found {
		entries[i] = Entry{Name: e.Name(), Folder: e.IsDir(), Link: e.Type()&fs.ModeSymlink != 0}
	}
	return entries, nil
}

// Local returns the path itself.
func (Local) Local(_ context.Context, path string) (string, error) {
	if IsURL(path) {
		return "", &fs.PathError{Op: "open", Path: path, Err: errNoStorage}
	}
	return path, nil
}

// Cause is why a file could not be used, without its path, which messages name themselves.
func Cause(err error) error {
	var cause *fs.PathError
	if errors.As(err, &cause) {
		return cause.Err
	}
	return err
}
