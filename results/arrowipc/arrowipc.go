// Package arrowipc writes result tables as Arrow IPC files. It is apart from package results so that only programs
// that write Arrow build the Arrow library.
package arrowipc

import (
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// rowsPerBatch bounds a record batch, so that readers can stream large files.
const rowsPerBatch = 1 << 16

// Write writes the table as an Arrow IPC file ("Feather V2") of record batches with nullable columns: int64,
// float64, bool, and strings. Field metadata holds each column's unit, doc and role, schema metadata the pairs of
// [results.Table.KeyValues]. Equal tables give equal bytes.
func Write(w io.Writer, t *results.Table) error {
	schema, err := schemaOf(t)
	if err != nil {
		return err
	}
	out, err := ipc.NewFileWriter(&positionWriter{w: w}, ipc.WithSchema(schema), ipc.WithZstd())
	if err != nil {
		return fmt.Errorf("arrow: %w", err)
	}
	for from := 0; from < t.Rows(); from += rowsPerBatch {
		if err := writeBatch(out, schema, t, from, min(from+rowsPerBatch, t.Rows())); err != nil {
			return errors.Join(fmt.Errorf("arrow: %w", err), out.Close())
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("arrow: %w", err)
	}
	return nil
}

func schemaOf(t *results.Table) (*arrow.Schema, error) {
	pairs, err := t.KeyValues()
	if err != nil {
		return nil, err
	}
	var keys, values []string
	for _, kv := range pairs {
		keys, values = append(keys, kv.Key), append(values, kv.Value)
	}
	fields := make([]arrow.Field, len(t.Columns))
	for i, c := range t.Columns {
		fields[i] = arrow.Field{
			Name: c.Name, Type: arrowType(c.Kind), Nullable: true,
			Metadata: arrow.NewMetadata([]string{"unit", "doc", "role"}, []string{c.Unit, c.Doc, string(c.Role)}),
		}
	}
	metadata := arrow.NewMetadata(keys, values)
	return arrow.NewSchema(fields, &metadata), nil
}

func arrowType(kind gridspec.Kind) arrow.DataType {
	switch kind {
	case gridspec.KindInt:
		return arrow.PrimitiveTypes.Int64
	case gridspec.KindFloat:
		return arrow.PrimitiveTypes.Float64
	case gridspec.KindBool:
		return arrow.FixedWidthTypes.Boolean
	}
	return arrow.BinaryTypes.String
}

func writeBatch(out *ipc.FileWriter, schema *arrow.Schema, t *results.Table, from, to int) error {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
	defer b.Release()
	for i, c := range t.Columns {
		appendColumn(b.Field(i), c, from, to)
	}
	record := b.NewRecord()
	defer record.Release()
	return out.Write(record)
}

func appendColumn(b array.Builder, c *results.Column, from, to int) {
	valid := make([]bool, to-from)
	for i := range valid {
		valid[i] = !c.Null[from+i]
	}
	switch b := b.(type) {
	case *array.Int64Builder:
		b.AppendValues(c.Ints[from:to], valid)
	case *array.Float64Builder:
		b.AppendValues(c.Floats[from:to], valid)
	case *array.BooleanBuilder:
		b.AppendValues(c.Bools[from:to], valid)
	case *array.StringBuilder:
		b.AppendValues(c.Strings[from:to], valid)
	}
}

// positionWriter tells the Arrow writer its position, which is all that it seeks for, so that pipes work too.
type positionWriter struct {
	w  io.Writer
	at int64
}

// Write passes the bytes on.
func (p *positionWriter) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.at += int64(n)
	return n, err
}

// Seek returns the position and refuses to move.
func (p *positionWriter) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, errors.New("the output cannot move back")
	}
	return p.at, nil
}
