package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// refuseSharedPaths refuses files that would be written twice, or over what is replayed.
func (f *replayFlags) refuseSharedPaths(traces []string) error {
	type named struct{ name, path string }
	var before []named
	for _, path := range traces {
		before = append(before, named{"the trace", path})
	}
	var problems []error
	for _, report := range []named{{"--report-json", f.reportJSON}, {"--report-jsonl", f.reportJSONL}, {"--report-parquet", f.reportParquet}} {
		if report.path == "" {
			continue
		}
		for _, other := range before {
			if sameFile(report.path, other.path) {
				problems = append(problems, fmt.Errorf("%s: %s is %s too; name another file", report.name, report.path, other.name))
				break
			}
		}
		before = append(before, report)
	}
	return errors.Join(problems...)
}

// sameFile reports whether two paths name one file that can be overwritten; devices take what comes.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err == nil {
		y, err := os.Stat(b)
		return err == nil && x.Mode().IsRegular() && os.SameFile(x, y)
	}
	x1, err1 := filepath.Abs(a)
	y1, err2 := filepath.Abs(b)
	return err1 == nil && err2 == nil && x1 == y1
}
