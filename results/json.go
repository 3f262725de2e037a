package results

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the table as a JSON array with one object a row and every column in each; a null is null.
// Each object is on a line of its own.
func WriteJSON(w io.Writer, t *Table) error { return writeJSON(w, t, "[\n", ",\n", "]\n") }

// WriteJSONLines writes the same objects, one a line, without an array around them.
func WriteJSONLines(w io.Writer, t *Table) error { return writeJSON(w, t, "", "\n", "") }

// writeJSON writes the rows as JSON objects with something before, between and after them.
func writeJSON(w io.Writer, t *Table, before, between, after string) error {
	out := bufio.NewWriter(w)
	keys := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		key, err := json.Marshal(c.Name)
		if err != nil {
			return fmt.Errorf("json: column %s: %w", c.Name, err)
		}
		keys[i] = string(key)
	}
	out.WriteString(before)
	for row := range t.Rows() {
		if row > 0 {
			out.WriteString(between)
		}
		out.WriteByte('{')
		for i, c := range t.Columns {
			value, err := json.Marshal(c.plain(row))
			if err != nil {
				return fmt.Errorf("json: column %s, row %d: %w", c.Name, row+1, err)
			}
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(keys[i])
			out.WriteByte(':')
			out.Write(value)
		}
		out.WriteByte('}')
	}
	if t.Rows() > 0 {
		out.WriteByte('\n')
	}
	out.WriteString(after)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("json: %w", err)
	}
	return nil
}
