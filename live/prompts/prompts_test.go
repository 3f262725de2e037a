package prompts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/live/tokens"
	"github.com/servegrid/servegrid/simcore/workload"
)

func tokenizer(tb testing.TB, name string) tokens.Tokenizer {
	tb.Helper()
	t, err := tokens.Parse(name)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func load(tb testing.TB, spec workload.Spec) *workload.Workload {
	tb.Helper()
	w, err := spec.Load(context.Background(), workload.Source{})
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

func traceOf(tb testing.TB, format string, paths ...string) *workload.Workload {
	tb.Helper()
	return load(tb, workload.Spec{Trace: &workload.TraceSpec{Format: format, Paths: paths}})
}

func written(tb testing.TB, lines ...string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// workloads are of every kind that names its prompts in a way of its own.
func workloads(tb testing.TB) map[string]*workload.Workload {
	const data = "../../simcore/workload/testdata/"
	synthetic := workload.DefaultSyntheticSpec()
	synthetic.Requests, synthetic.InputTokens, synthetic.OutputTokens = 5, 100, 10
	all := map[string]*workload.Workload{
		"dynamo":     traceOf(tb, workload.FormatDynamo, data+"dynamo/agentic.all.jsonl"),
		"completion": traceOf(tb, workload.FormatDynamo, data+"dynamo/completion.jsonl"),
		"unhashed":   load(tb, workload.Spec{Synthetic: &synthetic}),
		"mooncake": traceOf(tb, workload.FormatMooncake, written(tb,
			`{"timestamp":0,"input_length":1300,"output_length":5,"hash_ids":[1,2,3]}`,
			`{"timestamp":5,"input_length":1100,"output_length":5,"hash_ids":[1,2,9]}`,
			`{"timestamp":6,"input_length":512,"output_length":5,"hash_ids":[4294967297]}`,
			`{"timestamp":7,"input_length":1024,"output_length":5,"hash_ids":[1,1]}`)),
		"delta": traceOf(tb, workload.FormatMooncakeDelta, written(tb,
			`{"session_id":"a","timestamp":0,"input_length":700,"output_length":50,"hash_ids":[1,2]}`,
			`{"session_id":"a","timestamp":5,"input_length":90,"output_length":50,"hash_ids":[3]}`,
			`{"session_id":"b","timestamp":5,"input_length":600,"output_length":50,"hash_ids":[1,2]}`)),
	}
	for _, name := range workload.PresetNames() {
		all[name] = load(tb, workload.Spec{Preset: &workload.PresetSpec{Name: name, Requests: 12}})
	}
	return all
}

// TestPromptsHaveTheirLengths sends prompts through a tokenizer, as a server does.
func TestPromptsHaveTheirLengths(t *testing.T) {
	for name, w := range workloads(t) {
		for _, kind := range []string{"bytes", "chars:4"} {
			for _, opt := range []Options{{}, {Turns: true}} {
				p, tok := New(w, tokenizer(t, kind), opt), tokenizer(t, kind)
				for r := range w.Requests() {
					for _, salt := range []uint64{0, 7} {
						if got := prompt(tok, p.MessagesIn(r, salt)); len(got) != int(w.Input[r]) || !slices.Equal(got, p.Tokens(r, salt)) {
							t.Fatalf("%s, %s: the prompt of request %d has %d tokens, not %d, or others", name, kind, r, len(got), w.Input[r])
						}
					}
				}
			}
		}
	}
}

func prompt(t tokens.Tokenizer, messages []live.Message) []uint32 {
	all := make([]tokens.Message, len(messages))
	for i, m := range messages {
		all[i] = tokens.Message(m)
	}
	return tokens.AppendPrompt(t, nil, all)
}

// TestPromptsShareWhatTheWorkloadShares compares the blocks that a server finds with those that a simulation has.
func TestPromptsShareWhatTheWorkloadShares(t *testing.T) {
	for name, w := range workloads(t) {
		for _, size := range []int{16, 64, 100, 512} {
			table, err := w.Blocks(size, true)
			if err != nil {
				t.Fatal(err)
			}
			p := New(w, tokenizer(t, "chars:4"), Options{})
			hashOf, idOf := map[uint32]uint64{}, map[uint64]uint32{}
			shared := 0
			for r := range w.Requests() {
				for i, hash := range tokens.Hashes(p.Tokens(r, 0), size) {
					id := blockID(table, r, i)
					known, ok := idOf[hash]
					if ok {
						shared++
					}
					if other, named := hashOf[id]; ok != named || ok && (known != id || other != hash) {
						t.Fatalf("%s, blocks of %d: block %d of request %d is shared in one of text and workload only", name, size, i, r)
					}
					hashOf[id], idOf[hash] = hash, id
				}
			}
			if name == "mooncake" && size == 16 && shared == 0 {
				t.Error("nothing is shared")
			}
		}
	}
}

// blockID is the sequence id of a request's i-th block.
func blockID(table *workload.BlockTable, request, i int) uint32 {
	left := uint32(i)
	for _, s := range table.Segments(request) {
		if left < s.Len {
			return s.Start + left
		}
		left -= s.Len
	}
	return table.Private(request, int(left))
}

func TestSaltsShareNothing(t *testing.T) {
	w := workloads(t)["mooncake"]
	p := New(w, tokenizer(t, "chars:4"), Options{})
	seen := map[uint64]string{}
	for _, salt := range []uint64{0, 1, 2} {
		of := fmt.Sprint("salt ", salt)
		for r := range w.Requests() {
			for _, hash := range tokens.Hashes(p.Tokens(r, salt), 16) {
				if other, ok := seen[hash]; ok && other != of {
					t.Fatalf("%s shares a block with %s", of, other)
				}
				seen[hash] = of
			}
		}
		if !slices.Equal(tokens.Hashes(p.Tokens(0, salt), 16)[:64], tokens.Hashes(p.Tokens(1, salt), 16)[:64]) {
			t.Errorf("%s: two prompts no longer share their beginning", of)
		}
	}
}

func TestTurns(t *testing.T) {
	w := workloads(t)["delta"]
	p := New(w, tokenizer(t, "bytes"), Options{Turns: true})
	roles := func(r int) (said []string) {
		for _, m := range p.Messages(r) {
			said = append(said, fmt.Sprint(m.Role, " ", len(m.Text)))
		}
		return said
	}
	for r, want := range [][]string{{"user 700"}, {"user 700", "assistant 50", "user 90"}, {"user 600"}} {
		if got := roles(r); !slices.Equal(got, want) {
			t.Errorf("request %d: %v, not %v", r, got, want)
		}
	}
	if first, second := p.Messages(0), p.Messages(1); first[0] != second[0] {
		t.Error("the second turn begins otherwise than the first")
	}
}

func TestManyAtOnce(t *testing.T) {
	w := workloads(t)["mooncake"]
	p := New(w, tokenizer(t, "chars:4"), Options{Turns: true})
	want := p.Messages(1)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got := p.Messages(1); !slices.Equal(got, want) {
				t.Error("a prompt differs")
			}
		})
	}
	all.Wait()
}

// TestAnyBlocks checks lengths and sharing for made-up hash ids.
func TestAnyBlocks(t *testing.T) {
	tok := tokenizer(t, "chars:4")
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 40).Draw(t, "block size")
		b := workload.NewBuilder("made", size)
		for range rapid.IntRange(1, 5).Draw(t, "requests") {
			hashes := rapid.SliceOfN(rapid.Uint64Range(0, 4), 1, 6).Draw(t, "hashes")
			b.Add(workload.Request{Input: len(hashes)*size - rapid.IntRange(0, size-1).Draw(t, "less"), Output: 1, Hashes: hashes})
		}
		w, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		p := New(w, tok, Options{})
		kv := rapid.IntRange(4, 50).Draw(t, "KV block size")
		table, err := w.Blocks(kv, true)
		if err != nil {
			t.Fatal(err)
		}
		hashOf := map[uint32]uint64{}
		for r := range w.Requests() {
			got := p.Tokens(r, 0)
			if len(got) != int(w.Input[r]) {
				t.Fatalf("request %d has %d tokens, not %d", r, len(got), w.Input[r])
			}
			for i, hash := range tokens.Hashes(got, kv) {
				id := blockID(table, r, i)
				if known, ok := hashOf[id]; ok && known != hash {
					t.Fatalf("block %d of request %d differs from one that the workload takes for the same", i, r)
				}
				hashOf[id] = hash
			}
		}
	})
}

func BenchmarkPrompts(b *testing.B) {
	builder := workload.NewBuilder("made", 512)
	hashes := make([]uint64, 16)
	for i := range hashes {
		hashes[i] = uint64(i)
	}
	builder.Add(workload.Request{Input: 8192, Output: 1, Hashes: hashes})
	w, err := builder.Build()
	if err != nil {
		b.Fatal(err)
	}
	p := New(w, tokenizer(b, "chars:4"), Options{})
	b.ReportAllocs()
	for b.Loop() {
		p.Messages(0)
	}
}
