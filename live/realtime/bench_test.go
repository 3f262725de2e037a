package realtime

import (
	"context"
	"sync"
	"testing"

	"github.com/servegrid/servegrid/simcore"
)

// BenchmarkTokens tells tokens to 10,000 readers. One op is a token of one of them.
func BenchmarkTokens(b *testing.B) {
	const streams = 10_000
	cfg := config()
	cfg.Deployment.Workers = 40
	cfg.Engine.NumGPUBlocks, cfg.Engine.MaxNumSeqs, cfg.Engine.MaxNumBatchedTokens = 1<<20, 0, 0
	d, err := newDeployment(cfg, Options{}, &jumping{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	output := max(1, b.N/streams)
	var readers sync.WaitGroup
	for range streams {
		s := submit(b, d, simcore.OnlineRequest{Input: 64, Output: output})
		readers.Go(func() {
			for {
				if p, err := s.Next(context.Background()); err != nil || p.Ended {
					return
				}
			}
		})
	}
	b.ResetTimer()
	go d.run()
	readers.Wait()
	b.StopTimer()
	if s := d.Snapshot(); s.OutputTokens != int64(streams*output) {
		b.Fatalf("%d tokens were told, want %d", s.OutputTokens, streams*output)
	}
	if err := d.Close(); err != nil {
		b.Error(err)
	}
}
