package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/spf13/cobra"

	livereport "github.com/servegrid/servegrid/live/report"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/queue"
	"github.com/servegrid/servegrid/sweep/storage"
)

// The exit codes of the program.
const (
	exitOK         = 0
	exitSomeFailed = 1
	exitRefused    = 2
	exitSLAMissed  = 3
	// exitAway says that the input is right and something else is not there: a server, a bucket, room on a disk, a folder that
	// no other sweep uses, a port. It is that of sysexits.h for failures that pass, so that whoever starts the command knows that the
	// same one goes on.
	exitAway        = 75
	exitInterrupted = 130
)

// exitError ends the program with a code of its own. A nil err has been reported already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// run executes the command line and returns the exit code.
func run(ctx context.Context, st *state) int {
	root := newRoot(st)
	root.SetArgs(st.args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code := exitRefused
	var exit *exitError
	if errors.As(err, &exit) {
		code, err = exit.code, exit.err
	} else if errors.Is(err, context.Canceled) {
		code, err = exitInterrupted, errors.New("interrupted")
	} else if isAway(err) {
		code = exitAway
	}
	if err != nil {
		_ = printText(st.stderr, "servegrid: %v\n", err)
	}
	return code
}

// isAway reports whether a command failed for want of something that may be there again a moment later.
func isAway(err error) bool {
	stopped, server, object := new(sweep.EnvironmentError), new(queue.AwayError), new(storage.Error)
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, livereport.ErrInUse) || errors.As(err, &stopped) || errors.As(err, &server) || errors.As(err, &object) && object.Temporary() || errors.Is(err, syscall.ENOSPC)
}

func newRoot(st *state) *cobra.Command {
	root := &cobra.Command{
		Use:   "servegrid",
		Short: "Find the LLM-serving configuration to run for your traffic",
		Long: `servegrid simulates LLM-serving configurations on your traffic and shows which ones are worth running.

A grid spec names a workload, a base configuration and axes; sweep simulates every combination on all cores and
leaves results.parquet and report.html. replay runs one configuration.`,
		Version:       versionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          onlySubcommands,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(st.stdin)
	root.SetOut(st.stdout)
	root.SetErr(st.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w\nRun '%s --help' for the flags", err, cmd.CommandPath())
	})
	st.places.add(root.PersistentFlags())
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return st.places.read(cmd.Flags(), st.env) }
	root.SetHelpCommand(newHelp(root))
	root.AddCommand(
		newSweep(st),
		newMerge(st),
		newReplay(st),
		newServe(st),
		newLive(st),
		newRecommend(st),
		readsResults(st, newDeploy(st)),
		readsResults(st, newPareto(st)),
		readsResults(st, newCliff(st)),
		readsResults(st, newSensitivity(st)),
		readsResults(st, newCheck(st)),
		readsResults(st, newDiff(st)),
		newStatus(st),
		readsResults(st, newTimeline(st)),
		readsResults(st, newReport(st)),
		newTrace(st),
		newPerf(st),
		newSpec(st),
		newCapture(st),
		newFidelity(st),
		newCalibrate(st),
		newWorker(st),
		newVersion(st),
	)
	return root
}
