package sweep

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/servegrid/servegrid/gridspec"

	"github.com/servegrid/servegrid/results"
)

// Run simulates the points that the output folder has no result for, and returns the rows of all. Rows and results
// file are the same whatever Jobs is and however often the sweep was interrupted, wall times aside.
//
// A point that fails is a row with its reason. Run returns an error when the folder cannot be used, when no
// workload at all can be loaded, or when the journal or the results file can no longer be written; the outcome
// then holds what is safe in the journal. A cancelled context is no error: Outcome.Interrupted is set.
func Run(ctx context.Context, points []gridspec.Point, opt Options) (Outcome, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return Outcome{}, err
	}
	f, err := openFolder(&opt)
	if err != nil {
		return Outcome{}, err
	}
	out, err := run(ctx, points, f, &opt)
	return out, errors.Join(err, f.close())
}

func run(ctx context.Context, points []gridspec.Point, f *folder, opt *Options) (Outcome, error) {
	s := startSession(ctx, f, opt, len(points))
	defer s.notify.close()
	s.ledger.extend(points, true)
	d := s.dispatcher()
	d.resolved = s.publish.resolved
	return s.conclude(d.run(s.ctx, 0))
}

// session is a folder in use: the journal and the results file are being written.
type session struct {
	opt     *Options
	folder  *folder
	notify  *notifier
	publish *publisher
	ledger  *ledger
	commit  *committer
	// caller is the context that was given. ctx ends with it, and when the journal cannot be written or the
	// environment does not allow to go on.
	caller, ctx context.Context
	stop        context.CancelCauseFunc
	journalErr  error
	// received is closed when nothing is received from the executor any more; stopReceiving makes it so.
	received      chan struct{}
	stopReceiving context.CancelFunc
}

// startSession begins a sweep of about so many points. The caller closes the notifier when all is done.
func startSession(ctx context.Context, f *folder, opt *Options, total int) *session {
	s := &session{opt: opt, folder: f, caller: ctx, notify: startNotifier(opt.Observer)}
	s.notify.push(func(o Observer) { o.SweepStarted(total) })
	s.publish = newPublisher(filepath.Join(opt.Dir, ResultsFile), opt.WriteResults)
	s.ledger = newLedger(f.journal.results, opt, s.notify, s.publish.changed)
	if len(f.journal.results) == 0 {
		s.publish.resolved()
	}
	s.publish.start(s.ledger.snapshot)
	s.ctx, s.stop = context.WithCancelCause(ctx)
	s.commit = startCommitter(f.file, f.journal.size, s.ledger.durable, func(err error) {
		if stopped := new(EnvironmentError); !errors.As(err, &stopped) {
			s.journalErr = err
		}
		s.stop(err)
	}, replica{opt.Replicate, f.head}, s.timed())
	if opt.Executor != nil {
		s.startReceiving()
	}
	return s
}

// timed tells an observer that wants to know what the journal costs; it is nil for others.
func (s *session) timed() func(rows int, bytes int64, took time.Duration) {
	if _, ok := s.opt.Observer.(JournalObserver); !ok {
		return nil
	}
	return func(rows int, bytes int64, took time.Duration) {
		s.notify.push(func(o Observer) { o.(JournalObserver).JournalCommitted(rows, bytes, took) })
	}
}

// dispatcher returns one for the points of the ledger.
func (s *session) dispatcher() *dispatcher {
	return &dispatcher{
		opt: s.opt, points: s.ledger.points, ledger: s.ledger, commit: s.commit, notify: s.notify,
		resolved: func() {}, abort: s.stop,
	}
}

// conclude ends the session: what is finished is on the disk, and the results file holds it. LoadErr says that no
// workload could be loaded.
func (s *session) conclude(loadErr error) (Outcome, error) {
	f, opt := s.folder, s.opt
	if opt.Executor != nil {
		s.stopReceiving()
		<-s.received
	}
	s.commit.close() // orders journalErr before its use
	s.publish.finish()
	defer s.stop(nil)
	stopped := new(EnvironmentError)
	journalErr := s.journalErr
	if journalErr == nil && errors.As(context.Cause(s.ctx), &stopped) {
		journalErr = stopped
	}
	if loadErr != nil {
		return Outcome{Journal: f.state(opt.semanticVersion)}, loadErr
	}

	rows := s.ledger.snapshot()
	out := Outcome{
		Rows: rows, Counts: s.ledger.counts(rows), Journal: f.state(opt.semanticVersion),
		Interrupted: s.caller.Err() != nil && s.ledger.unsettled() > 0,
		Conflicts:   s.ledger.contradictions(),
	}
	if !out.Interrupted {
		out.Journal.Unused = f.journal.unused(opt.semanticVersion, rows, s.ledger.shortened())
	}
	f.journal.results = nil
	s.ledger.forget()
	switch {
	case errors.Is(journalErr, stopped):
		journalErr = fmt.Errorf("the sweep stopped: %w; %d finished points are kept: run it again for the others once that is mended", journalErr, len(rows))
	case journalErr != nil:
		journalErr = &EnvironmentError{fmt.Errorf("%s cannot be written: %w; %d finished points are kept: make room and run the same sweep again for the others",
			out.Journal.Path, results.FileCause(journalErr), len(rows))}
	default:
		journalErr = f.checkJournal(s.commit.size)
	}
	return out, errors.Join(journalErr, s.writeResults(&out))
}

// writeResults writes the results file for the last time, unless the older one is the better one.
func (s *session) writeResults(out *Outcome) error {
	if !s.publish.ready.Load() {
		return nil
	}
	if err := s.publish.write(out.Rows); err != nil {
		return &EnvironmentError{fmt.Errorf("%s cannot be written: %w; its points are safe in %s: run the same sweep again to write it",
			s.publish.path, results.FileCause(err), JournalFile)}
	}
	out.ResultsWritten = s.opt.WriteResults != nil
	return nil
}
