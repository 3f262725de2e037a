//go:build !linux

package main

// runAsBatch does nothing here.
func runAsBatch() error { return nil }
