package sweep

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

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
	notify := startNotifier(opt.Observer)
	defer notify.close()
	notify.push(func(o Observer) { o.SweepStarted(len(points)) })

	publish := newPublisher(filepath.Join(opt.Dir, ResultsFile), opt.WriteResults)
	ledger := newLedger(points, f.journal.results, opt, notify, publish.changed)
	if len(f.journal.results) == 0 {
		publish.resolved()
	}
	publish.start(ledger.snapshot)

	runCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var journalErr error
	commit := startCommitter(f.file, f.journal.size, ledger.durable, func(err error) {
		journalErr = err
		stop(err)
	})
	d := &dispatcher{opt: opt, points: points, ledger: ledger, commit: commit, notify: notify, resolved: publish.resolved, abort: stop}
	loadErr := d.run(runCtx)
	commit.close() // orders journalErr before its use
	publish.finish()
	stopped := new(EnvironmentError)
	if journalErr == nil && errors.As(context.Cause(runCtx), &stopped) {
		journalErr = stopped
	}
	if loadErr != nil {
		return Outcome{Journal: f.state(opt.semanticVersion)}, loadErr
	}

	rows := ledger.snapshot()
	out := Outcome{
		Rows: rows, Counts: ledger.counts(rows), Journal: f.state(opt.semanticVersion),
		Interrupted: ctx.Err() != nil && ledger.unsettled() > 0,
	}
	if !out.Interrupted {
		out.Journal.Unused = f.journal.unused(rows, opt.semanticVersion)
	}
	switch {
	case errors.Is(journalErr, stopped):
		journalErr = fmt.Errorf("the sweep stopped: %w; %d finished points are kept: run it again for the others once that is mended", journalErr, len(rows))
	case journalErr != nil:
		journalErr = fmt.Errorf("%s cannot be written: %w; %d finished points are kept: make room and run the same sweep again for the others",
			out.Journal.Path, results.FileCause(journalErr), len(rows))
	default:
		journalErr = f.checkJournal(commit.size)
	}
	var resultsErr error
	if publish.ready.Load() {
		if resultsErr = publish.write(rows); resultsErr != nil {
			resultsErr = fmt.Errorf("%s cannot be written: %w; its points are safe in %s: run the same sweep again to write it",
				publish.path, results.FileCause(resultsErr), JournalFile)
		}
		out.ResultsWritten = resultsErr == nil && opt.WriteResults != nil
	}
	return out, errors.Join(journalErr, resultsErr)
}
