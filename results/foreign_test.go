package results

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadFilesOfOtherTools reads one small table as pandas (with an index, a categorical, nullable 32-bit integers,
// decimals, dates and lists) and Polars write it.
func TestReadFilesOfOtherTools(t *testing.T) {
	shared := map[string]string{
		"gpu": "axis h200|b200|", "workers": "axis 1||3", "f32": "metric 1.5|2.5|", "ok": "axis true|false|true", "name": "axis a|b|ü", "u8": "axis 1|2|255",
	}
	cases := []struct {
		file  string
		extra map[string]string
		notes []string
	}{
		{"pandas.parquet", map[string]string{"dec": "metric 1.25|-3.5|"}, []string{"column when", "column lst", "column __index_level_0__"}},
		{"polars.parquet", nil, nil},
	}
	for _, c := range cases {
		table, err := ReadTable(filepath.Join("testdata", c.file))
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		want, got := map[string]string{}, map[string]string{}
		for _, m := range []map[string]string{shared, c.extra} {
			for name, values := range m {
				want[name] = values
			}
		}
		for _, column := range table.Columns {
			got[column.Name] = string(column.Role) + " " + strings.Join([]string{column.Text(0), column.Text(1), column.Text(2)}, "|")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.file, diff)
		}
		if len(table.Notes) != len(c.notes) {
			t.Errorf("%s: notes %q; want one on each of %q", c.file, table.Notes, c.notes)
		}
		for i, note := range c.notes {
			if i < len(table.Notes) && !strings.HasPrefix(table.Notes[i], note) {
				t.Errorf("%s: note %q; want one on %s", c.file, table.Notes[i], note)
			}
		}
	}
}
