package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// TraceCheck says what traces hold and whether they are complete, as far as they can tell (spec/workloads.md §2.5, §4.5).
// The `json` names are those of `servegrid trace check --json`.
type TraceCheck struct {
	// Format is the trace's format.
	Format string `json:"format"`
	// Files are the files in the order given; their records are known for Dynamo captures alone.
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
	// Notes are what is odd but loses nothing.
	Notes []string `json:"notes"`
}

// CheckedFile is one file of a trace.
type CheckedFile struct {
	// Path is its path as given.
	Path string `json:"path"`
	// Records counts its good records; 0 for other formats than dynamo.
	Records int `json:"records,omitempty"`
	// Whole reports that it can be read to its end.
	Whole bool `json:"whole"`
}

// Sound reports that nothing is wrong or missing.
func (c *TraceCheck) Sound() bool { return len(c.Problems) == 0 }

// Check reads the trace and says what it holds and what is wrong with it; whatever makes it look incomplete counts as
// wrong. Errors: the spec is wrong, or a file can't be opened.
func (s TraceSpec) Check(ctx context.Context, src Source) (*TraceCheck, error) {
	s.Strict, s.Salvage = false, false
	if err := s.validate().Err(); err != nil {
		return nil, err
	}
	if s.Format == FormatAuto {
		var err error
		if s.Format, _, err = src.detect(ctx, s.files()); err != nil {
			return nil, err
		}
	}
	defer src.closePeeked()
	check := &TraceCheck{Format: s.Format, Turns: map[string]int{}, Problems: []string{}, Notes: []string{}}
	read := check.any
	if s.Format == FormatDynamo {
		read = check.dynamo
	}
	if err := read(ctx, s, src); err != nil {
		return nil, err
	}
	return check, nil
}

// dynamo checks a Dynamo capture.
func (c *TraceCheck) dynamo(ctx context.Context, s TraceSpec, src Source) error {
	s.Strict = true
	capture, err := scanDynamo(ctx, s, src)
	if err != nil {
		return err
	}
	var cycle error
	if len(capture.requests) > 0 && len(capture.rows.problems) == 0 {
		_, cycle = capture.workload() // what is wrong with what requests wait for shows here
	}
	c.Problems, c.MoreProblems = append(c.Problems, capture.rows.problems...), capture.rows.more
	if cycle != nil && len(c.Problems) == 0 {
		c.Problems = append(c.Problems, cycle.Error())
	}
	if len(capture.requests) == 0 {
		c.Problems = append(c.Problems, capture.nothing())
	}
	c.Notes = append(c.Notes, capture.warnings...)
	for i, path := range s.files() {
		c.Files = append(c.Files, CheckedFile{path, capture.files[i].records, !capture.files[i].cut})
	}
	c.Requests, c.ToolCalls, c.BlockSize = len(capture.requests), len(capture.tools), int(capture.blockSize)
	for i := range capture.requests {
		r := &capture.requests[i]
		c.InputTokens += int64(r.input)
		c.OutputTokens += int64(r.output)
		if r.session == noSession {
			c.Sessions++
		}
	}
	for _, session := range capture.sessions {
		if len(session.requests) == 0 {
			continue
		}
		c.Sessions++
		c.Turns[session.name] = len(session.requests)
		if session.parent != noSession {
			c.Subagents++
		}
	}
	return nil
}

// any checks a trace of a format that knows of no damage beyond bad records.
func (c *TraceCheck) any(ctx context.Context, s TraceSpec, src Source) error {
	for _, path := range s.files() {
		c.Files = append(c.Files, CheckedFile{Path: path, Whole: true})
	}
	w, err := s.load(ctx, src)
	var bad *TraceError
	var cut *readError
	switch {
	case errors.As(err, &bad):
		c.Problems, c.MoreProblems = bad.Problems, bad.More
		return nil
	case errors.As(err, &cut) && ctx.Err() == nil:
		c.Problems = append(c.Problems, err.Error())
		for i := range c.Files {
			c.Files[i].Whole = !strings.Contains(err.Error(), c.Files[i].Path+": ")
		}
		return nil
	case err != nil:
		return err
	}
	c.Notes = append(c.Notes, w.Warnings...)
	c.Requests, c.Sessions, c.BlockSize = w.Requests(), w.Sessions(), w.BlockSize
	for i := range w.Input {
		c.InputTokens += int64(w.Input[i])
		c.OutputTokens += int64(w.Output[i])
	}
	for session := range w.Sessions() {
		if session < len(w.sessionNames) && w.sessionNames[session] != "" {
			c.Turns[w.sessionNames[session]] = int(w.SessionStart[session+1] - w.SessionStart[session])
		}
		if w.Graph != nil && w.Graph.Parent[session] >= 0 {
			c.Subagents++
		}
	}
	return nil
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
