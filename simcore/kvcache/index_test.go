package kvcache

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/workload"
)

// TestIndexOverlaps checks overlaps worker by worker and block by block, for prompts of several segments and workers that
// hold a prefix each.
func TestIndexOverlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.SampledFrom([]int{1, 3, 64, 65, 130}).Draw(t, "workers")
		const ids = 1000
		x := NewIndex(workers, ids)
		s := drawSequence(t, ids)
		holds := make([]int, workers)
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			w := rapid.IntRange(0, workers-1).Draw(t, "worker")
			n := rapid.IntRange(0, int(s.Known)).Draw(t, "blocks")
			s.each(min(n, holds[w]), n, func(start uint32, length int) { x.Store(w, start, length) })
			s.each(n, max(n, holds[w]), func(start uint32, length int) { x.Remove(w, start, length) })
			holds[w] = n
		}
		n := rapid.IntRange(0, int(s.Known)+3).Draw(t, "look at")
		got := slices.Repeat([]int32{99}, workers)
		x.Overlaps(s, n, got)
		all := 0
		for w := range got {
			if want := min(n, holds[w]); int(got[w]) != want {
				t.Fatalf("worker %d holds %d of %d blocks, %d looked at: overlap %d", w, holds[w], s.Known, n, got[w])
			}
			all += holds[w]
		}
		if x.Resident() != all {
			t.Fatalf("%d blocks, the workers hold %d", x.Resident(), all)
		}
		for w, n := range holds {
			s.each(0, n, func(start uint32, length int) { x.Remove(w, start, length) })
		}
		if x.Resident() != 0 || len(x.sparePages) != len(x.resident) {
			t.Fatalf("%d blocks are left, and %d of %d pages are in use", x.Resident(), len(x.resident)-len(x.sparePages), len(x.resident))
		}
	})
}

// drawSequence draws a sequence of distinct ids in several segments.
func drawSequence(t *rapid.T, ids int) Sequence {
	var s Sequence
	at := 0
	for range rapid.IntRange(0, 6).Draw(t, "segments") {
		at += rapid.IntRange(0, 70).Draw(t, "gap")
		length := rapid.SampledFrom([]int{1, 2, 63, 64, 65, 90}).Draw(t, "length")
		if at+length > ids {
			break
		}
		s.Segments = append(s.Segments, workload.Segment{Start: uint32(at), Len: uint32(length)})
		s.Known += int32(length)
		at += length
	}
	s.Private = uint32(ids)
	if rapid.Bool().Draw(t, "backwards") {
		slices.Reverse(s.Segments)
	}
	return s
}

// TestIndexPrivate checks that blocks which one request alone has are passed over.
func TestIndexPrivate(t *testing.T) {
	x := NewIndex(2, 10)
	x.Store(1, 10, 5)
	x.Remove(1, 10, 5)
	if x.Resident() != 0 {
		t.Error("it holds private blocks")
	}
	x.Store(1, 3, 2)
	x.Store(1, 4, 2) // overlapping stores count once
	if x.Resident() != 3 {
		t.Errorf("%d blocks, want 3", x.Resident())
	}
	into := make([]int32, 2)
	x.Overlaps(Sequence{Segments: []workload.Segment{{Start: 3, Len: 3}}, Known: 3, Private: 10}, 7, into)
	if !slices.Equal(into, []int32{0, 3}) {
		t.Errorf("overlaps %v", into)
	}
}

// TestSequenceAt checks the ids of single blocks.
func TestSequenceAt(t *testing.T) {
	s := Sequence{Segments: []workload.Segment{{Start: 7, Len: 2}, {Start: 3, Len: 1}}, Known: 3, Private: 100}
	for i, want := range []uint32{7, 8, 3, 100, 101} {
		if got := s.At(i); got != want {
			t.Errorf("block %d is %d, want %d", i, got, want)
		}
	}
}

// TestWatch checks that an index holds what the caches of the workers hold, whatever they do.
func TestWatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const workers, ids = 3, 600
		x := NewIndex(workers, ids)
		caches := make([]Cache, workers)
		copies := rapid.Bool().Draw(t, "copies")
		for w := range caches {
			caches[w].KeepsCopies = copies
			caches[w].Reset(200, ids+100)
			caches[w].Watch(x, w)
		}
		common := workload.Segment{Start: 0, Len: uint32(rapid.IntRange(1, 90).Draw(t, "common"))}
		var prompts []Sequence
		for i, start := range []uint32{150, 400} {
			own := workload.Segment{Start: start, Len: uint32(rapid.IntRange(1, 150).Draw(t, "own"))}
			prompts = append(prompts, Sequence{[]workload.Segment{common, own}, int32(common.Len + own.Len), ids, int32(i)})
		}
		held := [workers][2]int{}
		into := make([]int32, workers)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			w, p := rapid.IntRange(0, workers-1).Draw(t, "worker"), rapid.IntRange(0, 1).Draw(t, "prompt")
			if held[w][p] > 0 {
				caches[w].Release(prompts[p], held[w][p])
				held[w][p] = 0
			} else {
				n := rapid.IntRange(0, int(prompts[p].Known)).Draw(t, "blocks")
				resident, _ := caches[w].Match(prompts[p], n)
				if caches[w].Hold(prompts[p], 0, rapid.IntRange(0, resident).Draw(t, "hits"), n, 0) {
					held[w][p] = n
				}
			}
			for _, prompt := range prompts {
				x.Overlaps(prompt, int(prompt.Known), into)
				for w := range caches {
					if resident, _ := caches[w].Match(prompt, int(prompt.Known)); int(into[w]) != resident {
						t.Fatalf("worker %d holds %d blocks, the index says %d", w, resident, into[w])
					}
				}
			}
		}
	})
}

// BenchmarkIndexOverlaps looks up a prompt of 200 blocks. Some workers hold all of it, the others different parts, or the
// first 8 blocks that all prompts share.
func BenchmarkIndexOverlaps(b *testing.B) {
	for _, workers := range []int{8, 64, 256} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			x := NewIndex(workers, 4096)
			s := Sequence{Segments: []workload.Segment{{Start: 0, Len: 8}, {Start: 640, Len: 192}}, Known: 200, Private: 4096}
			for w := range workers {
				x.Store(w, 0, 8)
				if w%8 == 0 {
					x.Store(w, 640, 192-w/2)
				}
			}
			into := make([]int32, workers)
			b.ReportAllocs()
			for b.Loop() {
				x.Overlaps(s, 200, into)
			}
		})
	}
}

// TestIndexGrows checks that workers keep their blocks when there is room for more, and that one that is cleared has none.
func TestIndexGrows(t *testing.T) {
	x := NewIndex(2, 1000)
	s := Sequence{Segments: []workload.Segment{{Start: 60, Len: 200}}, Known: 200, Private: 1000}
	x.Store(0, 60, 70)
	x.Store(1, 60, 200)
	x.Grow(130)
	x.Store(129, 60, 5)
	overlaps := make([]int32, 130)
	x.Overlaps(s, 200, overlaps)
	if overlaps[0] != 70 || overlaps[1] != 200 || overlaps[2] != 0 || overlaps[129] != 5 {
		t.Errorf("overlaps %v", overlaps)
	}
	x.Clear(1)
	x.Overlaps(s, 200, overlaps)
	if overlaps[0] != 70 || overlaps[1] != 0 || overlaps[129] != 5 || x.Resident() != 75 {
		t.Errorf("after the second worker is gone: overlaps %v, %d blocks", overlaps, x.Resident())
	}
	x.Grow(3)
	if x.Overlaps(s, 200, overlaps); overlaps[129] != 5 {
		t.Error("it has shrunk")
	}
}
