//go:build unix

package main

import (
	"fmt"
	"syscall"

	"github.com/servegrid/servegrid/simcore"
)

// otherFiles is how many files the program has open besides connections.
const otherFiles = 64

// fileLimitNotes warns when the system allows fewer open files than there will be connections. The program has raised the limit
// as far as it may when it started, as all Go programs do.
func fileLimitNotes(cfg simcore.Config) []string {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return nil
	}
	want := uint64(otherFiles)
	switch {
	case cfg.Load.Mode == simcore.LoadConcurrency:
		want += uint64(cfg.Load.Concurrency)
	default:
		want += 4096
	}
	if uint64(limit.Cur) >= want { // a signed number on some systems
		return nil
	}
	return []string{fmt.Sprintf("this process may have %d open files, and each request under way is one; raise the limit (ulimit -Hn) for more than that at a time", limit.Cur)}
}
