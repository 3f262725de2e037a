package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/simcore/workload/tracetools"
)

// traceOutput are the flags that say where a trace goes and in which format.
type traceOutput struct {
	target tracetools.Target
	path   string
	force  bool
}

func (o *traceOutput) add(fs *pflag.FlagSet, format string) {
	fs.StringVar(&o.target.Format, "to", "", "format to write: "+strings.Join(tracetools.Formats(), ", ")+format)
	fs.IntVar(&o.target.BlockSize, "block-size", 0, "tokens per hash id of a trace that has none; the default is 512")
	fs.StringVar(&o.target.HashIDScope, "hash-id-scope", "", "local or global, for weka; the default is local unless conversations share blocks")
	fs.StringVarP(&o.path, "output", "o", "", "file to write, or folder for weka; .gz and .zst are compressed; the default is the standard output")
	fs.BoolVar(&o.force, "force", false, "replace the file if it exists")
}

// check looks at the flags before anything is read.
func (o *traceOutput) check() error {
	problems := []error{asFlags(o.target.Validate())}
	switch {
	case o.path == "" && o.target.Folder():
		problems = append(problems, errors.New("--output is missing: weka is a folder of files; name one that does not exist or is empty"))
	case o.path != "" && o.target.Folder():
		problems = append(problems, emptyFolder(o.path))
	case o.path != "":
		problems = append(problems, notThere(o.path, o.force))
	}
	return errors.Join(problems...)
}

// write writes a trace and says what could not be kept.
func (o *traceOutput) write(ctx context.Context, st *state, w *workload.Workload) error {
	target := o.target.For(w)
	var notes []string
	write := func(out io.Writer) (err error) {
		notes, err = target.Write(interruptible{ctx, out}, w)
		return err
	}
	var err error
	switch {
	case target.Folder():
		notes, err = o.writeFolder(ctx, target, w)
	case o.path == "":
		err = write(st.stdout)
	default:
		err = writeNew(o.path, o.force, func(out io.Writer) error { return compressed(o.path, out, write) })
	}
	if err != nil {
		return err
	}
	if err := printNotes(st.stderr, notes); err != nil || o.path == "" {
		return err
	}
	return printText(st.stdout, "Wrote %s of %s as %s: %s\n", counted(w.Requests(), "request"), w.Name, target.Format, o.path)
}

// interruptible ends the writing with the context.
type interruptible struct {
	ctx context.Context
	out io.Writer
}

func (w interruptible) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.out.Write(p)
}

// compressed writes through what the extension of a file asks for.
func compressed(path string, out io.Writer, write func(io.Writer) error) error {
	switch filepath.Ext(path) {
	case ".gz":
		z := gzip.NewWriter(out)
		return errors.Join(write(z), z.Close())
	case ".zst":
		z, err := zstd.NewWriter(out)
		if err != nil {
			return err
		}
		return errors.Join(write(z), z.Close())
	}
	return write(out)
}

// emptyFolder refuses a path that is there and no empty folder.
func emptyFolder(path string) error {
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s is no folder that can be read: %w", path, results.FileCause(err))
	case len(entries) > 0:
		return fmt.Errorf("the folder %s is not empty; name another one (--force replaces files only)", path)
	}
	return nil
}

// writeFolder makes all files in a folder beside and gives it the name, so that there are all or none.
func (o *traceOutput) writeFolder(ctx context.Context, target tracetools.Target, w *workload.Workload) (notes []string, err error) {
	path := filepath.Clean(o.path)
	dir, err := os.MkdirTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, results.FileCause(err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	notes, err = target.WriteFiles(func(name string, write func(io.Writer) error) error {
		return results.WriteFile(filepath.Join(dir, name), func(out io.Writer) error { return write(interruptible{ctx, out}) })
	}, w)
	if err != nil {
		return nil, err
	}
	if err := emptyFolder(path); err != nil {
		return nil, err
	}
	if err := errors.Join(os.Chmod(dir, 0o755), ignoreMissing(os.Remove(path)), os.Rename(dir, path)); err != nil {
		return nil, fmt.Errorf("write %s: %w", path, results.FileCause(err))
	}
	return notes, nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
