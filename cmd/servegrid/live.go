package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/live/openai"
	"github.com/servegrid/servegrid/live/report"
	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/simcore/workload"
)

func newLive(st *state) *cobra.Command {
	var f liveFlags
	cmd := &cobra.Command{
		Use:   "live --url URL --output DIR [TRACE... | --spec SPEC]",
		Short: "Send a workload to an OpenAI-compatible server in real time and measure it",
		Long: `live sends a workload to OpenAI-compatible servers when its requests are due, by the same rules as simulated ones: at their own
times, at a rate, so many sessions at a time, what waits for what, and the AgentX scenario. It measures time to first token, time
between tokens and errors, reads the servers' own metrics beside it, and writes all of it to --output, in the columns of simulated
points, so that one frontier shows both.

Prompts are made up: of as many tokens as the trace says, sharing what it says that they share. Name the tokenizer.json of the
model with --tokenizer, or they have about as many tokens only.

Failed requests are counted and named, not sent again. Ctrl-C ends the sending: what is under way has --grace to end, and all that
was measured is written. A second Ctrl-C ends the program at once; --recover then writes what was measured.

Exit codes: 0 all requests succeeded, 1 some failed, 2 it was refused, 75 no server answers, the disk is full or another run uses the
folder, 130 interrupted.`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, st, args) },
	}
	f.add(cmd.Flags())
	return cmd
}

// run sends the workload and writes what was measured.
func (f *liveFlags) run(cmd *cobra.Command, st *state, traces []string) error {
	opt, err := f.check(st, cmd.Flags())
	point, notes, pointErr := f.point(cmd, st, traces)
	if err := errors.Join(err, pointErr); err != nil {
		return err
	}
	if err := printNotes(st.stderr, notes); err != nil {
		return err
	}
	ctx := cmd.Context()
	w, err := st.load(ctx, point)
	if err != nil {
		return err
	}
	var run *live.Run
	if f.recover {
		if run, err = report.ReadJournal(f.output, w); errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("--recover: %s has no journal of a run that was killed; name the folder of one, or leave --recover out", f.output)
		}
	} else {
		run, err = f.measure(ctx, st, opt, point, w)
	}
	if run == nil {
		return err
	}
	return alsoFailed(err, f.finish(st, point, w, run, opt))
}

// alsoFailed adds to how a command ended what went wrong before, such as a journal that could not be written.
func alsoFailed(before, ended error) error {
	var exit *exitError
	switch {
	case before == nil:
		return ended
	case errors.As(ended, &exit):
		return &exitError{code: exit.code, err: errors.Join(before, exit.err)}
	case ended != nil && isAway(ended):
		return errors.Join(ended, before)
	}
	return &exitError{code: exitSomeFailed, err: errors.Join(before, ended)}
}

// measure connects to the servers and sends the workload. The run is nil if it did not begin.
func (f *liveFlags) measure(ctx context.Context, st *state, opt openai.TargetOptions, point *gridspec.Point, w *workload.Workload) (*live.Run, error) {
	if err := f.refuseOutput(); err != nil {
		return nil, err
	}
	if err := printNotes(st.stderr, fileLimitNotes(point.Config.Config)); err != nil {
		return nil, err
	}
	target, err := f.connect(ctx, st, opt)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	return f.send(ctx, st, target, opt, point, w)
}

// refuseOutput refuses a folder that has the results of another run.
func (f *liveFlags) refuseOutput() error {
	if _, err := os.Stat(filepath.Join(f.output, report.ResultsFile)); err == nil {
		return fmt.Errorf("--output: %s has results already; name another folder", f.output)
	}
	return nil
}

// connect asks whether the servers are there, and which model to ask for unless that is said.
func (f *liveFlags) connect(ctx context.Context, st *state, opt openai.TargetOptions) (*openai.Target, error) {
	target, err := openai.NewTarget(opt)
	if err != nil {
		return nil, err
	}
	models, err := target.Probe(ctx)
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case err != nil:
		err = &exitError{code: exitAway, err: fmt.Errorf("--url: %w", err)}
	case f.model == "" && len(models) == 0:
		err = errors.New("--model: the server does not list its models; name the one to ask for")
	case f.model == "":
		f.model = models[0]
		err = target.UseModel(f.model)
		if len(models) > 1 {
			_ = printText(st.stderr, "Note: the server has %d models; asking for %s, choose another with --model\n", len(models), f.model)
		}
	}
	if err != nil {
		target.Close()
		return nil, err
	}
	return target, nil
}

// finish writes what was measured, prints it and says how it ended.
func (f *liveFlags) finish(st *state, point *gridspec.Point, w *workload.Workload, run *live.Run, opt openai.TargetOptions) error {
	about := report.Options{
		DeploymentStated: f.statesDeployment, Model: f.model, Tokenizer: f.tokens.Name(),
		Command: liveCommand(st.args), Versions: versions(),
	}
	for _, u := range opt.URLs {
		about.URLs = append(about.URLs, files.Shown(u.String()))
	}
	if about.DeploymentStated {
		about.BlockSize = point.Config.BlockSize()
		about.Reproduce = reproduceCommand(*point)
	}
	summary, err := report.Write(f.output, *point, w, run, about)
	if err != nil {
		return fmt.Errorf("--output: %w; what is in the journal, %s, the same command with --recover writes", err, filepath.Join(f.output, report.JournalFile))
	}
	wall := time.Duration(run.EndMs * float64(time.Millisecond))
	if err := printReport(st.stdout, summary.Report, point.Config.Config, wall, f.output); err != nil {
		return err
	}
	if err := printText(st.stdout, "%s", summary.Text()); err != nil {
		return err
	}
	switch {
	case run.Interrupted:
		return &exitError{code: exitInterrupted, err: errors.New("interrupted; what was measured is written")}
	case len(summary.Errors) > 0:
		return &exitError{code: exitSomeFailed}
	}
	return nil
}
