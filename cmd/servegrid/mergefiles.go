package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/servegrid/servegrid/results"
)

// copyPointFiles brings the files of points along. Of a point that several folders have, the first folder's file comes.
func (j *sweepJob) copyPointFiles(folders []string) error {
	for _, f := range pointFiles {
		there := keptFiles(j.dir, f.folder)
		for _, dir := range folders {
			found := keptFiles(dir, f.folder)
			for _, id := range slices.Sorted(maps.Keys(found)) {
				if len(there[id]) > 0 {
					continue
				}
				from := found[id][0]
				below, err := filepath.Rel(dir, from)
				if err == nil {
					err = copyFile(from, filepath.Join(j.dir, below))
				}
				if err != nil {
					return fmt.Errorf("%s cannot be copied: %w; its results are merged: merge again for the files", from, results.FileCause(err))
				}
				there[id] = []string{from}
			}
		}
	}
	return nil
}

// copyFile makes a file have a second place, by a link where the file system can: no such file is changed, it is replaced.
func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	return errors.Join(results.WriteFile(to, func(w io.Writer) error {
		_, err := io.Copy(w, source)
		return err
	}), source.Close())
}
