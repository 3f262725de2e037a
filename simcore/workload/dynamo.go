package workload

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// dynamoCapture is what the files of a Dynamo request trace hold: the requests of a run that a frontend served, and
// what its tools did in between (spec/workloads.md §1.5). Read dynamorecord.go for a record, dynamoshards.go for the
// files, then dynamograph.go for how the requests depend on each other.
type dynamoCapture struct {
	spec TraceSpec
	src  Source

	blockSize   uint64
	blockSizeAt place
	requests    []dynamoRequest
	byID        map[string]int32 // requests
	sessions    []dynamoSession
	byName      map[string]int32 // sessions
	tools       []dynamoTool
	unfinished  map[string]place // what began and has not ended yet
	blocks      hashNames
	models      interned
	runs        []Segment // of block names, see dynamoRequest.prompt

	rows   *findings
	record dynamoRecord

	notRecords     int // lines that are no objects
	firstNotRecord place
}

// place is a line of one of the files.
type place struct{ file, line int32 }

// dynamoRequest is a request that ended.
type dynamoRequest struct {
	id, model      string
	at             place
	session        int32 // -1 when the record has no agent_context
	startMs, endMs uint64
	input, output  int32
	prompt         span // of the capture's runs: the blocks of the input
	answer         span // the blocks of input and output together; empty when they are not known
	measured       *Measured
}

type span struct{ from, to int32 }

// dynamoSession is an agent's conversation. Sessions that only tools or children name have no requests.
type dynamoSession struct {
	name     string
	parent   int32 // noSession for none
	parentAt place
	requests []int32 // by start, end and id once sorted
	tools    []int32
}

const noSession = -1

// dynamoTool is a tool call that ended.
type dynamoTool struct {
	call                    string
	at                      place
	session                 int32
	fromMs, toMs            uint64
	inverted                bool // it ended before it began
	background              bool
	child, source, consumer string // what the agent's harness says about a subagent
}

// loadDynamo reads a Dynamo request trace, in any number of plain or compressed files in any order, and checks the files
// against each other.
func loadDynamo(ctx context.Context, s TraceSpec, src Source, found *findings) (*Workload, error) {
	c := &dynamoCapture{
		spec: s, src: src, rows: found, byID: map[string]int32{}, byName: map[string]int32{}, unfinished: map[string]place{},
	}
	for i, path := range s.Paths {
		err := found.eachLine(ctx, src, path, func(number int, line []byte) error {
			return c.readLine(place{int32(i), int32(number)}, line)
		})
		if err != nil {
			return nil, err
		}
	}
	found.tools = len(c.tools)
	c.sort()
	c.checkContexts()
	c.checkSessions()
	c.checkUnfinished()
	if c.notRecords > 0 {
		more := ""
		if n := c.notRecords - 1; n > 0 {
			more = fmt.Sprintf(", as are %d more", n)
		}
		found.warn("%s: this line holds no record and is passed over%s", c.show(c.firstNotRecord), more)
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	if len(c.requests) == 0 {
		return nil, s.nothing(found, "has no request_end records with replay fields")
	}
	return c.workload()
}

// show is a place as people read it.
func (c *dynamoCapture) show(at place) string {
	return fmt.Sprintf("%s:%d", c.spec.Paths[at.file], at.line)
}

// problem notes what no replay can do with.
func (c *dynamoCapture) problem(at place, format string, args ...any) {
	c.rows.add(c.spec.Paths[at.file], int(at.line), fmt.Errorf(format, args...))
}

func (c *dynamoCapture) readLine(at place, data []byte) error {
	line := jsonLine{data: data}
	if line.space(); line.at < len(data) && data[line.at] != '{' {
		if err := line.skip(); err != nil {
			return err
		}
		if line.space(); line.at < len(data) {
			return line.notJSON("the end of the line")
		}
		return c.passOver(at)
	}
	r := &c.record
	if err := r.read(data); err != nil {
		return err
	}
	if r.has(hasBrokenEnvelope) {
		if c.src.Rules.SkipBrokenEnvelopes {
			return c.passOver(at)
		}
		return &fieldError{field: "event", message: "must be an object, the record"}
	}
	return c.addRecord(at, r)
}

// passOver counts a line that holds no record.
func (c *dynamoCapture) passOver(at place) error {
	if c.notRecords == 0 {
		c.firstNotRecord = at
	}
	c.notRecords++
	return nil
}

func (c *dynamoCapture) addRecord(at place, r *dynamoRecord) error {
	if !r.has(hasSchema) {
		return &fieldError{field: "schema", message: "is missing; every record of a Dynamo request trace has " + dynamoSchema}
	}
	if string(r.schema) != dynamoSchema {
		return &fieldError{"schema", shortened(string(r.schema)), "is not supported; use records of " + dynamoSchema}
	}
	if !r.has(hasEventType) {
		return &fieldError{field: "event_type", message: "is missing"}
	}
	if !r.has(hasEventTime) {
		return &fieldError{field: "event_time_unix_ms", message: "is missing"}
	}
	switch string(r.eventType) {
	case "request_end":
		return c.addRequest(at, r)
	case "tool_end", "tool_error":
		return c.addTool(at, r)
	case "tool_start":
		c.begin(at, toolKey(r))
		return nil
	case "request_payload":
		if c.src.Rules.RefusePayloadRecords {
			break
		}
		c.begin(at, requestKey(r))
		return nil
	}
	return &fieldError{"event_type", shortened(string(r.eventType)), "is not supported; a replay uses request_end, tool_end and tool_error, and passes over tool_start and request_payload"}
}

// What has begun and not ended is known by these keys, which say for people what it is; "" is not followed up.

func toolKey(r *dynamoRecord) string {
	if len(r.call) == 0 {
		return ""
	}
	return fmt.Sprintf("tool call %q of session %q", r.call, r.session)
}

func requestKey(r *dynamoRecord) string {
	if len(r.requestID) == 0 {
		return ""
	}
	return fmt.Sprintf("request %q", r.requestID)
}

func (c *dynamoCapture) begin(at place, key string) {
	if key != "" {
		c.unfinished[key] = at
	}
}

func (c *dynamoCapture) end(key string) {
	if len(c.unfinished) > 0 {
		delete(c.unfinished, key)
	}
}

func (c *dynamoCapture) addRequest(at place, r *dynamoRecord) error {
	if err := r.checkRequest(); err != nil {
		return err
	}
	if first, ok := c.byID[string(r.requestID)]; ok {
		return &fieldError{"request.request_id", shortened(string(r.requestID)), fmt.Sprintf("is the one of %s too; was a file given twice?", c.show(c.requests[first].at))}
	}
	switch {
	case c.blockSize == 0:
		if given := uint64(c.spec.BlockSize); given != 0 && given != r.blockSize {
			return &fieldError{"request.replay.trace_block_size", fmt.Sprint(r.blockSize), fmt.Sprintf("does not match the block size %d that was asked for; leave that out", given)}
		}
		c.blockSize, c.blockSizeAt = r.blockSize, at
	case r.blockSize != c.blockSize:
		return &fieldError{"request.replay.trace_block_size", fmt.Sprint(r.blockSize), fmt.Sprintf("differs from the %d of %s; blocks of two sizes can't be compared", c.blockSize, c.show(c.blockSizeAt))}
	}
	session, err := c.sessionOf(at, r)
	if err != nil {
		return err
	}
	number := int32(len(c.requests))
	request := dynamoRequest{
		id: string(r.requestID), model: c.models.same(r.model), at: at, session: session, startMs: r.receivedMs, endMs: r.requestEndMs(),
		input: int32(r.input), output: int32(r.output), prompt: c.addBlocks(r.hashes), measured: c.measured(r),
	}
	if len(r.completion) > 0 {
		request.answer = c.addBlocks(r.completion)
	}
	c.requests = append(c.requests, request)
	c.byID[request.id] = number
	if session != noSession {
		c.sessions[session].requests = append(c.sessions[session].requests, number)
	}
	c.end(requestKey(r))
	return nil
}

// sessionOf returns the session of a request_end record.
func (c *dynamoCapture) sessionOf(at place, r *dynamoRecord) (int32, error) {
	if !r.has(hasContext) {
		return noSession, nil
	}
	if len(r.session) == 0 && !c.src.Rules.EmptySessionNames {
		return 0, &fieldError{field: "agent_context.session_id", message: "must not be empty"}
	}
	number := c.session(r.session)
	if len(r.parent) == 0 {
		return number, nil
	}
	parent := c.session(r.parent)
	session := &c.sessions[number]
	switch {
	case parent == number:
		return 0, &fieldError{"agent_context.parent_session_id", shortened(string(r.parent)), "is the session itself, which would wait for itself"}
	case session.parent == noSession:
		session.parent, session.parentAt = parent, at
	case session.parent != parent:
		return 0, &fieldError{"agent_context.parent_session_id", shortened(string(r.parent)), fmt.Sprintf("conflicts with %s, where the parent of session %s is %s",
			c.show(session.parentAt), shortened(session.name), shortened(c.sessions[session.parent].name))}
	}
	return number, nil
}

// session returns the number of a session by name.
func (c *dynamoCapture) session(name []byte) int32 {
	if number, ok := c.byName[string(name)]; ok {
		return number
	}
	number := int32(len(c.sessions))
	c.sessions = append(c.sessions, dynamoSession{name: string(name), parent: noSession})
	c.byName[string(name)] = number
	return number
}

func (c *dynamoCapture) addTool(at place, r *dynamoRecord) error {
	if !r.has(hasTool) {
		return &fieldError{field: "tool", message: "is missing"}
	}
	c.end(toolKey(r))
	if !r.has(hasContext) {
		return nil // nobody waits for it
	}
	from, to, ok := r.toolSpan()
	tool := dynamoTool{call: string(r.call), at: at, fromMs: from, toMs: to, inverted: !ok}
	if r.has(hasClaude) {
		switch string(r.mode) {
		case "blocking", "":
		case "background":
			tool.background = true
		default:
			return &fieldError{"tool.claude.execution_mode", shortened(string(r.mode)), "use blocking or background"}
		}
		tool.child, tool.source, tool.consumer = string(r.child), string(r.source), string(r.consumer)
	}
	tool.session = c.session(r.session)
	session := &c.sessions[tool.session]
	session.tools = append(session.tools, int32(len(c.tools)))
	c.tools = append(c.tools, tool)
	return nil
}

// addBlocks stores a list of hashes as runs of block names.
func (c *dynamoCapture) addBlocks(hashes []uint64) span {
	from := len(c.runs)
	c.runs = c.blocks.appendRuns(c.runs, hashes)
	return span{int32(from), int32(len(c.runs))}
}

// interned keeps one copy of each text.
type interned map[string]string

func (t *interned) same(text []byte) string {
	if known, ok := (*t)[string(text)]; ok {
		return known
	}
	if *t == nil {
		*t = interned{}
	}
	(*t)[string(text)] = string(text)
	return (*t)[string(text)]
}

// byTime orders requests by start, end and id, whatever file they are in.
func (c *dynamoCapture) byTime(a, b int32) int {
	x, y := &c.requests[a], &c.requests[b]
	return cmp.Or(cmp.Compare(x.startMs, y.startMs), cmp.Compare(x.endMs, y.endMs), strings.Compare(x.id, y.id))
}

// sort puts the requests of each session in order.
func (c *dynamoCapture) sort() {
	for i := range c.sessions {
		slices.SortFunc(c.sessions[i].requests, c.byTime)
	}
}

// checkContexts finds requests of sessions and requests without one in one file. A capture keeps each kind in files of its own,
// so where they are mixed some have lost their session; salvaging takes them for requests without one.
func (c *dynamoCapture) checkContexts() {
	type kinds struct{ alone, inSession int32 }
	perFile := make([]kinds, len(c.spec.Paths))
	for i := range perFile {
		perFile[i] = kinds{noRequest, noRequest}
	}
	for i := range c.requests {
		file := c.requests[i].at.file
		if c.src.Rules.OneKindOfRequests {
			file = 0
		}
		of := &perFile[file].inSession
		if c.requests[i].session == noSession {
			of = &perFile[file].alone
		}
		if *of == noRequest {
			*of = int32(i)
		}
	}
	for _, k := range perFile {
		if k.alone == noRequest || k.inSession == noRequest {
			continue
		}
		at, other := c.requests[k.alone].at, c.show(c.requests[k.inSession].at)
		if c.rows.salvage && !c.src.Rules.OneKindOfRequests {
			c.rows.doubt("%s: agent_context is missing, but %s has one; requests without are replayed at their recorded times", c.show(at), other)
			continue
		}
		c.rows.fatal = true
		c.rows.add(c.spec.Paths[at.file], int(at.line), &fieldError{field: "agent_context",
			message: fmt.Sprintf("is missing, but %s has one; put requests without a session into files of their own, or take them at their recorded times with --salvage", other)})
	}
}

// agentic reports whether requests belong to sessions.
func (c *dynamoCapture) agentic() bool {
	return slices.ContainsFunc(c.requests, func(r dynamoRequest) bool { return r.session != noSession })
}

// checkSessions looks for sessions of which only children or tools speak.
func (c *dynamoCapture) checkSessions() {
	if !c.agentic() {
		return
	}
	for i := range c.sessions {
		session := &c.sessions[i]
		switch {
		case len(session.requests) > 0:
			if parent := session.parent; parent != noSession && len(c.sessions[parent].requests) == 0 {
				c.rows.doubt("%s: parent_session_id is %s: no request of that session was captured, so session %s starts at its recorded time",
					c.show(session.parentAt), shortened(c.sessions[parent].name), shortened(session.name))
			}
		case len(session.tools) > 0:
			c.rows.doubt("%s: a tool call of session %s: no request of that session was captured", c.show(c.tools[session.tools[0]].at), shortened(session.name))
		}
	}
}

// checkUnfinished tells of requests and tool calls that began and never ended: the run or its capture was cut off.
func (c *dynamoCapture) checkUnfinished() {
	open := slices.SortedFunc(maps.Keys(c.unfinished), func(a, b string) int {
		x, y := c.unfinished[a], c.unfinished[b]
		return cmp.Or(cmp.Compare(x.file, y.file), cmp.Compare(x.line, y.line), strings.Compare(a, b))
	})
	for i, what := range open {
		if i == maxTraceProblems {
			c.rows.doubt("and %d more requests and tool calls that never end", len(open)-i)
			break
		}
		c.rows.doubt("%s: %s begins here and never ends: it was cancelled, or the capture was cut off", c.show(c.unfinished[what]), what)
	}
}
