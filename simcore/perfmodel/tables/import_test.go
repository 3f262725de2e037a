package tables

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// contents is every file of a folder.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestImport fills a new folder, repeats that, and then replaces a row and adds a system.
func TestImport(t *testing.T) {
	dst := filepath.Join(t.TempDir(), "deep", "tables")
	src := exampleFolder().write(t)
	for range 2 {
		if report, err := Import(src, dst); err != nil || report.Configs != 2 || report.Prefill.Count != 1 {
			t.Fatalf("%+v, %v", report, err)
		}
	}
	first := contents(t, dst)
	if len(first) != 5 {
		t.Errorf("files are %v", first)
	}
	if err := os.WriteFile(filepath.Join(dst, "notes.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}

	fresh := exampleFolder()
	rows := strings.SplitAfter(fresh["gpu1/configs.csv.gz"], "\n")
	// The fp8 row gets another generator; a bf16 row with tp 2 is new; the bf16 row with tp 1 is left out.
	fresh["gpu1/configs.csv.gz"] = rows[0] + strings.Replace(rows[2], "hand", "machine", 1) + strings.Replace(rows[1], ",1,1,1,1,", ",2,1,1,1,", 1)
	fresh["checks.csv.gz"] = strings.Join(checkColumns, ",") + "\ncurrent,gpu1,vllm,1.0,org/tiny,fp8,1,1,1,1,0,decode,1,1,0,1.001\n"
	for _, file := range []string{configsFile, curvesFile, gridsFile} {
		fresh["gpu2/"+file] = strings.ReplaceAll(exampleFolder()["gpu1/"+file], "gpu1", "gpu2")
	}
	if _, err := Import(fresh.write(t), dst); err != nil {
		t.Fatal(err)
	}
	set, report, err := Check(dst)
	if err != nil {
		t.Fatal(err)
	}
	if report.Configs != 5 || report.Prefill.Count != 1 || report.Decode.Count != 1 || report.Decode.Errors.Max > 1e-9 {
		t.Errorf("report is %+v", report)
	}
	configs, err := set.Configs("gpu1")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range configs {
		got = append(got, c.String()+" by "+c.Generator)
	}
	want := []string{"gpu1 vllm 1.0 tiny bf16 tp 1 dp 1 ep 1 by hand", "gpu1 vllm 1.0 tiny fp8 tp 1 dp 1 ep 1 by machine", "gpu1 vllm 1.0 tiny bf16 tp 2 dp 1 ep 1 by hand"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	after := contents(t, dst)
	if after["notes.txt"] != "mine" || after["gpu1/curves.csv.gz"] != first["gpu1/curves.csv.gz"] || len(after) != 9 {
		t.Errorf("files are %v", after)
	}
}

// TestImportDropsWhatNothingNeeds replaces a row twice: the curve that only the first version needs is gone then.
func TestImportDropsWhatNothingNeeds(t *testing.T) {
	dst := t.TempDir()
	if _, err := Import(exampleFolder().write(t), dst); err != nil {
		t.Fatal(err)
	}
	fresh := exampleFolder()
	curve := contentID("c", []string{"1 1", encodingRaw, "1 2"})
	old := strings.Split(strings.Split(fresh["gpu1/curves.csv.gz"], "\n")[1], ",")[0]
	fresh["gpu1/curves.csv.gz"] = "id,n,x_delta,enc,y\n" + curve + ",2,1 1,raw,1 2\n"
	fresh["gpu1/configs.csv.gz"] = strings.ReplaceAll(fresh["gpu1/configs.csv.gz"], old, curve)
	src := fresh.write(t)
	for _, curves := range []int{2, 1} {
		if _, err := Import(src, dst); err != nil {
			t.Fatal(err)
		}
		if _, report, err := Check(dst); err != nil || report.Curves != curves {
			t.Errorf("%d curves, %v; want %d", report.Curves, err, curves)
		}
	}
}

// TestImportRefuses leaves the destination as it is.
func TestImportRefuses(t *testing.T) {
	dst := t.TempDir()
	if _, err := Import(exampleFolder().write(t), dst); err != nil {
		t.Fatal(err)
	}
	before := contents(t, dst)
	damaged := exampleFolder()
	damaged["gpu1/curves.csv.gz"] = strings.Replace(damaged["gpu1/curves.csv.gz"], "2048 2048", "2048 2049", 1)
	if _, err := Import(damaged.write(t), dst); err == nil || !strings.Contains(err.Error(), "hash") {
		t.Errorf("error is %v", err)
	}
	if diff := cmp.Diff(before, contents(t, dst)); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(filepath.Join(dst, "gpu1", gridsFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Import(exampleFolder().write(t), dst); err == nil || !strings.Contains(err.Error(), "is damaged; repair or remove it") {
		t.Errorf("error is %v", err)
	}
}
