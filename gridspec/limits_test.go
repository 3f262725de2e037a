package gridspec_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/gridspec"
)

// No limit is null. A 0 that is written, anywhere, is refused instead of meaning the same.
func TestZeroIsNoLimit(t *testing.T) {
	const want = "0 is not allowed; give 1 or more, or null for no limit"
	for _, tc := range []struct{ text, set, at string }{
		{"engine: {max_num_seqs: 0}", "", "engine.max_num_seqs: "},
		{"engine: {max_num_batched_tokens: 0.0}", "", "engine.max_num_batched_tokens: "},
		{"engine: {engine_type: vllm, max_num_seqs: 0}", "", "engine.max_num_seqs: "},
		{"", "engine.max_num_seqs=0", "engine.max_num_seqs: "},
		{"grid: {engine.max_num_seqs: [8, 0]}", "", "grid.engine.max_num_seqs[1]: "},
		{"grid: {engine.max_num_seqs: {range: [0, 8, 4]}}", "", "grid.engine.max_num_seqs: "},
		{"grid: {engine: [{max_num_seqs: 0}]}", "", "grid.engine[0].max_num_seqs: "},
		{"zip: {engine.max_num_batched_tokens: [0]}", "", "zip.engine.max_num_batched_tokens[0]: "},
		{"cases: {a: {engine.max_num_seqs: 0}}", "", "cases.a.engine.max_num_seqs: "},
		{"include: [{engine: {max_num_seqs: 0}}]", "", "include[0].engine.max_num_seqs: "},
		{"lhs: {samples: 2, space: {engine.max_num_seqs: [0]}}", "", "lhs.space.engine.max_num_seqs: "},
	} {
		src := gridspec.Source{Data: []byte(chat + tc.text)}
		if tc.set != "" {
			src.Set = []string{tc.set}
		}
		_, err := gridspec.Load(src)
		checkProblems(t, err, []string{tc.at + want})
	}
	for _, text := range []string{"engine: {num_gpu_blocks: 0}", "grid: {engine.num_gpu_blocks: [0]}"} {
		_, err := gridspec.Load(gridspec.Source{Data: []byte(chat + text)})
		checkProblems(t, err, []string{"engine.num_gpu_blocks", "0 is not allowed; give 1 or more, or null for what fits"})
	}
	ps := expand(t, load(t, chat+"engine: {max_num_batched_tokens: null}\ngrid: {engine.max_num_seqs: [1, null]}"))
	if got := ps[0].Config.Engine.MaxNumBatchedTokens; got != 0 || ps[1].Config.Engine.MaxNumSeqs != 0 {
		t.Errorf("null is %d tokens and %d requests", got, ps[1].Config.Engine.MaxNumSeqs)
	}
}

// Without axes the included points are all there are, and the base need not be complete.
func TestOnlyIncludedPoints(t *testing.T) {
	for text, want := range map[string][]string{
		chat + "include: [{deployment.workers: 2}, {deployment.workers: 4}]":                   {"2", "4"},
		chat + "include: [{deployment.workers: 1}]":                                            {"1"},
		"include: [{deployment.workers: 3, workload: {preset: {name: chat, requests: 5}}}]":    {"3"},
		chat + "grid: {engine.block_size: [16, 32]}\ninclude: [{deployment.workers: 2}]":       {"1", "1", "2"},
		chat + "include: [{deployment.workers: 2}]\nexecution: {replicates: 2, seeds: shared}": {"2", "2"},
	} {
		s := load(t, text)
		ps := expand(t, s)
		if diff := cmp.Diff(want, column(t, ps, "workers")); diff != "" || s.Count() != uint64(len(ps)) {
			t.Errorf("%s: %d points: %s", text, s.Count(), diff)
		}
	}
}

func TestLeftOutPointsAreCounted(t *testing.T) {
	count := func(text string) int {
		n := 0
		if _, err := load(t, chat+text).Expand(gridspec.ExpandOptions{LeftOut: func(equal int) { n = equal }}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for text, want := range map[string]int{
		"random: {samples: 100, space: {timing.tp: [1]}}":                            99,
		"random: {samples: 10, space: {timing.tp: [1]}}\nexecution: {replicates: 3}": 27,
		"grid: {timing.tp: [1, 2]}\ninclude: [{timing.tp: 2}]":                       1,
		"grid: {timing.tp: [1, 2]}":                                                  0,
	} {
		if got := count(text); got != want {
			t.Errorf("%s: %d left out, want %d", text, got, want)
		}
	}
}

// A generator whose values are wrong is one problem.
func TestGeneratorIsOneProblem(t *testing.T) {
	_, err := gridspec.Load(gridspec.Source{Data: []byte(chat + "grid: {deployment.workers: {powers: [2, 0, 1000]}}")})
	checkProblems(t, err, []string{"grid.deployment.workers: "})
	if n := strings.Count(err.Error(), "\n") + 1; n != 1 {
		t.Errorf("%d problems", n)
	}
}

// Errors repeat the beginning of what is long, and have one line for each problem.
func TestProblemsAreShort(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, src := range []gridspec.Source{
		{Data: []byte(long + ": 1")},
		{Data: []byte("name: [" + long + "]")},
		{Data: []byte("engine: {" + long + ": 1}")},
		{Data: []byte("grid: {" + long + ": [1]}")},
		{Data: []byte("workload: {preset: {name: " + long + "}}")},
		{Data: []byte(chat), Set: []string{"engine." + long + "=1"}},
		{Data: []byte(chat), Set: []string{long}},
		{Data: []byte(`"a\nb": 1`)},
	} {
		s, err := gridspec.Load(src)
		if err == nil {
			_, err = s.Expand(gridspec.ExpandOptions{})
		}
		if err == nil {
			t.Errorf("%.40s: no error", src.Data)
			continue
		}
		if text := err.Error(); len(text) > 700 {
			t.Errorf("%.40s: an error of %d bytes: %.300s", src.Data, len(text), text)
		}
		for _, line := range strings.Split(err.Error(), "\n") {
			if strings.HasPrefix(line, "b: ") {
				t.Errorf("a problem has two lines: %q", err)
			}
		}
	}
}
