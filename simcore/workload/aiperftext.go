package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// What counts as text of a prompt: every string in its messages, and tools as the compact JSON that a server puts into
// the prompt. The names of fields and the marks between messages do not count.

// appendText adds a string.
func (l *jsonLine) appendText(field string, to *strings.Builder) error {
	text, err := l.textField(field)
	to.WriteString(text)
	return err
}

// appendStrings adds all strings in a value.
func (l *jsonLine) appendStrings(to *strings.Builder) error {
	l.space()
	if l.at == len(l.data) {
		return l.notJSON("a value")
	}
	switch l.data[l.at] {
	case '"':
		return l.appendText("", to)
	case '{':
		return l.members(func([]byte) error { return l.appendStrings(to) })
	case '[':
		return l.elements(func() error { return l.appendStrings(to) })
	}
	return l.skip()
}

// appendMessages adds the messages of a chat, which must all have a role.
func (l *jsonLine) appendMessages(field string, to *strings.Builder) error {
	n := 0
	err := l.list(field, "a list", func() error {
		role := false
		n++
		err := l.nested(field, func(key []byte) error {
			role = role || string(key) == "role"
			return l.appendStrings(to)
		})
		if err == nil && !role {
			err = &fieldError{field: field, message: fmt.Sprintf("each message must have a 'role' key, but the message at index %d does not", n-1)}
		}
		return err
	})
	if err == nil && n == 0 {
		err = &fieldError{field: field, message: "must be a non-empty list"}
	}
	return err
}

// appendTools adds definitions of tools.
func (l *jsonLine) appendTools(field string, to *strings.Builder) error {
	n := 0
	err := l.list(field, "a list", func() error {
		n++
		if l.space(); l.at < len(l.data) && l.data[l.at] != '{' {
			return l.wrongType(field, "a list of objects")
		}
		start := l.at
		if err := l.skip(); err != nil {
			return err
		}
		var compact bytes.Buffer
		err := json.Compact(&compact, l.data[start:l.at])
		to.Write(compact.Bytes())
		return err
	})
	if err == nil && n == 0 {
		err = &fieldError{field: field, message: "must be a non-empty list"}
	}
	return err
}

// appendPayload adds what a request body puts into the prompt, and finds the length of the answer that it asks for.
func (l *jsonLine) appendPayload(row *aiperfRow) error {
	n := 0
	err := l.nested("payload", func(key []byte) (err error) {
		n++
		if l.null() {
			return nil
		}
		switch string(key) {
		case "messages":
			return l.appendMessages("payload.messages", &row.text)
		case "tools":
			return l.appendTools("payload.tools", &row.tools)
		case "prompt", "input", "system", "instructions":
			return l.appendStrings(&row.text)
		case "max_tokens", "max_completion_tokens", "max_output_tokens":
			row.limit, err = l.uint("payload." + strconv.Quote(string(key)))
			return err
		}
		return l.skip()
	})
	if err == nil && n == 0 {
		err = &fieldError{field: "payload", message: "must be a non-empty dict"}
	}
	return err
}
