package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/sweep"
)

// requestsFolder holds one file a point, named by its ID, when the spec asks for output.per_request.
const requestsFolder = "requests"

// simulateWithRecords simulates one point and writes the record of every request beside the results.
func (j *sweepJob) simulateWithRecords(ctx context.Context, job sweep.Job) (*simcore.Report, error) {
	var records []simcore.RequestRecord
	report, err := simcore.Run(ctx, job.Point.Config, job.Workload, simcore.Options{
		Records: func(r simcore.RequestRecord) { records = append(records, r) },
	})
	if err != nil || job.ID == "" {
		return report, err
	}
	path := j.recordsPath(job.ID)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, &sweep.EnvironmentError{Err: err}
	}
	t := requestTable(job.ID, records, job.Workload)
	if err := results.WriteFile(path, func(w io.Writer) error { return results.WriteParquet(w, t) }); err != nil {
		return nil, &sweep.EnvironmentError{Err: err}
	}
	return report, nil
}

// missingRecords says how many points have no file of records; empty means none.
func (j *sweepJob) missingRecords(rows []results.Row) string {
	if !j.spec.Output.PerRequest {
		return ""
	}
	missing := 0
	for i := range rows {
		if rows[i].Status == results.StatusOK && !isFile(j.recordsPath(rows[i].ID)) {
			missing++
		}
	}
	if missing == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d points have no file in %s (simulated without output.per_request, or the file was removed); --retry all runs them again",
		missing, len(rows), filepath.Join(j.dir, requestsFolder))
}

// recordsPath is the file of a point's records.
func (j *sweepJob) recordsPath(id string) string {
	return filepath.Join(j.dir, requestsFolder, id+".parquet")
}

// requestColumn is one column of a table of requests.
type requestColumn struct {
	name, unit, doc string
	kind            gridspec.Kind
	value           func(*simcore.RequestRecord) gridspec.Value
}

// requestTable lays records out with one row a request. The point's ID joins it with the results.
func requestTable(id string, records []simcore.RequestRecord, w *workload.Workload) *results.Table {
	t := &results.Table{Metadata: results.Metadata{Versions: versions()}}
	for _, c := range requestColumns(id, w) {
		column := results.NewColumn(c.name, c.kind, len(records))
		column.Unit, column.Doc, column.Role = c.unit, c.doc, results.RolePoint
		for i := range records {
			v := c.value(&records[i])
			if v.Kind == gridspec.KindFloat && v.Float == engine.Never {
				continue
			}
			column.Set(i, v)
		}
		t.Add(column)
	}
	return t
}

func requestColumns(id string, w *workload.Workload) []requestColumn {
	text := func(s string) gridspec.Value { return gridspec.Value{Kind: gridspec.KindString, Str: s} }
	count := func(name, unit, doc string, get func(*simcore.RequestRecord) int) requestColumn {
		return requestColumn{name, unit, doc, gridspec.KindInt, func(r *simcore.RequestRecord) gridspec.Value {
			return gridspec.Value{Kind: gridspec.KindInt, Int: int64(get(r))}
		}}
	}
	ms := func(name, doc string, get func(*engine.Request) float64) requestColumn {
		return requestColumn{name, "ms", doc, gridspec.KindFloat, func(r *simcore.RequestRecord) gridspec.Value {
			return gridspec.Value{Kind: gridspec.KindFloat, Float: get(&r.Life)}
		}}
	}
	return []requestColumn{
		{"id", "", "Content ID of the point.", gridspec.KindString, func(*simcore.RequestRecord) gridspec.Value { return text(id) }},
		count("request", "", "Number of the request in the workload, from 0.", func(r *simcore.RequestRecord) int { return r.Request }),
		{"session", "", "Name of the request's session.", gridspec.KindString, func(r *simcore.RequestRecord) gridspec.Value { return text(w.SessionName(r.Session)) }},
		count("turn", "", "Turn in the session, from 0.", func(r *simcore.RequestRecord) int { return r.Turn }),
		{"status", "", "completed, rejected or unfinished.", gridspec.KindString, func(r *simcore.RequestRecord) gridspec.Value { return text(terminalStatus(r.Life.State)) }},
		count("worker", "", "Worker that served it, from 0.", func(r *simcore.RequestRecord) int { return int(r.Life.Worker) }),
		count("input_length", "tokens", "Prompt length.", func(r *simcore.RequestRecord) int { return int(r.Life.Input) }),
		count("output_length", "tokens", "Requested output.", func(r *simcore.RequestRecord) int { return int(r.Life.Output) }),
		count("output_tokens", "tokens", "Output produced.", func(r *simcore.RequestRecord) int { return int(r.Life.Tokens) }),
		count("reused_input_tokens", "tokens", "Prompt tokens found in the prefix cache at the best admission.", func(r *simcore.RequestRecord) int { return int(r.Life.Reused) }),
		ms("arrival_ms", "When it arrived.", func(r *engine.Request) float64 { return r.ArrivalMs }),
		ms("admitted_ms", "When it was first admitted.", func(r *engine.Request) float64 { return r.AdmittedMs }),
		ms("first_token_ms", "When its first token came out.", func(r *engine.Request) float64 { return r.FirstTokenMs }),
		ms("second_token_ms", "When its second token came out.", func(r *engine.Request) float64 { return r.SecondTokenMs }),
		ms("last_token_ms", "When its latest token came out.", func(r *engine.Request) float64 { return r.LastTokenMs }),
	}
}
