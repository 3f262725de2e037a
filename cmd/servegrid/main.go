// Command servegrid answers which LLM-serving configuration to run for a workload: it expands a grid spec into
// simulator configurations, simulates them, and writes the results, the Pareto frontier and a report.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop() // a second Ctrl-C ends the process at once
	}()
	os.Exit(run(ctx, newState()))
}

// state is everything a command may touch outside its arguments, so that tests run commands in-process.
type state struct {
	args           []string
	env            []string
	stdin          io.Reader
	stdout, stderr io.Writer
	// terminal says that stderr is a terminal of the given width.
	terminal func() (width int, ok bool)
	now      func() time.Time
	// places reach the files that people name; see fileSystem.
	places placeFlags
}

func newState() *state {
	return &state{
		args:     os.Args[1:],
		env:      os.Environ(),
		stdin:    os.Stdin,
		stdout:   os.Stdout,
		stderr:   os.Stderr,
		terminal: stderrWidth,
		now:      time.Now,
	}
}
