package gridspec

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parseJSON builds the tree of a JSON file from its tokens, whose offsets give every key a place.
func (p *strictParser) parseJSON(data []byte) map[string]any {
	j := jsonReader{strictParser: p, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	j.dec.UseNumber()
	v, ok := j.value("", 0)
	if !ok {
		return nil
	}
	tree, isMap := v.(map[string]any)
	if !isMap {
		p.fail(1, 1, `a spec is an object such as {"engine": {"block_size": 64}}`)
		return nil
	}
	line, column := j.position()
	if _, err := j.dec.Token(); !errors.Is(err, io.EOF) {
		p.fail(line, column, "a spec is one document; there is more text after it")
	}
	return tree
}

type jsonReader struct {
	*strictParser
	data []byte
	dec  *json.Decoder
	// line and column are the place of offset, so that positions cost linear time in all.
	offset, line, column int
}

// position returns the place of the next token.
func (j *jsonReader) position() (line, column int) {
	to := int(j.dec.InputOffset())
	for to < len(j.data) && bytes.IndexByte([]byte(" \t\r\n,:"), j.data[to]) >= 0 {
		to++
	}
	if j.line == 0 {
		j.line, j.column = 1, 1
	}
	for j.offset < to {
		r, size := utf8.DecodeRune(j.data[j.offset:])
		j.offset += size
		j.column++
		if r == '\n' {
			j.line, j.column = j.line+1, 1
		}
	}
	return j.line, j.column
}

// token reads the next token; false means that a problem was reported.
func (j *jsonReader) token() (json.Token, bool) {
	t, err := j.dec.Token()
	if err == nil {
		return t, true
	}
	line, column := j.position()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		j.fail(line, column, "the file ends in the middle of a value")
	} else {
		j.fail(line, column, "%v", err)
	}
	return nil, false
}

func (j *jsonReader) value(path string, depth int) (any, bool) {
	line, column := j.position()
	if !j.count(1, depth, line, column) {
		return nil, false
	}
	t, ok := j.token()
	if !ok {
		return nil, false
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return j.object(path, depth)
		}
		return j.array(path, depth)
	case json.Number:
		return j.number(t, path, line, column)
	}
	return t, true
}

func (j *jsonReader) object(path string, depth int) (any, bool) {
	m := map[string]any{}
	for j.dec.More() {
		line, column := j.position()
		t, ok := j.token()
		if !ok {
			return nil, false
		}
		name, _ := t.(string)
		at := join(path, name)
		_, twice := m[name]
		if twice {
			j.duplicate(at, line, column)
		} else {
			j.origins.set(at, j.at(line, column))
		}
		v, ok := j.value(at, depth+1)
		if !ok {
			return nil, false
		}
		if !twice {
			m[name] = v
		}
	}
	_, ok := j.token()
	return m, ok
}

func (j *jsonReader) array(path string, depth int) (any, bool) {
	list := []any{}
	for j.dec.More() {
		at := indexed(path, len(list))
		j.origins.set(at, j.at(j.position()))
		v, ok := j.value(at, depth+1)
		if !ok {
			return nil, false
		}
		list = append(list, v)
	}
	_, ok := j.token()
	return list, ok
}

func (j *jsonReader) number(n json.Number, path string, line, column int) (any, bool) {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i, true
	}
	if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return u, true
	}
	f, err := n.Float64()
	if err != nil || !strings.ContainsAny(n.String(), ".eE") {
		j.failAt(path, line, column, "%s: the number is too large", Excerpt(n.String()))
		return nil, false
	}
	return f, true
}
