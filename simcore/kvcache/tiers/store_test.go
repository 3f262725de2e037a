package tiers

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestStoreIsLeastRecentlyUsed compares a store with a list.
func TestStoreIsLeastRecentlyUsed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const ids = 200
		capacity := rapid.SampledFrom([]int{0, 1, 2, 7, 30}).Draw(rt, "capacity")
		s := newStore(capacity, ids)
		var list []uint32 // least recently used first
		duplicate := map[uint32]bool{}
		drop := func(id uint32) {
			list = slices.DeleteFunc(list, func(other uint32) bool { return other == id })
		}
		now, area, peak := 0.0, 0.0, 0
		for range rapid.IntRange(1, 300).Draw(rt, "steps") {
			pause := rapid.SampledFrom([]float64{0, .5, 3}).Draw(rt, "pause")
			now, area = now+pause, area+pause*float64(len(list))
			id := rapid.Uint32Range(0, ids-1).Draw(rt, "id")
			had := slices.Contains(list, id)
			if s.has(id) != had {
				rt.Fatalf("has %d: %v", id, !had)
			}
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				if s.touch(id) != had {
					rt.Fatal("touch")
				}
				if had {
					drop(id)
					list = append(list, id)
					delete(duplicate, id)
				}
			case 1:
				s.cool(id)
				if had {
					drop(id)
					list = slices.Insert(list, 0, id)
					duplicate[id] = true
				}
			default:
				victim, lost := s.put(id, now)
				drop(id)
				wantLost := false
				if !had && len(list) == capacity && capacity > 0 {
					if wantLost = !duplicate[list[0]]; wantLost != lost || lost && victim != list[0] {
						rt.Fatalf("%d goes, %v; want %d, %v", victim, lost, list[0], wantLost)
					}
					delete(duplicate, list[0])
					list = list[1:]
				}
				if wantLost != lost {
					rt.Fatalf("%d goes", victim)
				}
				list = append(list, id)
				delete(duplicate, id)
			}
			peak = max(peak, len(list))
			if s.blocks != len(list) || s.peak != peak || capacity > 0 && s.blocks > capacity {
				rt.Fatalf("%d blocks, at most %d; want %d, %d", s.blocks, s.peak, len(list), peak)
			}
			if now > 0 && s.meanBlocks(now) != area/now {
				rt.Fatalf("mean %v, want %v", s.meanBlocks(now), area/now)
			}
		}
	})
}
