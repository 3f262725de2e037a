package tracetools

import (
	"encoding/json"
	"io"
	"math"

	"github.com/servegrid/servegrid/simcore/workload"
)

// mooncakeRow is a line of a Mooncake trace (spec/workloads.md §1.1).
type mooncakeRow struct {
	Timestamp      *float64 `json:"timestamp,omitempty"`
	SessionID      string   `json:"session_id,omitempty"`
	Delay          *float64 `json:"delay,omitempty"`
	RequestID      string   `json:"request_id,omitempty"`
	InputLength    int32    `json:"input_length"`
	OutputLength   int32    `json:"output_length"`
	HashIDs        []uint64 `json:"hash_ids"`
	OutputTokenIDs []uint32 `json:"output_token_ids,omitempty"`
	rowHints
}

// rowHints are what a request tells the router.
type rowHints struct {
	Priority       int32  `json:"priority,omitempty"`
	StrictPriority uint32 `json:"strict_priority,omitempty"`
	PolicyClass    string `json:"policy_class,omitempty"`
}

func hintsOf(h workload.Hints) rowHints {
	return rowHints{h.Priority, h.StrictPriority, h.PolicyClass}
}

// writeMooncake writes the turns of each session next to each other. What sessions of a graph wait for becomes the time
// at which they started.
func writeMooncake(out io.Writer, w *workload.Workload, blockSize int) (notes, error) {
	p, err := newPrompts(w, blockSize)
	if err != nil {
		return nil, err
	}
	var said notes
	times := newSchedule(w)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	var row mooncakeRow
	for s := range w.Sessions() {
		first, end := w.SessionStart[s], w.SessionStart[s+1]
		name, named := w.SessionLabel(s)
		for i := first; i < end; i++ {
			row = mooncakeRow{
				RequestID: w.ID(int(i)), InputLength: w.Input[i], OutputLength: w.Output[i], HashIDs: p.append(row.HashIDs[:0], int(i)),
				OutputTokenIDs: p.planned(int(i)), rowHints: hintsOf(w.Hints(int(i))),
			}
			if named || end-first > 1 {
				row.SessionID = name
			}
			row.setTime(w, times, i, i == first)
			if err := encoder.Encode(&row); err != nil {
				return nil, err
			}
		}
	}
	said.prompts(p)
	if g := w.Graph; g != nil {
		said.graph(w)
	}
	return said, nil
}

// setTime gives a first turn its start, a later one its wait after the turn before.
func (row *mooncakeRow) setTime(w *workload.Workload, times schedule, request int32, first bool) {
	at, wait := w.ArrivalMs[request], w.DelayMs[request]
	if w.Graph != nil {
		if at = rounded(times.start[request]); !first {
			wait = max(0, rounded(times.start[request]-times.end[request-1]))
		}
	}
	switch {
	case !first:
		row.Delay = &wait
	case !math.IsNaN(at):
		row.Timestamp = &at
	}
}

// prompts says what became of hash ids.
func (n *notes) prompts(p *prompts) {
	if p.renamed != nil {
		n.add("hash ids above 2^53 exist, so all are numbered anew")
	}
	if p.invented > 0 {
		n.add("%d blocks without a hash id, among them unhashed ends of prompts, get ids of their own of %d tokens", p.invented, p.blockSize)
	}
}

// graph says which edges a format without a graph leaves out.
func (n *notes) graph(w *workload.Workload) {
	session := make([]int32, w.Requests())
	for s := range w.Sessions() {
		for i := w.SessionStart[s]; i < w.SessionStart[s+1]; i++ {
			session[i] = int32(s)
		}
	}
	lost := 0
	for i := range int32(w.Requests()) {
		for _, e := range w.Graph.Edges(i) {
			if session[e.From] != session[i] {
				lost++
			}
		}
	}
	if lost > 0 {
		n.add("%d dependencies between sessions are left out; those sessions start at the time that the trace implies", lost)
	}
}
