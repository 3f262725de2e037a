package workload

import (
	"context"
	"fmt"
	"math"
	"strings"
)

// maxTraceProblems is how many bad lines one error lists, and maxBadLines after how many more nobody needs a count.
const (
	maxTraceProblems = 20
	maxBadLines      = 100_000
)

// TraceError lists the bad lines of a trace.
type TraceError struct {
	// Problems holds the first bad lines, one "file:line: what is wrong" each.
	Problems []string
	// More counts the bad lines beyond those.
	More int
}

// Error lists the problems, one a line.
func (e *TraceError) Error() string {
	text := strings.Join(e.Problems, "\n")
	if e.More > 0 {
		text += fmt.Sprintf("\nand %d more bad lines", e.More)
	}
	return text
}

// maxGrowth is the file size up to which room is reserved at once.
const maxGrowth = 1 << 30

// mooncake reads Mooncake JSON Lines: one request a line, prompts as ids of fixed-size blocks.
type mooncake struct {
	spec        TraceSpec
	src         Source
	rows        *findings
	builder     *Builder
	lastArrival map[string]float64 // of each session's previous row; NaN when it had none
	hashes      []uint64
	ids         map[string]bool // of requests
	again       int             // rows with the id of an earlier one
	firstAgain  string
}

func loadMooncake(ctx context.Context, s TraceSpec, src Source, found *findings) (*Workload, error) {
	m := newMooncake(s, src, found)
	if err := m.read(ctx); err != nil {
		return nil, err
	}
	return s.finish(m.builder, found)
}

func newMooncake(s TraceSpec, src Source, found *findings) *mooncake {
	return &mooncake{spec: s, src: src, rows: found, builder: NewBuilder(s.name(), s.BlockSize), lastArrival: map[string]float64{}, ids: map[string]bool{}}
}

// read reads all files; what is wrong with rows is kept.
func (m *mooncake) read(ctx context.Context) error {
	for _, path := range m.spec.Paths {
		if info, err := m.src.stat(ctx, path); path != "-" && err == nil && info.Regular {
			// About what rows and ids take in text, so that most traces are stored without being moved.
			size := min(info.Size, maxGrowth)
			m.builder.Grow(int(size / 250))
		}
		err := m.rows.eachLine(ctx, m.src, path, func(number int, line []byte) error {
			row, err := m.readLine(line)
			if err == nil {
				m.noteID(row.id, path, number)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	switch m.again {
	case 0:
	case 1:
		m.rows.doubt("%s", m.firstAgain)
	default:
		m.rows.doubt("%s, and so it is with %d more", m.firstAgain, m.again-1)
	}
	return nil
}

// mooncakeRow is one line; the seen bits tell which fields it has.
type mooncakeRow struct {
	seen             mooncakeField
	timestamp, delay float64
	input, output    uint64
	session, id      string
	planned          []uint32
	hints            Hints
}

type mooncakeField uint16

const (
	hasTimestamp mooncakeField = 1 << iota
	hasInput
	hasOutput
	hasHashes
	hasSession
	hasDelay
	hasPlanned
	hasID
	hasPriority
	hasStrictPriority
	hasPolicyClass
)

func (m *mooncake) readLine(data []byte) (row mooncakeRow, err error) {
	m.hashes = m.hashes[:0]
	line := jsonLine{data: data}
	err = line.object(func(key []byte) error { return m.readField(&line, &row, key) })
	if err != nil {
		return row, err
	}
	return row, m.addRow(row)
}

// noteID notes rows with the id of an earlier one. Replays can do with that, but whoever looks for requests by their ids can't.
func (m *mooncake) noteID(id, path string, line int) {
	if id == "" {
		return
	}
	if m.ids[id] {
		if m.again++; m.again == 1 {
			m.firstAgain = fmt.Sprintf("%s:%d: request_id is %s: an earlier row has it too", path, line, shortened(id))
		}
	}
	m.ids[id] = true
}

func (m *mooncake) readField(line *jsonLine, row *mooncakeRow, key []byte) (err error) {
	field := mooncakeField(0)
	switch string(key) {
	case "timestamp", "created_time":
		field = hasTimestamp
	case "input_length", "input_tokens":
		field = hasInput
	case "output_length", "output_tokens":
		field = hasOutput
	case "hash_ids":
		field = hasHashes
	case "session_id":
		field = hasSession
	case "delay", "delay_ms":
		field = hasDelay
	case "output_token_ids":
		field = hasPlanned
	case "request_id":
		field = hasID
	case "priority":
		field = hasPriority
	case "strict_priority":
		field = hasStrictPriority
	case "policy_class":
		field = hasPolicyClass
	}
	if ok, err := wanted(line, &row.seen, field, key, givenTwiceElsewhere); !ok {
		return err
	}
	var whole int64
	switch field {
	case hasTimestamp:
		row.timestamp, err = line.number(string(key))
	case hasInput:
		row.input, err = line.uint(string(key))
	case hasOutput:
		row.output, err = line.uint(string(key))
	case hasHashes:
		m.hashes, err = line.uints("hash_ids", m.hashes)
	case hasSession:
		row.session, err = line.textField("session_id")
	case hasDelay:
		row.delay, err = line.number(string(key))
	case hasPlanned:
		row.planned, err = line.tokens("output_token_ids")
	case hasID:
		row.id, err = line.textField("request_id")
	case hasPolicyClass:
		row.hints.PolicyClass, err = line.textField("policy_class")
	case hasPriority:
		whole, err = line.integer("priority", math.MinInt32, math.MaxInt32)
		row.hints.Priority = int32(whole)
	case hasStrictPriority:
		whole, err = line.integer("strict_priority", 0, math.MaxUint32)
		row.hints.StrictPriority = uint32(whole)
	}
	return err
}

// addRow checks a row as a whole and hands it to the builder.
func (m *mooncake) addRow(row mooncakeRow) error {
	if row.seen&hasHashes == 0 {
		return &fieldError{field: "hash_ids", message: "is missing"}
	}
	if row.seen&hasOutput == 0 {
		return &fieldError{field: "output_length", message: "is missing"}
	}
	r := Request{ID: row.id, Session: row.session, Hashes: m.hashes, ArrivalMs: math.NaN(), PlannedOutput: row.planned, Hints: row.hints}
	if err := m.setLengths(&r, row); err != nil {
		return err
	}
	if err := m.setTimes(&r, row); err != nil {
		return err
	}
	m.src.cutHashes(r.Hashes)
	m.builder.Add(r)
	return nil
}

// checkPlanned compares the output tokens that a row gives with its output length.
func checkPlanned(given bool, planned []uint32, output uint64) error {
	if given && uint64(len(planned)) != output {
		return &fieldError{"output_length", fmt.Sprint(output), fmt.Sprintf("does not match output_token_ids, which has %d tokens", len(planned))}
	}
	return nil
}

func (m *mooncake) setLengths(r *Request, row mooncakeRow) error {
	capacity := uint64(len(m.hashes)) * uint64(m.spec.BlockSize)
	input := row.input
	if row.seen&hasInput == 0 {
		input = capacity
	}
	if input == 0 || capacity == 0 {
		return &fieldError{"input_length", fmt.Sprint(input), fmt.Sprintf("must be positive and be covered by hash_ids, which has %d ids", len(m.hashes))}
	}
	if m.src.Rules.ClampInput {
		input = min(input, capacity)
	}
	if err := checkPlanned(row.seen&hasPlanned != 0, row.planned, row.output); err != nil {
		return err
	}
	return r.setLengths(input, row.output, m.spec.BlockSize)
}

func (m *mooncake) setTimes(r *Request, row mooncakeRow) error {
	if math.Abs(row.timestamp) > maxTimeMs {
		return &fieldError{"timestamp", fmt.Sprint(row.timestamp), fmt.Sprintf("is beyond ±%g ms", maxTimeMs)}
	}
	if row.delay < 0 || row.delay > maxTimeMs {
		return &fieldError{"delay", fmt.Sprint(row.delay), fmt.Sprintf("must be from 0 to %g ms", maxTimeMs)}
	}
	if row.session == "" || !m.builder.SessionKnown(row.session) {
		if row.delay != 0 {
			return &fieldError{"delay", fmt.Sprint(row.delay), "a session's first turn has nothing to wait for; leave it out"}
		}
		if row.seen&hasTimestamp != 0 {
			r.ArrivalMs = row.timestamp
		}
	} else if row.seen&hasDelay != 0 {
		r.DelayMs = row.delay
	} else if row.seen&hasTimestamp != 0 {
		last, ok := m.lastArrival[row.session]
		if !ok {
			return &fieldError{"timestamp", fmt.Sprint(row.timestamp), fmt.Sprintf("cannot become a delay: no earlier row of session %q has a timestamp", row.session)}
		}
		if r.DelayMs = row.timestamp - last; r.DelayMs < 0 {
			return &fieldError{"timestamp", fmt.Sprint(row.timestamp), fmt.Sprintf("is before the previous turn of session %q at %g ms", row.session, last)}
		}
	}
	if row.session != "" && row.seen&hasTimestamp != 0 {
		m.lastArrival[row.session] = row.timestamp
	}
	return nil
}
