//go:build race

package main

// slowdown is about how much longer a simulation takes with the race detector.
const slowdown = 10
