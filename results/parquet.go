package results

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
)

// rowsPerGroup bounds a Parquet row group. Readers skip whole groups by the least and the largest value of a column there, and
// read groups in parallel.
const rowsPerGroup = 1 << 14

// bloomBitsPerID makes a group be looked at in vain once in a hundred times when one point is looked for.
const bloomBitsPerID = 10

// WriteParquet writes the table as a Parquet file: optional typed columns, dictionary-encoded strings, zstd, and
// the metadata as key-value pairs. Each group of rows states the least and the largest value of every column, and where the rows
// have different IDs, whose order says nothing, a Bloom filter of them. Equal tables give equal bytes.
func WriteParquet(w io.Writer, t *Table) error {
	if len(t.Columns) == 0 {
		return fmt.Errorf("parquet: a table without columns cannot be written")
	}
	pairs, err := t.KeyValues()
	if err != nil {
		return err
	}
	options := []parquet.WriterOption{
		parquetSchema(t),
		parquet.Compression(&parquet.Zstd),
		parquet.CreatedBy("servegrid", simcore.SemanticVersion, ""),
	}
	if id := t.Column("id"); id != nil && id.Kind == gridspec.KindString && !id.constant() {
		options = append(options, parquet.BloomFilters(parquet.SplitBlockFilter(bloomBitsPerID, "id")))
	}
	for _, kv := range pairs {
		options = append(options, parquet.KeyValueMetadata(kv.Key, kv.Value))
	}
	out := parquet.NewGenericWriter[any](w, options...)
	for from := 0; from < t.Rows(); from += rowsPerGroup {
		if err := writeRowGroup(out, t, from, min(from+rowsPerGroup, t.Rows())); err != nil {
			return fmt.Errorf("parquet: %w", err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	return nil
}

func writeRowGroup(out *parquet.GenericWriter[any], t *Table, from, to int) error {
	values := make([]parquet.Value, 0, to-from)
	for i, w := range out.ColumnWriters() {
		values = values[:0]
		for row := from; row < to; row++ {
			values = append(values, parquetValue(t.Columns[i], row, i))
		}
		if _, err := w.WriteRowValues(values); err != nil {
			return fmt.Errorf("column %s: %w", t.Columns[i].Name, err)
		}
	}
	return out.Flush()
}

// parquetValue returns one value with its definition level: 1 when it is there, 0 for a null.
func parquetValue(c *Column, row, index int) parquet.Value {
	if c.Null[row] {
		return parquet.NullValue().Level(0, 0, index)
	}
	var v parquet.Value
	switch c.Kind {
	case gridspec.KindString:
		v = parquet.ByteArrayValue([]byte(strings.ToValidUTF8(c.Strings[row], "\ufffd"))) // readers refuse text that is none
	case gridspec.KindInt:
		v = parquet.Int64Value(c.Ints[row])
	case gridspec.KindFloat:
		v = parquet.DoubleValue(c.Floats[row])
	case gridspec.KindBool:
		v = parquet.BooleanValue(c.Bools[row])
	}
	return v.Level(0, 1, index)
}

func parquetSchema(t *Table) *parquet.Schema {
	root := orderedGroup{fields: make([]parquet.Field, len(t.Columns))}
	for i, c := range t.Columns {
		root.fields[i] = parquetField{Node: parquet.Optional(parquetNode(c.Kind)), name: c.Name}
	}
	return parquet.NewSchema("results", root)
}

func parquetNode(kind gridspec.Kind) parquet.Node {
	switch kind {
	case gridspec.KindInt:
		return parquet.Leaf(parquet.Int64Type)
	case gridspec.KindFloat:
		return parquet.Leaf(parquet.DoubleType)
	case gridspec.KindBool:
		return parquet.Leaf(parquet.BooleanType)
	}
	return parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
}

// orderedGroup is a group whose fields keep their order; parquet.Group sorts them by name.
type orderedGroup struct {
	parquet.Group
	fields []parquet.Field
}

// Fields returns the columns in the table's order.
func (g orderedGroup) Fields() []parquet.Field { return g.fields }

// parquetField is a named column of an orderedGroup.
type parquetField struct {
	parquet.Node
	name string
}

// Name is the column's name.
func (f parquetField) Name() string { return f.name }

// Value is only needed for rows that are Go structures; columns are written directly.
func (f parquetField) Value(base reflect.Value) reflect.Value { return base }
