package fidelity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/workload"
)

// captureName parts the name of a file of a capture: the capture's own, and the number of the file.
var captureName = regexp.MustCompile(`^(.*?)(\.\d+)?\.jsonl(\.gz|\.zst)?$`)

// captureFiles are the files of the captures in a folder, capture by capture: requests with and without sessions are apart.
func captureFiles(folder string) ([][]string, error) {
	entries, err := os.ReadDir(folder) // sorted by name
	if err != nil {
		return nil, err
	}
	number := map[string]int{}
	var captures [][]string
	for _, e := range entries {
		parts := captureName.FindStringSubmatch(e.Name())
		if parts == nil || e.IsDir() {
			continue
		}
		at, known := number[parts[1]]
		if !known {
			at = len(captures)
			number[parts[1]] = at
			captures = append(captures, nil)
		}
		captures[at] = append(captures[at], filepath.Join(folder, e.Name()))
	}
	return captures, nil
}

// readCapture reads what captures say of how requests were served. All of them are parts of one run.
func readCapture(ctx context.Context, source workload.Source, captures [][]string) (*Run, error) {
	run := &Run{Kind: KindCapture}
	var problems []error
	for _, paths := range captures {
		trace := workload.DefaultTraceSpec()
		trace.Paths = paths
		w, err := workload.Spec{Trace: &trace}.Load(ctx, source)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		run.Notes = append(run.Notes, w.Warnings...)
		if err := run.addCapture(w); err != nil {
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
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
			if !alone {
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
	r.Facts.BlockSize = common(r.Facts.BlockSize, fmt.Sprint(w.BlockSize))
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
