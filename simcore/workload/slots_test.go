package workload

import (
	"testing"

	"pgregory.net/rapid"
)

// rememberingHolder remembers blocks by their ids, as a cache does, with their content.
type rememberingHolder struct {
	content map[uint32]string
	ids     uint32
}

func (h *rememberingHolder) MarkPages(pages []uint64) {
	for id := range h.content {
		MarkPage(pages, id>>PageBits)
	}
}

func (h *rememberingHolder) GrowIDs(ids uint32) { h.ids = ids }

// TestSlotsNameContent checks that two prompts have the same id for a leading block exactly when its content and all before it
// are the same, for as long as any request or holder knows of it, and that different blocks never have the same one.
func TestSlotsNameContent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const slots, blockSize = 6, 4
		s := NewSlots(slots)
		table, err := s.Workload().Blocks(blockSize, true)
		if err != nil {
			rt.Fatal(err)
		}
		holder := &rememberingHolder{content: map[uint32]string{}}
		s.Hold(table, holder)
		taken := map[int32]map[uint32]string{} // content by id, of the request in each slot
		for step := range rapid.IntRange(1, 60).Draw(rt, "steps") {
			slot := rapid.Int32Range(0, slots-1).Draw(rt, "slot")
			if known, ok := taken[slot]; ok {
				for id, content := range known { // some of it stays cached
					if rapid.IntRange(0, 3).Draw(rt, "cached") == 0 {
						holder.content[id] = content
					}
				}
				s.Free(slot)
				delete(taken, slot)
				continue
			}
			r := SlotRequest{
				Input:  rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, 3000)).Draw(rt, "input"),
				Output: rapid.IntRange(0, 20).Draw(rt, "output"),
				Blocks: rapid.SliceOfN(rapid.Uint64Range(0, 2), 0, 12).Draw(rt, "blocks"),
			}
			if _, ok := s.Take(slot, r); !ok {
				rt.Fatal("no room for a request")
			}
			known := map[uint32]string{}
			prefix, i := "", 0
			for _, segment := range table.Segments(int(slot)) {
				for id := segment.Start; id < segment.Start+segment.Len; id++ {
					prefix += string(rune('a' + r.Blocks[i]))
					known[id] = prefix
					if table.Key(id) != r.Blocks[i] {
						rt.Fatalf("the key of block %d is %d, want %d", i, table.Key(id), r.Blocks[i])
					}
					i++
				}
			}
			if want := min(len(r.Blocks), (r.Input+r.Output)/blockSize); i != want || table.Known(int(slot)) != want {
				rt.Fatalf("%d known blocks, want %d", i, want)
			}
			for k := range (r.Input+r.Output)/blockSize + 2 - i {
				known[table.Private(int(slot), k)] = string(rune(0x1000+step)) + string(rune(0x1000+k))
			}
			taken[slot] = known
			checkNames(rt, taken, holder)
		}
	})
}

// checkNames checks that ids and contents that anybody knows of belong together, one to one.
func checkNames(t *rapid.T, taken map[int32]map[uint32]string, holder *rememberingHolder) {
	t.Helper()
	contents, ids := map[uint32]string{}, map[string]uint32{}
	all := []map[uint32]string{holder.content}
	for _, known := range taken {
		all = append(all, known)
	}
	for _, known := range all {
		for id, content := range known {
			if other, ok := contents[id]; ok && other != content {
				t.Fatalf("id %d is both %q and %q", id, content, other)
			}
			if other, ok := ids[content]; ok && other != id {
				t.Fatalf("%q is both %d and %d", content, id, other)
			}
			if holder.ids > 0 && id >= holder.ids {
				t.Fatalf("id %d is not below %d", id, holder.ids)
			}
			contents[id], ids[content] = content, id
		}
	}
}

// TestSlotsStayFlat checks that ids are used again when nobody remembers them, and that names are forgotten.
func TestSlotsStayFlat(t *testing.T) {
	s := NewSlots(4)
	table, err := s.Workload().Blocks(4, true)
	if err != nil {
		t.Fatal(err)
	}
	blocks := make([]uint64, 100)
	for round := range 10_000 {
		slot := int32(round % 4)
		if round >= 4 {
			s.Free(slot)
		}
		for i := range blocks {
			blocks[i] = uint64(round*1000 + i)
		}
		if _, ok := s.Take(slot, SlotRequest{Input: 400 + round%3000, Output: 10, Blocks: blocks}); !ok {
			t.Fatalf("round %d: no room", round)
		}
	}
	if names := len(s.tables[0].byName); table.IDs > 2*firstPages<<PageBits || names > int(table.IDs) {
		t.Errorf("%d ids and %d names after 10,000 requests", table.IDs, names)
	}
}

// TestSessionNumbers checks that a session keeps its number, and that numbers are used again when there are too many.
func TestSessionNumbers(t *testing.T) {
	s := NewSlots(2)
	take := func(name string) (session int32, fresh bool) {
		fresh, ok := s.Take(0, SlotRequest{Input: 1, Output: 1, Session: name})
		if !ok {
			t.Fatal("no room")
		}
		session = s.Sessions()[0]
		s.Free(0)
		return session, fresh
	}
	a, fresh := take("a")
	if !fresh {
		t.Error("the first request of a session is not fresh")
	}
	if again, fresh := take("a"); again != a || fresh {
		t.Errorf("session a is %d, then %d, fresh: %v", a, again, fresh)
	}
	if alone, fresh := take(""); alone != 0 || !fresh {
		t.Errorf("a request alone has session %d, fresh: %v", alone, fresh)
	}
	seen := map[int32]bool{}
	for i := range 2 * rememberedSessions {
		n, fresh := take("s" + string(rune(i/1000+200)) + string(rune(i%1000+200)))
		if seen[n] = true; !fresh || int(n) >= s.Workload().Sessions() {
			t.Fatalf("session %d has number %d of %d, fresh: %v", i, n, s.Workload().Sessions(), fresh)
		}
	}
	if len(seen) > rememberedSessions+2 || len(s.sessions.byName) != s.sessions.byUse.Len() {
		t.Errorf("%d numbers, %d names", len(seen), len(s.sessions.byName))
	}
	if _, fresh := take("a"); !fresh {
		t.Error("a session that was forgotten is not fresh")
	}
}
