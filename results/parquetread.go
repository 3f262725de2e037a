package results

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/servegrid/servegrid/gridspec"
)

// readParquet reads the flat columns of any Parquet file. Columns of other shapes and types are left out with a
// note.
func readParquet(r io.ReaderAt, size int64) (t *Table, err error) {
	defer func() {
		// The library trusts the sizes and offsets inside a file, so a damaged one can make it panic.
		if p := recover(); p != nil {
			t, err = nil, fmt.Errorf("the Parquet file is damaged: %v", p)
		}
	}()
	f, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("the Parquet file is damaged: %w", err)
	}
	t = &Table{}
	room := max(mostCells, cellsPerByte*size)
	for _, leaf := range f.Root().Columns() {
		if strings.HasPrefix(leaf.Name(), "__index_level_") {
			t.Notes = append(t.Notes, fmt.Sprintf("column %s is a pandas index and was left out", leaf.Name()))
			continue
		}
		decode, kind, ok := parquetDecoder(leaf)
		if !ok {
			t.Notes = append(t.Notes, fmt.Sprintf("column %s has the type %s, which has no flat value, and was left out", leaf.Name(), parquetTypeName(leaf)))
			continue
		}
		c := NewColumn(leaf.Name(), kind, 0)
		if err := readParquetColumn(f, leaf.Index(), c, decode, room); err != nil {
			return nil, fmt.Errorf("column %s: %w", leaf.Name(), err)
		}
		room -= int64(c.Len())
		t.Columns = append(t.Columns, c)
	}
	t.applyKeyValues(f.Lookup)
	return t, nil
}

// readParquetColumn appends the column's values; it trusts no count in the file, since a damaged one may name any.
func readParquetColumn(f *parquet.File, index int, c *Column, decode func(parquet.Value) gridspec.Value, room int64) error {
	r := &columnReader{room: room, column: c, decode: decode, buffer: make([]parquet.Value, 1024), texts: map[string]string{}}
	c.grow(int(min(f.NumRows(), mostGrown)))
	for _, group := range f.RowGroups() {
		pages := group.ColumnChunks()[index].Pages()
		for {
			page, err := pages.ReadPage()
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				err = r.read(page)
				parquet.Release(page)
			}
			if err != nil {
				return errors.Join(err, pages.Close())
			}
		}
		if err := pages.Close(); err != nil {
			return err
		}
	}
	if int64(c.Len()) != f.NumRows() {
		return fmt.Errorf("has %d values; the file says %d rows", c.Len(), f.NumRows())
	}
	return nil
}

// A file of more than mostCells values that has more than cellsPerByte for each of its bytes was made to fill a machine: run
// lengths and compression can write any number of equal values in a few bytes, but results are figures.
const (
	mostCells    = 1 << 24
	cellsPerByte = 125
)

// mostGrown bounds the room that is made at once for values which a file only announces.
const mostGrown = 1 << 20

// columnReader appends the values of pages to a column.
type columnReader struct {
	column *Column
	// room is how many values there may be.
	room   int64
	decode func(parquet.Value) gridspec.Value
	buffer []parquet.Value
	texts  map[string]string // that have occurred, since most repeat
}

func (r *columnReader) read(page parquet.Page) error {
	values := page.Values()
	for {
		n, err := values.ReadValues(r.buffer)
		for _, v := range r.buffer[:n] {
			r.append(v)
		}
		if int64(r.column.Len()) > r.room {
			return fmt.Errorf("the Parquet file becomes more than %d times as large as it is", 8*cellsPerByte)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// append appends a value; texts and reals, which most columns hold, without a detour.
func (r *columnReader) append(v parquet.Value) {
	c := r.column
	switch {
	case v.IsNull():
		c.appendNull()
	case v.Kind() == parquet.Double && !math.IsNaN(v.Double()):
		c.Null, c.Floats = append(c.Null, false), append(c.Floats, v.Double())
	case v.Kind() == parquet.ByteArray && c.Kind == gridspec.KindString:
		c.Null, c.Strings = append(c.Null, false), append(c.Strings, r.text(v.ByteArray()))
	default:
		c.appendNull()
		c.Set(c.Len()-1, r.decode(v))
	}
}

// mostTexts bounds the texts of a column that are remembered.
const mostTexts = 1 << 12

// text returns a text, in the memory of an equal one that came before.
func (r *columnReader) text(b []byte) string {
	if s, ok := r.texts[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(r.texts) < mostTexts {
		r.texts[s] = s
	}
	return s
}

// parquetDecoder returns how to read a column's values and the kind they have, and false for nested columns and
// types without a flat value.
func parquetDecoder(leaf *parquet.Column) (func(parquet.Value) gridspec.Value, gridspec.Kind, bool) {
	if !leaf.Leaf() || leaf.Repeated() {
		return nil, 0, false
	}
	switch logical := logicalType(leaf.Type()).(type) {
	case *format.DecimalType:
		return decimalDecoder(leaf.Type().Kind(), int(logical.Scale)), gridspec.KindFloat, true
	case *format.DateType, *format.TimeType, *format.TimestampType, *format.Float16Type, *format.UUIDType:
		return nil, 0, false
	}
	switch leaf.Type().Kind() {
	case parquet.Boolean:
		return func(v parquet.Value) gridspec.Value {
			return gridspec.Value{Kind: gridspec.KindBool, Bool: v.Boolean()}
		}, gridspec.KindBool, true
	case parquet.Int32, parquet.Int64:
		return integerDecoder(leaf.Type())
	case parquet.Float:
		return func(v parquet.Value) gridspec.Value { return float(float64(v.Float())) }, gridspec.KindFloat, true
	case parquet.Double:
		return func(v parquet.Value) gridspec.Value { return float(v.Double()) }, gridspec.KindFloat, true
	case parquet.ByteArray:
		return func(v parquet.Value) gridspec.Value { return text(string(v.ByteArray())) }, gridspec.KindString, true
	}
	return nil, 0, false
}

func logicalType(t parquet.Type) format.LogicalTypeValue {
	if logical := t.LogicalType(); logical != nil {
		return logical.Value
	}
	return nil
}

// integerDecoder reads signed integers exactly, and unsigned 64-bit ones, which may be larger, as reals.
func integerDecoder(t parquet.Type) (func(parquet.Value) gridspec.Value, gridspec.Kind, bool) {
	width, ok := logicalType(t).(*format.IntType)
	unsigned := ok && !width.IsSigned
	switch {
	case t.Kind() == parquet.Int32 && unsigned:
		return func(v parquet.Value) gridspec.Value { return integer(int(v.Uint32())) }, gridspec.KindInt, true
	case t.Kind() == parquet.Int32:
		return func(v parquet.Value) gridspec.Value { return integer(int(v.Int32())) }, gridspec.KindInt, true
	case unsigned:
		return func(v parquet.Value) gridspec.Value { return float(float64(v.Uint64())) }, gridspec.KindFloat, true
	}
	return func(v parquet.Value) gridspec.Value {
		return gridspec.Value{Kind: gridspec.KindInt, Int: v.Int64()}
	}, gridspec.KindInt, true
}

// decimalDecoder reads a decimal of any storage as a real.
func decimalDecoder(storage parquet.Kind, scale int) func(parquet.Value) gridspec.Value {
	factor := math.Pow10(scale)
	return func(v parquet.Value) gridspec.Value {
		switch storage {
		case parquet.Int32:
			return float(float64(v.Int32()) / factor)
		case parquet.Int64:
			return float(float64(v.Int64()) / factor)
		}
		return float(bigEndian(v.ByteArray()) / factor)
	}
}

// bigEndian reads a two's-complement integer of any length.
func bigEndian(b []byte) float64 {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	f, _ := new(big.Float).SetInt(n).Float64()
	return f
}

func parquetTypeName(c *parquet.Column) string {
	switch {
	case c.Repeated():
		return "list"
	case !c.Leaf():
		return "group"
	}
	return c.Type().String()
}
