package scrape

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/servegrid/servegrid/live"
)

const vllmPage = `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 100.0
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 40.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} 1.5e+06
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="m"} 2.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{le="0.1"} 1
vllm:time_to_first_token_seconds_bucket{le="+Inf"} 1
vllm:time_to_first_token_seconds_sum 0.05
vllm:time_to_first_token_seconds_count 1
`

const sglangPage = `# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{tp_rank="0"} 5
# TYPE sglang_num_queue_reqs gauge
sglang_num_queue_reqs 6
# TYPE sglang:token_usage gauge
sglang:token_usage 0.5
# TYPE sglang:cached_tokens_total counter
sglang:cached_tokens_total{cache_source="device"} 30
sglang:cached_tokens_total{cache_source="host"} 10
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total 90
`

func TestPages(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name, page string
		want       live.Sample
	}{
		{"vLLM", vllmPage, live.Sample{Running: 7, Waiting: 1, KVUsage: .5, CachedTokens: 40, PromptTokens: 100, OutputTokens: 1.5e6, Preemptions: 2}},
		{"SGLang", sglangPage, live.Sample{Running: 5, Waiting: 6, KVUsage: .5, CachedTokens: 40, PromptTokens: 90, OutputTokens: nan, Preemptions: nan}},
		{"others", "up 1\n", live.Sample{Running: nan, Waiting: nan, KVUsage: nan, CachedTokens: nan, PromptTokens: nan, OutputTokens: nan, Preemptions: nan}},
	} {
		got, err := Parse(strings.NewReader(c.page))
		if diff := cmp.Diff(c.want, got, cmpopts.EquateNaNs()); diff != "" || err != nil {
			t.Errorf("%s: sample differs (-want +got):\n%s\n%v", c.name, diff, err)
		}
	}
	if _, err := Parse(strings.NewReader("<html>")); err == nil || !strings.Contains(err.Error(), "no page of Prometheus metrics") {
		t.Errorf("got %v of a page of HTML", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(vllmPage)
	f.Add(sglangPage)
	f.Fuzz(func(t *testing.T, page string) {
		_, _ = Parse(strings.NewReader(page)) // must return
	})
}

func TestScraper(t *testing.T) {
	defer goleak.VerifyNone(t)
	var asked atomic.Int64
	enough := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n := asked.Add(1); {
		case n == 2:
			w.WriteHeader(http.StatusInternalServerError)
			return
		case n == 4:
			close(enough)
		}
		_, _ = io.WriteString(w, vllmPage)
	}))
	defer server.Close()
	u, _ := url.Parse(server.URL)
	u.User = url.UserPassword("me", "secret")
	s := Start(Options{URLs: []*url.URL{u}, Interval: time.Millisecond}, time.Now())
	<-enough
	samples, failures := s.Stop()
	if len(samples) < 2 || samples[0].Running != 7 || samples[1].AtMs <= samples[0].AtMs || strings.Contains(samples[0].Endpoint, "secret") {
		t.Errorf("samples are %+v", samples)
	}
	if len(failures) != 1 || failures[0].Count != 1 || !strings.Contains(failures[0].Last.Error(), "500") {
		t.Errorf("failures are %+v", failures)
	}
}

// TestNamesOfPages checks that pages are told apart without what may be secret in their URLs.
func TestNamesOfPages(t *testing.T) {
	var names []string
	for _, text := range []string{"http://me:secret@host/metrics", "http://host/metrics?key=secret", "http://host/metrics?key=other"} {
		page, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, nameOf(page, names))
	}
	if got, want := strings.Join(names, ", "), "http://***@host/metrics, http://host/metrics?..., http://host/metrics?... (2)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
