package workload

import (
	"context"
	"math"
	"strconv"
)

// DefaultQwenBlockSize is the number of tokens per hash id of the Qwen-Bailian traces.
const DefaultQwenBlockSize = 16

// qwen reads the Qwen-Bailian usage traces (arXiv 2506.02634): JSON Lines with times in seconds, and conversations told
// by the chat that a request goes on with.
type qwen struct {
	spec    TraceSpec
	rows    *findings
	builder *Builder
	chats   map[string]qwenChat
	turns   turnTimes
	hashes  []uint64
	// orphans and branches count requests whose parent is not in the trace, or has been gone on with already.
	orphans, branches int
}

// qwenChat is a request that a later one may go on with.
type qwenChat struct {
	session  string
	followed bool
}

func loadQwen(ctx context.Context, s TraceSpec, src Source, found *findings) (*Workload, error) {
	q := qwen{rows: found, spec: s, builder: NewBuilder(s.name(), s.BlockSize), chats: map[string]qwenChat{}, turns: turnTimes{}}
	for _, path := range s.Paths {
		if err := q.rows.eachLine(ctx, src, path, func(_ int, line []byte) error { return q.readLine(line) }); err != nil {
			return nil, err
		}
	}
	if q.orphans > 0 {
		found.doubt("%d requests go on with a chat that no earlier row has; each starts a session of its own", q.orphans)
	}
	if q.branches > 0 {
		found.warn("%d requests go on with a chat that another one has gone on with already; each starts a session of its own", q.branches)
	}
	return s.finish(q.builder, found)
}

// qwenRow is one line; the seen bits tell which fields it has.
type qwenRow struct {
	seen          qwenField
	chat, parent  string
	timestamp     float64
	input, output uint64
}

type qwenField uint8

const (
	qwenHasChat qwenField = 1 << iota
	qwenHasParent
	qwenHasTimestamp
	qwenHasInput
	qwenHasOutput
	qwenHasHashes
)

// qwenFields are the fields that count; type and turn are for people.
var qwenFields = map[string]qwenField{
	"chat_id": qwenHasChat, "parent_chat_id": qwenHasParent, "timestamp": qwenHasTimestamp,
	"input_length": qwenHasInput, "output_length": qwenHasOutput, "hash_ids": qwenHasHashes,
}

func (q *qwen) readLine(data []byte) error {
	var row qwenRow
	q.hashes = q.hashes[:0]
	line := jsonLine{data: data}
	if err := line.object(func(key []byte) error { return q.readField(&line, &row, key) }); err != nil {
		return err
	}
	return q.addRow(row)
}

func (q *qwen) readField(line *jsonLine, row *qwenRow, key []byte) (err error) {
	field := qwenFields[string(key)]
	if ok, err := wanted(line, &row.seen, field, key, givenTwice); !ok {
		return err
	}
	switch field {
	case qwenHasChat:
		row.chat, err = line.identifier("chat_id")
	case qwenHasParent:
		row.parent, err = line.identifier("parent_chat_id")
	case qwenHasTimestamp:
		row.timestamp, err = line.number("timestamp")
	case qwenHasInput:
		row.input, err = line.uint("input_length")
	case qwenHasOutput:
		row.output, err = line.uint("output_length")
	case qwenHasHashes:
		q.hashes, err = line.uints("hash_ids", q.hashes)
	}
	return err
}

// identifier reads a name that is a string or a whole number.
func (l *jsonLine) identifier(field string) (string, error) {
	if l.space(); l.at < len(l.data) && l.data[l.at] == '"' {
		return l.textField(field)
	}
	whole, err := l.integer(field, -1<<53, 1<<53)
	return strconv.FormatInt(whole, 10), err
}

// addRow checks a row as a whole and hands it to the builder.
func (q *qwen) addRow(row qwenRow) error {
	if row.seen&qwenHasOutput == 0 {
		return &fieldError{field: "output_length", message: "is missing"}
	}
	r := Request{ID: row.chat, Hashes: q.hashes, ArrivalMs: math.NaN()}
	if row.seen&qwenHasInput == 0 {
		row.input = uint64(len(q.hashes)) * uint64(q.spec.BlockSize)
	}
	if err := r.setLengths(row.input, row.output, q.spec.BlockSize); err != nil {
		return err
	}
	chat, err := q.chat(row)
	if err != nil {
		return err
	}
	r.Session = chat.session
	if row.seen&qwenHasTimestamp != 0 {
		ms, err := secondsToMs("timestamp", row.timestamp)
		if err != nil {
			return err
		}
		if err := q.turns.place(&r, ms); err != nil {
			return err
		}
	}
	if row.chat != "" {
		q.chats[row.chat] = chat
	}
	q.builder.Add(r)
	return nil
}

// chat finds the session of a request: that of the chat which it goes on with, if it is the first to do so.
func (q *qwen) chat(row qwenRow) (qwenChat, error) {
	if _, again := q.chats[row.chat]; again && row.chat != "" {
		return qwenChat{}, &fieldError{"chat_id", strconv.Quote(row.chat), "is the id of an earlier row too"}
	}
	own := qwenChat{session: row.chat}
	if row.parent == "" || row.parent == "-1" {
		return own, nil
	}
	parent, known := q.chats[row.parent]
	switch {
	case !known:
		q.orphans++
	case parent.followed:
		q.branches++
	default:
		own.session = parent.session
		parent.followed = true
		q.chats[row.parent] = parent
	}
	return own, nil
}
