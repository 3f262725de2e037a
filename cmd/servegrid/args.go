package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// exactlyOne accepts one argument, which what names.
func exactlyOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return fmt.Errorf("%s needs one %s, and %d are given: %s\nRun '%s --help' for how to use it",
			cmd.CommandPath(), what, len(args), cmd.UseLine(), cmd.CommandPath())
	}
}

// oneOrMore accepts any number of arguments, which what names, but none.
func oneOrMore(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return exactlyOne(what)(cmd, args)
	}
}

// atMostOne accepts one argument, which what names, or none.
func atMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return exactlyOne(what)(cmd, args)
	}
}

// plural counts things whose name takes an s: "1 point", "2 points".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// onlySubcommands refuses arguments of a command that does nothing itself, and suggests the nearest subcommand.
func onlySubcommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q for %q%s\nRun '%s --help' for the commands", args[0], cmd.CommandPath(), hint, cmd.CommandPath())
}

func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil {
				return err
			}
			if err := onlySubcommands(cmd, rest); err != nil {
				return err
			}
			cmd.InitDefaultHelpFlag()
			cmd.InitDefaultVersionFlag()
			return cmd.Help()
		},
	}
}
