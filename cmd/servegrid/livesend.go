package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/live/openai"
	liveprompts "github.com/servegrid/servegrid/live/prompts"
	livereplay "github.com/servegrid/servegrid/live/replay"
	"github.com/servegrid/servegrid/live/report"
	"github.com/servegrid/servegrid/live/scrape"
	"github.com/servegrid/servegrid/simcore/workload"
)

// send sends the workload and measures. The run is nil if it did not begin.
func (f *liveFlags) send(ctx context.Context, st *state, target *openai.Target, opt openai.TargetOptions, point *gridspec.Point, w *workload.Workload) (*live.Run, error) {
	prompter := liveprompts.New(w, f.tokens, liveprompts.Options{Turns: f.messages == messagesTurns})
	if err := f.warmUp(ctx, st, target, w, prompter); err != nil {
		return nil, err
	}
	chunks, err := f.openChunks()
	if err != nil {
		return nil, err
	}
	planned := plannedRequests(point, w)
	progress := newLiveProgress(st, f.quiet, planned)
	journal, err := report.NewJournal(f.output, progress.warn)
	if err != nil {
		if errors.Is(err, report.ErrUnfinished) {
			err = fmt.Errorf("--output: %w; the same command with --recover writes it, or name another folder", err)
		}
		return nil, errors.Join(err, chunks.close())
	}
	if err := f.refuseOutput(); err != nil { // another run may have ended since, while this one warmed up
		return nil, errors.Join(err, journal.Close(), os.Remove(filepath.Join(f.output, report.JournalFile)), chunks.close())
	}
	var scraper *scrape.Scraper
	sending := livereplay.Options{
		Target: target, Config: point.Config.Config, Workload: w, Window: f.window(), Prompt: prompter.MessagesIn, Duration: f.duration, Grace: f.grace,
		Began: func(started time.Time) {
			journal.Begin(started, w, planned)
			chunks.begin(started)
			if f.metricsInterval > 0 {
				scraper = scrape.Start(f.scrapes(opt), started)
			}
			progress.begin()
		},
		Sent:  progress.sent,
		Ended: func(r *live.Record) { journal.Add(r); progress.ended(r) }, Unkept: true,
	}
	if limit := point.Config.Load.MaxSimTimeSeconds; sending.Duration == 0 && limit > 0 {
		sending.Duration = time.Duration(limit * float64(time.Second))
	}
	if chunks.writer != nil {
		sending.Event = chunks.writer.Add
	}
	run, err := livereplay.Run(ctx, sending)
	progress.close()
	var samples []live.Sample
	if scraper != nil {
		var failures []scrape.Failures
		samples, failures = scraper.Stop()
		_ = printNotes(st.stderr, scrapeNotes(samples, failures))
	}
	if run == nil {
		return nil, errors.Join(err, journal.Close(), os.Remove(filepath.Join(f.output, report.JournalFile)), chunks.close())
	}
	run.Samples = samples
	records, readErr := journal.Records(w)
	if readErr != nil {
		return nil, errors.Join(err, fmt.Errorf("what was measured cannot be read again: %w; the same command with --recover tries it again", readErr), journal.Close(), chunks.close())
	}
	run.Records = records
	return run, errors.Join(err, journal.Close(), chunks.close())
}

// warmUp sends what is not measured.
func (f *liveFlags) warmUp(ctx context.Context, st *state, target *openai.Target, w *workload.Workload, prompter *liveprompts.Prompter) error {
	if f.warmupRequests == 0 {
		return nil
	}
	failed, err := livereplay.WarmUp(ctx, target, w, prompter.MessagesIn, f.warmupRequests)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case failed > 0 && failed == min(f.warmupRequests, w.Requests()):
		return &exitError{code: exitSomeFailed, err: fmt.Errorf("--warmup-requests: all of them failed: %w", err)}
	case failed > 0:
		return printText(st.stderr, "Note: %d of the requests that warm up failed, the first one with %v\n", failed, err)
	}
	return nil
}

// scrapes says where the servers have their metrics.
func (f *liveFlags) scrapes(opt openai.TargetOptions) scrape.Options {
	out := scrape.Options{TLS: opt.TLS, Interval: f.metricsInterval, URLs: f.metricsPages}
	if len(out.URLs) == 0 {
		for _, server := range opt.URLs {
			page := *server
			page.Path = strings.TrimSuffix(page.Path, "/v1") + "/metrics"
			out.URLs = append(out.URLs, &page)
		}
	}
	out.Header = http.Header{}
	if opt.APIKey != "" && len(f.metricsPages) == 0 { // other servers have no business with the key
		out.Header.Set("Authorization", "Bearer "+opt.APIKey)
	}
	return out
}

// scrapeNotes says which servers' metrics could not be read.
func scrapeNotes(samples []live.Sample, failures []scrape.Failures) []string {
	read := map[string]int{}
	for i := range samples {
		read[samples[i].Endpoint]++
	}
	var notes []string
	for _, failed := range failures {
		name := failed.Endpoint
		if read[name] == 0 {
			notes = append(notes, fmt.Sprintf("%s has no metrics to read: %v", name, failed.Last))
		} else {
			notes = append(notes, fmt.Sprintf("the metrics of %s could not be read %d times of %d: %v", name, failed.Count, failed.Count+read[name], failed.Last))
		}
	}
	return notes
}

// chunkFile is the file for everything that comes back; its writer is nil when nobody wants it.
type chunkFile struct {
	file   *os.File
	writer *livereplay.ChunkWriter
}

func (f *liveFlags) openChunks() (chunkFile, error) {
	if f.chunks == "" {
		return chunkFile{}, nil
	}
	file, err := os.Create(f.chunks)
	if err != nil {
		return chunkFile{}, fmt.Errorf("--chunks: %w", err)
	}
	return chunkFile{file, livereplay.NewChunkWriter(file)}, nil
}

func (c *chunkFile) begin(started time.Time) {
	if c.writer != nil {
		c.writer.Begin(started)
	}
}

func (c *chunkFile) close() error {
	if c.writer == nil {
		return nil
	}
	if err := errors.Join(c.writer.Close(), c.file.Close()); err != nil {
		return fmt.Errorf("--chunks: %w", err)
	}
	return nil
}

// parsePages reads the URLs of pages with metrics.
func parsePages(texts []string) ([]*url.URL, error) {
	var pages []*url.URL
	var errs []error
	for _, text := range texts {
		u, err := parseEndpoint(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--metrics-url: %w", err))
			continue
		}
		pages = append(pages, u)
	}
	return pages, errors.Join(errs...)
}
