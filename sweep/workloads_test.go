package sweep

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

func TestGroupByWorkload(t *testing.T) {
	points := testPoints(8)
	sessions := *points[2].Workload.Synthetic
	sessions.TurnsPerSession, sessions.PrefixGroups, sessions.SharedPrefixRatio = 3, 2, 0.5
	points[1].Config.Engine.BlockSize = 32 // single turns do not depend on it
	points[2].Workload.Synthetic = &sessions
	points[3].Workload.Synthetic = &sessions
	points[3].Config.Engine.BlockSize = 32
	points[4].Config.Compat = rules.Dynamo13
	points[5].Workload.Name = "other"
	points[6].SkipReason = "impossible"
	copied := *points[7].Workload.Synthetic
	points[7].Workload.Synthetic = &copied
	var got [][]int
	for _, g := range groupByWorkload(points, nil) {
		got = append(got, g.points)
	}
	if !points[2].Workload.DependsOnEngine() {
		t.Fatal("the sessions of this test should depend on the engine")
	}
	want := [][]int{{0, 1, 7}, {2}, {3}, {4}, {5}}
	if len(got) != len(want) {
		t.Fatalf("groups %v, want %v", got, want)
	}
	for i := range want {
		if len(got[i]) != len(want[i]) || got[i][0] != want[i][0] {
			t.Errorf("groups %v, want %v", got, want)
		}
	}
}

// Two rule sets read the same standard input.
func TestStdinIsShared(t *testing.T) {
	trace := workload.DefaultTraceSpec()
	trace.Path = "-"
	points := []gridspec.Point{testPoint(0, 1, 1), testPoint(1, 1, 1)}
	for i := range points {
		points[i].Workload = workload.Spec{Trace: &trace}
	}
	points[1].Config.Compat = rules.Dynamo13
	opt := testOptions(t.TempDir())
	opt.Stdin = strings.NewReader("abc")
	reads := 0
	opt.Load = func(_ context.Context, _ workload.Spec, src workload.Source) (*workload.Workload, error) {
		text, err := io.ReadAll(src.Stdin)
		if err != nil || string(text) != "abc" {
			t.Errorf("read %q, %v", text, err)
		}
		reads++
		return testLoad(t.Context(), testPoint(0, 1, 1).Workload, src)
	}
	mustRun(t, points, opt)
	if reads != 2 {
		t.Errorf("%d workloads read the input", reads)
	}
	broken := errors.New("broken pipe")
	opt.Dir, opt.Stdin = t.TempDir(), iotest.ErrReader(broken)
	if _, err := Run(t.Context(), points, opt); !errors.Is(err, broken) {
		t.Errorf("err = %v", err)
	}
}
