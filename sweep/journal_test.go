package sweep

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/results"
)

// journalText encodes a header with these metric names and rows.
func journalText(t testing.TB, simulator string, names []string, rows ...results.Row) []byte {
	t.Helper()
	buf, err := appendLine(nil, header{Journal: journalMark, Format: journalFormat, Simulator: simulator, Metrics: names})
	for i := range rows {
		if err == nil {
			buf, err = appendRecord(buf, &rows[i])
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return buf
}

func okRow(id string, metrics ...float64) results.Row {
	return results.Row{ID: id, Status: results.StatusOK, WallSeconds: 0.25, WorkloadDigest: "d" + id, Metrics: metrics}
}

func TestJournalRoundTrip(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(rt *rapid.T) {
		want := okRow("x", rapid.SliceOfN(rapid.OneOf(
			rapid.Float64(),
			rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), math.SmallestNonzeroFloat64, math.MaxFloat64, 0.1}),
		), len(names), len(names)).Draw(rt, "metrics")...)
		failed := results.Row{ID: "y", Status: results.StatusFailed, Reason: "timeout", WallSeconds: rapid.Float64Range(0, 1e6).Draw(rt, "wall"),
			Error: strings.ToValidUTF8(rapid.String().Draw(rt, "error"), "\uFFFD"), WorkloadDigest: "d"}
		j, err := readJournal(bytes.NewReader(journalText(t, "1", names, want, failed)), names)
		if err != nil {
			rt.Fatal(err)
		}
		got := j.results["x"].result
		for i := range want.Metrics {
			if w, g := want.Metrics[i], got.Metrics[i]; math.Float64bits(w) != math.Float64bits(g) && !(math.IsNaN(w) && math.IsNaN(g)) {
				rt.Errorf("metric %d: %v came back as %v", i, w, g)
			}
		}
		if diff := cmp.Diff(resultOf(&want), got, cmpopts.IgnoreFields(result{}, "Metrics")); diff != "" {
			rt.Error(diff)
		}
		if diff := cmp.Diff(resultOf(&failed), j.results["y"].result, cmpopts.IgnoreFields(result{}, "Metrics")); diff != "" {
			rt.Error(diff)
		}
	})
}

func TestReadJournal(t *testing.T) {
	names := []string{"a", "b"}
	head := string(journalText(t, "1", names))
	line := func(row results.Row) string { return string(journalText(t, "1", names, row))[len(head):] }
	one, two := line(okRow("one", 1, 2)), line(okRow("two", 3, 4))
	tests := []struct {
		name    string
		text    string
		ids     string // of the results, sorted as written here
		damaged int
		size    int // bytes kept
	}{
		{"empty", "", "", 0, 0},
		{"header only", head, "", 0, len(head)},
		{"two points", head + one + two, "one two", 0, len(head + one + two)},
		{"torn last line", head + one + two[:len(two)/2], "one", 0, len(head + one)},
		{"last line without its end", head + one + two[:len(two)-1], "one", 0, len(head + one)},
		{"zeros at the end", head + one + strings.Repeat("\x00", 4096), "one", 0, len(head + one)},
		{"flipped digit", head + strings.Replace(one, `"metrics":[1`, `"metrics":[7`, 1) + two, "two", 1, len(head + one + two)},
		{"text in the middle", head + one + "<<<<<<< HEAD\n" + two, "one two", 1, len(head+one+two) + 13},
		{"overlong line in the middle", head + one + strings.Repeat("x", maxLine+7) + "\n" + two, "one two", 1, len(head+one+two) + maxLine + 8},
		{"too few metrics", head + string(journalText(t, "1", names, okRow("few", 1)))[len(head):] + two, "two", 1, -1},
		{"too many metrics", head + string(journalText(t, "1", names, okRow("many", 1, 2, 3)))[len(head):] + two, "two", 1, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j, err := readJournal(strings.NewReader(tt.text), names)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, id := range []string{"one", "two", "few", "many"} {
				if _, ok := j.results[id]; ok {
					ids = append(ids, id)
				}
			}
			if got := strings.Join(ids, " "); got != tt.ids || j.damaged != tt.damaged {
				t.Errorf("results %q, damaged %d; want %q, %d", got, j.damaged, tt.ids, tt.damaged)
			}
			if tt.size >= 0 && j.size != int64(tt.size) {
				t.Errorf("size %d, want %d", j.size, tt.size)
			}
		})
	}
}

func TestReadJournalRefuses(t *testing.T) {
	newer, _ := appendLine(nil, header{Journal: journalMark, Format: journalFormat + 1})
	record := journalText(t, "1", []string{"a"}, okRow("x", 1))
	for name, text := range map[string]string{
		"other file":       "hello\n",
		"no header":        string(record[bytes.IndexByte(record, '\n')+1:]),
		"binary":           "\x1f\x8b\x08\x00",
		"damaged header":   strings.Replace(string(record), "servegrid", "servegrld", 1),
		"newer servegrid":  string(newer),
		"header of others": `{"journal":"x"}` + "\n",
	} {
		if _, err := readJournal(strings.NewReader(text), []string{"a"}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestJournalOfOtherMetrics(t *testing.T) {
	text := append(journalText(t, "1", []string{"old", "b", "a"}, okRow("x", 9, 2, 1), okRow("z", 9, 8, 7)),
		journalText(t, "1", []string{"a"}, okRow("y", 5), okRow("z", 6))...)
	j, err := readJournal(bytes.NewReader(text), []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if x := j.results["x"]; !x.usable("1") || x.usable("2") || !cmp.Equal(x.Metrics, []float64{1, 2}) {
		t.Errorf("x = %+v; metrics must be matched by name", x)
	}
	if y := j.results["y"]; y.usable("1") || y.Metrics[0] != 5 || !math.IsNaN(y.Metrics[1]) {
		t.Errorf("y = %+v; it lacks a metric and must not be reused", y)
	}
	if z := j.results["z"]; z.Metrics[0] != 6 {
		t.Errorf("z = %+v; the last line counts", z)
	}
}

func FuzzReadJournal(f *testing.F) {
	names := []string{"a", "b"}
	prefix := journalText(f, "1", names, okRow("one", 1, math.NaN()), okRow("two", math.Inf(1), -0.5))
	whole := journalText(f, "1", names, okRow("three", 1, 2))
	f.Add([]byte(""))
	f.Add(whole)
	f.Add(whole[:len(whole)-9])
	f.Add([]byte("{\"journal\":\n{\"id\":\"\"}\n\x00\x00\n"))
	if seed, err := appendLine(nil, record{ID: "v", Status: "ok", Metrics: []byte(`[1,{"a":[2]}]`)}); err == nil {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if j, err := readJournal(bytes.NewReader(data), names); err == nil && j.size > int64(len(data)) {
			t.Errorf("size %d of %d bytes", j.size, len(data))
		}
		j, err := readJournal(bytes.NewReader(append(bytes.Clone(prefix), data...)), names)
		if err != nil {
			if err == errTooNewer {
				return
			}
			t.Fatalf("the valid prefix was refused: %v", err)
		}
		for _, id := range []string{"one", "two"} {
			if _, ok := j.results[id]; !ok {
				t.Errorf("%s of the valid prefix is lost", id)
			}
		}
		if j.size < int64(len(prefix)) {
			t.Errorf("the valid prefix would be cut at %d", j.size)
		}
		again, err := readJournal(bytes.NewReader(append(bytes.Clone(prefix), data...)[:j.size]), names)
		if err != nil || len(again.results) != len(j.results) || again.size != j.size || again.damaged != j.damaged {
			t.Errorf("after cutting off the torn end the journal reads differently: %v", err)
		}
	})
}

// A failed sync must not leave lines behind that were not reported.
func TestCommitterFailure(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "journal")
	if err != nil {
		t.Fatal(err)
	}
	name := file.Name()
	file.Close()
	readOnly, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	var failures, reported int
	c := startCommitter(readOnly, 0, func(b []results.Row) { reported += len(b) }, func(error) { failures++ }, replica{}, nil)
	for range 3 * commitQueue { // more than the queue holds: nobody may block
		c.submit(okRow("x", 1))
	}
	c.close()
	if failures != 1 || reported != 0 {
		t.Errorf("failures %d, reported %d; want 1, 0", failures, reported)
	}
}
