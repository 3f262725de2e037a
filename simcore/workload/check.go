package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// TraceCheck says what traces hold and whether they are complete, as far as they can tell (spec/workloads.md §2.5, §4.5).
// The `json` names are those of `servegrid trace check --json`.
type TraceCheck struct {
	// Format is the trace's format.
	Format string `json:"format"`
	// Files are the files in the order in which they are read.
	Files []CheckedFile `json:"files"`
	// Requests and Sessions count what a replay would have; Subagents are sessions that another one spawned.
	Requests  int `json:"requests"`
	Sessions  int `json:"sessions"`
	Subagents int `json:"subagents"`
	// ToolCalls counts the tool calls that ended.
	ToolCalls int `json:"tool_calls"`
	// InputTokens and OutputTokens are totals.
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	// BlockSize is the number of tokens that a hash stands for; 0 when there are none.
	BlockSize int `json:"block_size"`
	// Turns counts the requests of each session, by name. Requests without a session are not in it.
	Turns map[string]int `json:"turns"`
	// Problems are what is wrong or missing; MoreProblems counts those beyond the first 20.
	Problems     []string `json:"problems"`
	MoreProblems int      `json:"more_problems"`
	// LeftOut counts the damaged records and files that were left out, because the check asks for what is whole only.
	LeftOut int `json:"left_out_records,omitempty"`
	// Notes are what is odd but loses nothing.
	Notes []string `json:"notes"`
}

// CheckedFile is one file of a trace.
type CheckedFile struct {
	// Path is its path as given.
	Path string `json:"path"`
	// Records counts its good records: lines, or requests of WEKA traces.
	Records int `json:"records"`
	// Whole reports that it can be read to its end.
	Whole bool `json:"whole"`
}

// Sound reports that nothing is wrong or missing.
func (c *TraceCheck) Sound() bool { return len(c.Problems) == 0 }

// Check reads the trace and says what it holds and what is wrong with it; whatever makes it look incomplete counts as
// wrong. What it holds is what is whole. With Salvage only what is left of it is checked, and what is damaged is a note. Errors: the
// spec is wrong, or a file can't be opened.
func (s TraceSpec) Check(ctx context.Context, src Source) (*TraceCheck, error) {
	onlyWhole := s.Salvage
	s.Strict, s.Salvage = false, false
	if err := s.validate().Err(); err != nil {
		return nil, err
	}
	found := findings{salvage: true, strict: !onlyWhole}
	w, err := s.read(ctx, src, &found)
	var wrong *TraceError
	if err != nil && (!errors.As(err, &wrong) || ctx.Err() != nil) {
		return nil, err
	}
	check := &TraceCheck{Format: found.format, Files: found.files, ToolCalls: found.tools, Turns: map[string]int{}, Problems: []string{}, Notes: []string{}}
	switch {
	case wrong != nil:
		check.Problems, check.MoreProblems = wrong.Problems, wrong.More
	case onlyWhole:
		check.LeftOut = w.LeftOut
	default:
		check.Problems, check.MoreProblems = append(check.Problems, found.problems...), found.more
		w.Warnings = found.warnings
	}
	if w != nil {
		check.count(w)
	}
	return check, nil
}

// count adds what the workload holds.
func (c *TraceCheck) count(w *Workload) {
	c.Notes = append(c.Notes, w.Warnings...)
	c.Requests, c.Sessions, c.BlockSize = w.Requests(), w.Sessions(), w.BlockSize
	for i := range w.Input {
		c.InputTokens += int64(w.Input[i])
		c.OutputTokens += int64(w.Output[i])
	}
	for session := range w.Sessions() {
		if name, given := w.SessionLabel(session); given {
			c.Turns[name] = int(w.SessionStart[session+1] - w.SessionStart[session])
		}
		if w.Graph == nil {
			continue
		}
		if _, orphan := w.Graph.Orphans[int32(session)]; orphan || w.Graph.Parent[session] >= 0 {
			c.Subagents++
		}
	}
}

// Compare adds a problem for each way in which the trace holds other work than another one did: requests, sessions and the
// turns of each session. It is how a capture is checked against what was sent, and a replay against its capture.
func (c *TraceCheck) Compare(other *TraceCheck) {
	c.Expect("requests", c.Requests, other.Requests)
	c.Expect("sessions", c.Sessions, other.Sessions)
	names := map[string]bool{}
	for name := range c.Turns {
		names[name] = true
	}
	for name := range other.Turns {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c.Expect("turns of session "+shortened(name), c.Turns[name], other.Turns[name])
	}
}

// Expect adds a problem unless a count is what it should be.
func (c *TraceCheck) Expect(what string, got, want int) {
	switch {
	case got == want:
	case len(c.Problems) < maxTraceProblems:
		c.Problems = append(c.Problems, fmt.Sprintf("%s: there are %d, expected are %d", what, got, want))
	default:
		c.MoreProblems++
	}
}
