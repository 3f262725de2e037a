package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// wekaCorpus reads WEKA traces, which the kv-cache-tester records: one JSON object a conversation, in files that hold one
// or several, or folders of such files (spec/workloads.md §1.6). Read wekarecord.go for a trace, then wekastreams.go for
// how its requests depend on each other.
type wekaCorpus struct {
	spec   TraceSpec
	src    Source
	traces []wekaTrace
	rows   *findings

	unknown    names // keys that the format does not have
	undeclared names // models that traces use and do not name

	undeclaring, surplus []place // traces that do so, and traces with too many hash ids
}

// The values of TraceSpec.NestedTimestampBasis.
const (
	NestedAuto     = "auto"
	NestedAbsolute = "absolute"
	NestedRelative = "relative"
)

func loadWeka(ctx context.Context, s TraceSpec, src Source, found *findings) (*Workload, error) {
	c := &wekaCorpus{spec: s, src: src, rows: found}
	for i, path := range s.Paths {
		if err := c.readFile(ctx, int32(i), path); err != nil {
			return nil, err
		}
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	if len(c.traces) == 0 {
		return nil, s.nothing(found, "did not contain any traces")
	}
	c.warnOfOddities()
	c.placeSubagents()
	return c.workload()
}

func (c *wekaCorpus) show(at place) string {
	return fmt.Sprintf("%s:%d", c.spec.Paths[at.file], at.line)
}

func (c *wekaCorpus) problem(at place, err error) {
	c.rows.add(c.spec.Paths[at.file], int(at.line), err)
}

// readFile reads the traces of a file. What can't be read ends the file; what is wrong with a trace does not.
func (c *wekaCorpus) readFile(ctx context.Context, file int32, path string) error {
	in, err := c.rows.begin(ctx, c.src, path)
	if in == nil {
		return err
	}
	defer in.Close()
	stream := newJSONStream(in)
	for {
		err := c.readTrace(ctx, file, stream)
		var damage *readError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &damage) || ctx.Err() != nil:
			return c.rows.damage(ctx, path, err)
		case err != nil:
			if enough := c.rows.add(path, stream.line, err); enough || !stream.nextLine() {
				return nil
			}
		}
	}
}

// readTrace reads one trace. After an error the next one may begin on another line; salvaging keeps the requests before it.
func (c *wekaCorpus) readTrace(ctx context.Context, file int32, stream *jsonStream) error {
	var t wekaTrace
	var scope string
	seen := map[string]bool{}
	start := true
	listed := int32(0)
	err := stream.object(func(key string) error {
		if start {
			t.at, start = place{file, int32(stream.line)}, false
		}
		if seen[key] {
			return &fieldError{field: key, message: "is given twice"}
		}
		seen[key] = true
		if key == "requests" {
			isList, err := stream.list(func() error {
				listed++
				if listed%64 == 0 && ctx.Err() != nil {
					return ctx.Err()
				}
				return c.readItem(&t, listed-1, stream)
			})
			if err != nil || isList {
				return err
			}
		}
		raw, err := stream.value()
		if err != nil {
			return err
		}
		return c.readTraceField(&t, &scope, key, raw)
	})
	if start {
		t.at = place{file, int32(stream.line)}
	}
	if err == nil {
		c.addTrace(&t, scope, seen["requests"])
	} else if c.rows.salvage && len(t.main) > 0 {
		c.rows.warn("%s: trace %s is cut off; requests that are whole: %d", c.show(t.at), shortened(t.id), len(t.requests))
		c.addTrace(&t, scope, true)
	}
	return err
}

// readTraceField reads a field of a trace other than its requests.
func (c *wekaCorpus) readTraceField(t *wekaTrace, scope *string, key string, raw []byte) (err error) {
	line := jsonLine{data: raw}
	switch {
	case line.null():
	case key == "id":
		t.id, err = line.textField("id")
	case key == "models":
		t.declared, err = line.texts("models")
	case key == "block_size":
		t.blockSize, err = line.uint("block_size")
	case key == "hash_id_scope":
		*scope, err = line.textField("hash_id_scope")
	case key == "requests":
		return line.wrongType("requests", "a list")
	default:
		if !slices.Contains(wekaKeys, key) {
			c.unknownKey(key, t.at)
		}
		err = line.skip()
	}
	if line.space(); err == nil && line.at < len(raw) {
		return line.notJSON("the end of a value")
	}
	return err
}

func (c *wekaCorpus) unknownKey(key string, at place) {
	if _, known := c.unknown.number[key]; !known && len(c.unknown.list) < maxTraceProblems {
		c.unknown.of(key)
		c.rows.warn("%s: %s is no key of the format; it is passed over", c.show(at), shortened(key))
	}
}

// readItem reads an element of a trace's requests: one of the main agent, or a subagent with its own.
func (c *wekaCorpus) readItem(t *wekaTrace, outer int32, stream *jsonStream) error {
	if _, err := stream.next(); err != nil {
		return stream.ended(err)
	}
	at := place{t.at.file, int32(stream.line)}
	raw, err := stream.value()
	if err != nil {
		return err
	}
	var item wekaItem
	line := jsonLine{data: raw}
	if err := item.read(&line, 0, func(key string) { c.unknownKey(key, at) }); err != nil {
		c.problem(at, fmt.Errorf("requests[%d]: %w", outer, err))
		return nil
	}
	if line.space(); line.at < len(raw) {
		c.problem(at, fmt.Errorf("requests[%d]: %w", outer, line.notJSON("the end of the object")))
		return nil
	}
	before := len(t.requests)
	if err := t.add(&item, outer); err != nil {
		t.requests = t.requests[:before]
		c.problem(at, fmt.Errorf("requests[%d]: %w", outer, err))
	}
	c.rows.files[len(c.rows.files)-1].Records += len(t.requests) - before
	return nil
}

// add takes an element over into a trace.
func (t *wekaTrace) add(item *wekaItem, outer int32) error {
	switch item.kind {
	case "n", "s":
		if item.seen&wekaRequests != 0 {
			return &fieldError{field: "requests", message: "only a subagent has requests of its own"}
		}
		number, err := t.addRequest(item, outer, -1)
		if err != nil {
			return err
		}
		t.main = append(t.main, number)
		return nil
	case "subagent":
		return t.addSubagent(item, outer)
	case "":
		return &fieldError{field: "type", message: "is missing"}
	}
	return &fieldError{"type", shortened(item.kind), "use n, s or subagent"}
}

func (t *wekaTrace) addRequest(item *wekaItem, outer, inner int32) (int32, error) {
	if err := item.check(); err != nil {
		return 0, err
	}
	from := len(t.runs)
	t.runs = t.blocks.appendRuns(t.runs, item.hashes)
	t.requests = append(t.requests, wekaRequest{
		outer: outer, inner: inner, startMs: item.t, endMs: exactMs(item.t + item.apiTime), input: int32(item.input), output: int32(item.output),
		model: item.model, prompt: span{int32(from), int32(len(t.runs))},
	})
	return int32(len(t.requests) - 1), nil
}

func (t *wekaTrace) addSubagent(item *wekaItem, outer int32) error {
	if item.seen&wekaT == 0 {
		return &fieldError{field: "t", message: "is missing"}
	}
	if len(t.main) == 0 {
		return &fieldError{"agent_id", shortened(item.agent), "the subagent comes before any request of the main agent, which must have started it"}
	}
	a := wekaSubagent{outer: outer, agent: item.agent, markerMs: item.t, endMs: math.NaN(), spawner: t.main[len(t.main)-1]}
	if item.seen&wekaDuration != 0 {
		a.endMs = exactMs(item.t + item.durationMs)
	}
	for i := range item.inner {
		inner := &item.inner[i]
		switch inner.kind {
		case "n", "s":
		case "":
			return fmt.Errorf("requests[%d]: %w", i, &fieldError{field: "type", message: "is missing"})
		default:
			return fmt.Errorf("requests[%d]: %w", i, &fieldError{"type", shortened(inner.kind), "a subagent's requests are n or s; the format has one level of subagents"})
		}
		number, err := t.addRequest(inner, outer, int32(i))
		if err != nil {
			return fmt.Errorf("requests[%d]: %w", i, err)
		}
		a.requests = append(a.requests, number)
	}
	t.subagents = append(t.subagents, a)
	return nil
}

// addTrace checks a trace as a whole and adds it to the corpus.
func (c *wekaCorpus) addTrace(t *wekaTrace, scope string, listed bool) {
	var err error
	switch {
	case t.id == "":
		err = &fieldError{field: "id", message: "is missing or empty"}
	case t.blockSize < 1 || t.blockSize > MaxTokens:
		err = &fieldError{"block_size", fmt.Sprint(t.blockSize), fmt.Sprintf("must be from 1 to %d tokens", MaxTokens)}
	case scope != "local" && scope != "global":
		err = &fieldError{"hash_id_scope", shortened(scope), "use local or global"}
	case !listed:
		err = &fieldError{field: "requests", message: "is missing"}
	case len(t.main) == 0:
		err = &fieldError{field: "requests", message: fmt.Sprintf("trace %s has no request of its main agent", shortened(t.id))}
	case c.spec.BlockSize != 0 && uint64(c.spec.BlockSize) != t.blockSize:
		err = &fieldError{"block_size", fmt.Sprint(t.blockSize), fmt.Sprintf("does not match the block size %d that was asked for; leave that out", c.spec.BlockSize)}
	case len(c.traces) > 0 && c.traces[0].blockSize != t.blockSize:
		err = &fieldError{"block_size", fmt.Sprint(t.blockSize), fmt.Sprintf("differs from the %d of %s; blocks of two sizes can't be compared", c.traces[0].blockSize, c.show(c.traces[0].at))}
	}
	if err != nil {
		c.problem(t.at, err)
		return
	}
	t.global = scope == "global"
	t.blocks.dense, t.blocks.sparse = nil, nil
	c.noteOddities(t)
	c.traces = append(c.traces, *t)
}

// noteOddities counts what is odd about a trace but can be replayed.
func (c *wekaCorpus) noteOddities(t *wekaTrace) {
	undeclared, surplus := false, false
	for i := range t.requests {
		r := &t.requests[i]
		if len(t.declared) > 0 && !slices.Contains(t.declared, r.model) {
			c.undeclared.of(r.model)
			undeclared = true
		}
		all := (int(r.input) + int(t.blockSize) - 1) / int(t.blockSize)
		surplus = surplus || runBlocks(t.runs[r.prompt.from:r.prompt.to]) > all
	}
	if undeclared {
		c.undeclaring = append(c.undeclaring, t.at)
	}
	if surplus {
		c.surplus = append(c.surplus, t.at)
	}
}

// warnOfOddities tells of them, once for all traces.
func (c *wekaCorpus) warnOfOddities() {
	others := func(at []place) string {
		if len(at) == 1 {
			return ""
		}
		return fmt.Sprintf(", as in %d more traces", len(at)-1)
	}
	if len(c.undeclaring) > 0 {
		c.rows.warn("%s: models does not name %s, which requests of the trace used%s", c.show(c.undeclaring[0]), strings.Join(c.undeclared.list, ", "), others(c.undeclaring))
	}
	if len(c.surplus) > 0 {
		c.rows.warn("%s: hash_ids go on after the end of a prompt; the rest is passed over%s", c.show(c.surplus[0]), others(c.surplus))
	}
}

// placeSubagents brings the times of subagents' requests to the clock of their traces. If any of a subagent's requests
// seems to come before its marker, times are relative to markers, in the whole corpus.
func (c *wekaCorpus) placeSubagents() {
	const slackMs = 1e-3
	relative := c.spec.NestedTimestampBasis == NestedRelative
	if c.spec.NestedTimestampBasis == "" || c.spec.NestedTimestampBasis == NestedAuto {
		for i := range c.traces {
			for _, a := range c.traces[i].subagents {
				for _, r := range a.requests {
					relative = relative || c.traces[i].requests[r].startMs < a.markerMs-slackMs
				}
			}
		}
	}
	for i := range c.traces {
		t := &c.traces[i]
		for j := range t.subagents {
			a := &t.subagents[j]
			last := a.markerMs
			for _, r := range a.requests {
				if relative {
					t.requests[r].startMs = exactMs(t.requests[r].startMs + a.markerMs)
					t.requests[r].endMs = exactMs(t.requests[r].endMs + a.markerMs)
				}
				last = max(last, t.requests[r].endMs)
			}
			if math.IsNaN(a.endMs) {
				a.endMs = last
			}
		}
	}
}
