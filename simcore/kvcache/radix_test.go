package kvcache

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/workload"
)

// radixModel is the tree as the specification describes it: every node has its pages and its children, and is found by
// walking from the root.
type radixModel struct {
	root     *modelNode
	pageWise bool
}

type modelNode struct {
	ids      []uint32
	parent   *modelNode
	children []*modelNode
	locks    int
	access   uint64
}

// walk follows ids as far as they are there. It returns the last node that matches, how much of it does, and the number
// of ids that were found.
func (m *radixModel) walk(ids []uint32) (node *modelNode, within, found int) {
	node = m.root
	within = 0
	for found < len(ids) {
		next := slices.IndexFunc(node.children, func(c *modelNode) bool { return c.ids[0] == ids[found] })
		if next < 0 {
			return node, within, found
		}
		node = node.children[next]
		for within = 0; within < len(node.ids) && found < len(ids) && node.ids[within] == ids[found]; within++ {
			found++
		}
		if within < len(node.ids) {
			return node, within, found
		}
	}
	return node, within, found
}

// cut splits a node after some of its ids and returns the part in front.
func (m *radixModel) cut(node *modelNode, at int) *modelNode {
	front := &modelNode{ids: node.ids[:at], parent: node.parent, children: []*modelNode{node}, locks: node.locks, access: node.access}
	i := slices.Index(node.parent.children, node)
	node.parent.children[i] = front
	node.ids, node.parent = node.ids[at:], front
	return front
}

func (m *radixModel) match(ids []uint32, at uint64) (*modelNode, int) {
	node, within, found := m.walk(ids)
	used := node
	if node != m.root && within < len(node.ids) {
		back := node
		used = node.parent
		node = m.cut(node, within)
		if m.pageWise {
			used = back
		}
	}
	m.touch(used, at)
	return node, found
}

func (m *radixModel) touch(node *modelNode, at uint64) {
	for ; node != nil; node = node.parent {
		node.access = max(node.access, 2*at)
	}
}

func (m *radixModel) lock(node *modelNode, by int) {
	for ; node != nil; node = node.parent {
		node.locks += by
	}
}

// insert puts ids in for a request that holds one lock, of the path to held.
func (m *radixModel) insert(ids []uint32, held *modelNode, at uint64) *modelNode {
	node, within, found := m.walk(ids)
	used := node
	if node != m.root && within < len(node.ids) {
		if node = m.cut(node, within); !m.pageWise {
			used = node
		}
	}
	m.touch(used, at)
	if m.pageWise && node == held && node != m.root && len(node.children) == 0 && node.locks == 1 {
		node.ids = append(slices.Clone(node.ids), ids[found:]...)
		return node
	}
	if found < len(ids) {
		leaf := &modelNode{ids: ids[found:], parent: node, access: 2*at + 1}
		node.children = append(node.children, leaf)
		node = leaf
	}
	return node
}

// visit calls visit for every node below the root.
func (m *radixModel) visit(node *modelNode, visit func(*modelNode)) {
	for _, c := range node.children {
		visit(c)
		m.visit(c, visit)
	}
}

func (m *radixModel) evict(n int) int {
	gone := 0
	for gone < n {
		var oldest *modelNode
		m.visit(m.root, func(c *modelNode) {
			if len(c.children) == 0 && c.locks == 0 && (oldest == nil || c.access < oldest.access) {
				oldest = c
			}
		})
		if oldest == nil {
			break
		}
		if keep := len(oldest.ids) - (n - gone); m.pageWise && keep > 0 {
			oldest.ids = oldest.ids[:keep]
			return n
		}
		gone += len(oldest.ids)
		siblings := oldest.parent.children
		oldest.parent.children = slices.DeleteFunc(siblings, func(c *modelNode) bool { return c == oldest })
	}
	return gone
}

// radixMachine drives a tree and the model as an engine does: a request matches and locks a prefix, puts more of its
// pages in, all at once or one by one, and gives up its lock.
type radixMachine struct {
	p     prompts
	tree  Radix
	model radixModel
	at    uint64
	held  []holder
}

type holder struct {
	active bool
	end    Node
	node   *modelNode
	pages  int
}

func newRadixMachine(t *rapid.T) *radixMachine {
	pageWise := rapid.Bool().Draw(t, "page-wise")
	m := &radixMachine{p: drawPrompts(t), tree: Radix{PageWise: pageWise}, model: radixModel{root: &modelNode{}, pageWise: pageWise}}
	m.held = make([]holder, len(m.p.sequences))
	m.tree.Reset(m.p.limit)
	end, _ := m.tree.Insert(m.p.sequences[0], Root, len(m.p.ids[0]), 7, true) // what Reset must forget
	m.tree.Unlock(end)
	if rapid.Bool().Draw(t, "recycled") {
		m.tree.Recycle()
	}
	m.tree.Reset(m.p.limit)
	return m
}

func (m *radixMachine) request(t *rapid.T) (int, *holder) {
	r := rapid.IntRange(0, len(m.held)-1).Draw(t, "request")
	m.at++
	return r, &m.held[r]
}

// Match lets a request lock what is cached of a prompt.
func (m *radixMachine) Match(t *rapid.T) {
	r, h := m.request(t)
	if h.active {
		return
	}
	n := rapid.IntRange(0, len(m.p.ids[r])).Draw(t, "n")
	if got, want := m.tree.Lookup(m.p.sequences[r], n), m.resident(r, n); got != want {
		t.Fatalf("%d of the first %d pages of prompt %d are cached, want %d", got, n, r, want)
	}
	pages, end := m.tree.Match(m.p.sequences[r], n, m.at)
	node, found := m.model.match(m.p.ids[r][:n], m.at)
	if pages != found {
		t.Fatalf("%d of the first %d pages of prompt %d match, want %d", pages, n, r, found)
	}
	m.tree.Lock(end)
	m.model.lock(node, 1)
	*h = holder{true, end, node, pages}
}

// Insert lets a request put more of its pages in.
func (m *radixMachine) Insert(t *rapid.T) {
	r, h := m.request(t)
	if !h.active {
		return
	}
	n := rapid.IntRange(h.pages, len(m.p.ids[r])).Draw(t, "n")
	single := !m.tree.PageWise && rapid.Bool().Draw(t, "one by one")
	present := m.resident(r, len(m.p.ids[r]))
	if single && present > h.pages {
		n = min(n, h.pages+1) // several at once only when nobody else has them
	}
	end, added := m.tree.Insert(m.p.sequences[r], h.end, n, m.at, single)
	node := h.node
	if single {
		for k := h.pages + 1; k <= n; k++ {
			node = m.model.insert(m.p.ids[r][:k], node, m.at)
		}
		m.model.touch(node, m.at)
	} else {
		node = m.model.insert(m.p.ids[r][:n], h.node, m.at)
	}
	m.model.lock(node, 1)
	m.model.lock(h.node, -1)
	if want := n - min(n, present); added != want {
		t.Fatalf("%d pages are new, want %d", added, want)
	}
	*h = holder{true, end, node, n}
}

func (m *radixMachine) Touch(t *rapid.T) {
	_, h := m.request(t)
	if h.active {
		m.tree.Touch(h.end, m.at)
		m.model.touch(h.node, m.at)
	}
}

func (m *radixMachine) Unlock(t *rapid.T) {
	_, h := m.request(t)
	if h.active {
		m.tree.Unlock(h.end)
		m.model.lock(h.node, -1)
		*h = holder{}
	}
}

func (m *radixMachine) Evict(t *rapid.T) {
	n := rapid.IntRange(1, 100).Draw(t, "n")
	if got, want := m.tree.Evict(n), m.model.evict(n); got != want {
		t.Fatalf("evicting %d pages evicted %d, want %d", n, got, want)
	}
}

func (m *radixMachine) resident(r, n int) int {
	_, _, found := m.model.walk(m.p.ids[r][:n])
	return found
}

// Check compares what is cached and what is locked.
func (m *radixMachine) Check(t *rapid.T) {
	locked, evictable := 0, 0
	cached := map[uint32]bool{}
	m.model.visit(m.model.root, func(c *modelNode) {
		if c.locks > 0 {
			locked += len(c.ids)
		} else {
			evictable += len(c.ids)
		}
		for _, id := range c.ids {
			cached[id] = true
		}
	})
	if m.tree.Locked() != locked || m.tree.Evictable() != evictable {
		t.Fatalf("%d pages are locked and %d evictable, want %d and %d", m.tree.Locked(), m.tree.Evictable(), locked, evictable)
	}
	for id := range m.p.limit {
		if got := m.tree.nodeOf(id) != int32(Root); got != cached[id] {
			t.Fatalf("page %d is cached: %v, want %v", id, got, cached[id])
		}
	}
}

func TestRadixEqualsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newRadixMachine(t)
		t.Repeat(map[string]func(*rapid.T){
			"": m.Check, "match": m.Match, "insert": m.Insert, "insert more": m.Insert, "touch": m.Touch, "unlock": m.Unlock, "evict": m.Evict,
		})
	})
}

// TestRadixReports checks that an index hears of all changes, once they are reported.
func TestRadixReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newRadixMachine(t)
		index := NewIndex(3, m.p.limit)
		m.tree.Watch(index, 1)
		overlaps := make([]int32, 3)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for r, s := range m.p.sequences {
					m.tree.Report()
					index.Overlaps(s, int(s.Known), overlaps)
					if want := m.tree.Lookup(s, int(s.Known)); int(overlaps[1]) != want || overlaps[0] != 0 || overlaps[2] != 0 {
						t.Fatalf("the index sees %v of prompt %d, want 0, %d, 0", overlaps, r, want)
					}
				}
			},
			"match": m.Match, "insert": m.Insert, "unlock": m.Unlock, "evict": m.Evict,
		})
	})
}

func TestCommon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPrompts(t)
		for a, s := range p.sequences {
			for b, o := range p.sequences {
				n := rapid.IntRange(0, int(min(s.Known, o.Known))).Draw(t, "n")
				want := 0
				for want < n && p.ids[a][want] == p.ids[b][want] {
					want++
				}
				if got := Common(s, o, n); got != want {
					t.Fatalf("of the first %d pages prompts %d and %d have %d in common, want %d", n, a, b, got, want)
				}
			}
		}
	})
}

// BenchmarkRadix matches, inserts and releases prompts of 128 pages, a quarter of which they share, and lets each decode
// eight pages more.
func BenchmarkRadix(b *testing.B) {
	for _, bench := range []struct {
		name  string
		total int
	}{{"cached", 1 << 18}, {"evicting", 1 << 11}} {
		b.Run(bench.name, func(b *testing.B) {
			const prompts, shared, own, output = 1000, 32, 96, 8
			sequences := make([]Sequence, prompts)
			for i := range sequences {
				sequences[i] = Sequence{Known: shared + own, Private: uint32(shared + prompts*own + i*output), Segments: []workload.Segment{
					{Start: 0, Len: shared}, {Start: uint32(shared + i*own), Len: own},
				}}
			}
			var r Radix
			r.Reset(shared + prompts*(own+output))
			at := uint64(0)
			turn := func(i int) {
				s := sequences[i%prompts]
				at++
				_, end := r.Match(s, shared+own, at)
				r.Lock(end)
				if free := bench.total - r.Evictable() - r.Locked(); free < own+output {
					r.Evict(own + output - free)
				}
				end, _ = r.Insert(s, end, shared+own, at, false)
				for k := range output {
					end, _ = r.Insert(s, end, shared+own+k+1, at, true)
				}
				r.Unlock(end)
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
