package kvcache

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// copyModel is a cache that keeps copies, slot by slot.
type copyModel struct {
	free     int
	resident map[uint32][]*modelSlot // the slots with a block, oldest first
	inactive []*modelSlot            // those without holders, longest first
}

type modelSlot struct {
	id      uint32
	holders int
}

// hit returns the slots that a request shares when it hits the given blocks.
func (m *copyModel) hit(ids []uint32) []*modelSlot {
	var slots []*modelSlot
	for _, id := range ids {
		slots = append(slots, m.resident[id][0])
	}
	return slots
}

// hold takes the slots that are hit and new ones for other blocks and for anonymous ones, or nothing.
func (m *copyModel) hold(hits []*modelSlot, others []uint32, anonymous int) (slots []*modelSlot, ok bool) {
	idle := 0
	for _, s := range hits {
		if s.holders == 0 {
			idle++
		}
	}
	if len(others)+anonymous > m.free+len(m.inactive)-idle {
		return nil, false
	}
	for _, s := range hits {
		s.holders++
		m.inactive = slices.DeleteFunc(m.inactive, func(other *modelSlot) bool { return other == s })
	}
	for range len(others) + anonymous {
		m.makeRoom()
		m.free--
	}
	for _, id := range others {
		s := &modelSlot{id, 1}
		m.resident[id] = append(m.resident[id], s)
		hits = append(hits, s)
	}
	return hits, true
}

func (m *copyModel) makeRoom() {
	if m.free > 0 {
		return
	}
	gone := m.inactive[0]
	m.inactive = m.inactive[1:]
	m.resident[gone.id] = slices.DeleteFunc(m.resident[gone.id], func(other *modelSlot) bool { return other == gone })
	m.free++
}

func (m *copyModel) release(slots []*modelSlot) {
	for _, s := range slices.Backward(slots) {
		if s.holders--; s.holders == 0 {
			m.inactive = append(m.inactive, s)
		}
	}
}

// match returns how many of the first blocks of a prompt are resident, and of how many of those somebody holds the slot that
// would be hit.
func (m *copyModel) match(ids []uint32) (resident, held int) {
	for _, id := range ids {
		slots := m.resident[id]
		if len(slots) == 0 {
			break
		}
		resident++
		if slots[0].holders > 0 {
			held++
		}
	}
	return resident, held
}

// copyMachine drives a cache that keeps copies as an engine does, and the model beside it.
type copyMachine struct {
	p       prompts
	total   int
	eager   bool // compact after every release
	cache   Cache
	model   copyModel
	slots   [][]*modelSlot // what each request holds
	partial []bool
}

func newCopyMachine(t *rapid.T) *copyMachine {
	m := &copyMachine{p: drawPrompts(t), total: rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(50, 500)).Draw(t, "total")}
	m.cache.KeepsCopies = true
	for i := range m.p.sequences {
		m.p.sequences[i].Request = int32(i)
	}
	m.cache.Reset(3, m.p.limit)
	m.cache.Hold(m.p.sequences[0], 0, 0, 1, 0) // what Reset must forget
	m.cache.Reset(m.total, m.p.limit)
	m.model = copyModel{free: m.total, resident: map[uint32][]*modelSlot{}}
	m.slots, m.partial = make([][]*modelSlot, len(m.p.sequences)), make([]bool, len(m.p.sequences))
	m.eager = rapid.Bool().Draw(t, "eager compaction")
	return m
}

// Hold takes more blocks for a request. It hits some only when it holds none.
func (m *copyMachine) Hold(t *rapid.T) {
	r := rapid.IntRange(0, len(m.slots)-1).Draw(t, "request")
	ids, from := m.p.ids[r], len(m.slots[r])
	hits := from
	if from == 0 && !m.partial[r] {
		resident, _ := m.model.match(ids)
		hits = resident - min(resident, rapid.IntRange(0, 2).Draw(t, "computed again"))
	}
	to := rapid.IntRange(hits, len(ids)).Draw(t, "to")
	anonymous := rapid.IntRange(0, 1).Draw(t, "anonymous")
	m.releasePartial(r)
	slots, want := m.model.hold(m.model.hit(ids[from:hits]), ids[hits:to], anonymous)
	if got := m.cache.Hold(m.p.sequences[r], from, hits, to, anonymous); got != want {
		t.Fatalf("Hold(%d to %d, %d hits, and %d, of request %d) = %v, want %v", from, to, hits, anonymous, r, got, want)
	}
	if want {
		m.slots[r], m.partial[r] = append(m.slots[r], slots...), anonymous > 0
	}
}

func (m *copyMachine) releasePartial(r int) {
	if m.partial[r] {
		m.cache.ReleaseAnonymous()
		m.model.free++
		m.partial[r] = false
	}
}

func (m *copyMachine) Promote(t *rapid.T) {
	r := rapid.IntRange(0, len(m.slots)-1).Draw(t, "request")
	at := len(m.slots[r])
	if !m.partial[r] || at == len(m.p.ids[r]) {
		return
	}
	m.cache.Promote(m.p.sequences[r], at)
	m.model.free++
	slots, _ := m.model.hold(nil, m.p.ids[r][at:at+1], 0)
	m.slots[r], m.partial[r] = append(m.slots[r], slots...), false
}

func (m *copyMachine) Release(t *rapid.T) {
	r := rapid.IntRange(0, len(m.slots)-1).Draw(t, "request")
	m.releasePartial(r)
	if m.eager {
		m.cache.compactAt = 1
	}
	m.cache.Release(m.p.sequences[r], len(m.slots[r]))
	m.model.release(m.slots[r])
	m.slots[r] = nil
}

// Check compares everything there is to see.
func (m *copyMachine) Check(t *rapid.T) {
	got := []int{m.cache.Free(), m.cache.Available(), m.cache.Held()}
	want := []int{m.model.free, m.model.free + len(m.model.inactive), m.total - m.model.free - len(m.model.inactive)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("free, available, held (-want +got):\n%s", diff)
	}
	for r, ids := range m.p.ids {
		n := rapid.IntRange(0, len(ids)).Draw(t, "n")
		resident, held := m.cache.Match(m.p.sequences[r], n)
		wantResident, wantHeld := m.model.match(ids[:n])
		if resident != wantResident || held != wantHeld {
			t.Fatalf("of the first %d blocks of prompt %d, %d are resident and %d held, want %d and %d", n, r, resident, held, wantResident, wantHeld)
		}
	}
}

// TestCopiesEqualModel checks a cache that keeps copies against one that looks at every slot.
func TestCopiesEqualModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newCopyMachine(t)
		t.Repeat(map[string]func(*rapid.T){
			"": m.Check, "hold": m.Hold, "hold more": m.Hold, "promote": m.Promote, "release": m.Release,
		})
	})
}

// BenchmarkCopies lets requests compute the last block of one and the same prompt again and again, whose copies fill the
// cache.
func BenchmarkCopies(b *testing.B) {
	const blocks, running = 64, 200
	var c Cache
	c.KeepsCopies = true
	c.Reset(1<<13, blocks)
	turn := func(i int) {
		s := Sequence{Private: 0, Request: int32(i % running)}
		if i >= running {
			c.Release(s, blocks)
		}
		c.Hold(s, 0, min(i, 1)*(blocks-1), blocks, 0)
	}
	n := 0
	for ; n < 1<<14; n++ {
		turn(n)
	}
	b.ReportAllocs()
	for b.Loop() {
		turn(n)
		n++
	}
}
