package workload

import (
	"fmt"
	"math"
	"slices"
)

// wekaTrace is one conversation of a WEKA corpus: what its main agent and the subagents asked for (spec/workloads.md
// §1.6).
type wekaTrace struct {
	at        place
	id        string
	blockSize uint64
	global    bool // hash ids mean the same in all traces
	declared  []string
	requests  []wekaRequest // of all agents
	main      []int32       // requests of the main agent, in order of the file
	subagents []wekaSubagent
	blocks    hashNames
	runs      []Segment // of names in blocks
}

// wekaRequest is one request; times are in ms from the trace's start.
type wekaRequest struct {
	// outer is its place in the trace's list, or that of its subagent; inner is its place in the subagent's, -1 without.
	outer, inner   int32
	startMs, endMs float64
	input, output  int32
	model          string
	prompt         span // of the trace's runs: the hash ids of whole blocks
}

// wekaSubagent is an agent that the main one started.
type wekaSubagent struct {
	outer    int32
	agent    string
	markerMs float64
	endMs    float64 // NaN when the trace does not say
	spawner  int32   // the main agent's request before it in the file
	requests []int32
}

// wekaItem is one element of a list of requests as it stands in the file.
type wekaItem struct {
	seen                   wekaField
	t, apiTime, durationMs float64
	kind, model, agent     string
	input, output          uint64
	hashes                 []uint64
	declared               []string
	inner                  []wekaItem
}

type wekaField uint16

const (
	wekaT wekaField = 1 << iota
	wekaType
	wekaIn
	wekaOut
	wekaAPITime
	wekaDuration
	wekaAgent
	wekaRequests
)

// wekaKeys are keys that the format has and a replay does not need.
var wekaKeys = []string{
	"input_types", "output_types", "stop", "think_time", "ttft", "subagent_type", "total_tokens", "tool_use_count", "status",
	"tool_tokens", "system_tokens", "totals",
}

// read parses one element; unknown is told of keys that the format does not have. depth is 1 within a subagent.
func (item *wekaItem) read(line *jsonLine, depth int, unknown func(key string)) error {
	return line.members(func(key []byte) error { return item.field(line, key, depth, unknown) })
}

func (item *wekaItem) field(line *jsonLine, key []byte, depth int, unknown func(key string)) (err error) {
	field := wekaField(0)
	name := ""
	switch string(key) {
	case "t":
		field, name = wekaT, "t"
	case "type":
		field, name = wekaType, "type"
	case "in":
		field, name = wekaIn, "in"
	case "out":
		field, name = wekaOut, "out"
	case "api_time":
		field, name = wekaAPITime, "api_time"
	case "duration_ms":
		field, name = wekaDuration, "duration_ms"
	case "agent_id":
		field, name = wekaAgent, "agent_id"
	case "requests":
		field, name = wekaRequests, "requests"
	case "hash_ids", "model", "models":
	default:
		if !slices.Contains(wekaKeys, string(key)) {
			unknown(string(key))
		}
		return line.skip()
	}
	if item.seen&field != 0 {
		return &fieldError{field: name, message: "is given twice"}
	}
	if line.null() {
		return nil
	}
	item.seen |= field
	switch field {
	case wekaT:
		item.t, err = line.seconds("t")
	case wekaAPITime:
		item.apiTime, err = line.seconds("api_time")
	case wekaDuration:
		if item.durationMs, err = line.number("duration_ms"); err == nil && (item.durationMs < 0 || item.durationMs > maxTimeMs) {
			err = &fieldError{"duration_ms", fmt.Sprint(item.durationMs), fmt.Sprintf("must be from 0 to %g ms", maxTimeMs)}
		}
	case wekaType:
		item.kind, err = line.textField("type")
	case wekaIn:
		item.input, err = line.uint("in")
	case wekaOut:
		item.output, err = line.uint("out")
	case wekaAgent:
		item.agent, err = line.textField("agent_id")
	case wekaRequests:
		err = item.readInner(line, depth, unknown)
	default:
		switch string(key) {
		case "hash_ids":
			item.hashes, err = line.uints("hash_ids", item.hashes[:0])
		case "model":
			item.model, err = line.textField("model")
		case "models":
			item.declared, err = line.texts("models")
		}
	}
	return err
}

func (item *wekaItem) readInner(line *jsonLine, depth int, unknown func(key string)) error {
	if depth > 0 {
		return &fieldError{field: "requests", message: "a subagent within a subagent; the format has one level"}
	}
	return line.list("requests", "a list", func() error {
		var inner wekaItem
		if err := inner.read(line, depth+1, unknown); err != nil {
			return fmt.Errorf("requests[%d]: %w", len(item.inner), err)
		}
		item.inner = append(item.inner, inner)
		return nil
	})
}

// seconds reads a time in s and returns ms, rounded so that decimals mean what they say.
func (l *jsonLine) seconds(field string) (float64, error) {
	v, err := l.number(field)
	if err != nil {
		return 0, err
	}
	if v < 0 || v > maxTimeMs/1000 {
		return 0, &fieldError{field, fmt.Sprint(v), fmt.Sprintf("must be from 0 to %g seconds", maxTimeMs/1000)}
	}
	return exactMs(v * 1000), nil
}

// exactMs rounds a time in ms to 1e-6, which is finer than any trace and undoes what binary fractions add.
func exactMs(ms float64) float64 { return math.Round(ms*1e6) / 1e6 }

// check reports what is wrong with a request by itself.
func (item *wekaItem) check() error {
	switch {
	case item.seen&wekaT == 0:
		return &fieldError{field: "t", message: "is missing"}
	case item.seen&wekaIn == 0:
		return &fieldError{field: "in", message: "is missing"}
	case item.seen&wekaOut == 0:
		return &fieldError{field: "out", message: "is missing"}
	case item.input < 1 || item.input > MaxTokens:
		return &fieldError{"in", fmt.Sprint(item.input), fmt.Sprintf("must be from 1 to %d tokens", MaxTokens)}
	case item.output > MaxTokens:
		return &fieldError{"out", fmt.Sprint(item.output), fmt.Sprintf("is above the limit of %d tokens", MaxTokens)}
	}
	return nil
}
