package tracetools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/workload"
)

// TestAnonymizeKeepsStructure checks that everything but names, planned answers and the start of time stays.
func TestAnonymizeKeepsStructure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := sessions(t)
		if rapid.Bool().Draw(t, "graph") {
			w = plays(t)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		again, _, err := Anonymize(w, seed)
		if err != nil {
			t.Fatal(err)
		}
		caches := []int{1, 2, 3, 5, 8}
		if diff := cmp.Diff(workload.Stats(w, caches...), workload.Stats(again, caches...), cmpopts.EquateApprox(0, 1e-9), cmpopts.IgnoreFields(workload.AgentStatistics{}, "Models")); diff != "" {
			t.Fatal(diff)
		}
		a, b := w.RecordedStarts(), again.RecordedStarts()
		if w.Graph == nil {
			first := slices.Min(a)
			for i := range a {
				a[i] -= first
			}
		}
		if diff := cmp.Diff(sorted(a), sorted(b), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Fatal(diff)
		}
		same, _, err := Anonymize(w, seed)
		if err != nil || same.Digest() != again.Digest() {
			t.Fatalf("the same seed gives %s and %s, %v", again.Digest(), same.Digest(), err)
		}
	})
}

func sorted(values []float64) []float64 {
	out := slices.Clone(values)
	slices.Sort(out)
	return out
}

// TestAnonymizeHidesNames checks that no name, id or time of the source is in what is written.
func TestAnonymizeHidesNames(t *testing.T) {
	text := `{"timestamp": 1700000000123, "session_id": "customer-17", "request_id": "secret", "input_length": 1024, "output_length": 3, "hash_ids": [987654321, 4242], "output_token_ids": [777, 778, 779], "policy_class": "gold-plan"}
{"session_id": "customer-17", "delay": 5, "input_length": 1536, "output_length": 2, "hash_ids": [987654321, 4242, 5555]}
{"timestamp": 1700000000623, "session_id": "customer-18", "input_length": 512, "output_length": 2, "hash_ids": [987654321], "policy_class": "gold-plan"}
`
	w, notes, err := Anonymize(read(t, []byte(text)), 7)
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "the exact answers of 1 requests are left out") {
		t.Fatal(err, notes)
	}
	out, _ := written(t, w, Target{})
	for _, secret := range []string{"customer", "secret", "gold", "98765", "4242", "5555", "777", "17000"} {
		if bytes.Contains(out, []byte(secret)) {
			t.Errorf("%q is in\n%s", secret, out)
		}
	}
	if !bytes.Contains(out, []byte(`"timestamp":500,`)) || bytes.Count(out, []byte(`"policy_class":"class_1"`)) != 2 {
		t.Errorf("times or classes are lost:\n%s", out)
	}
	other, _, err := Anonymize(read(t, []byte(text)), 8)
	if err != nil || other.Digest() == w.Digest() {
		t.Errorf("another seed gives the same ids, %v", err)
	}
}

// TestSynthesizeInvariants draws factors and checks what must hold of every synthesis.
func TestSynthesizeInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := sessions(t)
		if rapid.Bool().Draw(t, "graph") {
			w = plays(t)
		}
		factor := func(name string) float64 { return rapid.SampledFrom([]float64{.3, .5, 1, 1, 1.7, 2, 3}).Draw(t, name) }
		s := Synthesis{
			Requests: factor("requests"), Users: factor("users"), Rate: factor("rate"), InputLength: factor("input"), OutputLength: factor("output"),
			Sharing: rapid.SampledFrom([]float64{0, .5, 1, 1}).Draw(t, "sharing"), Seed: rapid.Uint64().Draw(t, "seed"),
		}
		made, _, err := Synthesize(context.Background(), w, s)
		if err != nil {
			if !strings.Contains(err.Error(), "no request is left") {
				t.Fatal(err)
			}
			return
		}
		again, _, err := Synthesize(context.Background(), w, s)
		if err != nil || again.Digest() != made.Digest() {
			t.Fatalf("the same seed gives %s and %s, %v", made.Digest(), again.Digest(), err)
		}
		lengths := map[int32]bool{}
		for i := range w.Requests() {
			lengths[int32(scaled(int(w.Input[i]), s.InputLength))] = true
		}
		for i := range made.Requests() {
			if !lengths[made.Input[i]] {
				t.Fatalf("an input of %d tokens is none of the trace's", made.Input[i])
			}
			if ids := len(made.Hashes(i)); ids != (int(made.Input[i])+3)/4 && s.InputLength == 1 {
				t.Fatalf("%d tokens have %d ids", made.Input[i], ids)
			}
		}
		whole := s.Requests == math.Trunc(s.Requests) && s.Users == math.Trunc(s.Users) && s.Rate == 1
		if want := float64(w.Requests()) * s.Requests * s.Users; whole && float64(made.Requests()) != want {
			t.Fatalf("%d requests, want %g", made.Requests(), want)
		}
		before, after := workload.Stats(w), workload.Stats(made)
		if s.Sharing == 0 && after.Reuse != nil && after.Reuse.Ideal != 0 {
			t.Fatalf("reuse is %g", after.Reuse.Ideal)
		}
		if whole && s.Sharing == 1 && s.InputLength == 1 && before.Reuse != nil && w.Graph == nil && after.Reuse.Blocks != before.Reuse.Blocks*made.Requests()/w.Requests() {
			t.Fatalf("%d blocks became %d", before.Reuse.Blocks, after.Reuse.Blocks)
		}
		// What is made can be written and read.
		text, _ := written(t, made, Target{})
		if w.Graph != nil {
			read(t, text)
		}
	})
}

// TestSynthesizeStatistics scales a preset and compares figures that should stay, or scale.
func TestSynthesizeStatistics(t *testing.T) {
	chat, err := workload.PresetSpec{Name: workload.PresetChat, Requests: 6000}.Generate()
	if err != nil {
		t.Fatal(err)
	}
	tools, err := workload.PresetSpec{Name: workload.PresetToolAgent, Requests: 6000}.Generate()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		source *workload.Workload
		change func(*Synthesis)
		// Factors on requests, rate, input, output and reuse.
		want [5]float64
	}{
		{"same", chat, func(*Synthesis) {}, [5]float64{1, 1, 1, 1, 1}},
		{"requests", chat, func(s *Synthesis) { s.Requests = 2 }, [5]float64{2, 1, 1, 1, 1}},
		{"users", chat, func(s *Synthesis) { s.Users = 2.5 }, [5]float64{2.5, 2.5, 1, 1, 1}},
		{"rate", chat, func(s *Synthesis) { s.Rate = 2 }, [5]float64{1, 2, 1, 1, .85}}, // conversations are cut off at both ends
		{"fewer", chat, func(s *Synthesis) { s.Users = .5 }, [5]float64{.5, .5, 1, 1, 1}},
		{"input", chat, func(s *Synthesis) { s.InputLength = 2 }, [5]float64{1, 1, 2, 1, 1}},
		{"shorter", chat, func(s *Synthesis) { s.InputLength = .5 }, [5]float64{1, 1, .5, 1, 1.04}}, // the first of two blocks stands for both
		{"output", chat, func(s *Synthesis) { s.OutputLength = 3 }, [5]float64{1, 1, 1, 3, 1}},
		{"sharing", chat, func(s *Synthesis) { s.Sharing = .4 }, [5]float64{1, 1, 1, 1, .4}},
		{"system prompts", tools, func(s *Synthesis) { s.Users = 2 }, [5]float64{2, 2, 1, 1, 1}},
	} {
		s := DefaultSynthesis()
		s.Seed = 3
		test.change(&s)
		made, _, err := Synthesize(context.Background(), test.source, s)
		if err != nil {
			t.Fatal(err)
		}
		a, b := workload.Stats(test.source), workload.Stats(made)
		got := [5]float64{
			float64(b.Requests) / float64(a.Requests), b.Arrivals.Rate / a.Arrivals.Rate, b.InputTokens.Mean / a.InputTokens.Mean,
			b.OutputTokens.Mean / a.OutputTokens.Mean, b.Reuse.Ideal / a.Reuse.Ideal,
		}
		for i, want := range test.want {
			if math.Abs(got[i]/want-1) > .06 {
				t.Errorf("%s: factors %.3f, want %v", test.name, got, test.want)
				break
			}
		}
		if d := b.Arrivals.Dispersion10s / a.Arrivals.Dispersion10s; s.Rate == 1 && s.Users == 1 && math.Abs(d-1) > .15 {
			t.Errorf("%s: dispersion changes by %.2f", test.name, d)
		}
		if !slices.IsSorted(made.ArrivalMs) {
			t.Errorf("%s: not in order of time", test.name)
		}
	}
}

func TestSynthesizeProblems(t *testing.T) {
	w := read(t, []byte(agent))
	for _, test := range []struct {
		s    Synthesis
		want string
	}{
		{Synthesis{}, "requests, users, rate, input_length, output_length"},
		{Synthesis{Requests: math.NaN(), Users: math.Inf(1), Rate: 1, InputLength: 1, OutputLength: -1, Sharing: 2}, "requests, users, output_length, sharing"},
	} {
		var paths []string
		for _, p := range test.s.Validate() {
			paths = append(paths, p.Path)
		}
		if strings.Join(paths, ", ") != test.want {
			t.Errorf("%q, want %q", paths, test.want)
		}
		if _, _, err := Synthesize(context.Background(), w, test.s); err == nil {
			t.Error("no error")
		}
	}
	s := DefaultSynthesis()
	s.Users, s.Requests = 1e6, 1e6
	if _, _, err := Synthesize(context.Background(), w, s); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := Synthesize(ctx, w, DefaultSynthesis()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s = DefaultSynthesis()
	s.Rate = 2
	made, notes, err := Synthesize(context.Background(), w, s)
	if err != nil || made.Requests() != 3 || len(notes) != 1 || !strings.Contains(notes[0], "rate has no effect") {
		t.Error(err, notes)
	}
}

// BenchmarkSynthesize doubles 10,000 requests.
func BenchmarkSynthesize(b *testing.B) {
	chat, err := workload.PresetSpec{Name: workload.PresetChat, Requests: 10_000}.Generate()
	if err != nil {
		b.Fatal(err)
	}
	s := DefaultSynthesis()
	s.Users = 2
	for b.Loop() {
		if _, _, err := Synthesize(context.Background(), chat, s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkConvert writes 10,000 requests as agentic Mooncake.
func BenchmarkConvert(b *testing.B) {
	chat, err := workload.PresetSpec{Name: workload.PresetChat, Requests: 10_000}.Generate()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := (Target{Format: workload.FormatAgenticMooncake}).For(chat).Write(new(countingWriter), chat); err != nil {
			b.Fatal(err)
		}
	}
}

type countingWriter struct{ n int }

func (w *countingWriter) Write(p []byte) (int, error) {
	w.n += len(p)
	return len(p), nil
}

func ExampleSynthesize() {
	chat, err := workload.PresetSpec{Name: workload.PresetChat, Requests: 1000}.Generate()
	if err != nil {
		fmt.Println(err)
		return
	}
	s := DefaultSynthesis()
	s.Users = 3
	more, _, err := Synthesize(context.Background(), chat, s)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(more.Requests(), "requests")
	// Output: 3000 requests
}

// TestSynthesizeUneven checks that a part of the time of a trace whose load swells has about the requests of its part.
func TestSynthesizeUneven(t *testing.T) {
	b := workload.NewBuilder("swelling", 0)
	for i := range 4000 {
		b.Add(workload.Request{ArrivalMs: 60_000 * math.Sqrt(float64(i)), Input: 100, Output: 1 + i/40})
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(8) {
		for _, rate := range []float64{.5, 1.5, 2, 4} {
			s := DefaultSynthesis()
			s.Rate, s.Seed = rate, seed
			made, _, err := Synthesize(context.Background(), w, s)
			if err != nil {
				t.Fatal(err)
			}
			a, b := workload.Stats(w), workload.Stats(made)
			requests, speed, output := float64(b.Requests)/4000, b.Arrivals.Rate/a.Arrivals.Rate, b.OutputTokens.Mean/a.OutputTokens.Mean
			if math.Abs(requests-1) > .07 || math.Abs(speed/rate-1) > .08 || rate == math.Trunc(rate) && math.Abs(output-1) > .02 {
				t.Errorf("rate %g, seed %d: requests x%.3f, rate x%.3f, output x%.3f", rate, seed, requests, speed, output)
			}
		}
	}
}
