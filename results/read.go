package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// ReadTable reads a results file of any origin: Parquet, CSV with a header line, a JSON array of objects or JSON
// Lines, told apart by content. Columns that are not flat are left out and named in the table's Notes. Metrics
// that servegrid knows get their unit and meaning, also in files that other tools made.
func ReadTable(path string) (*Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := readTable(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func readTable(f *os.File) (*Table, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file; give a results file")
	}
	head := make([]byte, 512)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	t, err := readAs(f, info.Size(), head[:n])
	if err != nil {
		return nil, err
	}
	if err := t.checkNames(); err != nil {
		return nil, err
	}
	t.describe()
	t.addSource()
	return t, nil
}

// addSource adds where the figures come from to results that were written when all were simulated. Files of others do not say.
func (t *Table) addSource() {
	version := t.Column("simulator_version")
	if version == nil || t.Column(SourceColumn) != nil {
		return
	}
	at := slices.IndexFunc(provenanceColumns, func(f fixedColumn) bool { return f.name == SourceColumn })
	source := NewColumn(SourceColumn, gridspec.KindString, t.Rows())
	source.Doc, source.Role = provenanceColumns[at].doc, provenanceColumns[at].role
	for row := range t.Rows() {
		if !version.Null[row] {
			source.Set(row, text(string(SourceSimulated)))
		}
	}
	t.Columns = append(t.Columns, source)
}

func readAs(f *os.File, size int64, head []byte) (*Table, error) {
	if format := foreignFormat(head); format != "" {
		return nil, fmt.Errorf("is %s; give Parquet, CSV or JSON", format)
	}
	switch trimmed := bytes.TrimLeft(bytes.TrimPrefix(head, []byte(byteOrderMark)), " \t\r\n"); {
	case bytes.HasPrefix(head, []byte("PAR1")):
		return readParquet(f, size)
	case len(trimmed) == 0:
		return nil, errors.New("the file is empty; give Parquet, CSV or JSON")
	case trimmed[0] == '[' || trimmed[0] == '{':
		return readJSON(skipByteOrderMark(f, head))
	}
	return readCSV(f)
}

func skipByteOrderMark(f *os.File, head []byte) io.Reader {
	if bytes.HasPrefix(head, []byte(byteOrderMark)) {
		return io.NewSectionReader(f, int64(len(byteOrderMark)), 1<<62)
	}
	return f
}

// foreignFormat names a format that looks like a results file to people but is none of ours.
func foreignFormat(head []byte) string {
	for _, m := range []struct{ magic, name string }{
		{"\x1f\x8b", "compressed with gzip"},
		{"\x28\xb5\x2f\xfd", "compressed with zstd"},
		{"ARROW1", "an Arrow IPC file"},
		{"PARE", "an encrypted Parquet file"},
		{"PK\x03\x04", "a zip archive or spreadsheet"},
	} {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.name
		}
	}
	if !bytes.HasPrefix(head, []byte("PAR1")) && bytes.IndexByte(head, 0) >= 0 {
		return "a binary file"
	}
	return ""
}

func (t *Table) checkNames() error {
	seen := map[string]bool{}
	for _, c := range t.Columns {
		if seen[c.Name] {
			return fmt.Errorf("two columns are named %s; rename one", c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

// An unknown column of numbers is taken for an axis when it has few distinct values for its rows, since what is varied
// repeats and what is measured seldom does. Where rows are replicates a setting has at most a value for each that many rows;
// where no two rows have the same replicate, whole numbers under the name of a setting still tell configurations apart.
const mostAxisValues = 20

func looksVaried(c *Column, replicates int) bool {
	if !c.Numeric() || replicates > 1 && replicates == c.Len() && settingNames()[c.Name] && c.whole() {
		return true
	}
	distinct := len(groupRows(c.Len(), []*Column{c}))
	return distinct <= mostAxisValues && (2*distinct < c.Len() || replicates > 1 && replicates*distinct <= c.Len())
}

// whole reports whether all numbers of a column are whole.
func (c *Column) whole() bool {
	return !slices.ContainsFunc(c.Floats, func(v float64) bool { return v != math.Trunc(v) })
}

// replicates is how many different numbers or names replicates have.
func (t *Table) replicates() int {
	c := t.Column(replicateColumn)
	if c == nil {
		return 1
	}
	return len(groupRows(c.Len(), []*Column{c}))
}

// settingNames are those of the columns of settings, short and with their whole path.
var settingNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, s := range settings() {
		names[flatName(s.path)], names[s.path[strings.LastIndexByte(s.path, '.')+1:]] = true, true
	}
	return names
})

// describe gives columns that the file says nothing about their role and, when they are known, unit and meaning.
// Text, booleans and numbers that look varied are axes, other numbers metrics. In a file without any roles a column
// of workloads separates the frontiers, as it would in a sweep.
func (t *Table) describe() {
	t.GuessedRoles = !slices.ContainsFunc(t.Columns, func(c *Column) bool { return c.Role != "" })
	if c := t.Column(workloadPath); t.GuessedRoles && c != nil && !c.constant() {
		t.Metadata.FrontierBy = []string{workloadPath}
	}
	known := map[string]columnInfo{}
	for _, f := range metrics.Fields() {
		known[f.Name] = columnInfo{Unit: f.Unit, Doc: f.Doc, Role: RoleMetric}
	}
	for _, group := range [][]fixedColumn{pointColumns, derivedColumns, provenanceColumns} {
		for _, f := range group {
			known[f.name] = columnInfo{Unit: f.unit, Doc: f.doc, Role: f.role}
		}
	}
	known[LimitingColumn] = columnInfo{Doc: limitColumn.doc, Role: limitColumn.role}
	known[ErrorKindsColumn] = columnInfo{Doc: errorKindsDoc, Role: RolePoint}
	known[RunColumn] = columnInfo{Doc: runDoc, Role: RolePoint}
	known[CommandColumn] = columnInfo{Doc: commandDoc, Role: RolePoint}
	for name, doc := range markDocs {
		known[name] = columnInfo{Doc: doc, Role: RolePoint}
	}
	replicates := t.replicates()
	for _, c := range t.Columns {
		info, ok := known[c.Name]
		switch {
		case c.Role != "":
		case ok:
			c.Unit, c.Doc, c.Role = info.Unit, info.Doc, info.Role
		case looksVaried(c, replicates):
			c.Role = RoleAxis
		default:
			c.Role = RoleMetric
		}
	}
}
