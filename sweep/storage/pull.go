package storage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/files"
)

// PullOptions say what of a folder of results is needed.
type PullOptions struct {
	// Journal puts the parts of the journal together as journal.jsonl.
	Journal bool
	// Folders are those whose files are needed.
	Folders []string
}

// PullResults copies results at a URL for reading: a file, or the files of a sweep's output folder. It returns where the copy
// is. What is unchanged since the last time is not copied again.
func (s *System) PullResults(ctx context.Context, url string, opt PullOptions) (string, error) {
	info, err := s.Stat(ctx, url)
	if err != nil {
		return "", err
	}
	if !info.Folder {
		return s.Local(ctx, url)
	}
	root, l, err := s.at(ctx, url)
	if err != nil {
		return "", err
	}
	store := root.below(l)
	to := filepath.Join(s.cacheFor("results", store.URL()), localName(files.Base(store.URL())))
	if err := os.MkdirAll(to, 0o777); err != nil {
		return "", err
	}
	found, err := store.List(ctx, "", true)
	if err != nil {
		return "", err
	}
	journal := slices.ContainsFunc(found, func(o Object) bool { return o.Folder && o.Key == journalFolder })
	found = slices.DeleteFunc(found, func(o Object) bool { return o.Folder || isAside(o.Key) })
	for _, folder := range opt.Folders {
		inside, err := store.List(ctx, folder, false)
		if err != nil {
			return "", err
		}
		found = append(found, inside...)
	}
	if err := store.refresh(ctx, found, to); err != nil {
		return "", err
	}
	if opt.Journal && journal {
		_, _, err = store.pullJournal(ctx, filepath.Join(to, journalFile))
	}
	return to, err
}

// refresh copies objects whose copies are missing or old, and removes copies of what is no longer there. A copy has the time of its
// object.
func (s *Store) refresh(ctx context.Context, found []Object, to string) error {
	wanted := map[string]bool{filepath.Join(to, journalFile): true}
	old := slices.DeleteFunc(found, func(o Object) bool {
		file := filepath.Join(to, filepath.FromSlash(o.Key))
		wanted[file] = true
		info, err := os.Stat(file)
		return err == nil && info.Size() == o.Size && info.ModTime().Equal(o.Modified)
	})
	if err := filepath.WalkDir(to, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && !wanted[file] && !strings.HasPrefix(entry.Name(), ".") {
			err = os.Remove(file)
		}
		return err
	}); err != nil {
		return err
	}
	if err := s.Pull(ctx, old, to); err != nil {
		return err
	}
	var errs []error
	for _, o := range old {
		errs = append(errs, os.Chtimes(filepath.Join(to, filepath.FromSlash(o.Key)), o.Modified, o.Modified))
	}
	return errors.Join(errs...)
}
