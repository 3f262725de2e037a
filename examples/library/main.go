// Command library uses the simulator from Go: four workers on a chat workload.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

func main() {
	ctx := context.Background()
	chat := workload.Spec{Preset: &workload.PresetSpec{Name: workload.PresetChat, Requests: 1000, Seed: 1}}
	requests, err := chat.Load(ctx, workload.Source{})
	if err != nil {
		log.Fatal(err)
	}
	cfg := simcore.DefaultConfig()
	cfg.Deployment.Workers = 4
	report, err := simcore.Run(ctx, cfg, requests, simcore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("p99 TTFT %.0f ms, %.0f output tokens/s\n", report.TTFT.P99, report.OutputThroughputTokS)
}
