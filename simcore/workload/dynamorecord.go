package workload

import (
	"fmt"
	"math"
)

// dynamoSchema is the only record schema of Dynamo request traces that exists.
const dynamoSchema = "dynamo.request.trace.v1"

// dynamoRecord is one record of a Dynamo request trace, with the parts that a replay uses (spec/workloads.md §1.5).
// Its texts and lists are valid until the next record is read.
type dynamoRecord struct {
	seen      dynamoField
	schema    []byte
	eventType []byte
	eventMs   uint64

	session, parent []byte // of agent_context

	requestID, model   []byte
	output, receivedMs uint64
	totalMs            float64
	blockSize, input   uint64
	hashes, completion []uint64

	clientID              []byte // x_request_id, and how it was served
	ttftMs, itlMs, cached float64

	call               []byte // tool_call_id
	startedMs, endedMs uint64
	durationMs         float64

	source, consumer, child, mode []byte // of the tool's claude metadata
}

// dynamoField says which parts a record has.
type dynamoField uint32

const (
	hasSchema dynamoField = 1 << iota
	hasEventType
	hasEventTime
	hasEnvelope
	hasBrokenEnvelope // an envelope whose event is no object
	hasContext
	hasParentSession
	hasRequest
	hasRequestID
	hasOutputTokens
	hasReceived
	hasTotalTime
	hasReplay
	hasBlockSize
	hasInputLength
	hasInputHashes
	hasCompletionHashes
	hasTool
	hasStarted
	hasEnded
	hasDuration
	hasClaude
	hasSource
	hasConsumer
	hasChild
	hasTTFT
	hasITL
	hasCached
)

func (r *dynamoRecord) has(f dynamoField) bool { return r.seen&f == f }

// read parses one line. The fields that say what kind of record it is are checked by the caller.
func (r *dynamoRecord) read(data []byte) error {
	*r = dynamoRecord{hashes: r.hashes[:0], completion: r.completion[:0]}
	line := jsonLine{data: data}
	return line.object(func(key []byte) error { return r.recordField(&line, key) })
}

func (r *dynamoRecord) recordField(line *jsonLine, key []byte) (err error) {
	switch string(key) {
	case "schema":
		return r.text(line, "schema", hasSchema, &r.schema)
	case "event_type":
		return r.text(line, "event_type", hasEventType, &r.eventType)
	case "event_time_unix_ms":
		return r.unixMs(line, "event_time_unix_ms", hasEventTime, &r.eventMs)
	case "event":
		return r.envelope(line)
	case "agent_context":
		return r.part(line, "agent_context", hasContext, r.contextField)
	case "request":
		return r.part(line, "request", hasRequest, r.requestField)
	case "tool":
		return r.part(line, "tool", hasTool, r.toolField)
	}
	return line.skip()
}

// envelope reads the record inside {"timestamp": …, "event": {…}}.
func (r *dynamoRecord) envelope(line *jsonLine) error {
	if err := r.once("event", hasEnvelope); err != nil {
		return err
	}
	if line.space(); line.at < len(line.data) && line.data[line.at] != '{' {
		r.seen |= hasBrokenEnvelope
		return line.skip()
	}
	return line.nested("event", func(key []byte) error { return r.recordField(line, key) })
}

func (r *dynamoRecord) contextField(line *jsonLine, key []byte) error {
	switch string(key) {
	case "session_id":
		return r.text(line, "agent_context.session_id", 0, &r.session)
	case "parent_session_id":
		return r.text(line, "agent_context.parent_session_id", hasParentSession, &r.parent)
	}
	return line.skip()
}

func (r *dynamoRecord) requestField(line *jsonLine, key []byte) (err error) {
	switch string(key) {
	case "request_id":
		return r.text(line, "request.request_id", hasRequestID, &r.requestID)
	case "model":
		return r.text(line, "request.model", 0, &r.model)
	case "output_tokens":
		return r.whole(line, "request.output_tokens", hasOutputTokens, &r.output)
	case "request_received_ms":
		return r.unixMs(line, "request.request_received_ms", hasReceived, &r.receivedMs)
	case "total_time_ms":
		return r.duration(line, "request.total_time_ms", hasTotalTime, &r.totalMs)
	case "x_request_id":
		if line.space(); line.at < len(line.data) && line.data[line.at] == '"' {
			r.clientID, err = line.text()
			return err
		}
	case "ttft_ms":
		return r.figure(line, hasTTFT, &r.ttftMs)
	case "avg_itl_ms":
		return r.figure(line, hasITL, &r.itlMs)
	case "cached_tokens":
		return r.figure(line, hasCached, &r.cached)
	case "replay":
		return r.part(line, "request.replay", hasReplay, r.replayField)
	}
	return line.skip()
}

func (r *dynamoRecord) replayField(line *jsonLine, key []byte) error {
	switch string(key) {
	case "trace_block_size":
		return r.whole(line, "request.replay.trace_block_size", hasBlockSize, &r.blockSize)
	case "input_length":
		return r.whole(line, "request.replay.input_length", hasInputLength, &r.input)
	case "input_sequence_hashes":
		return r.list(line, "request.replay.input_sequence_hashes", hasInputHashes, &r.hashes)
	case "completion_sequence_hashes":
		return r.list(line, "request.replay.completion_sequence_hashes", hasCompletionHashes, &r.completion)
	}
	return line.skip()
}

func (r *dynamoRecord) toolField(line *jsonLine, key []byte) error {
	switch string(key) {
	case "tool_call_id":
		return r.text(line, "tool.tool_call_id", 0, &r.call)
	case "started_at_unix_ms":
		return r.unixMs(line, "tool.started_at_unix_ms", hasStarted, &r.startedMs)
	case "ended_at_unix_ms":
		return r.unixMs(line, "tool.ended_at_unix_ms", hasEnded, &r.endedMs)
	case "duration_ms":
		return r.duration(line, "tool.duration_ms", hasDuration, &r.durationMs)
	case "claude":
		return r.part(line, "tool.claude", hasClaude, r.claudeField)
	}
	return line.skip()
}

func (r *dynamoRecord) claudeField(line *jsonLine, key []byte) error {
	switch string(key) {
	case "source_request_id":
		return r.text(line, "tool.claude.source_request_id", hasSource, &r.source)
	case "consumer_request_id":
		return r.text(line, "tool.claude.consumer_request_id", hasConsumer, &r.consumer)
	case "child_session_id":
		return r.text(line, "tool.claude.child_session_id", hasChild, &r.child)
	case "execution_mode":
		return r.text(line, "tool.claude.execution_mode", 0, &r.mode)
	}
	return line.skip()
}

// The readers below leave a field out that is null. A field may be given once.

// once notes that a field is there; a second one is an error, since nobody could tell which counts.
func (r *dynamoRecord) once(name string, field dynamoField) error {
	if field != 0 && r.seen&field != 0 {
		return &fieldError{field: name, message: "is given twice"}
	}
	r.seen |= field
	return nil
}

func (r *dynamoRecord) part(line *jsonLine, name string, field dynamoField, each func(*jsonLine, []byte) error) error {
	if line.null() {
		return nil
	}
	if err := r.once(name, field); err != nil {
		return err
	}
	return line.nested(name, func(key []byte) error { return each(line, key) })
}

func (r *dynamoRecord) text(line *jsonLine, name string, field dynamoField, to *[]byte) (err error) {
	if line.null() {
		return nil
	}
	if err := r.once(name, field); err != nil {
		return err
	}
	if line.space(); line.at < len(line.data) && line.data[line.at] != '"' {
		return line.wrongType(name, "a string")
	}
	*to, err = line.text()
	return err
}

func (r *dynamoRecord) whole(line *jsonLine, name string, field dynamoField, to *uint64) (err error) {
	if line.null() {
		return nil
	}
	if err := r.once(name, field); err != nil {
		return err
	}
	*to, err = line.uint(name)
	return err
}

// unixMs reads a time in ms since 1970.
func (r *dynamoRecord) unixMs(line *jsonLine, name string, field dynamoField, to *uint64) error {
	if err := r.whole(line, name, field, to); err != nil {
		return err
	}
	if *to > maxTimeMs {
		return &fieldError{name, fmt.Sprint(*to), fmt.Sprintf("is beyond %g ms since 1970", maxTimeMs)}
	}
	return nil
}

// duration reads a time span in ms.
func (r *dynamoRecord) duration(line *jsonLine, name string, field dynamoField, to *float64) (err error) {
	if line.null() {
		return nil
	}
	if err := r.once(name, field); err != nil {
		return err
	}
	if *to, err = line.number(name); err != nil {
		return err
	}
	if *to < 0 || *to > maxTimeMs {
		return &fieldError{name, fmt.Sprint(*to), fmt.Sprintf("must be from 0 to %g ms", maxTimeMs)}
	}
	return nil
}

// figure reads a number of no use to a replay, so what is none is passed over.
func (r *dynamoRecord) figure(line *jsonLine, field dynamoField, to *float64) error {
	if line.space(); line.at >= len(line.data) || line.data[line.at] < '0' || line.data[line.at] > '9' {
		return line.skip()
	}
	v, err := line.number("figure")
	if err == nil {
		r.seen |= field
		*to = v
	}
	return err
}

func (r *dynamoRecord) list(line *jsonLine, name string, field dynamoField, to *[]uint64) (err error) {
	if line.null() {
		return nil
	}
	if err := r.once(name, field); err != nil {
		return err
	}
	*to, err = line.uints(name, *to)
	return err
}

// requestEndMs is when the request of a request_end record ended; half a millisecond counts as one.
func (r *dynamoRecord) requestEndMs() uint64 {
	if r.has(hasTotalTime) {
		return r.receivedMs + uint64(math.Floor(r.totalMs+0.5))
	}
	return max(r.eventMs, r.receivedMs)
}

// toolSpan is when the tool of a record ran, in ms since 1970; ok is false when it ended before it started.
func (r *dynamoRecord) toolSpan() (from, to uint64, ok bool) {
	to = r.eventMs
	if r.has(hasEnded) {
		to = r.endedMs
	}
	switch {
	case r.has(hasStarted):
		from = r.startedMs
	case r.has(hasDuration):
		from = to - min(to, uint64(math.Floor(r.durationMs+0.5)))
	default:
		from = to
	}
	return from, to, from <= to
}

// checkRequest reports what is wrong with a request_end record by itself.
func (r *dynamoRecord) checkRequest() error {
	for _, f := range []struct {
		field dynamoField
		name  string
	}{
		{hasRequest, "request"}, {hasRequestID, "request.request_id"}, {hasOutputTokens, "request.output_tokens"}, {hasReceived, "request.request_received_ms"},
		{hasReplay, "request.replay"}, {hasBlockSize, "request.replay.trace_block_size"}, {hasInputLength, "request.replay.input_length"},
		{hasInputHashes, "request.replay.input_sequence_hashes"},
	} {
		if !r.has(f.field) {
			return &fieldError{field: f.name, message: "is missing; a replay can't do without it"}
		}
	}
	switch {
	case len(r.requestID) == 0:
		return &fieldError{field: "request.request_id", message: "must not be empty"}
	case r.blockSize < 1 || r.blockSize > MaxTokens:
		return &fieldError{"request.replay.trace_block_size", fmt.Sprint(r.blockSize), fmt.Sprintf("must be from 1 to %d tokens", MaxTokens)}
	case r.input < 1 || r.input > MaxTokens:
		return &fieldError{"request.replay.input_length", fmt.Sprint(r.input), fmt.Sprintf("must be from 1 to %d tokens", MaxTokens)}
	case r.output > MaxTokens:
		return &fieldError{"request.output_tokens", fmt.Sprint(r.output), fmt.Sprintf("is above the limit of %d tokens", MaxTokens)}
	}
	return r.checkHashes()
}

// checkHashes compares the numbers of hashes with the lengths that they must cover.
func (r *dynamoRecord) checkHashes() error {
	blocks := func(tokens uint64) uint64 { return (tokens + r.blockSize - 1) / r.blockSize }
	if want := blocks(r.input); uint64(len(r.hashes)) != want {
		return &fieldError{"request.replay.input_length", fmt.Sprint(r.input),
			fmt.Sprintf("needs %d input_sequence_hashes of %d tokens each, there are %d", want, r.blockSize, len(r.hashes))}
	}
	if len(r.completion) == 0 {
		return nil
	}
	const name = "request.replay.completion_sequence_hashes"
	if want := blocks(r.input + r.output); uint64(len(r.completion)) != want {
		return &fieldError{field: name, message: fmt.Sprintf("%d input and %d output tokens need %d hashes of %d tokens each, there are %d",
			r.input, r.output, want, r.blockSize, len(r.completion))}
	}
	for i := range r.input / r.blockSize {
		if r.completion[i] != r.hashes[i] {
			return &fieldError{field: name, message: fmt.Sprintf("begins with other hashes than the input: hash %d is %d, the input's is %d", i, r.completion[i], r.hashes[i])}
		}
	}
	return nil
}
