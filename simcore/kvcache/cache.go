// Package kvcache manages the KV blocks of one worker: which are held by requests, which are cached, which must
// go when room is needed.
//
// A block is named by its sequence id (see workload.BlockTable), which stands for its tokens and everything
// before them. The cache relies on what follows from that: a request holds its blocks from the front, releases
// them from the back, and the longest-unused block goes first, so resident blocks of any prompt form a prefix of
// it, and so do held ones (but see [Cache.KeepsCopies]). Looking up a prompt therefore takes one test a segment and a binary search in one.
package kvcache

import (
	"math/bits"
	"slices"

	"github.com/servegrid/servegrid/simcore/workload"
)

// Sequence is the list of full blocks of one request: the known ones, then private ones.
type Sequence struct {
	// Segments are the known blocks; Known is their number.
	Segments []workload.Segment
	Known    int32
	// Private is the id of the first block after the known ones.
	Private uint32
	// Request tells apart who holds blocks, where a cache keeps copies of them.
	Request int32
}

// SequenceOf returns the full blocks of a request, which has the given row of a table.
func SequenceOf(t *workload.BlockTable, request int32) Sequence {
	i := int(request)
	return Sequence{Segments: t.Segments(i), Known: int32(t.Known(i)), Private: t.Private(i, 0), Request: request}
}

const (
	pageBits = workload.PageBits
	pageSize = workload.PageSize
	pageMask = pageSize - 1
)

// The states of a block, as stored in page.state; held+n means n+1 holders.
const (
	absent = 0
	cached = 1
	held   = 2
)

// page holds the state of pageSize neighbouring ids. A page exists while one of its ids is resident.
type page struct {
	state    [pageSize]int32
	stamp    [pageSize]uint32 // number of the release that last put the block in the queue
	slot     uint32           // where the directory names the page
	resident int32
	copied   uint64 // the blocks of which there are copies
}

// released is a run of ids in the eviction queue; they go from the highest id down. Blocks that were taken
// again since carry another stamp and are passed over.
type released struct {
	start, len, stamp uint32
}

// Cache is the block pool of one worker. The zero value must be set up with [Cache.Reset].
type Cache struct {
	// KeepsCopies gives a request a slot of its own for every block that it computes, even if another slot has the same
	// content. Otherwise they share one. It must be set before anything is held.
	KeepsCopies bool

	total, free, cachedBlocks int
	memory[page]
	sparePages []int32
	queue      []released
	head       int // first live entry of queue
	stamp      uint32
	compactAt  int // queue length at which dead entries are dropped
	index      *Index
	worker     int // what index calls this cache
	copies     copies
	notes      bool
	changes    []Change // since TakeChanges, when notes is set
}

// minCompact keeps small queues from being compacted at all.
const minCompact = 1024

// Reset empties the cache and gives it total block slots, for sequence ids below ids.
func (c *Cache) Reset(total int, ids uint32) {
	if c.directory == nil {
		c.memory = cacheMemory.take()
	}
	// Only the slots of pages in use are not 0, and they are few beside all ids.
	for i := range c.pages {
		if c.pages[i].resident > 0 {
			c.directory[c.pages[i].slot] = 0
		}
	}
	if pages := int(ids>>pageBits) + 1; cap(c.directory) < pages {
		c.directory = make([]int32, pages)
	} else {
		c.directory = c.directory[:pages]
	}
	c.total, c.free, c.cachedBlocks = total, total, 0
	c.pages, c.sparePages = c.pages[:0], c.sparePages[:0]
	c.queue, c.head, c.stamp, c.compactAt = c.queue[:0], 0, 0, minCompact
	c.copies.reset()
	c.changes = c.changes[:0]
}

// Recycle empties the cache and leaves its memory to those that are set up later. Reset sets it up anew.
func (c *Cache) Recycle() {
	c.Reset(0, 0)
	cacheMemory.give(c.memory)
	c.memory = memory[page]{}
}

// Watch makes the cache tell an index at once which blocks it fills and evicts, as those of the given worker; nil
// tells nobody. The cache must be empty.
func (c *Cache) Watch(x *Index, worker int) { c.index, c.worker = x, worker }

// Change is neighbouring blocks that a cache was filled with, or has evicted, the one with the highest id first. Blocks of
// which there are copies are evicted with the last one.
type Change struct {
	Start, Len uint32
	Evicted    bool
}

// NoteChanges makes the cache note which blocks it is filled with and evicts.
func (c *Cache) NoteChanges() { c.notes = true }

// TakeChanges returns what has changed since it was last called, in order. The slice is valid until the next change.
func (c *Cache) TakeChanges() []Change {
	out := c.changes
	c.changes = c.changes[:0]
	return out
}

// Total is the number of block slots, Free the number of those that are empty, Held the number of slots that requests hold, Available the number
// of slots that are free or hold evictable blocks.
func (c *Cache) Total() int     { return c.total }
func (c *Cache) Free() int      { return c.free }
func (c *Cache) Held() int      { return c.total - c.free - c.cachedBlocks }
func (c *Cache) Available() int { return c.free + c.cachedBlocks }

func (c *Cache) stateOf(id uint32) int32 {
	p := c.directory[id>>pageBits]
	if p == 0 {
		return absent
	}
	return c.pages[p-1].state[id&pageMask]
}

// Match returns how many of the first n blocks of a sequence are resident, and how many of those are held.
func (c *Cache) Match(s Sequence, n int) (resident, heldBlocks int) {
	resident = c.prefix(s, n, cached)
	if len(c.copies.oldest) == 0 {
		return resident, c.prefix(s, resident, held)
	}
	// Nobody may hold the copy that would be hit of a block while somebody holds that of the next one.
	s.each(0, resident, func(start uint32, length int) {
		for id := start; id < start+uint32(length); id++ {
			if c.stateOf(id) >= held {
				heldBlocks++
			}
		}
	})
	return resident, heldBlocks
}

// prefix returns how many of the first n blocks of a sequence are at least in the given state.
func (c *Cache) prefix(s Sequence, n int, state int32) int {
	done := 0
	for _, segment := range s.Segments {
		length := min(int(segment.Len), n-done)
		if length <= 0 {
			return done
		}
		if found := c.prefixOf(segment.Start, length, state); found < length {
			return done + found
		}
		done += length
	}
	if n > done {
		done += c.prefixOf(s.Private, n-done, state)
	}
	return done
}

// prefixOf returns how many of the length ids from start on are at least in the given state.
func (c *Cache) prefixOf(start uint32, length int, state int32) int {
	if c.stateOf(start+uint32(length-1)) >= state {
		return length
	}
	low, high := 0, length-1 // the first id below the state is in [low, high]
	for low < high {
		middle := (low + high) / 2
		if c.stateOf(start+uint32(middle)) >= state {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// Hold takes the blocks from (inclusive) to (exclusive) of a sequence for a request that holds those before, and
// slots for anonymous partial blocks, which have no identity yet. Resident blocks are shared, but a cache that keeps copies
// shares only the first hits blocks of the sequence; others get a slot, evicting the longest unused blocks as needed.
// It takes all or nothing; false means that there are not enough slots.
func (c *Cache) Hold(s Sequence, from, hits, to, anonymous int) bool {
	if !c.KeepsCopies {
		hits = to
	}
	resident, heldBlocks := from, from
	if from < hits {
		resident, heldBlocks = c.Match(s, hits)
		resident, heldBlocks = max(resident, from), max(heldBlocks, from)
	}
	if c.free+c.cachedBlocks-(resident-heldBlocks) < to-resident+anonymous {
		return false
	}
	c.share(s, from, resident)
	c.take(s, resident, to)
	c.makeRoom(anonymous)
	c.free -= anonymous
	return true
}

// HoldMost takes as many of the blocks from (inclusive) to (exclusive) as there are slots for, resident ones being shared,
// and returns the end of those that are held.
func (c *Cache) HoldMost(s Sequence, from, to int) int {
	heldBlocks := from
	if from < to {
		_, heldBlocks = c.Match(s, to)
		heldBlocks = max(heldBlocks, from)
	}
	to = min(to, heldBlocks+c.Available())
	c.Hold(s, from, to, to, 0)
	return to
}

// Touch makes the first n blocks of a sequence, which are resident, the ones that nobody holds to have been used last.
func (c *Cache) Touch(s Sequence, n int) {
	c.share(s, 0, n)
	c.Release(s, n)
}

// ReleaseAnonymous gives the slot of a partial block back.
func (c *Cache) ReleaseAnonymous() { c.free++ }

// Promote turns a partial block, whose slot the request holds, into the index-th block of its sequence. When that
// block is resident already, it is shared and the slot is given back, unless the cache keeps copies.
func (c *Cache) Promote(s Sequence, index int) {
	c.free++
	if !c.KeepsCopies && c.prefix(s, index+1, cached) > index {
		c.share(s, index, index+1)
		return
	}
	c.take(s, index, index+1)
}

// Release gives up the first n blocks of a sequence, the last one first. Blocks that nobody else holds stay
// cached until their slot is needed.
func (c *Cache) Release(s Sequence, n int) {
	c.stamp++
	if n > int(s.Known) {
		c.releaseRun(s.Private, n-int(s.Known), s.Request)
		n = int(s.Known)
	}
	end := 0
	last := -1
	for i := range s.Segments {
		if end >= n {
			break
		}
		end += int(s.Segments[i].Len)
		last = i
	}
	for i := last; i >= 0; i-- {
		length := int(s.Segments[i].Len)
		if end > n {
			length -= end - n
			end = n
		}
		c.releaseRun(s.Segments[i].Start, length, s.Request)
		end -= length
	}
	if len(c.queue) >= c.compactAt {
		c.compact()
	}
}

func (c *Cache) releaseRun(start uint32, length int, holder int32) {
	entry := released{start: start, len: uint32(length), stamp: c.stamp}
	freed := 0
	for id, left := start, length; left > 0; {
		p := &c.pages[c.directory[id>>pageBits]-1]
		at := int(id & pageMask)
		n := min(pageSize-at, left)
		if p.copied != 0 {
			freed += c.releaseOwn(p, at, n, holder)
		} else {
			freed += p.release(at, n, c.stamp)
		}
		id += uint32(n)
		left -= n
	}
	if freed > 0 {
		c.cachedBlocks += freed
		c.queue = append(c.queue, entry)
	}
}

// release takes a holder from n blocks of the page, and returns how many of them have none any more.
func (p *page) release(at, n int, stamp uint32) (freed int) {
	states, stamps := p.state[at:at+n], p.stamp[at:at+n]
	for i := range states {
		states[i]--
		if states[i] == cached {
			stamps[i] = stamp
			freed++
		}
	}
	return freed
}

// releaseOwn is release for a page of whose blocks the holder may have copies.
func (c *Cache) releaseOwn(p *page, at, n int, holder int32) (freed int) {
	for i := at; i < at+n; i++ {
		if p.copied>>i&1 != 0 && c.copies.release(p.slot<<pageBits+uint32(i), holder, c.stamp) {
			freed++
		} else {
			freed += p.release(i, 1, c.stamp)
		}
	}
	return freed
}

// each calls visit for the page of every run of neighbouring ids among the blocks from (inclusive) to (exclusive).
func (s Sequence) each(from, to int, visit func(start uint32, length int)) {
	done := 0
	for _, segment := range s.Segments {
		if done >= to {
			return
		}
		length := int(segment.Len)
		if low, high := max(from, done), min(to, done+length); low < high {
			visit(segment.Start+uint32(low-done), high-low)
		}
		done += length
	}
	if low := max(from, done); low < to {
		visit(s.Private+uint32(low-done), to-low)
	}
}

// share adds a holder to resident blocks.
func (c *Cache) share(s Sequence, from, to int) {
	s.each(from, to, func(start uint32, length int) {
		for id, left := start, length; left > 0; {
			p := &c.pages[c.directory[id>>pageBits]-1]
			at := int(id & pageMask)
			n := min(pageSize-at, left)
			states := p.state[at : at+n]
			for i := range states {
				if states[i] == cached {
					c.cachedBlocks--
				}
				states[i]++
			}
			id += uint32(n)
			left -= n
		}
	})
}

// take gives blocks a slot and their first holder: absent ones, and in a cache that keeps copies resident ones, too. The
// caller has made sure that there are enough slots.
func (c *Cache) take(s Sequence, from, to int) {
	if c.KeepsCopies && from < to {
		c.makeRoom(to - from)
		resident := max(from, c.prefix(s, to, cached))
		c.copy(s, from, resident)
		from = resident
	}
	c.fill(s, from, to)
}

// copy gives resident blocks another slot, for which there is room.
func (c *Cache) copy(s Sequence, from, to int) {
	c.free -= to - from
	s.each(from, to, func(start uint32, length int) {
		for id := start; id < start+uint32(length); id++ {
			c.copies.add(id, s.Request)
			c.pageFor(id).copied |= 1 << (id & pageMask)
		}
	})
}

// fill gives absent blocks a slot and their first holder. The caller has made sure that there are enough slots.
func (c *Cache) fill(s Sequence, from, to int) {
	c.makeRoom(to - from)
	c.free -= to - from
	s.each(from, to, func(start uint32, length int) {
		if c.index != nil {
			c.index.Store(c.worker, start, length)
		}
		if c.notes {
			c.changes = append(c.changes, Change{Start: start, Len: uint32(length)})
		}
		for id, left := start, length; left > 0; {
			p := c.pageFor(id)
			at := int(id & pageMask)
			n := min(pageSize-at, left)
			states := p.state[at : at+n]
			for i := range states {
				states[i] = held
			}
			p.resident += int32(n)
			id += uint32(n)
			left -= n
		}
	})
}

// pageFor returns the page of an id, made if there is none.
func (c *Cache) pageFor(id uint32) *page {
	slot := &c.directory[id>>pageBits]
	if *slot == 0 {
		if n := len(c.sparePages); n > 0 {
			*slot = c.sparePages[n-1]
			c.sparePages = c.sparePages[:n-1]
		} else {
			c.pages = append(c.pages, page{})
			*slot = int32(len(c.pages))
		}
		c.pages[*slot-1].slot = id >> pageBits
	}
	return &c.pages[*slot-1]
}

// makeRoom evicts until n slots are free.
func (c *Cache) makeRoom(n int) {
	if c.free < n {
		c.evict(n - c.free)
	}
}

// evict drops the n blocks that have been cached longest. There must be that many.
func (c *Cache) evict(n int) {
	for n > 0 {
		entry := &c.queue[c.head]
		for n > 0 && entry.len > 0 {
			n -= c.evictFrom(entry, n)
		}
		if entry.len == 0 {
			c.head++
		}
	}
}

// evictFrom drops up to n blocks from the last page of a queue entry and returns how many.
func (c *Cache) evictFrom(entry *released, n int) int {
	last := entry.start + entry.len - 1
	at := int(last & pageMask)
	run := min(at+1, int(entry.len))
	slot := &c.directory[last>>pageBits]
	if *slot == 0 {
		entry.len -= uint32(run)
		return 0
	}
	p := &c.pages[*slot-1]
	var dropped, seen int
	var evicted uint64 // the blocks of the page that are gone
	if p.copied == 0 {
		dropped, seen, evicted = p.evict(at, run, n, entry.stamp)
	} else {
		dropped, seen, evicted = c.evictCopies(p, at, run, n, entry.stamp)
	}
	if c.index != nil {
		c.index.removeSome(c.worker, last>>pageBits, evicted)
	}
	if c.notes {
		c.noteEvicted(last&^pageMask, evicted)
	}
	entry.len -= uint32(seen)
	if p.resident -= int32(bits.OnesCount64(evicted)); p.resident == 0 {
		c.sparePages = append(c.sparePages, *slot)
		*slot = 0
	}
	c.cachedBlocks -= dropped
	c.free += dropped
	return dropped
}

// evict drops up to n blocks of the page that wait in the eviction queue since the release of the given number, from at
// down, and returns how many that are and how many of the length blocks it has looked at.
func (p *page) evict(at, length, n int, stamp uint32) (dropped, seen int, evicted uint64) {
	i := at
	for ; i > at-length && dropped < n; i-- {
		if p.state[i] == cached && p.stamp[i] == stamp {
			p.state[i] = absent
			dropped++
			evicted |= 1 << i
		}
	}
	return dropped, at - i, evicted
}

// evictCopies is evict for a page of whose blocks there are copies. Where the slot goes that would be hit, the oldest copy
// takes its place.
func (c *Cache) evictCopies(p *page, at, length, n int, stamp uint32) (dropped, seen int, evicted uint64) {
	for ; seen < length && dropped < n; seen++ {
		i := at - seen
		id, copied := p.slot<<pageBits+uint32(i), p.copied>>i&1 != 0
		switch waits := p.state[i] == cached && p.stamp[i] == stamp; {
		case waits && copied:
			c.replaceByCopy(p, i, c.copies.oldest[id])
			dropped++
		case waits:
			p.state[i] = absent
			evicted |= 1 << i
			dropped++
		case copied:
			if copy, ok := c.copies.released(id, stamp); ok {
				c.removeCopy(p, i, copy)
				dropped++
			}
		}
	}
	return dropped, seen, evicted
}

// replaceByCopy lets a copy of a block take the place of the slot that would be hit.
func (c *Cache) replaceByCopy(p *page, i int, copy int32) {
	p.state[i] = held
	if k := c.copies.slots[copy]; k.holder == nobody {
		p.state[i], p.stamp[i] = cached, k.stamp
	}
	c.removeCopy(p, i, copy)
}

func (c *Cache) removeCopy(p *page, i int, at int32) {
	if last := c.copies.remove(p.slot<<pageBits+uint32(i), at); last {
		p.copied &^= 1 << i
	}
}

// noteEvicted notes the evicted blocks of a page, one for each bit, from the highest id down.
func (c *Cache) noteEvicted(first uint32, blocks uint64) {
	for blocks != 0 {
		end := bits.Len64(blocks)
		run := bits.LeadingZeros64(^(blocks << (pageSize - end)))
		blocks &= 1<<(end-run) - 1
		c.changes = append(c.changes, Change{Start: first + uint32(end-run), Len: uint32(run), Evicted: true})
	}
}

// compact drops queue entries without a block that still waits in them, evicted ones included, so that the queue
// stays proportional to what is cached.
func (c *Cache) compact() {
	kept, releases := c.queue[:0], c.copies.releases()
	for _, entry := range c.queue[c.head:] {
		_, copied := slices.BinarySearch(releases, entry.stamp)
		if c.waits(entry, copied) {
			kept = append(kept, entry)
		}
	}
	c.queue, c.head = kept, 0
	c.compactAt = max(minCompact, 2*len(kept))
}

// waits reports whether a block of a queue entry still waits in it; copied says that copies do which were released with it,
// of its blocks or of other ones.
func (c *Cache) waits(entry released, copied bool) bool {
	for id := entry.start; id < entry.start+entry.len; id++ {
		p := c.directory[id>>pageBits]
		if p == 0 {
			continue
		}
		page, at := &c.pages[p-1], id&pageMask
		if page.state[at] == cached && page.stamp[at] == entry.stamp || copied && page.copied>>at&1 != 0 {
			return true
		}
	}
	return false
}
