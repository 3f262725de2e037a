package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// The exit codes of the program.
const (
	exitOK          = 0
	exitSomeFailed  = 1
	exitRefused     = 2
	exitSLAMissed   = 3
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
	}
	if err != nil {
		_ = printText(st.stderr, "servegrid: %v\n", err)
	}
	return code
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
	root.SetHelpCommand(newHelp(root))
	root.AddCommand(
		newSweep(st),
		newReplay(st),
		newRecommend(st),
		newDeploy(st),
		newPareto(st),
		newCliff(st),
		newSensitivity(st),
		newCheck(st),
		newDiff(st),
		newTimeline(st),
		newReport(st),
		newTrace(st),
		newPerf(st),
		newSpec(st),
		newVersion(st),
	)
	return root
}
