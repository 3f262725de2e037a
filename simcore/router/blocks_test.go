package router

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/kvcache"
	"github.com/servegrid/servegrid/simcore/workload"
)

// TestActiveBlocks compares totals and leading runs with sets of blocks counted one by one.
func TestActiveBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const workers, shared = 3, 2000
		a := newActiveBlocks(workers, shared)
		common := workload.Segment{Start: 10, Len: uint32(rapid.IntRange(1, 200).Draw(t, "common"))}
		var sequences []kvcache.Sequence
		for i := range uint32(4) {
			s := kvcache.Sequence{Segments: []workload.Segment{common}, Known: int32(common.Len), Private: shared + 1000*i}
			if i > 0 { // the first one has nothing of its own
				own := workload.Segment{Start: 300 * (i + 1), Len: uint32(rapid.IntRange(1, 250).Draw(t, "own"))}
				s.Segments = append(s.Segments, own)
				s.Known += int32(own.Len)
			}
			sequences = append(sequences, s)
		}
		type holder struct{ worker, sequence, blocks int }
		var holders []holder
		users := [workers]map[uint32]int{{}, {}, {}}
		count := func(h holder, by int) {
			for i := range h.blocks {
				id := sequences[h.sequence].At(i)
				if users[h.worker][id] += by; users[h.worker][id] == 0 {
					delete(users[h.worker], id)
				}
			}
		}
		into := make([]int32, workers)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			if n := len(holders); n > 0 && rapid.Bool().Draw(t, "ends") {
				i := rapid.IntRange(0, n-1).Draw(t, "who")
				h := holders[i]
				holders = append(holders[:i], holders[i+1:]...)
				a.remove(int32(h.worker), sequences[h.sequence], h.blocks)
				count(h, -1)
			} else {
				h := holder{worker: rapid.IntRange(0, workers-1).Draw(t, "worker"), sequence: rapid.IntRange(0, 3).Draw(t, "sequence")}
				s := sequences[h.sequence]
				h.blocks = int(s.Known)
				private := rapid.IntRange(0, 3).Draw(t, "private")
				for _, other := range holders { // private blocks are of one request
					if other.sequence == h.sequence {
						private = 0
					}
				}
				h.blocks += private
				a.overlaps(s, h.blocks, into)
				a.add(int32(h.worker), s, h.blocks, int(into[h.worker]))
				holders = append(holders, h)
				count(h, 1)
			}
			for w := range workers {
				if int(a.total[w]) != len(users[w]) {
					t.Fatalf("worker %d has %d active blocks, counted %d", w, len(users[w]), a.total[w])
				}
			}
			for _, s := range sequences {
				a.overlaps(s, int(s.Known), into)
				for w := range workers {
					run := 0
					for run < int(s.Known) && users[w][s.At(run)] > 0 {
						run++
					}
					if int(into[w]) != run {
						t.Fatalf("worker %d: leading run %d, want %d", w, into[w], run)
					}
				}
			}
		}
		for _, h := range holders {
			a.remove(int32(h.worker), sequences[h.sequence], h.blocks)
		}
		if slices.Max(a.total) != 0 || slices.Min(a.total) != 0 || a.index.Resident() != 0 || a.users.used != 0 {
			t.Fatalf("with no request left, totals are %v, %d blocks are active and %d groups in use", a.total, a.index.Resident(), a.users.used)
		}
	})
}
