package gridspec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/gridspec"
)

func TestCheckTraces(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "there.jsonl"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "captures"), 0o700); err != nil {
		t.Fatal(err)
	}
	check := func(spec string) error {
		t.Helper()
		s, err := gridspec.Load(gridspec.Source{Path: filepath.Join(dir, "grid.yaml"), Data: []byte(spec)})
		if err != nil {
			t.Fatal(err)
		}
		return s.CheckTraces(expand(t, s))
	}
	err := check(`
workload:
  - trace: {path: there.jsonl}
  - trace: {paths: [there.jsonl, gone.jsonl]}
  - trace: {path: "-"}
  - trace: {path: unused.jsonl}
  - trace: {path: ., format: mooncake}
  - trace: {path: captures, format: weka}
exclude: ["workload == 'unused.jsonl'"]
`)
	checkProblems(t, err, []string{
		`grid.yaml:4:34: workload[1].trace.paths[1]: "gone.jsonl" is not allowed; the trace file cannot be read: no such file or directory`,
		`grid.yaml:7:13: workload[4].trace.path: "." is not allowed; it is a folder`,
	})
	if strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("other files are blamed: %v", err)
	}
	if err := check("workload: {trace: {path: there.jsonl}}\ncases: {a: {workload.trace.path: there.jsonl}}"); err != nil {
		t.Error(err)
	}
	checkProblems(t, check("workload: {trace: {path: there.jsonl}}\ncases: {a: {workload.trace.path: gone.jsonl}}"), []string{"cases.a.workload.trace.path: "})
}
