package report

import (
	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/results"
)

// sampleColumns are what servers say of themselves. A figure that a server does not have is null.
var sampleColumns = []struct {
	name, unit, doc string
	get             func(*live.Sample) float64
}{
	{"at_ms", "ms", "When it was read, since the run began.", func(s *live.Sample) float64 { return s.AtMs }},
	{"running_requests", "requests", "Requests that the server computes.", func(s *live.Sample) float64 { return s.Running }},
	{"waiting_requests", "requests", "Requests that wait in the server.", func(s *live.Sample) float64 { return s.Waiting }},
	{"kv_usage", "ratio", "Share of the KV blocks in use.", func(s *live.Sample) float64 { return s.KVUsage }},
	{"prompt_tokens", "tokens", "Prompt tokens that were looked up in the prefix cache, since the server started.", func(s *live.Sample) float64 { return s.PromptTokens }},
	{"cached_tokens", "tokens", "Those of them that were in it.", func(s *live.Sample) float64 { return s.CachedTokens }},
	{"output_tokens", "tokens", "Output tokens since the server started.", func(s *live.Sample) float64 { return s.OutputTokens }},
	{"preemptions", "events", "How often a running request lost its KV blocks since the server started.", func(s *live.Sample) float64 { return s.Preemptions }},
}

// sampleTable lays out what servers said of themselves, one row a reading of an endpoint.
func sampleTable(samples []live.Sample, versions map[string]string) *results.Table {
	t := &results.Table{Metadata: results.Metadata{Versions: versions}}
	endpoint := results.NewColumn("endpoint", gridspec.KindString, len(samples))
	endpoint.Doc, endpoint.Role = "Where it was read.", results.RolePoint
	for i := range samples {
		endpoint.Set(i, text(samples[i].Endpoint))
	}
	t.Add(endpoint)
	for _, c := range sampleColumns {
		column := results.NewColumn(c.name, gridspec.KindFloat, len(samples))
		column.Unit, column.Doc, column.Role = c.unit, c.doc, results.RolePoint
		for i := range samples {
			column.Set(i, ms(c.get(&samples[i]))) // NaN leaves it null
		}
		t.Add(column)
	}
	return t
}
