package kvcache

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/workload"
)

// model is the cache as its package comment describes it, without any shortcut.
type model struct {
	free      int
	holders   map[uint32]int // of resident blocks
	inactive  []uint32       // resident blocks without holders, longest first
	anonymous int
}

func (m *model) resident(ids []uint32) int {
	for i, id := range ids {
		if _, ok := m.holders[id]; !ok {
			return i
		}
	}
	return len(ids)
}

func (m *model) held(ids []uint32) int {
	for i, id := range ids {
		if m.holders[id] == 0 {
			return i
		}
	}
	return len(ids)
}

func (m *model) hold(ids []uint32, anonymous int) bool {
	missing, idle := anonymous, 0
	for _, id := range ids {
		if n, ok := m.holders[id]; !ok {
			missing++
		} else if n == 0 {
			idle++
		}
	}
	if missing > m.free+len(m.inactive)-idle {
		return false
	}
	for _, id := range ids { // shared blocks leave the queue before anything is evicted
		if n, ok := m.holders[id]; ok {
			m.holders[id] = n + 1
			if n == 0 {
				m.inactive = slices.DeleteFunc(m.inactive, func(other uint32) bool { return other == id })
			}
		}
	}
	for range missing {
		if m.free == 0 {
			delete(m.holders, m.inactive[0])
			m.inactive = m.inactive[1:]
			m.free++
		}
		m.free--
	}
	for _, id := range ids {
		if _, ok := m.holders[id]; !ok {
			m.holders[id] = 1
		}
	}
	m.anonymous += anonymous
	return true
}

func (m *model) releaseAnonymous() {
	m.anonymous--
	m.free++
}

func (m *model) release(ids []uint32) {
	for _, id := range slices.Backward(ids) {
		if m.holders[id]--; m.holders[id] == 0 {
			m.inactive = append(m.inactive, id)
		}
	}
}

// prompts is a set of block sequences whose ids form a tree: equal ids have equal ids before them.
type prompts struct {
	sequences []Sequence
	ids       [][]uint32 // what each sequence stands for, private blocks included
	limit     uint32
}

const privateBlocks = 4

func drawPrompts(t *rapid.T) prompts {
	var p prompts
	type place struct{ parent, branch int }
	children := map[place]uint32{}
	for range rapid.IntRange(1, 12).Draw(t, "prompts") {
		parent := -1
		var ids []uint32
		// Long runs cross pages.
		length := rapid.OneOf(rapid.IntRange(0, 6), rapid.IntRange(60, 150)).Draw(t, "length")
		for range length {
			at := place{parent, rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2}).Draw(t, "branch")}
			id, ok := children[at]
			if !ok {
				id = p.limit
				children[at] = id
				p.limit++
			}
			ids = append(ids, id)
			parent = int(id)
		}
		p.ids = append(p.ids, ids)
	}
	for _, ids := range p.ids {
		p.sequences = append(p.sequences, Sequence{Segments: segmentsOf(ids), Known: int32(len(ids))})
	}
	for i := range p.sequences {
		p.sequences[i].Private = p.limit
		for k := range privateBlocks {
			p.ids[i] = append(p.ids[i], p.limit+uint32(k))
		}
		p.limit += privateBlocks
	}
	return p
}

func segmentsOf(ids []uint32) []workload.Segment {
	var segments []workload.Segment
	for _, id := range ids {
		if n := len(segments); n > 0 && segments[n-1].Start+segments[n-1].Len == id {
			segments[n-1].Len++
		} else {
			segments = append(segments, workload.Segment{Start: id, Len: 1})
		}
	}
	return segments
}

// machine drives a cache and the model as an engine does: a request holds its blocks from the front, perhaps a
// partial one after them, and releases all of them at once.
type machine struct {
	p       prompts
	cache   Cache
	model   model
	total   int
	eager   bool // compact after every release
	blocks  []int
	partial []bool
}

func newMachine(t *rapid.T) *machine {
	m := &machine{p: drawPrompts(t), total: rapid.OneOf(rapid.IntRange(1, 12), rapid.IntRange(50, 300)).Draw(t, "total")}
	m.cache.Reset(rapid.IntRange(1, 5).Draw(t, "earlier total"), m.p.limit)
	m.cache.Hold(m.p.sequences[0], 0, 1, 1, 0) // what Reset must forget
	if rapid.Bool().Draw(t, "recycled") {
		m.cache.Recycle()
	}
	m.cache.Reset(m.total, m.p.limit)
	m.model = model{free: m.total, holders: map[uint32]int{}}
	m.blocks, m.partial = make([]int, len(m.p.sequences)), make([]bool, len(m.p.sequences))
	m.eager = rapid.Bool().Draw(t, "eager compaction")
	return m
}

// Hold takes more blocks for a request, and gives its partial block up first, as it becomes a full one.
func (m *machine) Hold(t *rapid.T) {
	r := rapid.IntRange(0, len(m.blocks)-1).Draw(t, "request")
	to := rapid.IntRange(m.blocks[r], len(m.p.ids[r])).Draw(t, "to")
	anonymous := rapid.IntRange(0, 1).Draw(t, "anonymous")
	if m.partial[r] {
		m.cache.ReleaseAnonymous()
		m.model.releaseAnonymous()
		m.partial[r] = false
	}
	want := m.model.hold(m.p.ids[r][m.blocks[r]:to], anonymous)
	if got := m.cache.Hold(m.p.sequences[r], m.blocks[r], to, to, anonymous); got != want {
		t.Fatalf("Hold(%d to %d and %d of request %d) = %v, want %v", m.blocks[r], to, anonymous, r, got, want)
	}
	if want {
		m.blocks[r], m.partial[r] = to, anonymous > 0
	}
}

func (m *machine) Promote(t *rapid.T) {
	r := rapid.IntRange(0, len(m.blocks)-1).Draw(t, "request")
	if !m.partial[r] || m.blocks[r] == len(m.p.ids[r]) {
		return
	}
	m.cache.Promote(m.p.sequences[r], m.blocks[r])
	m.model.releaseAnonymous()
	if !m.model.hold(m.p.ids[r][m.blocks[r]:m.blocks[r]+1], 0) {
		t.Fatal("the model has no room for a block that has a slot")
	}
	m.blocks[r]++
	m.partial[r] = false
}

func (m *machine) Release(t *rapid.T) {
	r := rapid.IntRange(0, len(m.blocks)-1).Draw(t, "request")
	if m.partial[r] {
		m.cache.ReleaseAnonymous()
		m.model.releaseAnonymous()
		m.partial[r] = false
	}
	if m.eager {
		m.cache.compactAt = 1
	}
	m.cache.Release(m.p.sequences[r], m.blocks[r])
	m.model.release(m.p.ids[r][:m.blocks[r]])
	m.blocks[r] = 0
}

// Check compares everything there is to see, and that resident blocks, and held ones, are prefixes.
func (m *machine) Check(t *rapid.T) {
	held := m.anonymous()
	for _, n := range m.model.holders {
		if n > 0 {
			held++
		}
	}
	got := []int{m.cache.Total(), m.cache.Held(), m.cache.Available(), m.cache.free + m.cache.cachedBlocks + m.cache.Held()}
	want := []int{m.total, held, m.model.free + len(m.model.inactive), m.total}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("total, held, available, sum (-want +got):\n%s", diff)
	}
	for r, ids := range m.p.ids {
		n := rapid.IntRange(0, len(ids)).Draw(t, "n")
		resident, heldBlocks := m.cache.Match(m.p.sequences[r], n)
		want := []int{m.model.resident(ids[:n]), m.model.held(ids[:n])}
		if diff := cmp.Diff(want, []int{resident, heldBlocks}); diff != "" {
			t.Fatalf("resident and held of the first %d blocks of prompt %d (-want +got):\n%s", n, r, diff)
		}
		for i, id := range ids {
			_, ok := m.model.holders[id]
			if (m.cache.stateOf(id) != absent) != ok {
				t.Fatalf("block %d of prompt %d is resident: %v, want %v", i, r, !ok, ok)
			}
			if ok && i > 0 && m.model.holders[id] > m.model.holders[ids[i-1]] {
				t.Fatalf("block %d of prompt %d has more holders than the one before", i, r)
			}
		}
	}
}

func (m *machine) anonymous() int {
	n := 0
	for _, p := range m.partial {
		if p {
			n++
		}
	}
	return n
}

func TestCacheEqualsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		t.Repeat(map[string]func(*rapid.T){
			"": m.Check, "hold": m.Hold, "hold more": m.Hold, "promote": m.Promote, "release": m.Release,
		})
	})
}

// TestEvictionOrder fills a cache with released prompts and checks one by one which block goes next.
func TestEvictionOrder(t *testing.T) {
	var c Cache
	c.Reset(6, 100)
	a := Sequence{Segments: []workload.Segment{{Start: 0, Len: 2}, {Start: 10, Len: 1}}, Known: 3, Private: 50}
	b := Sequence{Segments: []workload.Segment{{Start: 0, Len: 2}, {Start: 20, Len: 1}}, Known: 3, Private: 60}
	c.Hold(a, 0, 4, 4, 0) // 0 1 10 50
	c.Hold(b, 0, 4, 4, 0) // 0 1 20 60
	c.Release(b, 4)       // queue: 60 20
	c.Release(a, 4)       // queue: 60 20 50 10 1 0
	c.Hold(b, 0, 3, 3, 0) // takes 0 1 20 back; queue: 60 50 10
	c.Release(b, 3)       // queue: 60 50 10 20 1 0
	for i, want := range []uint32{60, 50, 10, 20, 1, 0} {
		if c.stateOf(want) == absent {
			t.Fatalf("block %d went too early", want)
		}
		if !c.Hold(Sequence{}, 0, 0, 0, 1) {
			t.Fatalf("no room after %d evictions", i)
		}
		if c.stateOf(want) != absent {
			t.Fatalf("eviction %d did not take block %d", i+1, want)
		}
	}
	if c.Hold(Sequence{}, 0, 0, 0, 1) {
		t.Error("there is room in a full cache")
	}
}

// TestQueueStaysSmall checks that the eviction queue does not grow with the number of releases, whether blocks are
// evicted all the time or never.
func TestQueueStaysSmall(t *testing.T) {
	for _, total := range []int{8, 4000} {
		var c Cache
		c.Reset(total, 1<<12)
		for i := range 100_000 {
			s := Sequence{Segments: []workload.Segment{{Start: uint32(i % 500 * 8), Len: 8}}, Known: 8}
			if !c.Hold(s, 0, 8, 8, 0) {
				t.Fatal("no room")
			}
			c.Release(s, 8)
		}
		if n := cap(c.queue); n > 8*minCompact {
			t.Errorf("with %d blocks the queue takes %d entries", total, n)
		}
	}
}

// BenchmarkHoldRelease holds and releases prompts of 128 blocks, a quarter of which they share.
func BenchmarkHoldRelease(b *testing.B) {
	for _, bench := range []struct {
		name  string
		total int
	}{{"cached", 1 << 17}, {"evicting", 1 << 10}} {
		b.Run(bench.name, func(b *testing.B) {
			const prompts, shared, own = 1000, 32, 96
			sequences := make([]Sequence, prompts)
			for i := range sequences {
				sequences[i] = Sequence{Known: shared + own, Segments: []workload.Segment{
					{Start: 0, Len: shared}, {Start: uint32(shared + i*own), Len: own},
				}}
			}
			var c Cache
			c.Reset(bench.total, shared+prompts*own)
			turn := func(i int) {
				s := sequences[i%prompts]
				c.Match(s, shared+own)
				c.Hold(s, 0, shared+own, shared+own, 1)
				c.ReleaseAnonymous()
				c.Release(s, shared+own)
			}
			for i := range 4 * prompts { // reach the steady state
				turn(i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				turn(i)
			}
		})
	}
}

// TestHoldMost takes what there is room for: shared blocks need none, unused ones that are cached and new ones need a slot each.
func TestHoldMost(t *testing.T) {
	b := workload.NewBuilder("test", 4)
	for _, hashes := range [][]uint64{{1, 2, 3, 4, 5, 6}, {1, 2, 7, 8, 9}, {10, 11}} {
		b.Add(workload.Request{Input: 4 * len(hashes), Output: 1, Hashes: hashes})
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	table, err := w.Blocks(4, true)
	if err != nil {
		t.Fatal(err)
	}
	long, fork, other := SequenceOf(table, 0), SequenceOf(table, 1), SequenceOf(table, 2)
	for _, c := range []struct {
		name       string
		total      int
		prepare    func(c *Cache)
		from, want int
		held       int // afterwards
	}{
		{"room for all", 6, func(*Cache) {}, 0, 6, 6},
		{"room for some", 4, func(*Cache) {}, 0, 4, 4},
		{"no room", 2, func(c *Cache) { c.Hold(other, 0, 2, 2, 0) }, 0, 0, 2},
		{"shared blocks need none", 7, func(c *Cache) { c.Hold(fork, 0, 5, 5, 0) }, 0, 4, 7},
		{"cached ones need theirs", 6, func(c *Cache) {
			c.Hold(long, 0, 6, 6, 0)
			c.Release(long, 6)
			c.Hold(other, 0, 2, 2, 0) // in the place of the last two
		}, 0, 4, 6},
		{"going on", 5, func(c *Cache) { c.Hold(long, 0, 2, 2, 0) }, 2, 5, 5},
		{"nothing wanted", 6, func(c *Cache) { c.Hold(long, 0, 6, 6, 0) }, 6, 6, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			var cache Cache
			cache.Reset(c.total, table.IDs)
			c.prepare(&cache)
			if got := cache.HoldMost(long, c.from, 6); got != c.want || cache.Held() != c.held {
				t.Errorf("it holds up to %d and %d slots are taken, want %d and %d", got, cache.Held(), c.want, c.held)
			}
		})
	}
}
