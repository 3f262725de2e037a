package results_test

import (
	"fmt"
	"os"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// The frontier over three configurations that trade latency for throughput, and one that is worse than another.
func ExampleFrontier() {
	objectives := []results.Objective{{Name: "tokens_per_gpu", Maximize: true}, {Name: "p99_ttft_ms"}}
	values := [][]float64{
		{1200, 2400, 3100, 2000},
		{310, 520, 1900, 700},
	}
	on, err := results.Frontier(objectives, values, results.FrontierOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(on)
	// Output: [true true true false]
}

// A table made by hand: which rows keep the SLA, and which of those are worth choosing.
func ExampleMarkFrontier() {
	workers := results.NewColumn("workers", gridspec.KindInt, 4)
	speed := results.NewColumn("tokens_per_gpu", gridspec.KindFloat, 4)
	wait := results.NewColumn("p99_ttft_ms", gridspec.KindFloat, 4)
	for row, point := range []struct {
		workers     int64
		speed, wait float64
	}{{1, 3100, 1900}, {2, 2400, 520}, {4, 1200, 310}, {8, 1100, 330}} {
		workers.Set(row, gridspec.Value{Kind: gridspec.KindInt, Int: point.workers})
		speed.Set(row, gridspec.Value{Kind: gridspec.KindFloat, Float: point.speed})
		wait.Set(row, gridspec.Value{Kind: gridspec.KindFloat, Float: point.wait})
	}
	table := &results.Table{Columns: []*results.Column{workers, speed, wait}}

	constraints, err := results.ParseConstraints("p99_ttft_ms <= 1500")
	if err != nil {
		fmt.Println(err)
		return
	}
	objectives := []results.Objective{{Name: "tokens_per_gpu", Maximize: true}, {Name: "p99_ttft_ms"}}
	if err := results.MarkFrontier(table, results.Analysis{Objectives: objectives, Constraints: constraints}); err != nil {
		fmt.Println(err)
		return
	}
	if err := results.WriteCSV(os.Stdout, table); err != nil {
		fmt.Println(err)
	}
	// Output:
	// workers,tokens_per_gpu,p99_ttft_ms,feasible,on_frontier
	// 1,3100,1900,false,false
	// 2,2400,520,true,true
	// 4,1200,310,true,true
	// 8,1100,330,true,false
}

// A misspelt column is named with the nearest that exists.
func ExampleFeasible() {
	table := &results.Table{Columns: []*results.Column{results.NewColumn("p99_ttft_ms", gridspec.KindFloat, 0)}}
	constraints, err := results.ParseConstraints("p99_tftt_ms <= 1500")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = results.Feasible(table, constraints)
	fmt.Println(err)
	// Output: constraint p99_tftt_ms <= 1500: unknown column "p99_tftt_ms"; did you mean p99_ttft_ms? known columns: p99_ttft_ms
}
