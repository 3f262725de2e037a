package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/workload"
)

func newTrace(st *state) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Look into traces, check, convert and vary them",
		Long: `trace works on traces without simulating them: what is in one, whether a capture is complete, the same in another
format, more traffic of its kind, or the same without what could tell where it comes from.`,
		Args: onlySubcommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTraceCheck(st), newTraceStats(st), newTraceConvert(st), newTraceSynthesize(st), newTraceAnonymize(st))
	return cmd
}

// traceInput are the flags that say how to read traces; they are the keys of a spec's workload.trace section.
type traceInput struct {
	spec workload.TraceSpec
}

func (in *traceInput) add(fs *pflag.FlagSet) {
	in.addFormat(fs)
	fs.StringVar(&in.spec.Pacing, "pacing", "", "traces of agents: when dependent requests start: causal, or causal_with_floor for no earlier than recorded; the default is the format's own")
	fs.StringVar(&in.spec.SpawnTrigger, "spawn-trigger", "", "traces of agents: what subagents start after: dispatch or completion of their parent's request, or as recorded")
	fs.StringVar(&in.spec.JoinDelay, "join-delay", "", "traces of agents: the wait after a subagent's end: recorded or none")
	fs.Float64Var(&in.spec.SharedPrefixRatio, sharedPrefixRatioFlag, 0, "applied_compute_agentic traces: share of each first prompt that its prefix group has in common")
	fs.IntVar(&in.spec.PrefixGroups, prefixGroupsFlag, 0, "applied_compute_agentic traces: number of prefix groups")
	fs.BoolVar(&in.spec.Strict, "strict", false, "refuse what looks incomplete, instead of a warning")
	fs.BoolVar(&in.spec.Salvage, "salvage", false, "read what is whole of a damaged trace, and count what is left out")
}

// addFormat adds the flags that say what the files mean.
func (in *traceInput) addFormat(fs *pflag.FlagSet) {
	in.spec = workload.DefaultTraceSpec()
	s := &in.spec
	fs.StringVar(&s.Format, "trace-format", s.Format, "format of the trace: "+strings.Join(workload.Formats(), ", "))
	fs.IntVar(&s.BlockSize, "trace-block-size", s.BlockSize, "tokens per hash id; the default is the format's own")
	fs.StringVar(&s.NestedTimestampBasis, "nested-timestamp-basis", s.NestedTimestampBasis, "what the times of subagents in WEKA traces count from: absolute, relative, or auto")
	fs.Float64Var(&s.CharactersPerToken, "characters-per-token", s.CharactersPerToken, "characters of a text that make a token, for aiperf")
	fs.IntVar(&s.DefaultOutputLength, "default-output-length", s.DefaultOutputLength, "output tokens of rows that do not state them, for aiperf")
}

// load reads traces as one workload, and prints what people should know about them.
func (in *traceInput) load(ctx context.Context, st *state, paths []string) (*workload.Workload, error) {
	spec := in.spec
	spec.Paths = paths
	w, err := workload.Spec{Trace: &spec}.Load(ctx, st.source())
	if err != nil {
		return nil, err
	}
	return w, printNotes(st.stderr, w.Warnings)
}

// atLeastOne accepts one argument or more, which what names.
func atLeastOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return fmt.Errorf("%s needs a %s: %s\nRun '%s --help' for how to use it", cmd.CommandPath(), what, cmd.UseLine(), cmd.CommandPath())
	}
}

// notThere refuses to replace a file unless forced to.
func notThere(path string, force bool) error {
	if _, err := os.Lstat(path); err == nil && !force {
		return fmt.Errorf("%s exists already; name another file, or replace it with --force", path)
	}
	return nil
}

// writeNew writes a whole file or nothing.
func writeNew(path string, force bool, write func(io.Writer) error) error {
	if err := notThere(path, force); err != nil {
		return err
	}
	return results.WriteFile(path, write)
}
