//go:build !unix

package main

import "github.com/servegrid/servegrid/simcore"

// fileLimitNotes has nothing to say where the system has no such limit.
func fileLimitNotes(simcore.Config) []string { return nil }
