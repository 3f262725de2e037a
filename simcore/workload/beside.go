package workload

import (
	"context"

	"github.com/servegrid/servegrid/simcore/files"
)

// InFolder reports whether a trace that is a folder is made of files with such a name, among others.
func InFolder(name string) bool { return isWekaFile(name) }

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
