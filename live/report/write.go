package report

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/live/aiperf"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/timelines"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Options say of a run what the run itself does not know.
type Options struct {
	// DeploymentStated says that the point says what is behind the endpoint: GPUs, engine and so on. Otherwise all that follows
	// from it is unknown.
	DeploymentStated bool
	// URLs, Model and Tokenizer say what was asked, and how text is split; BlockSize is that of the
	// KV cache, in tokens, 0 where it is not stated.
	URLs             []string
	Model, Tokenizer string
	BlockSize        int
	// Command is the command line of the run, without secrets, and Reproduce one that simulates its point; "" for none.
	Command, Reproduce string
	// Versions name what made the files.
	Versions map[string]string
}

// The files of a run, in its folder.
const (
	ResultsFile  = "results.parquet"
	RequestsFile = "requests.parquet"
	ServerFile   = "server_metrics.parquet"
	FactsFile    = "live.json"
	PageFile     = "report.html"
	AIPerfFolder = "aiperf"
)

// Write writes all that was measured into a folder, which it makes, and sums it up. Each file is there as a whole or not at
// all, and the journal goes when all are. The point is what was sent, and as far as options say so what is behind the endpoint.
func Write(dir string, point gridspec.Point, w *workload.Workload, run *live.Run, opt Options) (*Summary, error) {
	measured := measuredOf(w, run)
	summary, err := summarise(point, w, run, measured, opt.DeploymentStated)
	if err != nil {
		return nil, err
	}
	row := rowOf(point, w, run, summary, opt)
	table := results.NewTable([]results.Row{row}, results.Metadata{Versions: opt.Versions})
	table.AddErrorKinds(func(int) string { return summary.ErrorText() })
	if opt.Reproduce != "" {
		table.AddCommands(func(int) string { return opt.Reproduce })
	}
	records, aiperfFacts := aiperf.FromRun(run), aiperfFactsOf(run, opt)
	totals := aiperf.TotalsOf(records, aiperfFacts)
	timeline := timelineOf(row.ID, point, run, measured, opt.DeploymentStated)
	parquet := func(t *results.Table) func(io.Writer) error {
		return func(out io.Writer) error { return results.WriteParquet(out, t) }
	}
	requests := func(out io.Writer) error { // made for this file only, since it is large
		return results.WriteParquet(out, requestTable(row.ID, w, run.Records, measured, opt.Versions))
	}
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{RequestsFile, requests},
		{ServerFile, parquet(sampleTable(run.Samples, opt.Versions))},
		{FactsFile, factsOf(row.ID, w, run, summary, opt).write},
		{filepath.Join(timelines.Folder, row.ID+".parquet"), parquet(timeline)},
		{filepath.Join(AIPerfFolder, aiperf.RecordsFile), func(out io.Writer) error { return aiperf.WriteRecords(out, records) }},
		{filepath.Join(AIPerfFolder, aiperf.JSONFile), func(out io.Writer) error { return aiperf.WriteJSON(out, totals, aiperfFacts) }},
		{filepath.Join(AIPerfFolder, aiperf.CSVFile), func(out io.Writer) error { return aiperf.WriteCSV(out, totals) }},
		{PageFile, func(out io.Writer) error { return writePage(out, dir, table, timeline, run) }},
		{ResultsFile, parquet(table)},
	} {
		path := filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return summary, err
		}
		if err := results.WriteFile(path, f.write); err != nil {
			return summary, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, JournalFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return summary, err
	}
	return summary, nil
}

// aiperfFactsOf says of a run what the files of AIPerf say beside its metrics.
func aiperfFactsOf(run *live.Run, opt Options) aiperf.Facts {
	f := aiperf.Facts{
		Model: opt.Model, URLs: shownURLs(opt.URLs), Tokenizer: opt.Tokenizer, Cancelled: run.Interrupted, ProfilingSeconds: run.EndMs / 1000,
		Started: run.Started, Ended: run.Started.Add(time.Duration(run.EndMs * float64(time.Millisecond))),
	}
	if run.Window != nil {
		f.WarmUpSeconds, f.ProfilingSeconds = run.Window.StartMs/1000, (run.EndMs-run.Window.StartMs)/1000
	}
	return f
}

// ReasonInterrupted is the reason of the row of a run that was ended before its time. What was measured is in it, but it is on
// no frontier.
const ReasonInterrupted = "interrupted"

// rowOf is the run as a row of results.
func rowOf(point gridspec.Point, w *workload.Workload, run *live.Run, s *Summary, opt Options) results.Row {
	row := results.Row{
		ID: idOf(point, w, run, opt.URLs), Source: results.SourceLive, DeploymentUnknown: !opt.DeploymentStated, Status: results.StatusOK,
		WallSeconds: run.EndMs / 1000, Point: &point, Metrics: metrics.Figures(s.Report), WorkloadDigest: w.Digest(),
	}
	switch {
	case run.Interrupted:
		row.Status, row.Reason = results.StatusFailed, ReasonInterrupted
		row.Error = fmt.Sprintf("the run was ended before its time, with %d requests sent", len(run.Records))
		if run.Planned >= 0 {
			row.Error += fmt.Sprintf(" of %d", run.Planned)
		}
	case s.Report.CompletedRequests == 0:
		row.Status, row.Reason = results.StatusFailed, "no_answers"
		row.Error = strings.TrimSuffix("no request was completed: "+s.ErrorText(), ": ")
	}
	return row
}

// idOf names a run: no two have the same one.
func idOf(point gridspec.Point, w *workload.Workload, run *live.Run, urls []string) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{"live", point.ContentID(w.Digest()), run.Started.UTC().Format("20060102T150405.000000000")}, urls...), "\n")))
	return hex.EncodeToString(sum[:16])
}
