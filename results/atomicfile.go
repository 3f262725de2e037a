package results

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile writes a file so that readers see either the old content or the whole new one: write fills a file
// beside path, which is synced to disk and then takes path's name. On an error the old file stays. What is no regular file,
// such as a pipe or a device, is written into instead, and a symbolic link keeps pointing to the file it names.
func WriteFile(path string, write func(io.Writer) error) (err error) {
	info, statErr := os.Stat(path)
	switch {
	case statErr != nil:
	case info.IsDir():
		return fmt.Errorf("write %s: it is a folder; name a file", path)
	case !info.Mode().IsRegular():
		return writeInto(path, write)
	}
	if link, linkErr := os.Lstat(path); linkErr == nil && link.Mode()&fs.ModeSymlink != 0 {
		if target, linkErr := filepath.EvalSymlinks(path); linkErr == nil {
			path = target
		}
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, FileCause(err))
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, errors.Join(FileCause(err), os.Remove(f.Name())))
		}
	}()
	buffered := bufio.NewWriterSize(f, 1<<18)
	if err := errors.Join(write(buffered), buffered.Flush(), f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	syncDir(dir)
	return nil
}

// writeInto writes to what is there already.
func writeInto(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, FileCause(err))
	}
	buffered := bufio.NewWriterSize(f, 1<<18)
	if err := errors.Join(write(buffered), buffered.Flush(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, FileCause(err))
	}
	return nil
}

// FileCause returns what went wrong with a file without the operation and the path, which may be a temporary name
// that means nothing to a user; messages name the path themselves.
func FileCause(err error) error {
	if p := new(fs.PathError); errors.As(err, &p) {
		return p.Err
	}
	if l := new(os.LinkError); errors.As(err, &l) {
		return l.Err
	}
	return err
}

// syncDir makes a rename inside the folder durable where the system can do so; the rename itself has succeeded.
func syncDir(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	_ = d.Sync()
	_ = d.Close()
}
