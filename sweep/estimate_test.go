package sweep

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

func TestEstimate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its time passes with Sleep alone
		points := testPoints(400)
		for i := range points {
			points[i].Workload = testPoint(0, 1, 3+i%2).Workload
		}
		points[7].SkipReason = "impossible"
		var calls, took atomic.Int64
		opt := Options{Jobs: 2, Load: testLoad, ProbeTime: 10 * time.Second}
		opt.Simulate = func(ctx context.Context, job Job) (*simcore.Report, error) {
			calls.Add(1)
			sleep := time.Duration(job.Point.Config.Deployment.Workers) * 50 * time.Microsecond // 10 ms on average
			time.Sleep(sleep)
			took.Add(int64(sleep))
			return failThird(ctx, job)
		}
		c, err := Estimate(t.Context(), points, opt)
		if err != nil {
			t.Fatal(err)
		}
		if c.Points != 399 || c.Workloads != 2 || c.Probes != 2*maxProbes || int64(c.Probes) != calls.Load() || c.ProbesFailed == 0 || c.AtLeast {
			t.Errorf("%+v", c)
		}
		want := time.Duration(took.Load() / calls.Load() * 399 / 2)
		if c.Total < want*9/10 || c.Total > want*11/10 || c.Concurrent != 2 {
			t.Errorf("total %s with %d at a time, want about %s with 2", c.Total, c.Concurrent, want)
		}
		if c.MemoryBytes < 2*pointBaseBytes {
			t.Errorf("memory: %d bytes", c.MemoryBytes)
		}
		if c.MemoryBytes != c.WorkloadBytes+2*c.PointBytes || c.RowBytes < 100 {
			t.Errorf("%+v", c)
		}
	})
}

func TestEstimateKeepsItsTime(t *testing.T) {
	opt := Options{Jobs: 1, Load: testLoad, ProbeTime: 100 * time.Millisecond}
	opt.Simulate = func(ctx context.Context, job Job) (*simcore.Report, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	start := time.Now()
	c, err := Estimate(t.Context(), testPoints(100), opt)
	if err != nil || !c.AtLeast || c.ProbesFailed != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Estimate(ctx, testPoints(3), opt); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestEstimateNothingLoads(t *testing.T) {
	missing := errors.New("no such file")
	opt := Options{Load: func(context.Context, workload.Spec, workload.Source) (*workload.Workload, error) { return nil, missing }}
	if _, err := Estimate(t.Context(), testPoints(3), opt); !errors.Is(err, missing) {
		t.Errorf("err = %v", err)
	}
}

func TestSpread(t *testing.T) {
	if diff := cmp.Diff([]int{0, 50, 25, 75, 12}, spread(100, 5)); diff != "" {
		t.Error(diff)
	}
	for n := range 40 {
		seen := map[int]bool{}
		for _, at := range spread(n, 100) {
			if at < 0 || at >= n || seen[at] {
				t.Errorf("n %d: place %d", n, at)
			}
			seen[at] = true
		}
		if len(seen) != n {
			t.Errorf("n %d: %d places", n, len(seen))
		}
	}
}
