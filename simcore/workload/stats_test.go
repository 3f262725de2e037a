package workload

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func buildRequests(t interface{ Fatal(...any) }, blockSize int, requests ...Request) *Workload {
	b := NewBuilder("test", blockSize)
	for _, r := range requests {
		b.Add(r)
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestStats(t *testing.T) {
	none := math.NaN()
	w := buildRequests(t, 10,
		Request{Session: "a", ArrivalMs: 0, Input: 20, Output: 1, Hashes: []uint64{1, 2}},
		Request{Session: "a", ArrivalMs: none, DelayMs: 500, Input: 35, Output: 3, Hashes: []uint64{1, 2, 3, 4}},
		Request{ArrivalMs: 100, Input: 20, Output: 5, Hashes: []uint64{1, 9}},
		// Block 2 follows another block here, so that its content is known and its prefix is not.
		Request{ArrivalMs: 300, Input: 20, Output: 7, Hashes: []uint64{9, 2}},
	)
	got := Stats(w, 1, 2, 100, 0)
	want := Statistics{
		Requests: 4, Sessions: 3, MultiTurnSessions: 1,
		InputTokens:  Distribution{Count: 4, Mean: 23.75, StdDev: math.Sqrt(42.1875), Min: 20, P10: 20, P25: 20, P50: 20, P75: 20, P90: 35, P99: 35, Max: 35},
		OutputTokens: Distribution{Count: 4, Mean: 4, StdDev: math.Sqrt(5), Min: 1, P10: 1, P25: 1, P50: 3, P75: 5, P90: 7, P99: 7, Max: 7},
		Turns:        Distribution{Count: 3, Mean: 4. / 3, StdDev: math.Sqrt(2) / 3, Min: 1, P10: 1, P25: 1, P50: 1, P75: 2, P90: 2, P99: 2, Max: 2},
		DelayMs:      Distribution{Count: 1, Mean: 500, Min: 500, P10: 500, P25: 500, P50: 500, P75: 500, P90: 500, P99: 500, Max: 500},
		Arrivals: &ArrivalStatistics{
			SpanMs: 300, Rate: 2 / .3, IntervalCV: 1. / 3,
			IntervalMs: Distribution{Count: 2, Mean: 150, StdDev: 50, Min: 100, P10: 100, P25: 100, P50: 100, P75: 200, P90: 200, P99: 200, Max: 200},
		},
		Reuse: &ReuseStatistics{
			// In order of start: 1 2, then 1 9 (1 hits), then 9 2, then 1 2 3 (1 and 2 hit).
			BlockSize: 10, Blocks: 9, UniqueBlocks: 6, Ideal: 3. / 9,
			// Two blocks: after 9 2 nothing of 1 2 3 is left.
			LRU: []CacheReuse{{1, 1. / 9}, {2, 1. / 9}, {100, 3. / 9}, {0, 0}},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStatsWithoutTimesAndIDs(t *testing.T) {
	w := buildRequests(t, 0, Request{ArrivalMs: math.NaN(), Input: 1, Output: 1})
	if got := Stats(w, 10); got.Arrivals != nil || got.Reuse != nil {
		t.Errorf("got arrivals %+v and reuse %+v, want neither", got.Arrivals, got.Reuse)
	}
	w = buildRequests(t, 0, Request{ArrivalMs: 5, Input: 1, Output: 1})
	if diff := cmp.Diff(&ArrivalStatistics{}, Stats(w).Arrivals); diff != "" {
		t.Errorf("one arrival (-want +got):\n%s", diff)
	}
}

// TestStatsOfTranscripts checks the reuse of turns that go on where the one before ended.
func TestStatsOfTranscripts(t *testing.T) {
	trace := DefaultTraceSpec()
	trace.Path, trace.Format, trace.BlockSize = "-", FormatMooncakeDelta, 4
	text := `{"timestamp": 0, "session_id": "s", "input_length": 8, "output_length": 4, "hash_ids": [1, 2]}
{"delay": 5, "session_id": "s", "input_length": 6, "output_length": 4, "hash_ids": [3, 4]}`
	w, err := Spec{Trace: &trace}.Load(context.Background(), Source{Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	// The second prompt has 18 tokens: the two blocks of the first, its answer, and what is new.
	if r := Stats(w).Reuse; r == nil || r.Blocks != 6 || r.UniqueBlocks != 4 || r.Ideal != 2./6 {
		t.Errorf("%+v", r)
	}
}

func TestDispersion(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var clock, poisson []float64
	at := 0.0
	for i := range 50_000 {
		clock = append(clock, float64(i)*100)
		poisson = append(poisson, at)
		at += random.ExpFloat64() * 100
	}
	if got := dispersion(clock, 10_000); got != 0 {
		t.Errorf("a clock has dispersion %g, want 0", got)
	}
	if got := dispersion(poisson, 10_000); math.Abs(got-1) > .2 {
		t.Errorf("a Poisson process has dispersion %g, want about 1", got)
	}
	// Two arrivals in the first second, none in the second, one to close the third.
	if got, want := dispersion([]float64{0, 1, 2500, 3000}, 1000), 2./3; math.Abs(got-want) > 1e-12 {
		t.Errorf("got %g, want %g", got, want)
	}
}

// TestReuseByModel compares the cache with a list that is searched from end to end.
func TestReuseByModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var requests []Request
		for i := range rapid.IntRange(1, 30).Draw(t, "requests") {
			ids := rapid.SliceOfN(rapid.Uint64Range(0, 3), 1, 5).Draw(t, "ids")
			requests = append(requests, Request{ArrivalMs: float64(i), Input: 2*len(ids) - i%2, Output: 1, Hashes: ids})
		}
		size := rapid.IntRange(1, 12).Draw(t, "size")
		got := Stats(buildRequests(t, 2, requests...), size).Reuse
		ideal, blocks := modelReuse(requests, math.MaxInt)
		limited, _ := modelReuse(requests, size)
		want := []int{blocks, ideal, limited}
		hits := []int{got.Blocks, int(math.Round(got.Ideal * float64(blocks))), int(math.Round(got.LRU[0].HitRatio * float64(blocks)))}
		if diff := cmp.Diff(want, hits); diff != "" {
			t.Fatalf("blocks, hits without limit, hits with %d blocks (-want +got):\n%s", size, diff)
		}
	})
}

// modelReuse counts the hits and the blocks of two tokens; a block's name is its whole prefix.
func modelReuse(requests []Request, size int) (hits, blocks int) {
	var recent []string // most recent last
	for _, r := range requests {
		var names []string
		name := ""
		for _, id := range r.Hashes[:r.Input/2] {
			name += string(rune('a' + id))
			names = append(names, name)
		}
		blocks += len(names)
		missed := false
		held := map[string]bool{}
		for _, n := range recent {
			held[n] = true
		}
		for _, n := range names {
			missed = missed || !held[n]
			if !missed {
				hits++
			}
		}
		for i := len(names) - 1; i >= 0; i-- {
			kept := recent[:0:0]
			for _, n := range recent {
				if n != names[i] {
					kept = append(kept, n)
				}
			}
			recent = append(kept, names[i])
		}
		recent = recent[max(0, len(recent)-size):]
	}
	return hits, blocks
}
