package workload

import (
	"context"
	"time"
)

// azureColumns are those of the Azure LLM inference traces of 2023 and 2024: when a request came, and how many tokens
// went in and out. They say nothing about what prompts share.
var azureColumns = []csvColumn{
	{name: "TIMESTAMP"},
	{name: "ContextTokens"},
	{name: "GeneratedTokens"},
}

// azure reads the Azure LLM inference traces. Times count from the first row, so that they keep the resolution of the
// file, 100 ns.
type azure struct {
	rows    *findings
	builder *Builder
	zero    time.Time
	layout  string
}

func loadAzure(ctx context.Context, s TraceSpec, src Source, found *findings) (*Workload, error) {
	a := azure{rows: found, builder: NewBuilder(s.name(), 0)}
	for _, path := range s.Paths {
		if err := a.rows.eachCSVRow(ctx, src, path, azureColumns, a.addRow); err != nil {
			return nil, err
		}
	}
	return s.finish(a.builder, a.rows)
}

func (a *azure) addRow(row csvRow) error {
	at, err := a.time(row.fields[0])
	if err != nil {
		return err
	}
	r := Request{}
	if r.Input, err = row.tokens(1); err != nil {
		return err
	}
	if r.Output, err = row.tokens(2); err != nil {
		return err
	}
	if r.Input == 0 {
		return &fieldError{"ContextTokens", "0", "must be positive"}
	}
	if a.zero.IsZero() {
		a.zero = at
	}
	seconds, nanoseconds := at.Unix()-a.zero.Unix(), int64(at.Nanosecond()-a.zero.Nanosecond())
	if seconds < -maxAzureSpan || seconds > maxAzureSpan {
		return &fieldError{"TIMESTAMP", shortened(row.fields[0]), "is more than a century from the first row's"}
	}
	r.ArrivalMs = float64(seconds*1e9+nanoseconds) / 1e6
	a.builder.Add(r)
	return nil
}

// maxAzureSpan is a century in seconds; nanoseconds of it fit 64 bits.
const maxAzureSpan = 100 * 366 * 24 * 3600

// azureTimes are the layouts of the timestamps: of 2023, of 2024, and what tools make of them. Fractions of a second
// may follow the seconds.
var azureTimes = []string{
	time.DateTime, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05", time.RFC3339,
}

// time reads a timestamp; without a time zone it is UTC. Rows of a file mostly have one layout.
func (a *azure) time(text string) (time.Time, error) {
	if at, err := time.Parse(a.layout, text); a.layout != "" && err == nil {
		return at, nil
	}
	for _, layout := range azureTimes {
		if at, err := time.Parse(layout, text); err == nil {
			a.layout = layout
			return at, nil
		}
	}
	return time.Time{}, &fieldError{"TIMESTAMP", shortened(text), "must be a date and time such as 2023-11-16 18:17:03.9799600"}
}
