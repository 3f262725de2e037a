package fidelity

import (
	"cmp"
	"fmt"
	"math"
	"os"

	"github.com/servegrid/servegrid/live/aiperf"
)

// readAIPerf reads AIPerf's profile_export.jsonl.
func readAIPerf(path string) (*Run, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	records, err := aiperf.ReadRecords(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	run := &Run{Kind: KindAIPerf, WireLengths: true}
	for i := range records {
		m := &records[i]
		if m.Metadata.BenchmarkPhase == aiperf.PhaseWarmUp {
			run.WarmUps++
			continue
		}
		run.Requests = append(run.Requests, fromAIPerf(m))
	}
	return run, nil
}

// fromAIPerf takes lengths that the server counted before those that AIPerf did.
func fromAIPerf(m *aiperf.Record) Request {
	q := unknownRequest()
	q.ID, q.Session, q.Turn = m.Metadata.RequestID, cmp.Or(m.Metadata.ConversationID, m.Metadata.CorrelationID), m.Metadata.TurnIndex
	if q.Session == "" {
		q.Turn = Unknown
	}
	const nsPerMs = 1e6
	q.StartMs = float64(m.Metadata.RequestStartNs) / nsPerMs
	if m.Metadata.CreditIssuedNs > 0 {
		q.LagMs = float64(m.Metadata.RequestStartNs-m.Metadata.CreditIssuedNs) / nsPerMs
	}
	q.TTFTMs, q.ITLMs, q.E2EMs = aiperfMs(m, "time_to_first_token"), aiperfMs(m, "inter_token_latency"), aiperfMs(m, "request_latency")
	q.Input = aiperfCount(m, "usage_prompt_tokens", "input_sequence_length")
	q.Tokens = aiperfCount(m, "usage_completion_tokens", "output_sequence_length")
	q.Cached = aiperfCount(m, "usage_prompt_cache_read_tokens")
	switch {
	case m.Metadata.WasCancelled:
		q.Problem = "cancelled"
	case m.Error != nil:
		q.Problem = cmp.Or(m.Error.Type, m.Error.Message, "failed")
	default:
		q.Completed = true
	}
	q.deriveITL()
	return q
}

// aiperfMs is a time in ms, NaN when the record does not have it or has it in another unit.
func aiperfMs(m *aiperf.Record, name string) float64 {
	v, ok := m.Number(name)
	if !ok || m.Metrics[name].Unit != "ms" {
		return math.NaN()
	}
	return v
}

// aiperfCount is the first of some counts that the record has.
func aiperfCount(m *aiperf.Record, names ...string) int {
	for _, name := range names {
		if v, ok := m.Number(name); ok && v >= 0 && v <= maxCount && v == math.Trunc(v) {
			return int(v)
		}
	}
	return Unknown
}
