package workload

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// defaultCharactersPerToken is how many characters of English text make a token, roughly, in most vocabularies.
const defaultCharactersPerToken = 4

// aiperf reads the mooncake_trace format of AIPerf (spec/workloads.md §1.7): rows that state a length, with or without
// hash ids, or a text, messages or a whole request body. A text is as many tokens as its characters make at a fixed
// rate, and texts that begin alike share the blocks that they have in common. A later turn with a timestamp starts then, or
// when the turn before it has ended, if that is later (§4.1).
type aiperf struct {
	spec     TraceSpec
	rows     *findings
	builder  *Builder
	sessions map[string]*aiperfSession
	blocks   map[[16]byte]uint64 // ids of blocks of text
	hashes   []uint64
	turns    []aiperfTurn
	timed    bool // some later turn has a timestamp
	guessed  int  // rows without an output length
	early    int  // first turns with a delay
}

// aiperfTurn says when a turn starts: not before a time, and so long after another one.
type aiperfTurn struct {
	floorMs, delayMs float64 // the floor is NaN without a timestamp
	before           int32   // noRequest for a first turn
}

// aiperfSession is what later rows of a session are checked against.
type aiperfSession struct {
	content  aiperfField
	lastMs   float64 // the time of the last row that has one; NaN if none has
	lastTurn int32
}

func loadAIPerf(ctx context.Context, s TraceSpec, src Source, found *findings) (*Workload, error) {
	if s.CharactersPerToken == 0 {
		s.CharactersPerToken = defaultCharactersPerToken
	}
	a := aiperf{rows: found, spec: s, builder: NewBuilder(s.name(), s.BlockSize), sessions: map[string]*aiperfSession{}, blocks: map[[16]byte]uint64{}}
	for _, path := range s.Paths {
		if err := a.rows.eachLine(ctx, src, path, func(_ int, line []byte) error { return a.readLine(line) }); err != nil {
			return nil, err
		}
	}
	if a.guessed > 0 {
		found.warn("%d rows state no output length and get %d tokens (default_output_length)", a.guessed, s.DefaultOutputLength)
	}
	if a.early > 0 {
		found.warn("%d first turns of a session have a delay, which has nothing to wait for and is left out", a.early)
	}
	return a.finish()
}

// aiperfRow is one line; the seen bits tell which fields it has.
type aiperfRow struct {
	seen             aiperfField
	input, output    uint64
	timestamp, delay float64
	session          string
	tools, text      strings.Builder // what the prompt consists of
	limit            uint64          // the answer's length in a payload; 0 when it has none
}

type aiperfField uint16

const (
	aiperfInput aiperfField = 1 << iota
	aiperfText
	aiperfMessages
	aiperfPayload
	aiperfTools
	aiperfHashes
	aiperfOutput
	aiperfTimestamp
	aiperfDelay
	aiperfSessionID

	aiperfContent = aiperfInput | aiperfText | aiperfMessages | aiperfPayload
)

// aiperfFields are the fields that count; what else there is, such as extra, does not change the work.
var aiperfFields = map[string]aiperfField{
	"input_length": aiperfInput, "text_input": aiperfText, "messages": aiperfMessages, "payload": aiperfPayload,
	"tools": aiperfTools, "hash_ids": aiperfHashes, "output_length": aiperfOutput, "timestamp": aiperfTimestamp,
	"delay": aiperfDelay, "session_id": aiperfSessionID,
}

func (a *aiperf) readLine(data []byte) error {
	var row aiperfRow
	a.hashes = a.hashes[:0]
	line := jsonLine{data: data}
	if err := line.object(func(key []byte) error { return a.readField(&line, &row, key) }); err != nil {
		return err
	}
	return a.addRow(&row)
}

func (a *aiperf) readField(line *jsonLine, row *aiperfRow, key []byte) (err error) {
	field := aiperfFields[string(key)]
	if ok, err := wanted(line, &row.seen, field, key, givenTwice); !ok {
		return err
	}
	switch field {
	case aiperfInput:
		row.input, err = line.uint("input_length")
	case aiperfOutput:
		row.output, err = line.uint("output_length")
	case aiperfTimestamp:
		row.timestamp, err = line.number("timestamp")
	case aiperfDelay:
		row.delay, err = line.number("delay")
	case aiperfSessionID:
		row.session, err = line.identifier("session_id")
	case aiperfHashes:
		a.hashes, err = line.uints("hash_ids", a.hashes)
	case aiperfText:
		err = line.appendText("text_input", &row.text)
	case aiperfMessages:
		err = line.appendMessages("messages", &row.text)
	case aiperfTools:
		err = line.appendTools("tools", &row.tools)
	case aiperfPayload:
		err = line.appendPayload(row)
	}
	return err
}

// addRow checks a row as a whole and hands it to the builder.
func (a *aiperf) addRow(row *aiperfRow) error {
	if err := row.check(); err != nil {
		return err
	}
	r := Request{Session: row.session, Hashes: a.hashes}
	if row.seen&aiperfInput == 0 {
		row.input = a.addText(&r, row.tools.String()+row.text.String())
	}
	switch {
	case row.seen&aiperfOutput != 0:
	case row.limit > 0:
		row.output = row.limit
	case a.spec.DefaultOutputLength > 0:
		row.output = uint64(a.spec.DefaultOutputLength)
		a.guessed++
	default:
		return &fieldError{field: "output_length", message: "is missing; give it, or a default_output_length"}
	}
	if err := r.setLengths(row.input, row.output, a.spec.BlockSize); err != nil {
		return err
	}
	turn, err := a.place(row)
	if err != nil {
		return err
	}
	if r.ArrivalMs, r.DelayMs = math.NaN(), turn.delayMs; turn.before == noRequest {
		r.ArrivalMs = turn.floorMs
	}
	a.builder.Add(r)
	a.turns = append(a.turns, turn)
	return nil
}

// check says what AIPerf refuses about the fields of a row together.
func (row *aiperfRow) check() error {
	const contents = "'input_length', 'text_input', 'messages', or 'payload'"
	switch content := row.seen & aiperfContent; {
	case content == 0:
		return &fieldError{message: "exactly one of " + contents + " must be provided"}
	case content&(content-1) != 0:
		return &fieldError{message: contents + " are mutually exclusive; use only one of them"}
	case row.seen&aiperfTools != 0 && content != aiperfMessages:
		return &fieldError{field: "tools", message: "is only allowed when 'messages' is provided"}
	case row.seen&aiperfHashes != 0 && content != aiperfInput:
		return &fieldError{field: "hash_ids", message: "is only allowed when 'input_length' is provided"}
	}
	return nil
}

// addText gives a request the blocks of its prompt's text, and returns its length in tokens, at least 1.
func (a *aiperf) addText(r *Request, text string) uint64 {
	tokens := uint64(math.Ceil(float64(utf8.RuneCountInString(text)) / a.spec.CharactersPerToken))
	if tokens = max(tokens, 1); tokens > MaxTokens {
		return tokens
	}
	for block := range (int(tokens) + a.spec.BlockSize - 1) / a.spec.BlockSize {
		// The end of each block in characters comes from the start of the text, so that equal texts are cut alike.
		end := int(float64((block+1)*a.spec.BlockSize)*a.spec.CharactersPerToken) - int(float64(block*a.spec.BlockSize)*a.spec.CharactersPerToken)
		part := firstCharacters(text, end)
		text = text[len(part):]
		sum := sha256.Sum256([]byte(part))
		id, known := a.blocks[[16]byte(sum[:16])]
		if !known {
			// From the top down, so that they stay apart from the ids of other rows.
			id = math.MaxUint64 - uint64(len(a.blocks))
			a.blocks[[16]byte(sum[:16])] = id
		}
		a.hashes = append(a.hashes, id)
	}
	r.Hashes = a.hashes
	return tokens
}

// firstCharacters returns the first n characters of a text.
func firstCharacters(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// place says when a row's turn starts.
func (a *aiperf) place(row *aiperfRow) (aiperfTurn, error) {
	turn := aiperfTurn{floorMs: math.NaN(), before: noRequest}
	if math.Abs(row.timestamp) > maxTimeMs {
		return turn, &fieldError{"timestamp", fmt.Sprint(row.timestamp), fmt.Sprintf("is beyond ±%g ms", maxTimeMs)}
	}
	if row.delay < 0 || row.delay > maxTimeMs {
		return turn, &fieldError{"delay", fmt.Sprint(row.delay), fmt.Sprintf("must be from 0 to %g ms", maxTimeMs)}
	}
	if row.seen&aiperfTimestamp != 0 {
		turn.floorMs = row.timestamp
	}
	session := a.sessions[row.session]
	switch {
	case session != nil:
		if err := session.follow(&turn, row); err != nil {
			return turn, err
		}
		a.timed = a.timed || !math.IsNaN(turn.floorMs)
	default:
		if row.delay > 0 {
			a.early++
		}
		if row.session == "" {
			return turn, nil
		}
		session = &aiperfSession{content: row.seen & aiperfContent, lastMs: math.NaN()}
		a.sessions[row.session] = session
	}
	session.lastTurn = int32(len(a.turns))
	if row.seen&aiperfTimestamp != 0 {
		session.lastMs = row.timestamp
	}
	return turn, nil
}

// follow checks a later turn and says what it waits for: a delay counts from the end of the turn before, and goes before a
// timestamp.
func (s *aiperfSession) follow(turn *aiperfTurn, row *aiperfRow) error {
	const literal = aiperfMessages | aiperfPayload
	switch content := row.seen & aiperfContent; {
	case content != s.content && (content|s.content)&^literal == 0:
		return &fieldError{message: fmt.Sprintf("session %q mixes 'messages' and 'payload' rows; use one of them", row.session)}
	case content != s.content && (content|s.content)&literal != 0:
		return &fieldError{message: fmt.Sprintf("session %q mixes raw 'messages' or 'payload' rows with synthesized prompts; use one of them", row.session)}
	}
	turn.before = s.lastTurn
	if row.seen&aiperfDelay != 0 {
		turn.delayMs, turn.floorMs = row.delay, math.NaN()
	} else if turn.floorMs < s.lastMs {
		return &fieldError{"timestamp", fmt.Sprint(row.timestamp), fmt.Sprintf("is before the previous turn of session %q at %g ms", row.session, s.lastMs)}
	}
	return nil
}

// finish makes the workload: sessions, or a graph where later turns have times.
func (a *aiperf) finish() (*Workload, error) {
	if !a.timed {
		return a.spec.finish(a.builder, a.rows)
	}
	zero, undated := math.Inf(1), 0
	for _, turn := range a.turns {
		if !math.IsNaN(turn.floorMs) {
			zero = min(zero, turn.floorMs)
		}
	}
	b := &GraphBuilder{requests: a.builder}
	for session := range a.builder.turns {
		b.plays.list = append(b.plays.list, a.builder.w.SessionName(session))
	}
	for number, turn := range a.turns {
		extra := graphExtra{notBeforeMs: turn.floorMs - zero, startMs: math.NaN(), endMs: math.NaN(), play: a.builder.sessionOf[number], model: -1}
		switch {
		case turn.before == noRequest && math.IsNaN(turn.floorMs):
			extra.notBeforeMs = 0
			undated++
		case math.IsNaN(turn.floorMs):
			extra.notBeforeMs = math.Inf(-1)
		}
		if turn.before != noRequest {
			b.AddEdge(int32(number), Edge{From: turn.before, DelayMs: turn.delayMs})
		}
		b.extra = append(b.extra, extra)
		a.builder.w.ArrivalMs[number], a.builder.w.DelayMs[number] = math.NaN(), 0
	}
	if undated > 0 {
		a.rows.warn("%d sessions have no timestamp and start at the first time of the trace", undated)
	}
	return a.spec.finish(b, a.rows)
}
