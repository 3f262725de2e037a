package workload

import (
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// diamond is a play of four requests: a, then b at its dispatch and c after its end, then d after both.
func diamond(t *testing.T) *Workload {
	t.Helper()
	b := NewGraphBuilder("diamond", 0)
	nan := math.NaN()
	add := func(session, parent string, floor, start, end float64, input, output int) int32 {
		return b.Add(GraphRequest{
			Request: Request{Session: session, Input: input, Output: output}, NotBeforeMs: floor, ParentSession: parent,
			Model: "m", RecordedStartMs: start, RecordedEndMs: end,
		})
	}
	a := add("main", "", 1000, 5000, 5100, 10, 1)
	spawned := add("sub", "main", math.Inf(-1), nan, nan, 20, 2)
	c := add("main", "", math.Inf(-1), nan, nan, 30, 3)
	d := add("main", "", 1500, nan, nan, 40, 4)
	b.AddEdge(spawned, Edge{From: a, DelayMs: 50, Trigger: OnDispatch, Relation: Spawn})
	b.AddEdge(c, Edge{From: a, DelayMs: 20, Relation: Sequence})
	b.AddEdge(d, Edge{From: c, Relation: Sequence})
	b.AddEdge(d, Edge{From: spawned, DelayMs: 7, Relation: Join})
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestTimeline checks the windows of a graph and of a session against figures by hand.
func TestTimeline(t *testing.T) {
	// One request takes 10 ms for a prompt token and 100 ms for one of the answer: sub 400 ms, c 600 ms, d 800 ms.
	rates := ServiceRates{PrefillTokensPerSecond: 100, DecodeTokensPerSecond: 10}
	w := diamond(t)
	took := func(i int) float64 {
		if v := w.recordedService(i); v > 0 {
			return v
		}
		return rates.ms(int(w.Input[i]), int(w.Output[i]))
	}
	starts := w.nominalStarts(took)
	// Requests are main's three, then sub's: a 1000-1100, c 1120-1720, d from 1720, sub 1050-1450.
	if want := []float64{1000, 1120, 1720, 1050}; !slices.Equal(starts, want) {
		t.Fatalf("starts %v, want %v", starts, want)
	}
	got := NewTimeline(w, rates, 4)
	want := Timeline{
		WindowMs: 500, Recorded: .25, PeakRequests: 2, PeakTokens: 55,
		Windows: []Window{
			{Starts: 3, InputTokens: 60, OutputTokens: 6, Requests: (100 + 380 + 400) / 500., Tokens: (100*11 + 380*33 + 400*22) / 500., Sessions: (500 + 400) / 500.},
			{Starts: 1, InputTokens: 40, OutputTokens: 4, Requests: 1, Tokens: (220*33 + 280*44) / 500., Sessions: 1},
			{Requests: 1, Tokens: 44, Sessions: 1},
			{Requests: .04, Tokens: 20 * 44 / 500., Sessions: .04},
		},
	}
	if diff := gocmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s := Stats(w)
	agents := &AgentStatistics{
		Plays: 1, Edges: map[string]int{"sequence": 2, "spawn": 1, "join": 1}, Subagents: 1, Depth: 1, SubagentRequests: 1, SubagentInputTokens: 20, Joined: 1,
		PerPlay: distributionOf([]int32{1}), Models: map[string]int{"m": 4},
	}
	if diff := gocmp.Diff(agents, s.Agents); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.DelayMs.Count != 2 || s.DelayMs.Max != 20 || s.Arrivals == nil || s.MultiTurnSessions != 1 {
		t.Errorf("%+v", s)
	}
}

// TestTimelineAddsUp checks that nothing is lost between windows, whatever their number.
func TestTimelineAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var requests []Request
		busy, tokens := 0.0, 0.0
		rates := ServiceRates{PrefillTokensPerSecond: 1000, DecodeTokensPerSecond: rapid.SampledFrom([]float64{0, 20}).Draw(t, "rate")}
		for range rapid.IntRange(1, 30).Draw(t, "requests") {
			r := Request{
				Session: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "session"), ArrivalMs: rapid.Float64Range(-1e6, 1e6).Draw(t, "arrival"),
				DelayMs: rapid.Float64Range(0, 1e5).Draw(t, "delay"), Input: rapid.IntRange(1, 1000).Draw(t, "input"), Output: rapid.IntRange(0, 100).Draw(t, "output"),
			}
			took := rates.ms(r.Input, r.Output)
			busy += took
			tokens += took * float64(r.Input+r.Output)
			requests = append(requests, r)
		}
		w := buildRequests(t, 0, requests...)
		windows := rapid.IntRange(1, 50).Draw(t, "windows")
		line := NewTimeline(w, rates, windows)
		if len(line.Windows) > windows+1 {
			t.Fatalf("%d windows, at most %d wanted", len(line.Windows), windows)
		}
		starts, inFlight, held, peak := 0, 0., 0., 0.
		for _, v := range line.Windows {
			starts += v.Starts
			inFlight += v.Requests * line.WindowMs
			held += v.Tokens * line.WindowMs
			peak = max(peak, v.Requests)
		}
		if starts != len(requests) || math.Abs(inFlight-busy) > 1e-6*busy || math.Abs(held-tokens) > 1e-6*tokens || peak > float64(line.PeakRequests)+1e-6 {
			t.Fatalf("%d starts, %g of %g ms, %g of %g token-ms, mean %g above the peak %d", starts, inFlight, busy, held, tokens, peak, line.PeakRequests)
		}
	})
}

func TestHistogram(t *testing.T) {
	got := histogramOf([]int32{0, 1, 1, 2, 5, 7, 8, 100})
	want := Histogram{Bins: []Bin{{0, 1, 1}, {1, 2, 2}, {2, 3, 1}, {3, 4, 0}, {4, 5, 0}, {5, 6, 1}, {6, 7, 0}, {7, 8, 1}, {8, 10, 1}}}
	if diff := gocmp.Diff(want.Bins, got.Bins[:9]); diff != "" || got.Count() != 8 {
		t.Error(diff)
	}
	if last := got.Bins[len(got.Bins)-1]; last.From > 100 || last.To <= 100 || last.Count != 1 {
		t.Errorf("the last bin is %v", last)
	}
	if h := histogramOf([]float64{6e7}); len(h.Bins) != 1 || h.Count() != 1 || histogramOf[float64](nil).Count() != 0 {
		t.Errorf("%v", h)
	}
}

func TestCacheSizes(t *testing.T) {
	if got := CacheSizes(16, 100, 1); !slices.Equal(got, []int{16, 32, 64, 128}) {
		t.Error(got)
	}
	if got := CacheSizes(1, 4, 4); !slices.Equal(got, []int{1, 2, 3, 4}) {
		t.Error(got)
	}
}

// BenchmarkStats measures a trace of 10,000 requests with a curve of 20 cache sizes.
func BenchmarkStats(b *testing.B) {
	chat, err := PresetSpec{Name: PresetChat, Requests: 10_000}.Generate()
	if err != nil {
		b.Fatal(err)
	}
	chat.chains()
	for b.Loop() {
		Stats(chat, CacheSizes(16, 160_000, 2)...)
	}
}
