package workload

import (
	"context"
	"fmt"
	"math"
)

// burstGPTColumns are those of the BurstGPT traces (arXiv 2401.17644): seconds from the first day's midnight, the
// conversation in releases that have it, and lengths in tokens.
var burstGPTColumns = []csvColumn{
	{name: "Timestamp"},
	{name: "Request tokens"},
	{name: "Response tokens"},
	{name: "Session ID", optional: true},
}

// burstGPT reads the BurstGPT traces. Rows are independent requests; with session ids those of a session are its turns.
type burstGPT struct {
	rows    *findings
	builder *Builder
	turns   turnTimes
	failed  int
	// sessions are the names of sessions.
	sessions interned
}

func loadBurstGPT(ctx context.Context, s TraceSpec, src Source, found *findings) (*Workload, error) {
	b := burstGPT{rows: found, builder: NewBuilder(s.name(), 0), turns: turnTimes{}}
	for _, path := range s.Paths {
		if err := b.rows.eachCSVRow(ctx, src, path, burstGPTColumns, b.addRow); err != nil {
			return nil, err
		}
	}
	if b.failed > 0 {
		found.warn("%d rows with 0 response tokens are failed requests (BurstGPT's README) and are left out", b.failed)
	}
	return s.finish(b.builder, found)
}

func (b *burstGPT) addRow(row csvRow) error {
	at, err := row.seconds(0)
	if err != nil {
		return err
	}
	r := Request{Session: b.sessions.same([]byte(row.fields[3]))} // a field is a part of its row, which would be kept with it
	if r.Input, err = row.tokens(1); err != nil {
		return err
	}
	if r.Output, err = row.tokens(2); err != nil {
		return err
	}
	if r.Output == 0 {
		b.failed++
		return nil
	}
	if r.Input == 0 {
		return &fieldError{"Request tokens", "0", "must be positive"}
	}
	if err := b.turns.place(&r, at); err != nil {
		return err
	}
	b.builder.Add(r)
	return nil
}

// turnTimes keeps when the last turn of each session came.
type turnTimes map[string]float64

// place gives a request its time. As in Mooncake traces (spec/workloads.md §1.1) the time since the turn before becomes
// the wait after its completion, because a trace does not say when that was.
func (t turnTimes) place(r *Request, at float64) error {
	last, known := t[r.Session]
	switch {
	case r.Session == "":
		r.ArrivalMs = at
		return nil
	case !known:
		r.ArrivalMs = at
	case at < last:
		return &fieldError{message: fmt.Sprintf("the turn at %g ms is before the previous one of session %q at %g ms; sort the rows by time", at, r.Session, last)}
	default:
		r.ArrivalMs, r.DelayMs = math.NaN(), toMicroseconds(at-last)
	}
	t[r.Session] = at
	return nil
}
