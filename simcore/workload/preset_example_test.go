package workload_test

import (
	"fmt"

	"github.com/servegrid/servegrid/simcore/workload"
)

func ExamplePresetSpec_Generate() {
	chat, err := workload.PresetSpec{Name: workload.PresetChat, Requests: 12_000, Rate: 8, Seed: 1}.Generate()
	if err != nil {
		fmt.Println(err)
		return
	}
	s := workload.Stats(chat, 1_000)
	fmt.Printf("%d requests at %.1f/s\n", s.Requests, s.Arrivals.Rate)
	fmt.Printf("median prompt %.0f tokens, answer %.0f tokens\n", s.InputTokens.P50, s.OutputTokens.P50)
	fmt.Printf("prompt blocks reusable: %.2f, with a cache of 1,000 blocks %.2f\n", s.Reuse.Ideal, s.Reuse.LRU[0].HitRatio)
	// Output:
	// 12000 requests at 8.0/s
	// median prompt 7199 tokens, answer 349 tokens
	// prompt blocks reusable: 0.36, with a cache of 1,000 blocks 0.04
}
