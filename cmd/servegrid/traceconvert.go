package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/simcore/workload/tracetools"
)

func newTraceConvert(st *state) *cobra.Command {
	var in traceInput
	var out traceOutput
	cmd := &cobra.Command{
		Use:   "convert TRACE... --to FORMAT",
		Short: "Write a trace in another format",
		Long: `convert writes traces of any format, together, in another one:

  mooncake           one request a line, sessions as turns that follow one another
  agentic_mooncake   version 2: every dependency with its delay; keeps all that any format says about the work
  weka               a folder with one conversation a file, subagents within it, as AIPerf reads it

What the new format cannot say is left out and told, except where that would change who waits for whom beyond repair:
deeper trees than a main agent and its subagents are refused for weka, with the path of sessions.`,
		Args: atLeastOne("TRACE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out.target.Format == "" {
				return errors.New("--to is missing; give the format to write: mooncake, agentic_mooncake or weka")
			}
			if err := errors.Join(checkFinite(cmd.Flags()), out.check()); err != nil {
				return err
			}
			w, err := in.load(cmd.Context(), st, args)
			if err != nil {
				return err
			}
			return out.write(cmd.Context(), st, w)
		},
	}
	in.add(cmd.Flags())
	out.add(cmd.Flags(), "")
	return cmd
}

func newTraceAnonymize(st *state) *cobra.Command {
	var in traceInput
	var out traceOutput
	var seed uint64
	cmd := &cobra.Command{
		Use:   "anonymize TRACE...",
		Short: "Replace all names in a trace and keep its structure",
		Long: `anonymize gives requests, sessions, plays, models, policy classes and hash ids other names, and lets times count from
the first start. Lengths, times, what prompts share and who waits for whom stay, so a simulation gives the same figures.
The exact tokens of answers are left out, because they are content. Hash ids get an order that the seed draws: with a
secret seed nobody can tell which of two traces' ids mean the same.`,
		Args: atLeastOne("TRACE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(checkFinite(cmd.Flags()), out.check()); err != nil {
				return err
			}
			w, err := in.load(cmd.Context(), st, args)
			if err != nil {
				return err
			}
			w, notes, err := tracetools.Anonymize(w, seed)
			if err != nil {
				return err
			}
			if err := printNotes(st.stderr, notes); err != nil {
				return err
			}
			return out.write(cmd.Context(), st, w)
		},
	}
	in.add(cmd.Flags())
	out.add(cmd.Flags(), "; the default is mooncake, or agentic_mooncake where sessions wait for each other")
	cmd.Flags().Uint64Var(&seed, "seed", 0, "draws the order of the new hash ids")
	return cmd
}
