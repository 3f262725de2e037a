package workload

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/simcore/rules"
)

func generate(t *testing.T, s SyntheticSpec, src Source) *Workload {
	t.Helper()
	w, err := Spec{Synthetic: &s}.Load(context.Background(), src)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestSyntheticRequests(t *testing.T) {
	s := DefaultSyntheticSpec()
	s.InputTokens, s.OutputTokens, s.Requests, s.ArrivalIntervalMs = 1000, 10, 3, 2.5
	want := []Request{
		{Session: "request_1", ArrivalMs: 0, Input: 1000, Output: 10},
		{Session: "request_2", ArrivalMs: 2.5, Input: 1000, Output: 10},
		{Session: "request_3", ArrivalMs: 5, Input: 1000, Output: 10},
	}
	w := generate(t, s, Source{})
	if diff := cmp.Diff(want, requestsOf(w), sameRequests); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if b, err := w.Blocks(64, true); err != nil || b.Known(0) != 0 {
		t.Errorf("independent requests share %d blocks, %v", b.Known(0), err)
	}
	if (Spec{Synthetic: &s}).DependsOnEngine() {
		t.Error("independent requests depend on the engine's block size")
	}
}

// TestSyntheticSessions checks the ids of two sessions of two turns: half of 7 blocks, rounded away from zero, are
// the group's, the others count on.
func TestSyntheticSessions(t *testing.T) {
	s := SyntheticSpec{InputTokens: 100, OutputTokens: 4, Requests: 2, TurnsPerSession: 2, ArrivalIntervalMs: 10,
		SharedPrefixRatio: .5, PrefixGroups: 1, InterTurnDelayMs: 30, Seed: 1}
	const shared = uint64(0xD00D) << 48
	ids := func(first uint64) []uint64 {
		return []uint64{shared, shared + 1, shared + 2, shared + 3, first, first + 1, first + 2}
	}
	want := []Request{
		{Session: "request_1", ArrivalMs: 0, Input: 100, Output: 4, Hashes: ids(1)},
		{Session: "request_1", ArrivalMs: none, DelayMs: 30, Input: 100, Output: 4, Hashes: ids(4)},
		{Session: "request_2", ArrivalMs: 10, Input: 100, Output: 4, Hashes: ids(7)},
		{Session: "request_2", ArrivalMs: none, DelayMs: 30, Input: 100, Output: 4, Hashes: ids(10)},
	}
	w := generate(t, s, Source{EngineBlockSize: 16})
	if diff := cmp.Diff(want, requestsOf(w), sameRequests); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w.BlockSize != 16 || !(Spec{Synthetic: &s}).DependsOnEngine() {
		t.Errorf("trace blocks hold %d tokens, want those of the engine", w.BlockSize)
	}
	s.SharedPrefixRatio = 0
	if got := generate(t, s, Source{EngineBlockSize: 16}).Hashes(0)[0]; got != 1 {
		t.Errorf("without a ratio the first id is %#x", got)
	}
	s.SharedPrefixRatio, s.PrefixGroups = .5, 0
	if got := generate(t, s, Source{EngineBlockSize: 16}).Hashes(0)[0]; got != 1 {
		t.Errorf("without groups the first id is %#x", got)
	}
}

// TestPrefixGroups checks that groups have prefixes of their own, and one together under the reference's rules.
func TestPrefixGroups(t *testing.T) {
	s := SyntheticSpec{InputTokens: 64, OutputTokens: 1, Requests: 200, TurnsPerSession: 1, SharedPrefixRatio: 1, PrefixGroups: 5, Seed: 3}
	groups := func(seed uint64, set rules.Set) map[uint64]int {
		s.Seed = seed
		w := generate(t, s, Source{EngineBlockSize: 16, Rules: set})
		count := map[uint64]int{}
		for i := range w.Requests() {
			count[w.Hashes(i)[0]]++
		}
		return count
	}
	own := groups(3, rules.Set{})
	if len(own) != 5 {
		t.Errorf("5 groups have %d prefixes", len(own))
	}
	for id, n := range own {
		if n < 20 || n > 65 {
			t.Errorf("group %#x has %d of 200 sessions", id, n)
		}
	}
	if cmp.Equal(own, groups(4, rules.Set{})) {
		t.Error("the seed does not decide the groups")
	}
	if diff := cmp.Diff(own, groups(3, rules.Set{})); diff != "" {
		t.Errorf("equal seeds give other groups:\n%s", diff)
	}
	reference, err := rules.For(rules.Dynamo13)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[uint64]int{0: 200}, groups(3, reference)); diff != "" {
		t.Errorf("the reference's prefix (-want +got):\n%s", diff)
	}
}

func TestSyntheticTimes(t *testing.T) {
	s := SyntheticSpec{InputTokens: 1, OutputTokens: 1, Requests: 3, TurnsPerSession: 2}
	if w := generate(t, s, Source{EngineBlockSize: 16}); w.ArrivalMs[4] != 0 {
		t.Errorf("without an interval the third session starts at %v ms", w.ArrivalMs[4])
	}
	s.ArrivalIntervalMs = 7
	step := 1000 / s.ArrivalIntervalMs // a variable, so that the quotient is rounded
	if w := generate(t, s, Source{EngineBlockSize: 16}); w.ArrivalMs[4] != 1000/step+1000/step {
		t.Errorf("the third session starts at %v ms", w.ArrivalMs[4])
	}
}

func TestSpecValidate(t *testing.T) {
	good := func() Spec {
		s := DefaultSyntheticSpec()
		s.InputTokens, s.OutputTokens, s.Requests = 1, 1, 1
		return Spec{Synthetic: &s}
	}
	trace := func(change func(*TraceSpec)) Spec {
		s := DefaultTraceSpec()
		s.Path = "x"
		change(&s)
		return Spec{Trace: &s}
	}
	synthetic := func(change func(*SyntheticSpec)) Spec {
		s := good()
		change(s.Synthetic)
		return s
	}
	for _, test := range []struct {
		name string
		spec Spec
		want string // paths of the problems
	}{
		{"good", good(), ""},
		{"nothing", Spec{}, "(workload)"},
		{"two", Spec{Synthetic: good().Synthetic, Preset: &PresetSpec{Name: PresetChat}}, "(workload)"},
		{"no tokens", synthetic(func(s *SyntheticSpec) { s.InputTokens, s.OutputTokens = 0, -1 }), "synthetic.input_tokens synthetic.output_tokens"},
		{"too many tokens", synthetic(func(s *SyntheticSpec) { s.InputTokens = MaxTokens + 1 }), "synthetic.input_tokens"},
		{"no requests", synthetic(func(s *SyntheticSpec) { s.Requests = 0 }), "synthetic.requests"},
		{"too many requests", synthetic(func(s *SyntheticSpec) { s.Requests = maxRequests + 1 }), "synthetic.requests"},
		{"no turns", synthetic(func(s *SyntheticSpec) { s.TurnsPerSession = 0 }), "synthetic.turns_per_session"},
		{"too many turns", synthetic(func(s *SyntheticSpec) { s.Requests, s.TurnsPerSession = maxRequests, 2 }), "synthetic.turns_per_session"},
		{"negative times", synthetic(func(s *SyntheticSpec) { s.ArrivalIntervalMs, s.InterTurnDelayMs = -1, -1 }), "synthetic.arrival_interval_ms synthetic.inter_turn_delay_ms"},
		{"no times", synthetic(func(s *SyntheticSpec) { s.ArrivalIntervalMs, s.InterTurnDelayMs = math.NaN(), math.Inf(1) }), "synthetic.arrival_interval_ms synthetic.inter_turn_delay_ms"},
		{"ratio", synthetic(func(s *SyntheticSpec) { s.SharedPrefixRatio = 1.5 }), "synthetic.shared_prefix_ratio"},
		{"no ratio", synthetic(func(s *SyntheticSpec) { s.SharedPrefixRatio = math.NaN() }), "synthetic.shared_prefix_ratio"},
		{"groups", synthetic(func(s *SyntheticSpec) { s.PrefixGroups = -1 }), "synthetic.prefix_groups"},
		{"trace", trace(func(*TraceSpec) {}), ""},
		{"no path", trace(func(s *TraceSpec) { s.Path = "" }), "trace.path"},
		{"path and paths", trace(func(s *TraceSpec) { s.Paths = []string{"y"} }), "trace.paths"},
		{"format and size", trace(func(s *TraceSpec) { s.Format, s.BlockSize = "csv", -1 }), "trace.format trace.block_size"},
	} {
		var paths []string
		for _, p := range test.spec.Validate() {
			paths = append(paths, p.Path)
		}
		if got := strings.Join(paths, " "); got != test.want {
			t.Errorf("%s: problems with %q, want %q", test.name, got, test.want)
		}
		if test.want != "" {
			if _, err := test.spec.Load(context.Background(), Source{}); err == nil {
				t.Errorf("%s: loads", test.name)
			}
		}
	}
}

func TestLabel(t *testing.T) {
	for want, s := range map[string]Spec{
		"mine":            {Name: "mine", Preset: &PresetSpec{Name: PresetChat}},
		"chat":            {Preset: &PresetSpec{Name: PresetChat}},
		"synthetic 640/4": {Synthetic: &SyntheticSpec{InputTokens: 640, OutputTokens: 4}},
		"a.jsonl b.jsonl": {Trace: &TraceSpec{Paths: []string{"a.jsonl", "b.jsonl"}}},
		"":                {},
	} {
		if got := s.Label(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	s := DefaultSyntheticSpec()
	s.InputTokens, s.OutputTokens, s.Requests = 1, 1, 1
	if w, err := (Spec{Name: "mine", Synthetic: &s}).Load(context.Background(), Source{}); err != nil || w.Name != "mine" {
		t.Errorf("the name is not kept: %v", err)
	}
}
