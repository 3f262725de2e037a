package wire

import (
	"strings"
	"testing"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep"
)

func TestPlausible(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("0a", 16)
	ok := results.Row{ID: id, Status: results.StatusOK, WallSeconds: 0.5, WorkloadDigest: "77e1"}
	for name, tt := range map[string]struct {
		change func(*results.Row)
		want   string
	}{
		"a row":             {func(*results.Row) {}, ""},
		"a failure":         {func(r *results.Row) { r.Status, r.Reason = results.StatusFailed, sweep.ReasonTimeout }, ""},
		"no workload":       {func(r *results.Row) { r.WorkloadDigest = "" }, ""},
		"another name":      {func(r *results.Row) { r.ID = "unknown" }, "not the content ID"},
		"a path":            {func(r *results.Row) { r.ID = "../" + id }, "not the content ID"},
		"another digest":    {func(r *results.Row) { r.WorkloadDigest = "x/y" }, "not the digest"},
		"time before":       {func(r *results.Row) { r.WallSeconds = -1 }, "not possible"},
		"time without end":  {func(r *results.Row) { r.WallSeconds = 1e300 }, "not possible"},
		"no reason":         {func(r *results.Row) { r.Status = results.StatusFailed }, "does not go with"},
		"a reason too many": {func(r *results.Row) { r.Reason = "x" }, "does not go with"},
		"a long reason":     {func(r *results.Row) { r.Status, r.Reason = results.StatusFailed, strings.Repeat("x", 100) }, "does not go with"},
		"a long text": {func(r *results.Row) {
			r.Status, r.Reason, r.Error = results.StatusFailed, "x", strings.Repeat("x", 1<<20)
		}, "does not go with"},
	} {
		r := ok
		tt.change(&r)
		good, wrong := plausible([]results.Row{ok, r})
		switch {
		case tt.want == "" && (len(good) != 2 || len(wrong) != 0):
			t.Errorf("%s: %v", name, wrong)
		case tt.want != "" && (len(good) != 1 || len(wrong) != 1 || !strings.Contains(wrong[0].Error(), tt.want)):
			t.Errorf("%s: %d good, %v", name, len(good), wrong)
		}
	}
}

// Whatever a part holds, only rows that a worker may have sent come out of it.
func FuzzReadPart(f *testing.F) {
	ours := results.Row{ID: strings.Repeat("0a", 16), Status: results.StatusFailed, Reason: sweep.ReasonTimeout, WallSeconds: 1}
	strange := ours
	strange.ID = "unknown"
	for _, rows := range [][]results.Row{nil, {ours}, {strange}, {ours, strange}} {
		lines, err := sweep.EncodeRows(rows)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(lines)
		f.Add(lines[:len(lines)/2])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, _ := ReadPart(data)
		for i := range rows {
			if err := implausible(&rows[i]); err != nil {
				t.Error(err)
			}
		}
	})
}
