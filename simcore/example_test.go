package simcore_test

import (
	"context"
	"fmt"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

func ExampleRun() {
	ctx := context.Background()
	requests := workload.DefaultSyntheticSpec()
	requests.InputTokens, requests.OutputTokens, requests.Requests = 2000, 100, 500
	requests.ArrivalIntervalMs = 20
	w, err := workload.Spec{Synthetic: &requests}.Load(ctx, workload.Source{})
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := simcore.DefaultConfig()
	cfg.SLA.TTFTMs = 200
	for _, workers := range []int{1, 2, 4} {
		cfg.Deployment.Workers = workers
		report, err := simcore.Run(ctx, cfg, w, simcore.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d workers: %.0f output tokens/s, p99 TTFT %.0f ms, %.0f %% of requests within 200 ms\n", workers,
			report.OutputThroughputTokS, report.TTFT.P99, 100*report.Goodput.SLAAttainment)
	}
	// Output:
	// 1 workers: 1898 output tokens/s, p99 TTFT 14294 ms, 1 % of requests within 200 ms
	// 2 workers: 3705 output tokens/s, p99 TTFT 1558 ms, 8 % of requests within 200 ms
	// 4 workers: 4649 output tokens/s, p99 TTFT 66 ms, 100 % of requests within 200 ms
}
