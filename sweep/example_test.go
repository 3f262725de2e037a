package sweep_test

import (
	"context"
	"fmt"
	"os"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/sweep"
)

// A sweep over the number of workers is run, extended by one point and run again: only the new point is simulated.
func Example() {
	dir, err := os.MkdirTemp("", "sweep")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	requests := workload.DefaultSyntheticSpec()
	requests.InputTokens, requests.OutputTokens, requests.Requests = 512, 64, 20
	points := func(workers ...int) (points []gridspec.Point) {
		for i, n := range workers {
			cfg := gridspec.DefaultConfig()
			cfg.Deployment.Workers = n
			points = append(points, gridspec.Point{Index: i, Config: cfg, Workload: workload.Spec{Synthetic: &requests}})
		}
		return points
	}
	opt := sweep.Options{
		Dir: dir,
		// Left out, this is simcore.Run.
		Simulate: func(_ context.Context, job sweep.Job) (*simcore.Report, error) {
			return &simcore.Report{DurationMs: float64(100 * job.Workload.Requests() / job.Point.Config.Deployment.Workers)}, nil
		},
	}
	for _, spec := range [][]gridspec.Point{points(1, 2), points(1, 2, 4)} {
		out, err := sweep.Run(context.Background(), spec, opt)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d points: %d simulated, %d reused\n", out.Counts.Total, out.Counts.Simulated, out.Counts.Reused)
	}
	// Output:
	// 2 points: 2 simulated, 0 reused
	// 3 points: 1 simulated, 2 reused
}
