package tables

import (
	"cmp"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// moduleRoot is the folder of go.mod.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("no go.mod above the test")
	return ""
}

// sharedPerf opens a file of the measurements kept beside the checkout, or skips the test where there is none.
func sharedPerf(t testing.TB, name string) *os.File {
	t.Helper()
	shared := cmp.Or(os.Getenv("SHARED_DATA_DIR"), filepath.Join(moduleRoot(t), "..", "shared"))
	f, err := os.Open(filepath.Join(shared, "perf", name))
	if err != nil {
		t.Skipf("needs %s: set SHARED_DATA_DIR to the folder that holds perf", name)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// priced is the embedded tables' absolute errors, in %, at the whole-pass predictions of a file, by kind of pass.
func priced(t *testing.T, name string) map[string][]float64 {
	t.Helper()
	lines, err := csv.NewReader(sharedPerf(t, name)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	number := func(field string) int {
		v, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	out := map[string][]float64{}
	for _, l := range lines[1:] {
		c, problems := Embedded().Find(Query{
			System: l[0], Backend: l[1], BackendVersion: l[2], Model: l[3], DType: l[4], TP: number(l[5]), DP: number(l[6]), EP: number(l[8]),
		})
		if problems != nil {
			t.Fatalf("%v: %v", l, problems)
		}
		table, err := Embedded().Load(c, false)
		if err != nil {
			t.Fatal(err)
		}
		kind, batch, fresh, held := l[9], number(l[10]), number(l[11]), number(l[12])
		got := table.Generation(batch) + table.GenerationAttention(batch, held+1)
		if kind == "prefill" {
			got = table.Tokens(batch*fresh) + table.Requests(batch) + table.PrefillAttention(batch, fresh+held, held)
		}
		want, err := strconv.ParseFloat(l[13], 64)
		if err != nil {
			t.Fatal(err)
		}
		out[kind] = append(out[kind], 100*math.Abs(got/want-1))
	}
	return out
}

// TestGolden compares the tables with whole passes of the source at random points.
func TestGolden(t *testing.T) {
	for _, file := range []struct {
		name            string
		prefill, decode ErrorFigures
	}{
		{"golden.csv", ErrorFigures{0.02, 0.25, 0.4}, ErrorFigures{0.02, 0.6, 3.5}},
		{"golden_legacy.csv", ErrorFigures{0.03, 1, 1.5}, ErrorFigures{0.02, 0.6, 0.8}},
	} {
		t.Run(file.name, func(t *testing.T) {
			found := priced(t, file.name)
			for kind, limit := range map[string]ErrorFigures{"prefill": file.prefill, "decode": file.decode} {
				if len(found[kind]) == 0 {
					t.Fatalf("no %s points", kind)
				}
				got := errorFigures(found[kind])
				t.Logf("%s: %d points, median %.3f %%, p99 %.3f %%, max %.3f %%", kind, len(found[kind]), got.Median, got.P99, got.Max)
				if got.Median > limit.Median || got.P99 > limit.P99 || got.Max > limit.Max {
					t.Errorf("%s errors of %+v %% exceed %+v %%", kind, got, limit)
				}
			}
		})
	}
}
