package report

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/sweep/filelock"
)

// JournalFile is the journal of a run in its folder. It is there while the run goes on, and after it was killed.
const JournalFile = "requests.journal.jsonl"

// ErrUnfinished is the error of a folder with the journal of a run that was killed.
var ErrUnfinished = errors.New("holds what a run measured that was killed")

// ErrInUse is the error of a folder with the journal of a run that goes on.
var ErrInUse = errors.New("is in use by another run; wait until it ends, or name another folder")

// Journal keeps each request of a run as it ends, a line each, so that memory does not grow with the requests, and little is lost when
// the process is killed. What could not be written, as the disk is full, is written when there is room again. It is safe for
// concurrent use.
type Journal struct {
	warn func(error) // hears of the first line that could not be written

	mu      sync.Mutex
	file    *os.File
	pending []byte // was not written yet
	warned  bool
	err     error // of a line that is none
	failed  error // why pending is not written
}

// journalHead is the first line of a journal.
type journalHead struct {
	Journal  string    `json:"journal"`
	Workload string    `json:"workload_digest"`
	Started  time.Time `json:"started"`
	Planned  int       `json:"planned_requests"`
}

const journalName = "servegrid live"

// NewJournal starts the journal of a run in a folder, which it makes. warn hears at once when requests cannot be written for the first
// time. The error is [ErrUnfinished] when there is a journal already, or [ErrInUse] when its run goes on.
func NewJournal(dir string, warn func(error)) (*Journal, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, JournalFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	switch {
	case errors.Is(err, fs.ErrExist) && inUse(filepath.Join(dir, JournalFile)):
		return nil, fmt.Errorf("%s %w", dir, ErrInUse)
	case errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("%s %w", dir, ErrUnfinished)
	case err != nil:
		return nil, err
	}
	_, _ = filelock.Try(file) // where there are no locks, others are not kept out, but the run can be measured
	return &Journal{warn: warn, file: file}, nil
}

// inUse reports whether a run goes on that writes a journal.
func inUse(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	held, err := filelock.Held(f)
	return held && err == nil
}

// Begin notes when the run began, what is sent, and how many requests are planned, -1 for no end.
func (j *Journal) Begin(started time.Time, w *workload.Workload, planned int) {
	j.write(journalHead{Journal: journalName, Workload: w.Digest(), Started: started, Planned: planned})
}

// Add notes a request that has ended.
func (j *Journal) Add(r *live.Record) { j.write(entryOf(r)) }

// write writes a line at once: what the system has got outlives the process.
func (j *Journal) write(v any) {
	line, err := json.Marshal(v)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.err = errors.Join(j.err, err)
		return
	}
	j.pending = append(append(j.pending, line...), '\n')
	j.flush()
}

// flush writes what was not written yet, as much as there is room for.
func (j *Journal) flush() {
	if len(j.pending) == 0 {
		return
	}
	n, err := j.file.Write(j.pending)
	j.pending = append(j.pending[:0], j.pending[n:]...)
	j.failed = err
	if err != nil && !j.warned {
		j.warned = true
		j.warn(fmt.Errorf("the journal cannot be written, and keeps requests in memory until it can: %w", err))
	}
}

// Records reads the requests that it got, in the order in which they were to be sent, those included that could not be written.
// The error is that of the file, or that it is damaged.
func (j *Journal) Records(w *workload.Workload) ([]live.Record, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.flush()
	run, err := parseJournal(io.MultiReader(io.NewSectionReader(j.file, 0, math.MaxInt64), bytes.NewReader(j.pending)), w)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", j.file.Name(), err)
	}
	return run.Records, nil
}

// Close ends the journal. The error is that of what could not be written, and says how many requests it is.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.flush()
	err := errors.Join(j.err, j.file.Close())
	if j.failed != nil {
		err = errors.Join(fmt.Errorf("%d requests are not in the journal: %w", bytes.Count(j.pending, []byte{'\n'}), j.failed), err)
	}
	return err
}

// entry is a request in the journal. It refers to the workload for all that this says.
type entry struct {
	Number    int32   `json:"number"`
	Request   int     `json:"request"`
	ID        string  `json:"id"`
	Session   string  `json:"session,omitempty"`
	Parent    string  `json:"parent_session,omitempty"`
	Turn      int     `json:"turn"`
	Input     int     `json:"input"`
	Output    int     `json:"output"`
	Phase     string  `json:"phase,omitempty"`
	Scheduled float64 `json:"scheduled_ms"`
	Sent      float64 `json:"sent_ms"`
	First     float64 `json:"first_token_ms"`
	Second    float64 `json:"second_token_ms"`
	Last      float64 `json:"last_token_ms"`
	End       float64 `json:"end_ms"`
	Chunks    int     `json:"chunks"`
	Tokens    int     `json:"output_tokens"`
	Prompt    int     `json:"prompt_tokens"`
	Cached    int     `json:"cached_tokens"`
	Cancelled bool    `json:"cancelled,omitempty"`
	Kind      string  `json:"error_kind,omitempty"`
	Status    int     `json:"error_status,omitempty"`
	Message   string  `json:"error,omitempty"`
}

func entryOf(r *live.Record) entry {
	c := r.Call
	e := entry{
		Number: c.Number, Request: c.Request, ID: c.ID, Session: c.Session, Parent: c.ParentSession, Turn: c.Turn, Input: c.Input, Output: c.Output,
		Phase: r.Phase, Scheduled: r.ScheduledMs, Sent: r.SentMs, First: r.FirstTokenMs, Second: r.SecondTokenMs, Last: r.LastTokenMs, End: r.EndMs,
		Chunks: r.Chunks, Tokens: r.OutputTokens, Prompt: r.InputTokens, Cached: r.CachedTokens, Cancelled: r.Cancelled,
	}
	if r.Err != nil {
		e.Kind, e.Status, e.Message = string(r.Err.Kind), r.Err.Status, r.Err.Message
	}
	return e
}

func (e *entry) record() live.Record {
	r := live.Record{
		Call: &live.Call{
			Number: e.Number, Request: e.Request, ID: e.ID, Session: e.Session, ParentSession: e.Parent, Turn: e.Turn, Input: e.Input, Output: e.Output,
		},
		Phase: e.Phase, ScheduledMs: e.Scheduled, SentMs: e.Sent, FirstTokenMs: e.First, SecondTokenMs: e.Second, LastTokenMs: e.Last, EndMs: e.End,
		Chunks: e.Chunks, OutputTokens: e.Tokens, InputTokens: e.Prompt, CachedTokens: e.Cached, Cancelled: e.Cancelled,
	}
	if e.Kind != "" {
		r.Err = &live.Error{Kind: live.ErrorKind(e.Kind), Status: e.Status, Message: e.Message}
	}
	return r
}

// ReadJournal reads what a run measured that was killed: the requests that had ended, as an interrupted run. A last line that
// is not whole is left out. The gaps between tokens, the servers' metrics and the measured window are lost. Errors: there is no journal, its run goes
// on ([ErrInUse]), or it is of another workload, or damaged.
func ReadJournal(dir string, w *workload.Workload) (*live.Run, error) {
	path := filepath.Join(dir, JournalFile)
	if inUse(path) {
		return nil, fmt.Errorf("%s %w", dir, ErrInUse)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	run, err := parseJournal(file, w)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return run, nil
}

// parseJournal reads a journal whose run was killed. A last line that is not whole is left out.
func parseJournal(r io.Reader, w *workload.Workload) (*live.Run, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	first, err := in.ReadBytes('\n')
	switch {
	case err == io.EOF:
		return nil, errors.New("is empty: the run was killed before it began")
	case err != nil:
		return nil, err
	}
	var head journalHead
	if err := json.Unmarshal(first, &head); err != nil || head.Journal != journalName {
		return nil, errors.New("line 1: is not the beginning of a journal of servegrid live")
	}
	if head.Workload != w.Digest() {
		return nil, errors.New("is of another workload; give the command line of the run that was killed")
	}
	run := &live.Run{Started: head.Started, Planned: head.Planned, Interrupted: true}
	for n := 2; ; n++ {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if e.Request < 0 || e.Request >= w.Requests() {
			return nil, fmt.Errorf("line %d: the workload has no request %d", n, e.Request)
		}
		r := e.record()
		run.EndMs = max(run.EndMs, r.EndMs)
		run.Records = append(run.Records, r)
	}
	slices.SortStableFunc(run.Records, func(a, b live.Record) int {
		return cmp.Or(cmp.Compare(a.ScheduledMs, b.ScheduledMs), cmp.Compare(a.Call.Number, b.Call.Number))
	})
	return run, nil
}
