package kvcache

import "slices"

// Radix is the prefix tree of one SGLang-style worker (engine specification §8.3): which pages are cached, which of
// them must stay because a running request needs them, and which go first.
//
// A node is a run of pages that came and go together. Pages are named by sequence ids, so that a page is found without
// walking the tree; as only leaves go, the resident pages of any prompt form a prefix of it. The zero value must be set
// up with [Radix.Reset]. Counts are in pages.
type Radix struct {
	// PageWise makes no more pages go than must, from the end of a leaf; a prompt that goes on lengthens a leaf that it
	// alone has locked; and a node of which a prompt has a part counts as used. Otherwise whole nodes go, what comes is a
	// new node, and only nodes that a prompt has entirely count as used.
	PageWise bool

	nodes []radixNode // the first is the root
	spare []int32
	// leaves is a heap of the unlocked leaves, least recently used first.
	leaves            []int32
	evictable, locked int

	memory[radixPage]
	sparePages []int32

	log *changeLog
	// For memory tiers, when notes is set: what came and what went.
	notes           bool
	cached, evicted []Change
}

// Node names a place in the tree: the end of a prefix. It stays valid while the prefix is locked.
type Node int32

// Root is the end of the empty prefix. It need not be locked.
const Root Node = 0

// radixNode is the pages from (inclusive) to (exclusive) of a sequence.
type radixNode struct {
	sequence Sequence
	from, to int32
	parent   int32
	children int32
	locks    int32
	place    int32 // in leaves, or -1
	// access is when the node was last used: twice the caller's time, and one more if the node came then, so that of what
	// was there and what came beside it at that time the former goes first.
	access uint64
	// single says that every page is a leaf of its own: they came one by one and go one by one, last first. All have
	// the same access and locks.
	single bool
}

// radixPage holds the node of pageSize neighbouring ids. It exists while one of them is resident.
type radixPage struct {
	node     [pageSize]int32
	slot     uint32 // where the directory names the page
	resident int32
}

// Reset empties the tree for sequence ids below ids. Its memory is kept.
func (r *Radix) Reset(ids uint32) {
	if r.directory == nil {
		r.memory = radixMemory.take()
	}
	for i := range r.pages {
		if p := &r.pages[i]; p.resident > 0 {
			r.directory[p.slot] = 0
			*p = radixPage{}
		}
	}
	if pages := int(ids>>pageBits) + 1; cap(r.directory) < pages {
		r.directory = make([]int32, pages)
	} else {
		r.directory = r.directory[:pages]
	}
	r.sparePages = r.sparePages[:0]
	for i := range r.pages {
		r.sparePages = append(r.sparePages, int32(i)+1)
	}
	r.nodes = append(r.nodes[:0], radixNode{place: -1})
	r.spare, r.leaves = r.spare[:0], r.leaves[:0]
	r.evictable, r.locked = 0, 0
	if r.log != nil {
		r.log.changes = r.log.changes[:0]
	}
	r.cached, r.evicted = r.cached[:0], r.evicted[:0]
}

// Recycle empties the tree and leaves its memory to those that are set up later. Reset sets it up anew.
func (r *Radix) Recycle() {
	r.Reset(0)
	radixMemory.give(r.memory)
	r.memory = memory[radixPage]{}
}

// Evictable is the number of pages that could go, Locked the number of those that must stay.
func (r *Radix) Evictable() int { return r.evictable }
func (r *Radix) Locked() int    { return r.locked }

// Lookup returns how many of the first n pages of a sequence are cached, and leaves no trace.
func (r *Radix) Lookup(s Sequence, n int) int {
	pages, _ := r.find(s, n)
	return pages
}

// Unlocked returns how many of the first n pages of a sequence are cached without being locked, and leaves no trace.
func (r *Radix) Unlocked(s Sequence, n int) int {
	pages, node := r.find(s, n)
	end, unlocked := int32(pages), 0
	for ; node != int32(Root) && r.nodes[node].locks == 0; node = r.nodes[node].parent {
		unlocked += int(end - r.nodes[node].from)
		end = r.nodes[node].from
	}
	return unlocked
}

// Match returns how many of the first n pages of a sequence are cached, and where they end. The nodes that match
// entirely count as used at the given time. Who needs the pages locks them before anything is evicted.
func (r *Radix) Match(s Sequence, n int, at uint64) (pages int, end Node) {
	pages, node := r.find(s, n)
	if pages == 0 {
		return 0, Root
	}
	used := node
	if int(r.nodes[node].to) > pages {
		back := node
		node = r.split(node, int32(pages))
		switch used = node; {
		case r.PageWise:
			used = back
		case !r.nodes[node].single:
			used = r.nodes[node].parent
		}
	}
	r.touch(used, at)
	return pages, Node(node)
}

// Lock keeps the pages up to a node from going. Every Lock is matched by one [Radix.Unlock], perhaps of a node further
// down to which [Radix.Insert] has moved the lock.
func (r *Radix) Lock(end Node) { r.lock(int32(end), int32(Root)) }

// Touch notes that the pages up to a node were used.
func (r *Radix) Touch(end Node, at uint64) { r.touch(int32(end), at) }

// lock locks the nodes from one up to, and without, another one above it.
func (r *Radix) lock(node, above int32) {
	for node != above {
		n := &r.nodes[node]
		if n.locks == 0 {
			r.evictable -= n.size()
			r.locked += n.size()
			if n.place >= 0 {
				r.removeLeaf(n.place)
			}
		}
		n.locks++
		node = n.parent
	}
}

// Unlock gives up a lock.
func (r *Radix) Unlock(end Node) {
	for node := int32(end); node != int32(Root); {
		n := &r.nodes[node]
		if n.locks--; n.locks == 0 {
			r.evictable += n.size()
			r.locked -= n.size()
			if n.children == 0 {
				r.addLeaf(node)
			}
		}
		node = n.parent
	}
}

// Insert puts the first n pages of a sequence into the tree, whose pages up to the node held the caller has locked, and
// moves that lock to their end. All their nodes count as used at the given time. It returns the number of pages that
// were not there before. Those go together, or with single one by one.
func (r *Radix) Insert(s Sequence, held Node, n int, at uint64, single bool) (end Node, added int) {
	if last := &r.nodes[held]; single && last.single && last.sequence.sameRequest(s) && r.onlyMine(held) {
		return held, r.lengthen(held, s, n, at)
	}
	pages, node := r.find(s, n)
	used := node
	if node != int32(Root) && int(r.nodes[node].to) > pages {
		if node = r.split(node, int32(pages)); !r.PageWise {
			used = node
		}
	}
	if r.PageWise && pages < n && Node(node) == held && r.onlyMine(held) {
		return held, r.lengthen(held, s, n, at)
	}
	r.lock(node, int32(held))
	r.touch(used, at)
	if pages < n {
		node = r.newNode(radixNode{sequence: s, from: int32(pages), to: int32(n), parent: node, locks: 1, access: 2*at + 1, single: single})
		r.nodes[r.nodes[node].parent].children++
		r.locked += n - pages
		r.name(s, int32(pages), int32(n), node)
	}
	return Node(node), n - pages
}

// onlyMine reports whether a node that the caller has locked is a leaf which nobody else has locked.
func (r *Radix) onlyMine(held Node) bool {
	return held != Root && r.nodes[held].children == 0 && r.nodes[held].locks == 1
}

// lengthen makes a leaf end with the first n pages of a sequence that begins like it. It returns how many are new.
func (r *Radix) lengthen(held Node, s Sequence, n int, at uint64) (added int) {
	leaf := &r.nodes[held]
	added = n - int(leaf.to)
	r.name(s, leaf.to, int32(n), int32(held))
	leaf.sequence, leaf.to = s, int32(n)
	r.locked += added
	r.touch(int32(held), at)
	return added
}

// Evict lets unlocked leaves go, least recently used first, until at least n pages are gone, page-wise exactly n, or none
// are left. It returns how many went.
func (r *Radix) Evict(n int) int {
	gone := 0
	for gone < n && len(r.leaves) > 0 {
		node := r.leaves[0]
		leaf := &r.nodes[node]
		pages := leaf.size()
		if leaf.single || r.PageWise {
			pages = min(pages, n-gone)
		}
		r.unname(leaf.sequence, leaf.to-int32(pages), leaf.to)
		leaf.to -= int32(pages)
		gone += pages
		if leaf.to == leaf.from {
			r.removeLeaf(0)
			r.spare = append(r.spare, node)
			parent := &r.nodes[leaf.parent]
			if parent.children--; parent.children == 0 && parent.locks == 0 && leaf.parent != int32(Root) {
				r.addLeaf(leaf.parent)
			}
		}
	}
	r.evictable -= gone
	return gone
}

func (n *radixNode) size() int { return int(n.to - n.from) }

func (r *Radix) newNode(n radixNode) int32 {
	n.place = -1
	if last := len(r.spare) - 1; last >= 0 {
		node := r.spare[last]
		r.spare = r.spare[:last]
		r.nodes[node] = n
		return node
	}
	r.nodes = append(r.nodes, n)
	return int32(len(r.nodes) - 1)
}

// split cuts a node before the given page of its sequence and returns the new node in front. The other one keeps its
// number, so that locks of its end stay where they are.
func (r *Radix) split(node, at int32) int32 {
	front := r.nodes[node]
	front.to, front.children = at, 1
	number := r.newNode(front)
	back := &r.nodes[node]
	back.from, back.parent = at, number
	front.sequence.each(int(front.from), int(front.to), func(start uint32, length int) { r.renumber(start, length, number) })
	return number
}

// touch notes that the nodes up to and with a node were used.
func (r *Radix) touch(node int32, at uint64) {
	leaf := r.nodes[node].place
	for ; node != int32(Root); node = r.nodes[node].parent {
		r.nodes[node].access = max(r.nodes[node].access, 2*at)
	}
	if leaf >= 0 {
		r.sinkLeaf(leaf)
	}
}

// find returns how many of the first n pages of a sequence are resident, and the node of the last of them.
func (r *Radix) find(s Sequence, n int) (pages int, node int32) {
	for _, segment := range s.Segments {
		length := min(int(segment.Len), n-pages)
		if length <= 0 {
			return pages, node
		}
		found, last := r.findIn(segment.Start, length)
		if found > 0 {
			node = last
		}
		if pages += found; found < length {
			return pages, node
		}
	}
	if n > pages {
		found, last := r.findIn(s.Private, n-pages)
		if found > 0 {
			node = last
		}
		pages += found
	}
	return pages, node
}

// findIn returns how many of the length ids from start on are resident, and the node of the last of them.
func (r *Radix) findIn(start uint32, length int) (found int, node int32) {
	if node = r.nodeOf(start + uint32(length-1)); node != int32(Root) {
		return length, node
	}
	high := length - 1 // the first id that is not resident is in [found, high]
	for found < high {
		middle := (found + high) / 2
		if n := r.nodeOf(start + uint32(middle)); n != int32(Root) {
			found, node = middle+1, n
		} else {
			high = middle
		}
	}
	return found, node
}

// nodeOf returns the node of an id, or Root if it is not resident.
func (r *Radix) nodeOf(id uint32) int32 {
	p := r.directory[id>>pageBits]
	if p == 0 {
		return int32(Root)
	}
	return r.pages[p-1].node[id&pageMask]
}

// name makes pages of a sequence resident in a node.
func (r *Radix) name(s Sequence, from, to, node int32) {
	s.each(int(from), int(to), func(start uint32, length int) {
		if r.log != nil {
			r.log.add(start, length, true)
		}
		if r.notes {
			r.cached = append(r.cached, Change{Start: start, Len: uint32(length)})
		}
		for length > 0 {
			p := r.pageFor(start)
			at := int(start & pageMask)
			n := min(pageSize-at, length)
			nodes := p.node[at : at+n]
			for i := range nodes {
				nodes[i] = node
			}
			p.resident += int32(n)
			start += uint32(n)
			length -= n
		}
	})
}

// renumber moves resident ids to another node.
func (r *Radix) renumber(start uint32, length int, node int32) {
	for length > 0 {
		p := &r.pages[r.directory[start>>pageBits]-1]
		at := int(start & pageMask)
		n := min(pageSize-at, length)
		nodes := p.node[at : at+n]
		for i := range nodes {
			nodes[i] = node
		}
		start += uint32(n)
		length -= n
	}
}

// unname makes pages of a sequence absent.
func (r *Radix) unname(s Sequence, from, to int32) {
	first := len(r.evicted)
	s.each(int(from), int(to), func(start uint32, length int) {
		if r.log != nil {
			r.log.add(start, length, false)
		}
		if r.notes {
			r.evicted = append(r.evicted, Change{Start: start, Len: uint32(length), Evicted: true})
		}
		for length > 0 {
			slot := &r.directory[start>>pageBits]
			p := &r.pages[*slot-1]
			at := int(start & pageMask)
			n := min(pageSize-at, length)
			clear(p.node[at : at+n])
			if p.resident -= int32(n); p.resident == 0 {
				r.sparePages = append(r.sparePages, *slot)
				*slot = 0
			}
			start += uint32(n)
			length -= n
		}
	})
	slices.Reverse(r.evicted[first:]) // the last page goes first
}

// pageFor returns the page of an id, made if there is none.
func (r *Radix) pageFor(id uint32) *radixPage {
	slot := &r.directory[id>>pageBits]
	if *slot == 0 {
		if n := len(r.sparePages); n > 0 {
			*slot = r.sparePages[n-1]
			r.sparePages = r.sparePages[:n-1]
		} else {
			r.pages = append(r.pages, radixPage{})
			*slot = int32(len(r.pages))
		}
		r.pages[*slot-1].slot = id >> pageBits
	}
	return &r.pages[*slot-1]
}

// The heap of leaves, by access.

func (r *Radix) older(a, b int32) bool { return r.nodes[a].access < r.nodes[b].access }

func (r *Radix) setLeaf(place int32, node int32) {
	r.leaves[place] = node
	r.nodes[node].place = place
}

func (r *Radix) addLeaf(node int32) {
	r.leaves = append(r.leaves, node)
	r.setLeaf(int32(len(r.leaves)-1), node)
	r.raiseLeaf(int32(len(r.leaves) - 1))
}

func (r *Radix) removeLeaf(place int32) {
	r.nodes[r.leaves[place]].place = -1
	last := int32(len(r.leaves) - 1)
	moved := r.leaves[last]
	if r.leaves = r.leaves[:last]; place == last {
		return
	}
	r.setLeaf(place, moved)
	r.sinkLeaf(place)
	r.raiseLeaf(r.nodes[moved].place)
}

func (r *Radix) raiseLeaf(place int32) {
	node := r.leaves[place]
	for place > 0 {
		parent := (place - 1) / 2
		if !r.older(node, r.leaves[parent]) {
			break
		}
		r.setLeaf(place, r.leaves[parent])
		place = parent
	}
	r.setLeaf(place, node)
}

func (r *Radix) sinkLeaf(place int32) {
	node := r.leaves[place]
	for {
		child := 2*place + 1
		if int(child) >= len(r.leaves) {
			break
		}
		if int(child)+1 < len(r.leaves) && r.older(r.leaves[child+1], r.leaves[child]) {
			child++
		}
		if !r.older(r.leaves[child], node) {
			break
		}
		r.setLeaf(place, r.leaves[child])
		place = child
	}
	r.setLeaf(place, node)
}

// Common returns how many of their first n pages two sequences have in common.
func Common(a, b Sequence, n int) int {
	same := 0
	for i, j := 0, 0; same < n && i < len(a.Segments) && j < len(b.Segments); i, j = i+1, j+1 {
		p, q := a.Segments[i], b.Segments[j]
		if p.Start != q.Start {
			break
		}
		same += int(min(p.Len, q.Len))
		if p.Len != q.Len {
			break
		}
	}
	return min(same, n)
}
