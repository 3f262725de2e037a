package workload

import "math"

// Slots is a workload whose requests come one by one while it is simulated: each takes a numbered slot, which serves another
// one after it. Memory is bounded by the number of slots and by what caches hold: the sequence ids of KV blocks that nobody
// holds any more are used again. It is for one simulation, and not safe for concurrent use.
type Slots struct {
	w      *Workload
	taken  []bool
	tables []*slotTable

	sessions sessionNumbers
	ofSlot   []int32
}

// SlotRequest is one request that takes a slot.
type SlotRequest struct {
	// Input and Output are lengths in tokens.
	Input, Output int
	// Blocks name the full KV blocks of the prompt and, behind them, of the answer where that is known: equal names after
	// equal ones mean equal content. Without them the prompt shares nothing with any other.
	Blocks []uint64
	// Session names the session; "" stands alone.
	Session string
	// Hints are what the request tells the router.
	Hints Hints
}

// NewSlots returns so many free slots.
func NewSlots(slots int) *Slots {
	s := &Slots{taken: make([]bool, slots), sessions: newSessionNumbers(slots), ofSlot: make([]int32, slots)}
	s.w = &Workload{
		Name: "requests as they come", Input: make([]int32, slots), Output: make([]int32, slots),
		ArrivalMs: make([]float64, slots), DelayMs: make([]float64, slots), SessionStart: make([]int32, s.sessions.most+1),
		runStart: make([]uint32, slots+1), hints: make([]Hints, slots),
		tables: map[tableKey]*BlockTable{}, tableErrs: map[tableKey]error{}, tableOf: s.table,
	}
	return s
}

// Workload is what a simulation sees of the slots. Its block tables change as requests take them.
func (s *Slots) Workload() *Workload { return s.w }

// Sessions is the session number of each slot's request. The slice stays valid and changes.
func (s *Slots) Sessions() []int32 { return s.ofSlot }

// table makes a block table for all slots. It is made before any request comes.
func (s *Slots) table(blockSize int, sharing bool) (*BlockTable, error) {
	t := newSlotTable(s.taken, blockSize, sharing)
	s.tables = append(s.tables, t)
	return &t.BlockTable, nil
}

// Hold makes holders keep the sequence ids of a table of the slots from being used again. They must hold nothing yet.
func (s *Slots) Hold(t *BlockTable, holders ...BlockHolder) {
	t.slots.holders = append(t.slots.holders, holders...)
}

// Take lets a request take a free slot. fresh says that its session was not known before. ok is false when there are more
// blocks than can be numbered.
func (s *Slots) Take(slot int32, r SlotRequest) (fresh, ok bool) {
	s.taken[slot] = true
	for i, t := range s.tables {
		if !t.take(slot, r) {
			for _, t := range s.tables[:i+1] {
				t.free(slot)
			}
			s.taken[slot] = false
			return false, false
		}
	}
	s.w.Input[slot], s.w.Output[slot] = int32(r.Input), int32(r.Output)
	s.w.hints[slot] = r.Hints
	s.ofSlot[slot], fresh = s.sessions.number(slot, r.Session)
	return fresh, true
}

// Free makes a slot free for another request.
func (s *Slots) Free(slot int32) {
	s.taken[slot] = false
	for _, t := range s.tables {
		t.free(slot)
	}
}

// BlockHolder is what remembers blocks by their sequence ids: caches, and an index of them.
type BlockHolder interface {
	// MarkPages sets a bit for each page of ids of which it remembers any.
	MarkPages(pages []uint64)
	// GrowIDs makes room for all ids below the given one.
	GrowIDs(ids uint32)
}

// A page is neighbouring sequence ids, of which caches keep the state together. The first one is a multiple of PageSize.
const (
	PageBits = 6
	PageSize = 1 << PageBits
)

// MarkPage sets the bit of a page.
func MarkPage(pages []uint64, page uint32) { pages[page>>6] |= 1 << (page & 63) }

// slotTable is the block table of slots. Known blocks and private ones have pages of their own. A page is free when no request
// has any of its ids and no holder remembers any; that is found out when free pages run out.
type slotTable struct {
	BlockTable
	taken   []bool
	sharing bool
	holders []BlockHolder
	rows    [][]Segment // of each slot. They are not written again, as caches keep them.
	private []idRange   // of each slot

	used   []uint64 // a bit for each page
	marks  []uint64
	inUse  int    // pages
	next   uint32 // the page to look at first
	byName map[uint64]uint32
	names  []*pageNames // of each page; nil unless it is for known blocks
	// The rest of the pages that are being filled, with known and with private blocks.
	known, own idRange
}

// idRange is the ids from one (inclusive) to another (exclusive).
type idRange struct{ from, to uint32 }

// pageNames is what the known blocks of a page are called: by themselves, and together with all before them, which is what
// they are found by.
type pageNames struct{ alone, chained [PageSize]uint64 }

// firstPages is how many pages of ids a table has at first, and mostPages how many it may have.
const (
	firstPages = 1 << 10
	mostPages  = math.MaxUint32 / PageSize
)

func newSlotTable(taken []bool, blockSize int, sharing bool) *slotTable {
	t := &slotTable{
		taken: taken, sharing: sharing, rows: make([][]Segment, len(taken)), private: make([]idRange, len(taken)),
		byName: map[uint64]uint32{},
	}
	t.BlockTable = BlockTable{BlockSize: blockSize, KnownOutputs: true, prompts: make([]promptBlocks, len(taken)), slots: t}
	t.grow(firstPages)
	return t
}

// take numbers the blocks of a request.
func (t *slotTable) take(slot int32, r SlotRequest) bool {
	tokens := r.Input + r.Output
	known := 0
	if t.sharing {
		known = min(len(r.Blocks), tokens/t.BlockSize)
	}
	t.rows[slot], t.private[slot] = nil, idRange{}
	name := uint64(0)
	for _, block := range r.Blocks[:known] {
		name = chain(name, block)
		id, ok := t.byName[name]
		if !ok {
			if id, ok = t.nextKnown(); !ok {
				return false
			}
			t.byName[name] = id
			names := t.names[id>>PageBits]
			names.alone[id%PageSize], names.chained[id%PageSize] = block, name
		}
		t.rows[slot] = appendID(t.rows[slot], 0, id)
	}
	private, ok := t.takePrivate(uint32(tokens/t.BlockSize + 2 - known))
	if !ok {
		return false
	}
	t.private[slot] = private
	p := &t.prompts[slot]
	p.known, p.private = int32(known), private.from
	return true
}

// chain names a block together with all before it, whose name is given. Both steps of the finaliser of SplitMix64 (Steele,
// Lea, Flood 2014) spread what is close together.
func chain(before, block uint64) uint64 {
	x := before*0x9e3779b97f4a7c15 + block + 0x632be59bd9b4e019
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// key is what a block was called; a private one has its id.
func (t *slotTable) key(id uint32) uint64 {
	if names := t.names[id>>PageBits]; names != nil {
		return names.alone[id%PageSize]
	}
	return uint64(id)
}

// free forgets which blocks a request has.
func (t *slotTable) free(slot int32) { t.rows[slot], t.private[slot] = nil, idRange{} }

// nextKnown returns an id for a known block.
func (t *slotTable) nextKnown() (id uint32, ok bool) {
	if t.known.from == t.known.to {
		page, ok := t.takePages(1)
		if !ok {
			return 0, false
		}
		t.names[page] = &pageNames{}
		t.known = idRange{page << PageBits, (page + 1) << PageBits}
	}
	id = t.known.from
	t.known.from++
	return id, true
}

// takePrivate returns ids for so many private blocks.
func (t *slotTable) takePrivate(n uint32) (idRange, bool) {
	if t.own.to-t.own.from < n {
		pages := (n + PageSize - 1) / PageSize
		page, ok := t.takePages(pages)
		if !ok {
			return idRange{}, false
		}
		t.own = idRange{page << PageBits, (page + pages) << PageBits}
	}
	out := idRange{t.own.from, t.own.from + n}
	t.own.from += n
	return out, true
}

// takePages takes so many neighbouring pages that are free.
func (t *slotTable) takePages(n uint32) (first uint32, ok bool) {
	if first, ok = t.findFree(n); !ok {
		t.sweep()
		if pages := t.pages(); 2*(t.inUse+int(n)) > pages {
			t.grow(max(2*pages, pages+int(n)))
		}
		if first, ok = t.findFree(n); !ok { // what is free lies too far apart
			t.grow(t.pages() + int(n))
			if first, ok = t.findFree(n); !ok {
				return 0, false
			}
		}
	}
	for page := first; page < first+n; page++ {
		MarkPage(t.used, page)
	}
	t.inUse += int(n)
	t.next = first + n
	return first, true
}

func (t *slotTable) pages() int { return len(t.names) }

// findFree looks for so many neighbouring pages that are free, from the next one on: pages are then taken in turn.
func (t *slotTable) findFree(n uint32) (first uint32, ok bool) {
	run := uint32(0)
	for page := t.next; page < uint32(t.pages()); page++ {
		if t.used[page>>6]>>(page&63)&1 != 0 {
			run = 0
			continue
		}
		if run++; run == n {
			return page + 1 - n, true
		}
	}
	return 0, false
}

// grow makes room for so many pages, as far as they can be numbered.
func (t *slotTable) grow(pages int) {
	pages = min(pages, mostPages)
	for len(t.names) < pages {
		t.names = append(t.names, nil)
	}
	words := (pages + 63) / 64
	for len(t.used) < words {
		t.used, t.marks = append(t.used, 0), append(t.marks, 0)
	}
	t.IDs = uint32(pages) << PageBits
	t.Shared = t.IDs
	for _, h := range t.holders {
		h.GrowIDs(t.IDs)
	}
}

// sweep frees the pages that nobody remembers.
func (t *slotTable) sweep() {
	clear(t.marks)
	for _, h := range t.holders {
		h.MarkPages(t.marks)
	}
	for slot, taken := range t.taken {
		if !taken {
			continue
		}
		t.mark(t.private[slot])
		for _, s := range t.rows[slot] {
			t.mark(idRange{s.Start, s.Start + s.Len})
		}
	}
	t.mark(t.known)
	t.mark(t.own)
	t.inUse, t.next = 0, 0
	for page := range t.names {
		bit := uint64(1) << (page & 63)
		switch {
		case t.marks[page>>6]&bit != 0:
			t.inUse++
		case t.names[page] != nil:
			t.forget(page)
		}
	}
	t.used, t.marks = t.marks, t.used
}

func (t *slotTable) mark(r idRange) {
	if r.from == r.to {
		return
	}
	for page := r.from >> PageBits; page <= (r.to-1)>>PageBits; page++ {
		MarkPage(t.marks, page)
	}
}

// forget forgets the names of the known blocks of a page.
func (t *slotTable) forget(page int) {
	for i, name := range t.names[page].chained {
		if id, ok := t.byName[name]; ok && id == uint32(page)<<PageBits+uint32(i) {
			delete(t.byName, name)
		}
	}
	t.names[page] = nil
}
