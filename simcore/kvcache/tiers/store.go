package tiers

import "github.com/servegrid/servegrid/simcore/workload"

const (
	pageBits = workload.PageBits
	pageSize = workload.PageSize
	pageMask = pageSize - 1
)

// store holds the KV blocks of one tier. The least recently used one goes when there is no room for another.
type store struct {
	capacity  int
	directory []int32 // page number + 1 by id >> pageBits; 0 where there is none
	pages     []page
	spare     []int32 // pages that hold no block
	entries   []entry // a ring by use; entry 0 lies between the most and the least recently used one
	unused    []int32 // entries without a block

	blocks, peak int
	evictions    int64
	area         float64 // blocks x ms up to since
	since        float64
	born, died   float64 // when its worker came and went; 0 when it did not
}

// page holds the entries of pageSize neighbouring ids: 0 for blocks that are not here, or expected.
type page struct {
	entry    [pageSize]int32
	resident int32 // how many are not 0
}

// expected stands for the entry of a block that is on its way here.
const expected = -1

// entry is one block.
type entry struct {
	id           uint32
	older, newer int32
	// duplicate says that the block has come to GPU memory since, so that nothing is lost with it. Duplicates are the least
	// recently used blocks, so that GPU and host memory together have room for about as many blocks as they have slots.
	duplicate bool
}

// newStore returns an empty store for block ids below ids; capacity 0 means no limit.
func newStore(capacity int, ids uint32) *store {
	return &store{capacity: capacity, directory: make([]int32, int(ids>>pageBits)+1), entries: make([]entry, 1)}
}

// find returns the entry of a block, 0 when it is not here.
func (s *store) find(id uint32) int32 {
	p := s.directory[id>>pageBits]
	if p == 0 {
		return 0
	}
	return max(0, s.pages[p-1].entry[id&pageMask])
}

// expects reports whether a block is on its way here.
func (s *store) expects(id uint32) bool {
	p := s.directory[id>>pageBits]
	return p != 0 && s.pages[p-1].entry[id&pageMask] == expected
}

// expect notes that a block which is not here will be put here.
func (s *store) expect(id uint32) { s.set(id, expected) }

func (s *store) has(id uint32) bool { return s.find(id) != 0 }

// touch makes a block the most recently used one. It reports whether the block is here.
func (s *store) touch(id uint32) bool {
	e := s.find(id)
	if e == 0 {
		return false
	}
	s.entries[e].duplicate = false
	s.unlink(e)
	s.link(e, s.entries[0].older)
	return true
}

// cool makes a block the least recently used one, because GPU memory has it now.
func (s *store) cool(id uint32) {
	if e := s.find(id); e != 0 {
		s.entries[e].duplicate = true
		s.unlink(e)
		s.link(e, 0)
	}
}

// put stores a block as the most recently used one. It returns the block that had to go, unless that was a duplicate.
func (s *store) put(id uint32, now float64) (victim uint32, evicted bool) {
	if s.touch(id) {
		return 0, false
	}
	if s.capacity > 0 && s.blocks == s.capacity {
		victim, evicted = s.evict()
	} else {
		s.area += float64(float64(s.blocks) * (now - s.since))
		s.since = now
		s.blocks++
		s.peak = max(s.peak, s.blocks)
	}
	e := s.newEntry(id)
	s.set(id, e)
	s.link(e, s.entries[0].older)
	return victim, evicted
}

// putSpare stores a block that GPU memory has too, if there is room, as the least recently used one.
func (s *store) putSpare(id uint32, now float64) {
	if s.capacity == 0 || s.blocks < s.capacity {
		s.put(id, now)
	}
	s.cool(id)
}

// evict removes the least recently used block. It reports whether that is a loss.
func (s *store) evict() (id uint32, loss bool) {
	e := s.entries[0].newer
	id, loss = s.entries[e].id, !s.entries[e].duplicate
	s.unlink(e)
	s.unused = append(s.unused, e)
	slot := &s.directory[id>>pageBits]
	p := &s.pages[*slot-1]
	p.entry[id&pageMask] = 0
	if p.resident--; p.resident == 0 {
		s.spare = append(s.spare, *slot)
		*slot = 0
	}
	if loss {
		s.evictions++
	}
	return id, loss
}

// meanBlocks is the mean number of blocks from 0 to the given time.
func (s *store) meanBlocks(end float64) float64 {
	if end <= 0 {
		return 0
	}
	return (s.area + float64(s.blocks)*(end-s.since)) / end
}

// settle ends the store at a time: it keeps its figures only.
func (s *store) settle(now float64) {
	s.area += float64(float64(s.blocks) * (now - s.since))
	*s = store{area: s.area, since: now, peak: s.peak, evictions: s.evictions, born: s.born, died: now}
}

// lifetime is how long the store was there up to the given time.
func (s *store) lifetime(end float64) float64 {
	if s.died > 0 {
		end = s.died
	}
	return end - s.born
}

// link puts an entry after the one that is used less recently, 0 for the end of the list.
func (s *store) link(e, older int32) {
	newer := s.entries[older].newer
	s.entries[e].older, s.entries[e].newer = older, newer
	s.entries[older].newer, s.entries[newer].older = e, e
}

func (s *store) unlink(e int32) {
	older, newer := s.entries[e].older, s.entries[e].newer
	s.entries[older].newer, s.entries[newer].older = newer, older
}

func (s *store) newEntry(id uint32) int32 {
	if n := len(s.unused); n > 0 {
		e := s.unused[n-1]
		s.unused = s.unused[:n-1]
		s.entries[e] = entry{id: id}
		return e
	}
	s.entries = append(s.entries, entry{id: id})
	return int32(len(s.entries) - 1)
}

// set stores an entry that is not 0.
func (s *store) set(id uint32, entry int32) {
	p := s.pageFor(id)
	if p.entry[id&pageMask] == 0 {
		p.resident++
	}
	p.entry[id&pageMask] = entry
}

// pageFor returns the page of an id, made if there is none.
func (s *store) pageFor(id uint32) *page {
	slot := &s.directory[id>>pageBits]
	if *slot == 0 {
		if n := len(s.spare); n > 0 {
			*slot = s.spare[n-1]
			s.spare = s.spare[:n-1]
		} else {
			s.pages = append(s.pages, page{})
			*slot = int32(len(s.pages))
		}
	}
	return &s.pages[*slot-1]
}
