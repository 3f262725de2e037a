package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/simcore/workload"
)

// traceCheckFlags say what the traces must hold.
type traceCheckFlags struct {
	in                 traceInput
	requests, sessions int
	turns              []string
	like               string
	json               bool
}

func newTraceCheck(st *state) *cobra.Command {
	var f traceCheckFlags
	cmd := &cobra.Command{
		Use:   "check TRACE...",
		Short: "Check that a capture is complete",
		Long: `check reads traces to their end and tells what is wrong or missing: files that are cut off, gaps in the numbering of
files, bad and doubled records, requests and tool calls that begin and never end, requests and sessions of which only others
speak. Several files are one trace, and so is the folder of a capture. What it counts is what is whole: what --salvage keeps.

A capture can't tell what it lost whole. Say what was sent, with --requests, --sessions and --turns, or --like and what
check --json printed for another capture of the same work.

The exit code is 0 if all is well, 1 if something is wrong or missing, and 2 if a file can't be opened or a flag is wrong.`,
		Args: atLeastOne("TRACE"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, st, args) },
	}
	fs := cmd.Flags()
	f.in.addFormat(fs)
	fs.BoolVar(&f.in.spec.Salvage, "salvage", false, "check what is whole only: damage is a note, and nothing is wrong unless too little is left")
	fs.IntVar(&f.requests, "requests", 0, "number of requests that there must be")
	fs.IntVar(&f.sessions, "sessions", 0, "number of sessions that there must be")
	fs.StringArrayVar(&f.turns, "turns", nil, "SESSION=N: number of requests that a session must have (repeatable)")
	fs.StringVar(&f.like, "like", "", "file with the output of check --json: there must be as many requests and sessions, with as many turns")
	fs.BoolVar(&f.json, "json", false, "print everything as one JSON object")
	return cmd
}

func (f *traceCheckFlags) run(cmd *cobra.Command, st *state, paths []string) error {
	turns, turnsErr := sessionTurns(f.turns)
	like, likeErr := readTraceCheck(f.like)
	if err := errors.Join(turnsErr, likeErr); err != nil {
		return err
	}
	spec := f.in.spec
	spec.Paths = paths
	check, err := spec.Check(cmd.Context(), st.source())
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("requests") {
		check.Expect("requests", check.Requests, f.requests)
	}
	if cmd.Flags().Changed("sessions") {
		check.Expect("sessions", check.Sessions, f.sessions)
	}
	for _, name := range slices.Sorted(maps.Keys(turns)) {
		check.Expect("turns of session "+strconv.Quote(name), check.Turns[name], turns[name])
	}
	if like != nil {
		check.Compare(like)
	}
	if err := f.print(st, check); err != nil {
		return err
	}
	if !check.Sound() {
		return &exitError{code: exitSomeFailed}
	}
	return nil
}

func (f *traceCheckFlags) print(st *state, check *workload.TraceCheck) error {
	if f.json {
		return printJSON(st, check)
	}
	return printText(st.stdout, "%s", traceCheckText(check))
}

// sessionTurns reads SESSION=N arguments.
func sessionTurns(args []string) (map[string]int, error) {
	turns := map[string]int{}
	var problems []error
	for _, arg := range args {
		// A session's name may hold an equals sign, a number can't.
		at := strings.LastIndexByte(arg, '=')
		n, err := strconv.Atoi(arg[at+1:])
		if at < 1 || err != nil || n < 0 {
			problems = append(problems, fmt.Errorf("--turns: %q is not allowed; give SESSION=N, such as run:child=2", arg))
			continue
		}
		turns[arg[:at]] = n
	}
	return turns, errors.Join(problems...)
}

// readTraceCheck reads what check --json printed; nil without a path.
func readTraceCheck(path string) (*workload.TraceCheck, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--like: %w", err)
	}
	var check workload.TraceCheck
	if err := json.Unmarshal(data, &check); err != nil || check.Format == "" {
		return nil, fmt.Errorf("--like: %s does not hold what trace check --json prints", path)
	}
	return &check, nil
}

// traceCheckText is what people see of a check.
func traceCheckText(c *workload.TraceCheck) string {
	var b strings.Builder
	for _, file := range c.Files {
		state := "read to its end"
		if !file.Whole {
			state = "CUT OFF"
		}
		fmt.Fprintf(&b, "%s: %s, %s\n", file.Path, counted(file.Records, "record"), state)
	}
	fmt.Fprintf(&b, "Format %s", c.Format)
	if c.BlockSize > 0 {
		fmt.Fprintf(&b, ", blocks of %s", counted(c.BlockSize, "token"))
	}
	fmt.Fprintf(&b, "\n%s with %s and %s\n%s", counted(c.Requests, "request"), counted(int(c.InputTokens), "input token"), counted(int(c.OutputTokens), "output token"),
		counted(c.Sessions, "session"))
	if c.Subagents > 0 {
		fmt.Fprintf(&b, ", %s of them of subagents", count(c.Subagents))
	}
	if c.ToolCalls > 0 {
		fmt.Fprintf(&b, "; %s", counted(c.ToolCalls, "tool call"))
	}
	b.WriteString("\n")
	if len(c.Turns) > 0 {
		b.WriteString(turnsTable(c.Turns) + "\n")
	}
	for _, note := range c.Notes {
		fmt.Fprintf(&b, "Note: %s\n", note)
	}
	for _, problem := range c.Problems {
		fmt.Fprintf(&b, "PROBLEM: %s\n", problem)
	}
	if c.MoreProblems > 0 {
		fmt.Fprintf(&b, "PROBLEM: and %s more\n", count(c.MoreProblems))
	}
	switch {
	case !c.Sound():
	case c.LeftOut > 0:
		fmt.Fprintf(&b, "Partial: %s left out\n", counted(c.LeftOut, "damaged record"))
	default:
		b.WriteString("Nothing is wrong or missing\n")
	}
	return b.String()
}

// maxShownSessions is how many sessions people see; --json has all.
const maxShownSessions = 20

func turnsTable(turns map[string]int) string {
	out := newTableWriter()
	out.AppendHeader(table.Row{"session", "requests"})
	out.SetColumnConfigs(rightAligned(2, 2))
	names := slices.Sorted(maps.Keys(turns))
	for _, name := range names[:min(len(names), maxShownSessions)] {
		out.AppendRow(table.Row{cellText(name), count(turns[name])})
	}
	if n := len(names) - maxShownSessions; n > 0 {
		out.AppendRow(table.Row{fmt.Sprintf("and %s more", count(n)), ""})
	}
	return out.Render()
}
