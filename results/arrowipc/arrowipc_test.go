package arrowipc

import (
	"bytes"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/google/go-cmp/cmp"
	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// madeUpTable has a column of each kind, with a null in every one.
func madeUpTable(rows int) *results.Table {
	t := &results.Table{Metadata: results.Metadata{Spec: "name: x\n", Versions: map[string]string{"servegrid": "dev"}}}
	for kind, name := range []string{"word", "count", "share", "flag"} {
		c := results.NewColumn(name, gridspec.Kind(kind), rows)
		c.Unit, c.Doc, c.Role = "u", "Doc of "+name, results.RoleAxis
		for i := 1; i < rows; i++ {
			c.Set(i, gridspec.Value{Kind: gridspec.Kind(kind), Str: string(rune('a' + i%26)), Int: int64(i), Float: float64(i) / 3, Bool: i%2 == 0})
		}
		t.Columns = append(t.Columns, c)
	}
	return t
}

func write(t *testing.T, table *results.Table) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, table); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWrite(t *testing.T) {
	const rows = rowsPerBatch + 3
	table := madeUpTable(rows)
	r, err := ipc.NewFileReader(bytes.NewReader(write(t, table)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.NumRecords() != 2 {
		t.Errorf("%d record batches; want 2", r.NumRecords())
	}
	row := 0
	for n := range r.NumRecords() {
		record, err := r.Record(n)
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(record.NumRows()) {
			for c, column := range table.Columns {
				checkValue(t, record.Column(c), i, column, row)
			}
			row++
		}
	}
	if row != rows {
		t.Errorf("%d rows; want %d", row, rows)
	}
	checkSchema(t, r, table)
}

func checkValue(t *testing.T, values interface{ IsNull(int) bool }, i int, column *results.Column, row int) {
	t.Helper()
	if values.IsNull(i) != column.Null[row] {
		t.Fatalf("row %d of %s is null: %v", row, column.Name, values.IsNull(i))
	}
	if column.Null[row] {
		return
	}
	var got, want any
	switch a := values.(type) {
	case *array.String:
		got, want = a.Value(i), column.Strings[row]
	case *array.Int64:
		got, want = a.Value(i), column.Ints[row]
	case *array.Float64:
		got, want = a.Value(i), column.Floats[row]
	case *array.Boolean:
		got, want = a.Value(i), column.Bools[row]
	}
	if got != want || got == nil {
		t.Fatalf("row %d of %s is %v; want %v", row, column.Name, got, want)
	}
}

func checkSchema(t *testing.T, r *ipc.FileReader, table *results.Table) {
	t.Helper()
	for i, f := range r.Schema().Fields() {
		unit, _ := f.Metadata.GetValue("unit")
		doc, _ := f.Metadata.GetValue("doc")
		if c := table.Columns[i]; f.Name != c.Name || unit != c.Unit || doc != c.Doc || !f.Nullable {
			t.Errorf("field %d is %v; want %s", i, f, c.Name)
		}
	}
	pairs, err := table.KeyValues()
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range pairs {
		if got, _ := r.Schema().Metadata().GetValue(kv.Key); got != kv.Value {
			t.Errorf("metadata %s is %q; want %q", kv.Key, got, kv.Value)
		}
	}
}

func TestEqualTablesGiveEqualBytes(t *testing.T) {
	first, again := write(t, madeUpTable(50)), write(t, madeUpTable(50))
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("equal tables differ:\n%s", diff)
	}
}

func TestEmptyTable(t *testing.T) {
	r, err := ipc.NewFileReader(bytes.NewReader(write(t, madeUpTable(0))))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.NumRecords() != 0 || len(r.Schema().Fields()) != 4 {
		t.Errorf("%d batches of %d columns; want none of 4", r.NumRecords(), len(r.Schema().Fields()))
	}
}
