package workload

import (
	"context"
	"fmt"
	"strings"

	"github.com/servegrid/servegrid/simcore/files"
)

// InFolder reports whether a trace that is a folder is made of files with such a name, among others.
func InFolder(name string) bool {
	return isJSONLines(name) || strings.HasSuffix(uncompressedName(name), ".json")
}

// isJSONLines reports whether a file's name says that it is JSON Lines, compressed or not.
func isJSONLines(name string) bool { return strings.HasSuffix(uncompressedName(name), ".jsonl") }

// uncompressedName is a name without what says that the file is compressed.
func uncompressedName(name string) string {
	for _, compressed := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, compressed)
	}
	return name
}

// filesIn lists the files of a trace: those given, and those in folders, however deep, in order of their paths, whose names
// are of the kind. Links could make a folder endless, so they are refused there.
func (s Source) filesIn(ctx context.Context, paths []string, kind func(name string) bool) ([]string, error) {
	var found []string
	for _, path := range paths {
		info, err := s.stat(ctx, path)
		if err != nil || !info.Folder {
			found = append(found, path) // if it can't be opened, that shows later
			continue
		}
		before := len(found)
		if err := s.walk(ctx, path, kind, func(file string) { found = append(found, file) }); err != nil {
			return nil, err
		}
		if len(found) == before {
			return nil, fmt.Errorf("folder %s holds no .json or .jsonl files", path)
		}
	}
	return found, nil
}

// walk calls add for the files of a trace below a folder.
func (s Source) walk(ctx context.Context, folder string, kind func(name string) bool, add func(file string)) error {
	entries, err := files.Or(s.Files).List(ctx, folder)
	if err != nil {
		return fmt.Errorf("failed to read folder %s: %w", folder, files.Cause(err))
	}
	for _, entry := range entries {
		path := files.Join(folder, entry.Name)
		switch {
		case entry.Link:
			return fmt.Errorf("%s is a symbolic link; a trace's folder may not contain any, name what it points to", path)
		case entry.Folder:
			if err := s.walk(ctx, path, kind, add); err != nil {
				return err
			}
		case kind(entry.Name):
			add(path)
		}
	}
	return nil
}

// CaptureOf lists the names of the files that belong to the same numbered capture as a file and lie in its folder, itself
// included. It is empty when the file is not numbered. Loading the file looks for them, to tell of gaps.
func CaptureOf(ctx context.Context, system files.System, path string) []string {
	prefix, _, ok := shardOf(path)
	if !ok {
		return nil
	}
	entries, err := files.Or(system).List(ctx, files.Dir(path))
	if err != nil {
		return nil // loading tells what is wrong with the folder
	}
	var names []string
	for _, entry := range entries {
		if of, _, ok := shardOf(files.Join(files.Dir(path), entry.Name)); ok && of == prefix && !entry.Folder {
			names = append(names, entry.Name)
		}
	}
	return names
}
