package workload

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// AgenticSchema is the schema that the header of an agentic Mooncake trace of version 2 names.
const AgenticSchema = "dynamo.agentic_mooncake"

// AgenticVersion is the version of that schema.
const AgenticVersion = 2

// agentic reads agentic Mooncake traces: one request a line and what it waits for (spec/workloads.md §1.3). Version 2
// begins with a header and states every dependency with its own delay; version 1 has no header, and one delay for all
// that a request waits for.
type agentic struct {
	spec    TraceSpec
	src     Source
	path    string
	rows    *findings
	builder *GraphBuilder
	header  agenticHeader
	row     agenticRow

	byID      map[string]int32 // numbers in the builder
	latest    map[string]int32 // the last request of each session
	added     []agenticAdded   // by number in the builder
	waits     []agenticWait
	ordinals  map[string]int // of plays; -1 for one without
	branches  []agenticBranch
	blockSize int
}

// agenticAdded is what a request in the builder does not hold.
type agenticAdded struct {
	line int
	// timestampMs is what a row of version 1 states; NaN for nothing.
	timestampMs float64
	// before is the request before it in its session, in order of the file; noRequest for none.
	before int32
}

type agenticWait struct {
	to   int32
	from string
	line int
	edge Edge
}

type agenticBranch struct {
	name string
	line int
}

func loadAgentic(ctx context.Context, s TraceSpec, src Source, found *findings) (*Workload, error) {
	a := agentic{spec: s, src: src, path: s.Paths[0], rows: found, byID: map[string]int32{}, latest: map[string]int32{}, ordinals: map[string]int{}, blockSize: cmp.Or(s.BlockSize, DefaultTraceBlockSize)}
	first := true
	err := found.eachLine(ctx, src, a.path, func(number int, line []byte) error {
		if first {
			first = false
			if err := a.readHeader(line); err != nil || a.header.version != 0 {
				a.rows.fatal = err != nil // it says what the rows mean
				return err
			}
		}
		return a.readLine(number, line)
	})
	if err != nil {
		return nil, err
	}
	return a.finish()
}

// agenticHeader is the first line of version 2.
type agenticHeader struct {
	version             uint64
	blockSize           uint64
	schema, scope       string
	format, digest      string
	hasSource, hasBlock bool
}

// readHeader reads the first line if it is a header; without one the version stays 0.
func (a *agentic) readHeader(data []byte) error {
	if !bytes.Contains(data, []byte(`"schema"`)) {
		return nil
	}
	h := &a.header
	h.version = AgenticVersion // whatever is wrong with it, it is no request
	version := uint64(0)
	line := jsonLine{data: data}
	err := line.object(func(key []byte) (err error) {
		switch string(key) {
		case "schema":
			h.schema, err = line.textField("schema")
		case "version":
			version, err = line.uint("version")
		case "block_size":
			h.hasBlock = true
			h.blockSize, err = line.uint("block_size")
		case "hash_id_scope":
			h.scope, err = line.textField("hash_id_scope")
		case "source":
			h.hasSource = true
			err = line.nested("source", func(key []byte) (err error) {
				switch string(key) {
				case "format":
					h.format, err = line.textField("source.format")
				case "digest":
					h.digest, err = line.textField("source.digest")
				default:
					err = line.skip()
				}
				return err
			})
		default:
			err = line.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	return a.checkHeader(version)
}

func (a *agentic) checkHeader(version uint64) error {
	h := &a.header
	given := a.spec.BlockSize
	switch {
	case h.schema != AgenticSchema:
		return &fieldError{"schema", strconv.Quote(h.schema), fmt.Sprintf("must be %q", AgenticSchema)}
	case version != AgenticVersion:
		return &fieldError{"version", fmt.Sprint(version), fmt.Sprintf("this version is not supported; expected %d", AgenticVersion)}
	case h.blockSize == 0 || h.blockSize > MaxTokens:
		return &fieldError{"block_size", fmt.Sprint(h.blockSize), fmt.Sprintf("must be from 1 to %d tokens", MaxTokens)}
	case given != 0 && uint64(given) != h.blockSize:
		return &fieldError{"block_size", fmt.Sprint(h.blockSize), fmt.Sprintf("does not match the block size %d that was asked for; leave that out", given)}
	case h.scope != "local":
		return &fieldError{"hash_id_scope", strconv.Quote(h.scope), `must be "local"`}
	case !h.hasSource || strings.TrimSpace(h.format) == "" || strings.TrimSpace(h.digest) == "":
		return &fieldError{field: "source", message: "needs a format and a digest that are not empty"}
	}
	a.blockSize = int(h.blockSize)
	return nil
}

// finish makes the workload once all rows are read.
func (a *agentic) finish() (*Workload, error) {
	a.checkOrdinals()
	whole := a.waits[:0]
	for _, w := range a.waits {
		if a.checkWait(w) || a.mend(&w) {
			whole = append(whole, w)
		}
	}
	a.waits = whole
	for _, b := range a.branches {
		if _, known := a.byID[b.name]; !known {
			a.rows.doubt("%s:%d: branches names request %s, which is not in the trace", a.path, b.line, shortened(b.name))
		}
	}
	if err := a.rows.err(); err != nil {
		return nil, err
	}
	if len(a.added) == 0 {
		return nil, a.spec.nothing(a.rows, "did not contain any requests")
	}
	a.applySettings()
	b := a.builder
	b.PlayPrefix, b.PlayOrder = "legacy-play:", a.comparePlays
	if !a.src.Rules.TiesInFileOrder {
		b.Ties = TiesByID
	}
	start := a.start()
	for i := range b.extra {
		b.extra[i].notBeforeMs = max(0, b.extra[i].notBeforeMs-start)
	}
	for _, w := range a.waits {
		w.edge.From = a.byID[w.from]
		b.AddEdge(w.to, w.edge)
	}
	w, err := b.Build()
	return w, b.noteCycles(a.rows, err, "request_id", func(number int32) (string, int) { return a.path, a.added[number].line })
}

// applySettings changes what the trace says about when requests start where the spec asks for it.
func (a *agentic) applySettings() {
	first := a.header.version == 0
	if first && (a.spec.SpawnTrigger != "" || a.spec.JoinDelay != "") {
		a.rows.warn("spawn_trigger and join_delay have no effect on agentic_mooncake of version 1, which does not tell subagents from turns")
	}
	dependent := make([]bool, len(a.added))
	for _, w := range a.waits {
		dependent[w.to] = true
	}
	for i := range a.added {
		floor := &a.builder.extra[i].notBeforeMs
		switch {
		case !dependent[i]:
			if first && !math.IsNaN(a.added[i].timestampMs) {
				*floor = a.added[i].timestampMs // which one that has lost what it waited for lacks
			}
		case a.spec.Pacing == PacingCausal && !first:
			*floor = math.Inf(-1)
		case a.spec.Pacing == PacingWithFloor && first && !math.IsNaN(a.added[i].timestampMs):
			*floor = a.added[i].timestampMs
		}
	}
	if first {
		return
	}
	untold := 0
	for i := range a.waits {
		edge := &a.waits[i].edge
		if edge.Relation == Join && a.spec.JoinDelay == JoinNone {
			edge.DelayMs = 0
		}
		if edge.Relation == Spawn && a.spec.SpawnTrigger != "" && !a.setSpawn(edge, a.waits[i].from) {
			untold++
		}
	}
	if untold > 0 {
		a.rows.warn("spawn_trigger has no effect on %d subagents, whose parents have no recorded_api_time_ms", untold)
	}
}

// setSpawn makes the first request of a subagent count from the moment that the spec asks for. It is false when the trace
// does not say how long the parent's request took.
func (a *agentic) setSpawn(edge *Edge, from string) bool {
	parent := &a.builder.extra[a.byID[from]]
	took := parent.endMs - parent.startMs
	trigger := OnCompletion
	afterStart := edge.DelayMs
	if edge.Trigger == OnCompletion {
		afterStart += took
	}
	if a.spec.SpawnTrigger == SpawnDispatch || a.spec.SpawnTrigger == SpawnRecorded && afterStart < took {
		trigger = OnDispatch
	}
	switch {
	case math.IsNaN(took):
		return edge.Trigger == trigger && a.spec.SpawnTrigger != SpawnRecorded
	case trigger == OnDispatch:
		edge.DelayMs = afterStart
	default:
		edge.DelayMs = max(0, afterStart-took)
	}
	edge.Trigger = trigger
	return true
}

// start is the time that the replay counts from: the least floor or, in the reference, the least timestamp.
func (a *agentic) start() float64 {
	least := math.Inf(1)
	for i := range a.added {
		at := a.builder.extra[i].notBeforeMs
		if a.src.Rules.ReplayStartsAtTimestamp {
			at = a.added[i].timestampMs
		}
		if at < least && !math.IsInf(at, -1) {
			least = at
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}
