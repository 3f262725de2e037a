package results

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/servegrid/servegrid/gridspec"
	"pgregory.net/rapid"
)

type writer struct {
	name  string
	write func(io.Writer, *Table) error
}

var writers = []writer{{"parquet", WriteParquet}, {"csv", WriteCSV}, {"json", WriteJSON}}

func TestEqualRowsGiveEqualBytes(t *testing.T) {
	for _, w := range writers {
		var first []byte
		for range 5 {
			var b bytes.Buffer
			m := Metadata{Spec: "a: 1\n", Versions: map[string]string{"x": "1", "y": "2", "z": "3"}, Objectives: DefaultObjectives()}
			if err := w.write(&b, NewTable(madeUpRows(3), m)); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = b.Bytes()
			}
			if !bytes.Equal(first, b.Bytes()) {
				t.Errorf("%s: equal rows give different files", w.name)
			}
		}
	}
}

func TestParquetRoundTrip(t *testing.T) {
	table := NewTable(madeUpRows(2), Metadata{
		Spec: "name: x\n", Versions: map[string]string{"servegrid": "dev"}, Objectives: []Objective{{Name: "mean_ttft_ms"}},
	})
	got := roundTrip(t, writers[0], table)
	for path, v := range table.Metadata.Constants { // JSON knows one kind of number
		if n, ok := v.(int64); ok {
			table.Metadata.Constants[path] = float64(n)
		}
	}
	if diff := cmp.Diff(table, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

// TestParquetHasText checks that bytes that are no text do not get into a file, which readers refuse then.
func TestParquetHasText(t *testing.T) {
	column := NewColumn("error", gridspec.KindString, 1)
	column.Set(0, gridspec.Value{Kind: gridspec.KindString, Str: "a\xff\x80b"})
	table := &Table{Columns: []*Column{column}}
	if got := roundTrip(t, writers[0], table).Columns[0].Strings[0]; got != "a\ufffdb" {
		t.Errorf("got %q", got)
	}
}

// TestFilesKeepValues writes drawn tables with hostile names and values and reads them back.
func TestFilesKeepValues(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		table := drawTable(rt)
		for _, w := range writers {
			path := filepath.Join(dir, w.name)
			if err := WriteFile(path, func(out io.Writer) error { return w.write(out, table) }); err != nil {
				rt.Fatal(err)
			}
			got, err := ReadTable(path)
			if err != nil {
				rt.Fatalf("%s: %v", w.name, err)
			}
			if w.name == "parquet" {
				if diff := cmp.Diff(table.Columns, got.Columns); diff != "" {
					rt.Fatalf("parquet (-want +got):\n%s", diff)
				}
				continue
			}
			if len(got.Columns) != len(table.Columns) && w.name == "csv" {
				rt.Fatalf("%s has %d columns; want %d", w.name, len(got.Columns), len(table.Columns))
			}
			for _, c := range got.Columns {
				if diff := cmp.Diff(numbersOf(table.Column(c.Name)), numbersOf(c)); diff != "" {
					rt.Fatalf("%s, column %q (-want +got):\n%s", w.name, c.Name, diff)
				}
			}
		}
	})
}

// numbersOf returns a column's values as text, numbers by value: text formats do not tell 1 from 1.0.
func numbersOf(c *Column) []string {
	out := make([]string, c.Len())
	for i := range out {
		out[i] = c.Text(i)
		if v, ok := parseFloat(out[i]); ok && v != missing {
			v.Float += 0 // no negative zero
			out[i] = formatValue(v)
		}
	}
	return out
}

func drawTable(t *rapid.T) *Table {
	rows := rapid.IntRange(1, 20).Draw(t, "rows")
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z"'<>,;&é ]{1,8}[a-z]`), 2, 6, func(s string) string { return s }).Draw(t, "names")
	table := &Table{}
	for _, name := range names {
		c := NewColumn(name, gridspec.Kind(rapid.IntRange(0, 3).Draw(t, "kind")), rows)
		c.Role = RoleAxis
		for row := range rows {
			if !rapid.Bool().Draw(t, "null") {
				c.Set(row, drawValue(t, c.Kind))
			}
		}
		table.Columns = append(table.Columns, c)
	}
	return table
}

func drawValue(t *rapid.T, kind gridspec.Kind) gridspec.Value {
	switch kind {
	case gridspec.KindInt:
		return gridspec.Value{Kind: kind, Int: rapid.Int64().Draw(t, "int")}
	case gridspec.KindFloat:
		return float(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "float"))
	case gridspec.KindBool:
		return gridspec.Value{Kind: kind, Bool: rapid.Bool().Draw(t, "bool")}
	}
	return text(rapid.StringMatching(`[a-zA-Z</>"',;\n=é{}\[\]]{1,12}!`).Draw(t, "string"))
}

func roundTrip(t *testing.T, w writer, table *Table) *Table {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results")
	if err := WriteFile(path, func(out io.Writer) error { return w.write(out, table) }); err != nil {
		t.Fatal(err)
	}
	got, err := ReadTable(path)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestParquetRowGroups(t *testing.T) {
	table := &Table{Columns: []*Column{NewColumn("n", gridspec.KindInt, rowsPerGroup+5)}}
	for i := range table.Rows() {
		table.Columns[0].Set(i, integer(i))
	}
	table.Columns[0].Role = RoleAxis
	var b bytes.Buffer
	if err := WriteParquet(&b, table); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.RowGroups()); n != 2 {
		t.Errorf("%d row groups; want 2", n)
	}
	if diff := cmp.Diff(table.Columns, roundTrip(t, writers[0], table).Columns); diff != "" {
		t.Error("values differ after two row groups")
	}
}

func TestReadHandMadeFiles(t *testing.T) {
	cases := []struct {
		name, content string
		want          map[string]string // column: kind and values
		notes         string
	}{
		{"pandas CSV", ",gpu,workers,tps,ok\n0,h200,1,1.5,True\n1,b200,2,,False\n",
			map[string]string{"gpu": "0 h200|b200", "workers": "1 1|2", "tps": "2 1.5|", "ok": "3 true|false"}, "column 1 has no name"},
		{"CSV with a mark and semicolons", "\ufeffa;b\r\n1;x,y\r\n", map[string]string{"a": "1 1", "b": "0 x,y"}, ""},
		{"tab-separated", "a\tb\n1\t2\n", map[string]string{"a": "1 1", "b": "1 2"}, ""},
		{"whole numbers too large", "a\n99999999999999999999\n1\n", map[string]string{"a": "2 1e+20|1"}, ""},
		{"quoted header", "\"a;\n\",b\n1,2\n", map[string]string{"a;\n": "1 1", "b": "1 2"}, ""},
		{"NaN words", "a,b\nNaN,N/A\n3,true\n", map[string]string{"a": "1 |3", "b": "3 |true"}, ""},
		{"JSON array", `[{"a":1,"b":"x","c":[1]},{"b":null,"a":2.5,"d":true}]`,
			map[string]string{"a": "2 1|2.5", "b": "0 x|", "d": "3 |true"}, "column c holds lists or objects"},
		{"JSON Lines", "{\"a\":1}\n{\"a\":2}\n", map[string]string{"a": "1 1|2"}, ""},
		{"JSON of mixed types", `[{"a":1},{"a":"x"}]`, map[string]string{"a": "0 1|x"}, ""},
		{"no rows", "[]", map[string]string{}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			table := readContent(t, c.content)
			got := map[string]string{}
			for _, column := range table.Columns {
				values := make([]string, column.Len())
				for i := range values {
					values[i] = column.Text(i)
				}
				got[column.Name] = string('0'+rune(column.Kind)) + " " + strings.Join(values, "|")
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
			if notes := strings.Join(table.Notes, "\n"); !strings.Contains(notes, c.notes) || (c.notes == "") != (notes == "") {
				t.Errorf("notes %q; want %q", notes, c.notes)
			}
		})
	}
}

func readContent(t *testing.T, content string) *Table {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := ReadTable(path)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestReadRefusesBadFiles(t *testing.T) {
	cases := []struct{ name, content, want string }{
		{"empty", "", "the file is empty"},
		{"blank", "\n \n", "the file is empty"},
		{"header only", "a,b\n", "the file has a header line and no rows"},
		{"gzip", "\x1f\x8b\x08\x00", "is compressed with gzip; give Parquet, CSV or JSON"},
		{"zstd", "\x28\xb5\x2f\xfd", "is compressed with zstd"},
		{"arrow", "ARROW1\x00\x00", "is an Arrow IPC file"},
		{"binary", "\x7fELF\x00\x01", "is a binary file"},
		{"cut Parquet", "PAR1\x15\x04", "the Parquet file is damaged"},
		{"ragged CSV", "a,b\n1,2\n3\n", "line 3: the number of fields differs from the header's"},
		{"open quote", "a,b\n\"1,2\n", "line 2"},
		{"cut JSON", `[{"a":1},`, "the JSON ends too early, at byte 9"},
		{"broken JSON", `[{"a":1 "b"}]`, "byte 8"},
		{"JSON of numbers", `[1,2]`, "row 1 is 1; each row must be an object"},
		{"same name twice", "a,a\n1,2\n", "two columns are named a"},
	}
	for _, c := range cases {
		path := filepath.Join(t.TempDir(), "bad")
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadTable(path)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v; want one with %q and the path", c.name, err, c.want)
		}
	}
	if _, err := ReadTable(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an absent file: error %v", err)
	}
	if _, err := ReadTable(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("a folder: error %v", err)
	}
}

// TestReadForeignParquet reads what other tools write: required, narrow, unsigned, decimal, nested and dated columns.
func TestReadForeignParquet(t *testing.T) {
	type row struct {
		Small   int32    `parquet:"small"`
		Half    float32  `parquet:"half"`
		Big     uint64   `parquet:"big"`
		Word    uint32   `parquet:"word"`
		Price   int64    `parquet:"price,decimal(2:18)"`
		Label   string   `parquet:"label,dict,snappy"`
		Maybe   *bool    `parquet:"maybe,gzip"`
		List    []int64  `parquet:"list"`
		Day     int32    `parquet:"day,date"`
		Index   int64    `parquet:"__index_level_0__"`
		Missing *float64 `parquet:"missing,zstd"`
	}
	yes := true
	path := filepath.Join(t.TempDir(), "foreign.parquet")
	rows := []row{{Small: -3, Half: 0.5, Big: 1 << 63, Word: 1 << 31, Price: -1234, Label: "a", Maybe: &yes}, {Label: "b", List: []int64{1, 2}}}
	if err := parquet.WriteFile(path, rows); err != nil {
		t.Fatal(err)
	}
	table, err := ReadTable(path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][2]string{
		"small": {"-3", "0"}, "half": {"0.5", "0"}, "big": {"9.223372036854776e+18", "0"}, "word": {"2147483648", "0"},
		"price": {"-12.34", "0"}, "label": {"a", "b"}, "maybe": {"true", ""}, "missing": {"", ""},
	}
	for name, v := range want {
		c := table.Column(name)
		if c == nil {
			t.Errorf("column %s is missing", name)
			continue
		}
		if got := [2]string{c.Text(0), c.Text(1)}; got != v {
			t.Errorf("%s is %q; want %q", name, got, v)
		}
	}
	if len(table.Columns) != len(want) {
		t.Errorf("columns %v", table.names())
	}
	notes := strings.Join(table.Notes, "\n")
	for _, note := range []string{"column list has the type list", "column day has the type DATE", "column __index_level_0__ is a pandas index"} {
		if !strings.Contains(notes, note) {
			t.Errorf("the notes lack %q:\n%s", note, notes)
		}
	}
}

func TestBigEndian(t *testing.T) {
	for want, b := range map[float64][]byte{0: {}, 5: {0, 5}, -1: {0xff, 0xff, 0xff}, -256: {0xff, 0x00}, 65536: {1, 0, 0}} {
		if got := bigEndian(b); got != want {
			t.Errorf("%x is %v; want %v", b, got, want)
		}
	}
}

func TestWriteFileKeepsTheOldOnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.csv")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := WriteFile(path, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v; want the writer's", err)
	}
	content, err := os.ReadFile(path)
	if err != nil || string(content) != "old" {
		t.Errorf("the file holds %q, %v; want the old content", content, err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v; want the one file", entries, err)
	}
}

// TestDamagedParquet cuts a file short at every length and flips bits in its footer: whatever comes back is an error
// or a table of a sound shape, never a panic.
func TestDamagedParquet(t *testing.T) {
	var b bytes.Buffer
	if err := WriteParquet(&b, smallTable()); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	for n := range whole {
		if _, err := readParquet(bytes.NewReader(whole[:n]), int64(n)); err == nil {
			t.Errorf("the first %d of %d bytes are no error", n, len(whole))
		}
	}
	footer := int(binary.LittleEndian.Uint32(whole[len(whole)-8:]))
	for at := len(whole) - 8 - footer; at < len(whole)-8; at++ {
		for bit := range 8 {
			damaged := bytes.Clone(whole)
			damaged[at] ^= 1 << bit
			if claimsLZ4(damaged) {
				continue // the library's decoder doubles its buffer without end on data that is not LZ4
			}
			table, err := readParquet(bytes.NewReader(damaged), int64(len(damaged)))
			if err != nil {
				continue
			}
			for _, c := range table.Columns {
				if c.Len() != table.Rows() {
					t.Errorf("bit %d of byte %d: column %q has %d rows, the table %d", bit, at, c.Name, c.Len(), table.Rows())
				}
			}
		}
	}
}

func claimsLZ4(file []byte) (yes bool) {
	defer func() { _ = recover() }()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return false
	}
	for _, group := range f.Metadata().RowGroups {
		for _, chunk := range group.Columns {
			yes = yes || chunk.MetaData.Codec == format.Lz4Raw
		}
	}
	return yes
}

// FuzzReadTable covers the text formats; the Parquet library guards its own.
func FuzzReadTable(f *testing.F) {
	f.Add([]byte("a,b\n1,2\n"))
	f.Add([]byte(`[{"a":1}]`))
	f.Add([]byte("{\"a\":1}\n{\"b\":null}"))
	path := filepath.Join(f.TempDir(), "fuzzed")
	f.Fuzz(func(t *testing.T, content []byte) {
		if bytes.HasPrefix(content, []byte("PAR1")) {
			t.Skip("Parquet")
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		table, err := ReadTable(path)
		if err != nil {
			return
		}
		for _, c := range table.Columns {
			if c.Len() != table.Rows() {
				t.Fatalf("column %q has %d rows, the table %d", c.Name, c.Len(), table.Rows())
			}
		}
	})
}

func BenchmarkReadParquet(b *testing.B) {
	var rows []Row
	for seed := uint64(0); len(rows) < 10_000; seed++ {
		rows = append(rows, madeUpRows(seed)...)
	}
	path := filepath.Join(b.TempDir(), "results.parquet")
	if err := WriteFile(path, func(w io.Writer) error { return WriteParquet(w, NewTable(rows, Metadata{})) }); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadTable(path); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriteParquet(b *testing.B) {
	var rows []Row
	for seed := uint64(0); len(rows) < 10_000; seed++ {
		rows = append(rows, madeUpRows(seed)...)
	}
	rows = rows[:10_000]
	b.ReportAllocs()
	for b.Loop() {
		if err := WriteParquet(io.Discard, NewTable(rows, Metadata{})); err != nil {
			b.Fatal(err)
		}
	}
}
