package results

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/gridspec"
)

func TestColumnsByKeysOfTheSpec(t *testing.T) {
	speedup := NewColumn("speedup", gridspec.KindFloat, 1)
	speedup.Role, speedup.Path = RoleAxis, "load.speedup"
	speedup.Set(0, float(2))
	block := NewColumn("engine_block_size", gridspec.KindInt, 1)
	block.Role = RoleConfig
	block.Set(0, gridspec.Value{Kind: gridspec.KindInt, Int: 16})
	table := &Table{Columns: []*Column{speedup, block}}

	path := filepath.Join(t.TempDir(), "results.parquet")
	var file bytes.Buffer
	if err := WriteParquet(&file, table); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := ReadTable(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"speedup": "speedup", "load.speedup": "speedup", "load_speedup": "speedup",
		"engine.block_size": "engine_block_size", "load.rate": "load.rate",
	} {
		if got := read.ColumnName(name); got != want {
			t.Errorf("%s is the column %s; want %s", name, got, want)
		}
	}
}

func TestBind(t *testing.T) {
	gpu := NewColumn("gpu", gridspec.KindString, 2)
	gpu.Role, gpu.Path = RoleAxis, "timing.gpu"
	gpu.Set(0, text("h200_sxm"))
	gpu.Set(1, text("l40s"))
	status := NewColumn("status", gridspec.KindString, 2)
	status.Role = RolePoint
	status.Set(0, text("failed"))
	table := &Table{Columns: []*Column{gpu, status}}
	for _, test := range []struct{ where, want, problem string }{
		{"gpu == h200", `gpu == "h200_sxm"`, ""},
		{"timing.gpu == l40s && gpu == l40s", `gpu == "l40s"`, ""},
		{"gpu == h300", "", "there are: h200_sxm, l40s"},
		{"gpu == b200", "", "there are: h200_sxm, l40s"},
		{"status == ok", `status == "ok"`, ""},
	} {
		constraints, err := ParseConstraints(test.where)
		if err != nil {
			t.Fatal(err)
		}
		bound, err := table.Bind(constraints)
		if err != nil {
			if test.problem == "" || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("%s: %v; want %q", test.where, err, test.problem)
			}
			continue
		}
		var got []string
		for _, c := range bound {
			got = append(got, c.String())
		}
		if text := strings.Join(got, " && "); text != test.want || test.problem != "" {
			t.Errorf("%s is bound as %s; want %s %s", test.where, text, test.want, test.problem)
		}
	}
}

func TestFormatNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.5: "0.5", 1.1220184543: "1.122", 3.98107170553: "3.9811", 11280: "11,280", 116504.4: "116,504",
		5.875e-05: "0.00005875", 1e-9: "1e-09", -1234.56: "-1,234.6", 10_000_001: "10,000,001", 0.886666: "0.88667",
	} {
		if got := FormatNumber(v, 5); got != want {
			t.Errorf("%v is %s; want %s", v, got, want)
		}
	}
}
