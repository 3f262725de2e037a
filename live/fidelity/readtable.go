package fidelity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/requests"
)

// The columns of a table of requests that are read, besides those in figureColumns. A table without the needed ones holds none.
const (
	idColumn      = "uuid"
	sessionColumn = "session_id"
	turnColumn    = "turn_index"
	statusColumn  = "terminal_status"
	startColumn   = "arrival_time_ms"
	sourceColumn  = "source"
	errorColumn   = "error_kind"
	phaseColumn   = "phase"
	wireColumn    = "prompt_tokens"
	sentColumn    = "request_id"
	pointColumn   = "id"
)

var neededColumns = []string{idColumn, statusColumn, startColumn}

// timeColumns and countColumns say where a column goes in a request.
var (
	timeColumns = []struct {
		name string
		of   func(*Request) *float64
	}{
		{startColumn, func(r *Request) *float64 { return &r.StartMs }},
		{"schedule_lag_ms", func(r *Request) *float64 { return &r.LagMs }},
		{"ttft_ms", func(r *Request) *float64 { return &r.TTFTMs }},
		{"itl_ms", func(r *Request) *float64 { return &r.ITLMs }},
		{"e2e_latency_ms", func(r *Request) *float64 { return &r.E2EMs }},
	}
	countColumns = []struct {
		name string
		of   func(*Request) *int
	}{
		{turnColumn, func(r *Request) *int { return &r.Turn }},
		{"request", func(r *Request) *int { return &r.Number }},
		{"input_length", func(r *Request) *int { return &r.Input }},
		{"output_length", func(r *Request) *int { return &r.Output }},
		{"output_tokens", func(r *Request) *int { return &r.Tokens }},
		{"reused_input_tokens", func(r *Request) *int { return &r.Cached }},
	}
)

// readTable reads what a replay, a sweep or a live run writes of its requests.
func readTable(path string) (*Run, error) {
	t, err := results.ReadTable(path)
	if err != nil {
		return nil, err
	}
	run, err := fromTable(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return run, nil
}

func fromTable(t *results.Table) (*Run, error) {
	var missing []string
	for _, name := range neededColumns {
		if t.Column(name) == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("has no column %s, so it is no table of requests; %s", strings.Join(missing, " and no column "), whatToGive)
	}
	if c := t.Column(pointColumn); c != nil && slices.ContainsFunc(c.Strings, func(id string) bool { return id != c.Strings[0] }) {
		return nil, fmt.Errorf("has the requests of several points (column %s); give the file of one", pointColumn)
	}
	run := &Run{Kind: KindReplay, Notes: t.Notes, Facts: tableFacts(t), Requests: make([]Request, t.Rows())}
	for i := range run.Requests {
		run.Requests[i] = unknownRequest()
	}
	if err := run.fill(t); err != nil {
		return nil, err
	}
	if source := textOf(t, sourceColumn, 0); source == string(KindLive) {
		run.Kind = KindLive
	}
	warmUp := make([]bool, t.Rows())
	for i := range run.Requests {
		r := &run.Requests[i]
		r.ID, r.ClientID, r.Session = textOf(t, idColumn, i), textOf(t, sentColumn, i), textOf(t, sessionColumn, i)
		status := textOf(t, statusColumn, i)
		r.Completed = status == "completed"
		if !r.Completed {
			r.Problem = cmp.Or(textOf(t, errorColumn, i), status, "not stated")
		}
		if r.Session == "" {
			r.Turn = Unknown
		}
		warmUp[i] = textOf(t, phaseColumn, i) == "warm_up"
		r.deriveITL()
	}
	kept := run.Requests[:0]
	for i, r := range run.Requests {
		if !warmUp[i] {
			kept = append(kept, r)
		}
	}
	run.WarmUps = len(run.Requests) - len(kept)
	run.Requests = kept
	return run, nil
}

// fill reads the columns of numbers. Where the table says how long the server took the prompts to be, this is their length.
func (r *Run) fill(t *results.Table) error {
	for _, c := range timeColumns {
		values, err := numbersOf(t, c.name)
		if err != nil {
			return err
		}
		for i, v := range values {
			*c.of(&r.Requests[i]) = v
		}
	}
	counts := countColumns
	if c := t.Column(wireColumn); c != nil && slices.Contains(c.Null, false) {
		r.WireLengths = true
		counts = append(slices.Clone(counts), struct {
			name string
			of   func(*Request) *int
		}{wireColumn, func(r *Request) *int { return &r.Input }})
	}
	for _, c := range counts {
		values, err := numbersOf(t, c.name)
		if err != nil {
			return err
		}
		for i, v := range values {
			switch {
			case math.IsNaN(v):
			case v != math.Trunc(v) || v < 0 || v > maxCount:
				return fmt.Errorf("column %s holds %v in row %d; a whole number from 0 to %d is needed", c.name, v, i+1, int64(maxCount))
			default:
				*c.of(&r.Requests[i]) = int(v)
			}
		}
	}
	return nil
}

// maxCount bounds what a table may say of one request, so that sums stay exact.
const maxCount = 1 << 31

// numbersOf are the values of a column, with NaN for what is not there; nil when the table does not have it.
func numbersOf(t *results.Table, name string) ([]float64, error) {
	c := t.Column(name)
	if c == nil || !slices.Contains(c.Null, false) {
		return nil, nil
	}
	return c.Float64s()
}

func textOf(t *results.Table, name string, row int) string {
	c := t.Column(name)
	if c == nil || row >= c.Len() {
		return ""
	}
	return c.Text(row)
}

// tableFacts are what the metadata of a table says of the configuration.
func tableFacts(t *results.Table) Facts {
	setting := func(path string) string {
		v, ok := t.Metadata.Constants[path]
		if !ok {
			return ""
		}
		return fmt.Sprint(v)
	}
	f := Facts{Timing: setting(requests.KeyModel), BlockSize: setting(requests.KeyBlockSize), Topology: setting(requests.KeyTopology), Cache: setting(requests.KeyCache)}
	for _, digest := range t.Metadata.Workloads {
		f.Workload = digest
	}
	return f
}
