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
		"gpu": "axis h200|b200|", "workers": "metric 1||3", "f32": "metric 1.5|2.5|", "ok": "axis true|false|true", "name": "axis a|b|ü", "u8": "metric 1|2|255",
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

// In a file without roles what repeats is an axis; what is optimised or bounded is a metric all the same.
func TestRolesOfAForeignFile(t *testing.T) {
	table := readContent(t, "seed,latency,depth,limit\n1,11,1,5\n2,12,1,5\n3,13,2,7\n4,14,2,7\n5,15,2,7\n")
	if err := MarkFrontier(table, Analysis{Objectives: []Objective{{Name: "latency"}}, Constraints: mustParse(t, "limit > 0")}); err != nil {
		t.Fatal(err)
	}
	want := map[string]Role{"seed": RoleMetric, "latency": RoleMetric, "depth": RoleAxis, "limit": RoleMetric}
	for name, role := range want {
		if got := table.Column(name).Role; got != role {
			t.Errorf("%s is a column of the role %s; want %s", name, got, role)
		}
	}
	_, err := readContent(t, "a\n1\nfast\n").Column("a").Float64s()
	if err == nil || !strings.Contains(err.Error(), `such as "fast" in row 2`) {
		t.Errorf("error %v; want one with the row and the value", err)
	}
}
