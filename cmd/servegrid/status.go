package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/sweep"
	"github.com/servegrid/servegrid/sweep/queue"
	"github.com/servegrid/servegrid/sweep/storage"
	"github.com/servegrid/servegrid/sweep/telemetry"
)

// maxInspected bounds the journals that status reads in full, in bytes: a quarter of a million points.
const maxInspected = 256 << 20

// statusFlags are the flags of the status command.
type statusFlags struct {
	asJSON, watch bool
	interval      time.Duration
	queue         string
}

func newStatus(st *state) *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status [DIR-OR-URL...]",
		Short: "Say how sweeps and queues get on: points finished, failed and left, rate, best so far",
		Long: `status looks at the output folders of sweeps, and at the shards in them, and says which of them run, how many points are
finished, failed and left, how fast they go, which point is the best so far and whether the journal is in order. Of a folder at
a URL it knows how the last sweep ended there: who runs one looks at the folder that it works in, see --scratch. With --queue
it says which points wait in a queue, for which simulator version, who works on them, and what is wrong. It only reads, and
works while a sweep runs.

Exit codes: 0 every sweep is complete or runs, 1 points failed, shards or points are missing, shards are of different specs, a
sweep ended early or its state is unknown, 2 the input was refused, 75 the queue's server or the bucket was not there.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return runStatus(cmd.Context(), st, &f, args) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.asJSON, "json", false, "print JSON; with --watch one object a line each time")
	fs.BoolVarP(&f.watch, "watch", "w", false, "look again and again until no sweep runs any more; at a queue, until Ctrl-C")
	fs.StringVar(&f.queue, "queue", "", "look at a queue too: nats://HOST:4222/NAMESPACE, or tls://… for TLS")
	fs.DurationVar(&f.interval, "interval", 2*time.Second, "time between two looks of --watch")
	return cmd
}

// statusView is what one look saw.
type statusView struct {
	Folders []folderView `json:"folders,omitempty"`
	Queue   *queueView   `json:"queue,omitempty"`
	// Warnings are sentences about shards that do not fit together.
	Warnings []string `json:"warnings,omitempty"`
	// mixed and overlap say that there are shards of different specs, or with points in common, so that nothing adds up.
	mixed, overlap bool
}

// folderView is an output folder as status shows it.
type folderView struct {
	Dir string `json:"dir"`
	// State is running, complete, interrupted or stopped as the sweep said it, killed when it could not say so any more, or
	// unknown when the folder has no status file, and missing for a shard without a folder. It is incomplete when merge left it so.
	State string `json:"state"`
	PID   int    `json:"pid,omitempty"`
	// Status is what the sweep says; it is nil when the folder has no status file.
	Status  *telemetry.Status `json:"status,omitempty"`
	Journal journalView       `json:"journal"`
}

// journalView is a journal as status shows it. Results and what follows are missing when it is too long to be read.
type journalView struct {
	Bytes         int64     `json:"bytes"`
	Written       time.Time `json:"written"`
	Results       *int      `json:"results,omitempty"`
	Failed        *int      `json:"failed,omitempty"`
	OtherVersions int       `json:"other_versions,omitempty"`
	Damaged       int       `json:"damaged_lines,omitempty"`
	TornBytes     int64     `json:"torn_bytes,omitempty"`
}

// The states that no sweep writes.
const (
	stateKilled  = "killed"
	stateUnknown = "unknown"
	// stateMissing is that of a shard that is not there, while others of its cut are.
	stateMissing = "missing"
)

func runStatus(ctx context.Context, st *state, f *statusFlags, args []string) error {
	if len(args) == 0 && f.queue == "" {
		return errors.New("status: nothing to look at; name the output folders of sweeps, or a queue with --queue")
	}
	if f.interval < 100*time.Millisecond {
		return fmt.Errorf("--interval: %s is not allowed; give 100ms or more", f.interval)
	}
	var connection *queue.Connection
	if f.queue != "" {
		var err error
		if connection, err = queue.Connect(ctx, queue.ConnectOptions{URL: f.queue, Getenv: st.getenv, Name: "servegrid status"}); err != nil {
			return err
		}
		defer connection.Close()
	}
	screen := &redrawer{out: st.stdout, redraw: isTerminal(st.stdout)}
	for {
		view, err := st.lookAt(ctx, args)
		if connection != nil && err == nil {
			view.Queue, err = lookAtQueue(ctx, connection)
		}
		if f.watch && ctx.Err() != nil {
			return nil // who has seen enough is not interrupted in anything
		}
		if err != nil {
			return err
		}
		if err := f.print(st, screen, view); err != nil {
			return err
		}
		if f.watch && view.running() {
			select {
			case <-time.After(f.interval):
				continue
			case <-ctx.Done():
			}
		}
		if view.wrong() {
			return &exitError{exitSomeFailed, nil}
		}
		return nil
	}
}

// lookAt looks at all folders, and returns all that is wrong with them.
func (st *state) lookAt(ctx context.Context, dirs []string) (statusView, error) {
	var view statusView
	var errs []error
	for _, dir := range dirs {
		look := lookInto
		if files.IsURL(dir) {
			look = func(url string) ([]folderView, error) { return st.lookAtURL(ctx, url) }
		}
		folders, err := look(dir)
		if err == nil {
			folders = append(folders, missingShards(dir, folders)...)
		}
		view.Folders = append(view.Folders, folders...)
		errs = append(errs, err)
	}
	view.warn()
	return view, errors.Join(errs...)
}

// lookAtURL looks at the copy of a folder at a URL and of those below it that are of sweeps. A copy says what is finished, and
// not what runs.
func (st *state) lookAtURL(ctx context.Context, url string) ([]folderView, error) {
	urls, err := st.sweepsAt(ctx, url)
	if err != nil {
		return nil, err
	}
	var out []folderView
	for _, url := range urls {
		local, err := st.localResults(ctx, url, storage.PullOptions{Journal: true})
		if err != nil {
			return out, err
		}
		view, err := lookAtFolder(local)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return out, fmt.Errorf("%s: %w", files.Shown(url), err)
		default:
			view.Dir = files.Shown(url)
			out = append(out, view)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("status: %s is not the output folder of a sweep: it has no journal, and no folder in it has one", files.Shown(url))
	}
	return out, nil
}

// sweepsAt lists the URLs that may be of sweeps: one itself when it has a journal, with the shards in it, else all folders in it.
func (st *state) sweepsAt(ctx context.Context, url string) ([]string, error) {
	entries, err := st.fileSystem().List(ctx, url)
	if err != nil {
		return nil, err
	}
	var urls []string
	own := slices.ContainsFunc(entries, func(e files.Entry) bool { return e.Name == "journal" || e.Name == sweep.JournalFile })
	if own {
		urls = append(urls, url)
	}
	for _, e := range entries {
		if _, shard := sweep.ShardOfFolder(e.Name); e.Folder && (shard || !own && !strings.HasPrefix(e.Name, ".")) {
			urls = append(urls, files.Join(url, e.Name))
		}
	}
	return urls, nil
}

// missingShards has a view of each shard that is not in a folder of shards, unless all was put together there.
func missingShards(dir string, folders []folderView) []folderView {
	own, join := filepath.Clean(dir), func(name string) string { return filepath.Join(dir, name) }
	if files.IsURL(dir) {
		own, join = files.Shown(dir), func(name string) string { return files.Join(files.Shown(dir), name) }
	}
	var names []string
	for _, f := range folders {
		switch {
		case f.Dir != own:
			names = append(names, f.Dir)
		case f.State == string(telemetry.StateComplete):
			return nil
		}
	}
	var out []folderView
	for _, s := range sweep.MissingShards(names) {
		out = append(out, folderView{Dir: join(sweep.ShardFolder(s)), State: stateMissing})
	}
	return out
}

// lookInto looks at a folder and at those below it that are of sweeps, such as shards.
func lookInto(dir string) ([]folderView, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("status: %s: %w; name output folders of sweeps", dir, results.FileCause(err))
	}
	var out []folderView
	for _, d := range append([]string{"."}, folderNames(entries)...) {
		view, err := lookAtFolder(filepath.Join(dir, d))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return out, err
		default:
			out = append(out, view)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("status: %s is not the output folder of a sweep: it has no %s, and no folder in it has one", dir, sweep.JournalFile)
	}
	return out, nil
}

func folderNames(entries []os.DirEntry) []string {
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

// lookAtFolder looks at one folder. The error is [fs.ErrNotExist] when it is not of a sweep.
func lookAtFolder(dir string) (folderView, error) {
	// The status first: a sweep that ends between the two is then taken for one that runs, and not for one that was killed.
	status, statusErr := telemetry.ReadStatus(dir)
	if statusErr != nil && !errors.Is(statusErr, fs.ErrNotExist) {
		return folderView{}, statusErr
	}
	found, err := sweep.Inspect(dir, maxInspected)
	if err != nil {
		return folderView{}, err
	}
	view := folderView{Dir: dir, State: stateUnknown, Journal: newJournalView(found)}
	if statusErr == nil {
		view.Status, view.State = &status, string(status.State)
	}
	switch {
	case found.Running:
		view.State, view.PID = string(telemetry.StateRunning), found.PID
	case view.State == string(telemetry.StateRunning):
		// It ended without a word, unless it did so since the status was read.
		if again, err := telemetry.ReadStatus(dir); err == nil && again.State != telemetry.StateRunning {
			view.Status, view.State = &again, string(again.State)
		} else {
			view.State = stateKilled
		}
	}
	return view, nil
}

func newJournalView(s sweep.FolderState) journalView {
	v := journalView{Bytes: s.Size, Written: s.Written.UTC(), OtherVersions: s.OtherVersions, Damaged: s.Damaged, TornBytes: s.Torn}
	if s.Read {
		failed := 0
		for _, n := range s.Failures {
			failed += n
		}
		v.Results, v.Failed = &s.Results, &failed
	}
	return v
}

// running reports whether something runs. A queue is there for what comes.
func (v statusView) running() bool {
	return v.Queue != nil || slices.ContainsFunc(v.Folders, func(f folderView) bool { return f.State == string(telemetry.StateRunning) })
}

// wrong reports whether somebody should look: points failed, a sweep ended before all points had their row, or shards are of
// different specs.
func (v statusView) wrong() bool { return v.mixed || slices.ContainsFunc(v.Folders, folderView.wrong) }

func (f folderView) wrong() bool {
	switch f.State {
	case string(telemetry.StateRunning), string(telemetry.StateComplete):
	default:
		return true
	}
	if f.Status != nil {
		return f.Status.Points.Failed > 0 || f.Journal.Damaged > 0
	}
	return f.Journal.Damaged > 0 || f.Journal.Failed != nil && *f.Journal.Failed > 0
}

func (f *statusFlags) print(st *state, screen *redrawer, v statusView) error {
	if !f.asJSON {
		return screen.show(v.text(st.now()))
	}
	encoder := json.NewEncoder(st.stdout)
	if !f.watch {
		encoder.SetIndent("", "  ")
	}
	return encoder.Encode(v)
}

// redrawer shows a text in place of the one before on a terminal, and after it elsewhere.
type redrawer struct {
	out    io.Writer
	redraw bool
	lines  int
}

func (r *redrawer) show(text string) error {
	text = strings.TrimRight(text, "\n") + "\n"
	before := ""
	switch {
	case r.lines > 0 && r.redraw:
		before = fmt.Sprintf("\x1b[%dA\x1b[J", r.lines) // up, and clear what is below
	case r.lines > 0:
		before = "\n"
	}
	r.lines = strings.Count(text, "\n")
	_, err := io.WriteString(r.out, before+visibleLines(text))
	return err
}

// isTerminal reports whether text goes to a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
