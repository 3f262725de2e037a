package tracetools

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/workload"
)

// agenticHeader is the first line of an agentic Mooncake trace of version 2 (spec/workloads.md §1.3).
type agenticHeader struct {
	Schema      string        `json:"schema"`
	Version     int           `json:"version"`
	BlockSize   int           `json:"block_size"`
	HashIDScope string        `json:"hash_id_scope"`
	Source      agenticSource `json:"source"`
}

type agenticSource struct {
	Format string `json:"format"`
	Digest string `json:"digest"`
}

type agenticRow struct {
	RequestID         string       `json:"request_id"`
	PlayID            string       `json:"play_id"`
	SessionID         string       `json:"session_id"`
	Model             string       `json:"model"`
	SourcePlayOrdinal int          `json:"source_play_ordinal"`
	InputLength       int32        `json:"input_length"`
	OutputLength      int32        `json:"output_length"`
	OutputTokenIDs    []uint32     `json:"output_token_ids,omitempty"`
	HashIDs           []uint64     `json:"hash_ids"`
	NotBeforeMs       float64      `json:"not_before_ms"`
	RecordedAPITimeMs *float64     `json:"recorded_api_time_ms,omitempty"`
	Dependencies      []dependency `json:"dependencies"`
	rowHints
}

type dependency struct {
	RequestID string  `json:"request_id"`
	Trigger   string  `json:"trigger"`
	DelayMs   float64 `json:"delay_ms"`
	Relation  string  `json:"relation"`
}

// unknownModel is the model of requests whose source does not name it; the format wants one.
const unknownModel = "unknown"

// writeAgentic writes any workload. Sessions without a graph become plays whose turns follow one another.
func writeAgentic(out io.Writer, w *workload.Workload, blockSize int) (notes, error) {
	p, err := newPrompts(w, blockSize)
	if err != nil {
		return nil, err
	}
	var said notes
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	header := agenticHeader{workload.AgenticSchema, workload.AgenticVersion, p.blockSize, "local", agenticSource{cmp.Or(w.Format, "generated"), w.Digest()}}
	if err := encoder.Encode(header); err != nil {
		return nil, err
	}
	a := newAgenticRows(w)
	for _, i := range a.order {
		row := a.row(i)
		row.HashIDs, row.OutputTokenIDs = p.append(nil, int(i)), p.planned(int(i))
		if err := encoder.Encode(&row); err != nil {
			return nil, err
		}
	}
	said.prompts(p)
	if a.untimed > 0 {
		said.add("%d sessions do not say when they start, and start at 0", a.untimed)
	}
	if a.renamed > 0 {
		said.add("%d requests have no id, or that of another one, and get an id of their own", a.renamed)
	}
	return said, nil
}

// agenticRows are the rows of a workload.
type agenticRows struct {
	w       *workload.Workload
	order   []int32 // in which rows are written
	session []int32
	ids     []string
	zero    float64 // of plain sessions
	untimed int
	renamed int
}

func newAgenticRows(w *workload.Workload) *agenticRows {
	a := &agenticRows{w: w, order: make([]int32, w.Requests()), session: make([]int32, w.Requests()), ids: make([]string, w.Requests()), zero: math.Inf(1)}
	taken := make(map[string]bool, w.Requests())
	for i := range a.order {
		a.order[i] = int32(i)
		if id := w.ID(i); id != "" && !taken[id] {
			a.ids[i], taken[id] = id, true
		}
	}
	for s := range w.Sessions() {
		for i := w.SessionStart[s]; i < w.SessionStart[s+1]; i++ {
			a.session[i] = int32(s)
		}
		if at := w.ArrivalMs[w.SessionStart[s]]; !math.IsNaN(at) {
			a.zero = min(a.zero, at)
		} else if w.Graph == nil {
			a.untimed++
		}
	}
	if w.Graph != nil {
		slices.SortFunc(a.order, func(x, y int32) int { return cmp.Compare(w.Graph.Rank[x], w.Graph.Rank[y]) })
	}
	a.nameOthers(taken)
	return a
}

// nameOthers gives an id to requests that have none, or that of another one.
func (a *agenticRows) nameOthers(taken map[string]bool) {
	w := a.w
	for place, i := range a.order {
		if id := w.ID(int(i)); a.ids[i] == "" && id != "" && w.Graph != nil {
			// The ids of a conversation are often unique within it alone.
			if id = w.Graph.PlayNames[w.Graph.Play[i]] + "/" + id; !taken[id] {
				a.ids[i], taken[id] = id, true
			}
		}
		for n := place + 1; a.ids[i] == ""; n += w.Requests() {
			if id := requestID(n, w.Requests()); !taken[id] {
				a.ids[i], taken[id] = id, true
				if w.ID(int(i)) != "" {
					a.renamed++
				}
			}
		}
	}
}

// requestID names the n-th request, from 1, so that names sort like numbers: requests that are released at the same time go
// in the order of their ids.
func requestID(n, requests int) string {
	return fmt.Sprintf("request_%0*d", len(fmt.Sprint(requests)), n)
}

// row describes a request without what names its content. A delay after all dependencies becomes one after each, and a later floor.
func (a *agenticRows) row(i int32) agenticRow {
	w, g := a.w, a.w.Graph
	row := agenticRow{
		RequestID: a.ids[i], SessionID: w.SessionName(int(a.session[i])), Model: unknownModel, InputLength: w.Input[i], OutputLength: w.Output[i],
		Dependencies: []dependency{}, rowHints: hintsOf(w.Hints(int(i))),
	}
	after := 0.0
	if g == nil {
		row.PlayID, row.SourcePlayOrdinal = row.SessionID, int(a.session[i])
		if at := w.ArrivalMs[i]; !math.IsNaN(at) && i == w.SessionStart[a.session[i]] {
			row.NotBeforeMs = at - a.zero
		}
	} else {
		row.PlayID, row.SourcePlayOrdinal = g.PlayNames[g.Play[i]], int(g.Play[i])
		after = w.DelayMs[i]
		row.NotBeforeMs = max(0, g.NotBeforeMs[i]+after)
		if g.Model[i] >= 0 {
			row.Model = g.ModelNames[g.Model[i]]
		}
		if took := w.RecordedServiceMs(int(i)); took > 0 {
			took = rounded(took)
			row.RecordedAPITimeMs = &took
		}
	}
	for _, e := range w.Edges(nil, i, a.session[i]) {
		row.Dependencies = append(row.Dependencies, dependency{a.ids[e.From], e.Trigger.String(), e.DelayMs + after, e.Relation.String()})
	}
	return row
}
