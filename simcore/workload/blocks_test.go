package workload

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// tokensOf writes out the known tokens of a request; the cases of a block table must agree with their equality.
func tokensOf(w *Workload, request int) []uint64 {
	var tokens []uint64
	for _, id := range w.Hashes(request) {
		tokens = append(tokens, slices.Repeat([]uint64{id}, w.BlockSize)...)
	}
	tokens = tokens[:min(len(tokens), int(w.Input[request]))]
	for _, token := range w.PlannedOutput(request) {
		tokens = append(tokens, uint64(token))
	}
	return tokens
}

// blockIDs lists the ids of a request's known blocks.
func blockIDs(b *BlockTable, request int) []uint32 {
	var ids []uint32
	for _, s := range b.Segments(request) {
		for k := range s.Len {
			ids = append(ids, s.Start+k)
		}
	}
	return ids
}

func drawBlockWorkload(t *rapid.T) *Workload {
	size := rapid.SampledFrom([]int{1, 3, 4, 6, 16}).Draw(t, "trace block")
	planned := rapid.Bool().Draw(t, "planned")
	b := NewBuilder("test", size)
	for range rapid.IntRange(1, 8).Draw(t, "requests") {
		// Few ids, so that they repeat and follow different parents; sometimes one beyond the dense range.
		ids := rapid.SliceOfN(rapid.SampledFrom([]uint64{0, 1, 1, 2, 3, 1 << 50}), 0, 7).Draw(t, "ids")
		r := Request{Hashes: ids, Output: rapid.IntRange(0, 20).Draw(t, "output"), Input: rapid.IntRange(1, 50).Draw(t, "private input")}
		if len(ids) > 0 {
			r.Input = rapid.IntRange(1, len(ids)*size).Draw(t, "input")
			if planned && rapid.Bool().Draw(t, "plan") {
				r.PlannedOutput = rapid.SliceOfN(rapid.Uint32Range(0, 3), r.Output, r.Output).Draw(t, "tokens")
			}
		}
		b.Add(r)
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestBlocksEqualTokens checks that two requests have the same id for a block exactly when all their tokens up to
// its end are the same.
func TestBlocksEqualTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawBlockWorkload(t)
		size := rapid.SampledFrom([]int{1, 2, 3, 4, 5, 8, 16, 48}).Draw(t, "block")
		b, err := w.Blocks(size, true)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := w.Blocks(size, true); again != b {
			t.Fatal("the table is made twice")
		}
		byPrefix, byID := map[string]uint32{}, map[uint32]string{}
		for i := range w.Requests() {
			tokens, ids := tokensOf(w, i), blockIDs(b, i)
			if len(ids) != len(tokens)/size || b.Known(i) != len(ids) {
				t.Fatalf("request %d has %d blocks, Known is %d, want %d", i, len(ids), b.Known(i), len(tokens)/size)
			}
			var prefix strings.Builder
			for k, id := range ids {
				for _, token := range tokens[k*size : (k+1)*size] {
					prefix.WriteString(string(rune('a' + token%60)))
				}
				if other, ok := byPrefix[prefix.String()]; ok && other != id {
					t.Fatalf("block %d of request %d is %d, and the same tokens are %d elsewhere", k, i, id, other)
				}
				if other, ok := byID[id]; ok && other != prefix.String() {
					t.Fatalf("block %d stands for %q and %q", id, other, prefix.String())
				}
				byPrefix[prefix.String()], byID[id] = id, prefix.String()
			}
		}
		checkPrivate(t, w, b, byID)
	})
}

// checkPrivate checks that every request has room for the blocks of its other tokens, and one more, that nobody
// else has.
func checkPrivate(t *rapid.T, w *Workload, b *BlockTable, taken map[uint32]string) {
	for i := range w.Requests() {
		tokens := int(w.Input[i]) + int(w.Output[i])
		for k := range tokens/b.BlockSize + 2 - b.Known(i) {
			id := b.Private(i, k)
			if other, ok := taken[id]; ok {
				t.Fatalf("private block %d of request %d is also %q", k, i, other)
			}
			if id >= b.IDs {
				t.Fatalf("private block %d of request %d is %d, and IDs is %d", k, i, id, b.IDs)
			}
			taken[id] = "private"
		}
	}
}

func TestBlocksWithoutSharing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawBlockWorkload(t)
		b, err := w.Blocks(rapid.IntRange(1, 20).Draw(t, "block"), false)
		if err != nil {
			t.Fatal(err)
		}
		for i := range w.Requests() {
			if len(b.Segments(i)) != 0 || b.Known(i) != 0 {
				t.Fatalf("request %d shares %v", i, b.Segments(i))
			}
		}
		checkPrivate(t, w, b, map[uint32]string{})
	})
}

func TestKnownOutputs(t *testing.T) {
	plain := buildRequests(t, 4, Request{Input: 8, Output: 4, Hashes: []uint64{1, 2}})
	planned := buildRequests(t, 4, Request{Input: 8, Output: 4, Hashes: []uint64{1, 2}, PlannedOutput: []uint32{1, 1, 1, 1}})
	for _, test := range []struct {
		w             *Workload
		sharing, want bool
	}{{plain, true, false}, {planned, true, true}, {planned, false, false}} {
		b, err := test.w.Blocks(4, test.sharing)
		if err != nil || b.KnownOutputs != test.want {
			t.Errorf("KnownOutputs is %v, %v; want %v", b.KnownOutputs, err, test.want)
		}
	}
}

func TestTooManyBlocks(t *testing.T) {
	b := NewBuilder("huge", 0)
	for range 20 {
		b.Add(Request{Input: MaxTokens, Output: 1})
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.Blocks(1, true); err == nil || !strings.Contains(err.Error(), "workload huge has more than 4294967295 KV blocks of 1 tokens; use a larger block size") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := w.Blocks(2, true); err != nil {
		t.Error(err)
	}
	// The known blocks alone can be too many as well.
	ids := make([]uint64, 20)
	for i := range ids {
		ids[i] = uint64(i)
	}
	b = NewBuilder("huge", MaxTokens)
	for i := range ids {
		b.Add(Request{Input: MaxTokens, Output: 1, Hashes: ids[i : i+1]})
	}
	if w, err = b.Build(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Blocks(1, true); err == nil {
		t.Error("20 x 2^28 known blocks fit 32 bits")
	}
}

func BenchmarkBlocks(b *testing.B) {
	w, err := PresetSpec{Name: PresetChat, Seed: 1}.Generate()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.makeTable(64, true); err != nil {
			b.Fatal(err)
		}
	}
}
