package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/servegrid/servegrid/gridspec"
)

// readJSON reads an array of objects, or JSON Lines: one object after another. Columns come in order of first
// appearance; an object without a key holds null. Nested values are left out with a note.
func readJSON(r io.Reader) (*Table, error) {
	d := json.NewDecoder(r)
	d.UseNumber()
	b := jsonTable{columns: map[string]*jsonColumn{}}
	token, err := d.Token()
	if err != nil {
		return nil, jsonError(d, err)
	}
	array := token == json.Delim('[')
	for first := true; ; first = false {
		if array && !d.More() {
			break
		}
		if array || !first {
			if token, err = d.Token(); !array && errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, jsonError(d, err)
			}
		}
		if token != json.Delim('{') {
			return nil, fmt.Errorf("row %d is %v; each row must be an object of column names and values", b.rows+1, token)
		}
		if err := b.readRow(d); err != nil {
			return nil, jsonError(d, err)
		}
	}
	if array {
		if _, err := d.Token(); err != nil {
			return nil, jsonError(d, err)
		}
	}
	return b.table(), nil
}

func jsonError(d *json.Decoder, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the JSON ends too early, at byte %d", d.InputOffset())
	}
	return fmt.Errorf("byte %d: %w", d.InputOffset(), err)
}

// jsonTable collects rows whose columns are not known in advance.
type jsonTable struct {
	rows    int
	order   []*jsonColumn
	columns map[string]*jsonColumn
}

type jsonColumn struct {
	name   string
	nested bool
	rows   []int
	values []gridspec.Value
}

func (b *jsonTable) readRow(d *json.Decoder) error {
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var value any
		if err := d.Decode(&value); err != nil {
			return err
		}
		name, _ := key.(string)
		c := b.columns[name]
		if c == nil {
			c = &jsonColumn{name: name}
			b.columns[name] = c
			b.order = append(b.order, c)
		}
		c.add(b.rows, value)
	}
	b.rows++
	_, err := d.Token() // the closing brace
	return err
}

func (c *jsonColumn) add(row int, value any) {
	var v gridspec.Value
	switch value := value.(type) {
	case nil:
		return
	case string:
		v = text(value)
	case bool:
		v = gridspec.Value{Kind: gridspec.KindBool, Bool: value}
	case json.Number:
		var ok bool
		if v, ok = parseInt(value.String()); !ok {
			if v, ok = parseFloat(value.String()); !ok {
				v = text(value.String())
			}
		}
	default:
		c.nested = true
		return
	}
	c.rows = append(c.rows, row)
	c.values = append(c.values, v)
}

func (b *jsonTable) table() *Table {
	t := &Table{}
	for _, jc := range b.order {
		if jc.nested {
			t.Notes = append(t.Notes, fmt.Sprintf("column %s holds lists or objects and was left out", jc.name))
			continue
		}
		kind := gridspec.KindString
		for i, v := range jc.values {
			if i == 0 {
				kind = v.Kind
			}
			kind = commonKind(kind, v.Kind)
		}
		c := NewColumn(jc.name, kind, b.rows)
		for i, row := range jc.rows {
			c.Set(row, jc.values[i])
		}
		t.Columns = append(t.Columns, c)
	}
	return t
}
