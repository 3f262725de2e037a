package fidelity

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/workload"
)

// readCapture reads what a capture says of how requests were served: a file, or a folder with all files of it.
func readCapture(ctx context.Context, source workload.Source, path string) (*Run, error) {
	trace := workload.DefaultTraceSpec()
	trace.Path = path
	w, err := workload.Spec{Trace: &trace}.Load(ctx, source)
	if err != nil {
		return nil, err
	}
	run := &Run{Kind: KindCapture, Notes: w.Warnings}
	if err := run.addCapture(w); err != nil {
		return nil, err
	}
	return run, nil
}

func (r *Run) addCapture(w *workload.Workload) error {
	if w.Format != workload.FormatDynamo {
		return fmt.Errorf("%s is a trace in the format %s, which says what to ask for and not how it went; %s", w.Name, w.Format, whatToGive)
	}
	alone := w.Graph == nil
	for session := range w.Sessions() {
		first := int(w.SessionStart[session])
		for i := first; i < int(w.SessionStart[session+1]); i++ {
			m, _ := w.Measured(i)
			q := unknownRequest()
			q.ID, q.ClientID = w.ID(i), m.ClientID
			if !alone { // beside sessions, a request without one is a session of its own, as in a replay
				q.Session, q.Turn = w.SessionName(session), i-first
			}
			q.StartMs, q.E2EMs, q.TTFTMs, q.ITLMs = m.StartMs, m.DurationMs, m.TTFTMs, m.ITLMs
			q.Input, q.Output, q.Tokens, q.Cached = int(w.Input[i]), int(w.Output[i]), int(w.Output[i]), m.CachedTokens
			q.Completed = true
			q.deriveITL()
			r.Requests = append(r.Requests, q)
			r.Facts.Model = common(r.Facts.Model, m.Model)
		}
	}
	r.Facts.BlockSize = fmt.Sprint(w.BlockSize)
	r.Facts.Workload = w.Digest()
	return nil
}

// common is what two parts of a run say alike, or both of it.
func common(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "" || slices.Contains(strings.Split(a, ", "), b):
		return a
	}
	return a + ", " + b
}
