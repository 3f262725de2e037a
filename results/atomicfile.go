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
// beside path, which is synced to disk and then takes path's name. On an error the old file stays.
func WriteFile(path string, write func(io.Writer) error) (err error) {
	if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
		return fmt.Errorf("write %s: it is a folder; name a file", path)
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
