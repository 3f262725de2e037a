package kvcache

import (
	"iter"
	"math/bits"
	"slices"
)

// Index says which blocks each of several workers holds, as a router sees them. The blocks that a worker holds of any
// prompt are a prefix of it, as in a [Cache], so that all workers' overlaps with a prompt are found by bisection: it
// costs about as much as there are different overlaps, however many workers and blocks there are.
type Index struct {
	workers, words int
	ids            uint32
	directory      []int32 // page number + 1 by id >> pageBits; 0 where there is none
	// slabs hold the pages, slabSize in each. A page has words x pageSize sets: those of 64 workers lie together, one
	// for each id.
	slabs      [][]uint64
	resident   []int32 // of each page, how many blocks of all workers
	sparePages []int32
	sets       []uint64 // memory for the sets of a bisection, words for each depth
}

// NewIndex returns an empty index for sequence ids below ids, which several prompts may have. What workers say about
// ids from there on, which one request alone has, is passed over.
func NewIndex(workers int, ids uint32) *Index {
	return &Index{
		workers:   workers,
		words:     (workers + 63) / 64,
		ids:       ids,
		directory: make([]int32, int(ids>>pageBits)+1),
		sets:      make([]uint64, maxDepth*((workers+63)/64)),
	}
}

// Grow makes room for so many workers. Those that are there keep their numbers and blocks.
func (x *Index) Grow(workers int) {
	if workers <= x.workers {
		return
	}
	x.workers = workers
	if workers <= 64*x.words {
		return
	}
	words := max((workers+63)/64, 2*x.words)
	for i, slab := range x.slabs {
		wider := make([]uint64, slabSize*words*pageSize)
		for page := range slabSize {
			copy(wider[page*words*pageSize:], slab[page*x.words*pageSize:(page+1)*x.words*pageSize])
		}
		x.slabs[i] = wider
	}
	x.words = words
	x.sets = make([]uint64, maxDepth*words)
}

// Clear notes that a worker holds nothing.
func (x *Index) Clear(worker int) {
	for entry, slot := range x.directory {
		if slot > 0 {
			x.removeSome(worker, uint32(entry), ^uint64(0))
		}
	}
}

// Store notes that a worker holds the n blocks from start on.
func (x *Index) Store(worker int, start uint32, n int) {
	if start >= x.ids {
		return
	}
	word, bit := worker/64, uint(worker%64)
	for n > 0 {
		slot := x.pageFor(start)
		at := int(start & pageMask)
		run := min(pageSize-at, n)
		added := int32(0)
		sets := x.page(slot, word)[at : at+run]
		for i, set := range sets {
			added += int32(^set >> bit & 1)
			sets[i] = set | 1<<bit
		}
		x.resident[slot] += added
		start += uint32(run)
		n -= run
	}
}

// Remove notes that a worker no longer holds the n blocks from start on.
func (x *Index) Remove(worker int, start uint32, n int) {
	if start >= x.ids {
		return
	}
	for n > 0 {
		at := int(start & pageMask)
		run := min(pageSize-at, n)
		x.removeSome(worker, start>>pageBits, ^uint64(0)>>(64-run)<<at)
		start += uint32(run)
		n -= run
	}
}

// removeSome notes that a worker no longer holds some blocks among the pageSize that a slot of the directory stands for,
// one for each bit.
func (x *Index) removeSome(worker int, entry uint32, blocks uint64) {
	if entry<<pageBits >= x.ids {
		return
	}
	slot := x.directory[entry] - 1
	if slot < 0 {
		return
	}
	bit := uint(worker % 64)
	removed := int32(0)
	sets := x.page(slot, worker/64)
	for ; blocks != 0; blocks &= blocks - 1 {
		set := &sets[bits.TrailingZeros64(blocks)]
		removed += int32(*set >> bit & 1)
		*set &^= 1 << bit
	}
	if x.resident[slot] -= removed; x.resident[slot] == 0 && removed > 0 {
		x.sparePages = append(x.sparePages, slot)
		x.directory[entry] = 0
	}
}

// Resident is how many blocks all workers hold together.
func (x *Index) Resident() int {
	sum := 0
	for _, n := range x.resident {
		sum += int(n)
	}
	return sum
}

// Overlaps stores, for each worker, how many of the first n blocks of a sequence it holds.
func (x *Index) Overlaps(s Sequence, n int, into []int32) {
	clear(into)
	n = min(n, int(s.Known))
	if n <= 0 {
		return
	}
	low, high := x.setsAt(0), x.setsAt(1)
	for i := range low {
		low[i] = ^uint64(0)
	}
	done := 0
	for _, segment := range s.Segments {
		length := min(int(segment.Len), n-done)
		if length <= 0 {
			break
		}
		b := bisection{x, segment.Start, int32(done), into}
		if x.intersect(low, segment.Start, high); !slices.Equal(low, high) {
			b.drop(low, high, int32(done))
			copy(low, high)
		}
		if isEmpty(low) {
			return
		}
		if x.intersect(low, segment.Start+uint32(length-1), high); !slices.Equal(low, high) {
			b.between(1, low, high, 0, length-1)
			copy(low, high)
		}
		done += length
	}
	b := bisection{into: into}
	b.drop(low, nil, int32(done))
}

// setsAt is memory for a set at a depth of the bisection.
func (x *Index) setsAt(depth int) []uint64 { return x.sets[depth*x.words : (depth+1)*x.words] }

// maxDepth is the two sets at the ends of a segment, and one for each halving of up to 2^32 blocks.
const maxDepth = 2 + 32

func isEmpty(set []uint64) bool {
	return !slices.ContainsFunc(set, func(word uint64) bool { return word != 0 })
}

// slabSize is how many pages are allocated at once: they never move.
const slabSize = 32

// page returns the sets of the ids of a page, of 64 workers.
func (x *Index) page(slot int32, word int) []uint64 {
	at := (int(slot)%slabSize*x.words + word) * pageSize
	return x.slabs[slot/slabSize][at : at+pageSize]
}

// pageFor returns the page of an id, made if there is none.
func (x *Index) pageFor(id uint32) int32 {
	entry := &x.directory[id>>pageBits]
	if *entry == 0 {
		if n := len(x.sparePages); n > 0 {
			*entry = x.sparePages[n-1] + 1
			x.sparePages = x.sparePages[:n-1]
		} else {
			if len(x.resident) == len(x.slabs)*slabSize {
				x.slabs = append(x.slabs, make([]uint64, slabSize*x.words*pageSize))
			}
			x.resident = append(x.resident, 0)
			*entry = int32(len(x.resident))
		}
	}
	return *entry - 1
}

// intersect stores which workers of a set hold a block.
func (x *Index) intersect(set []uint64, id uint32, into []uint64) {
	slot := x.directory[id>>pageBits] - 1
	if slot < 0 {
		clear(into)
		return
	}
	slab, at := x.slabs[slot/slabSize], int(slot)%slabSize*x.words*pageSize+int(id&pageMask)
	for i := range into {
		into[i] = set[i] & slab[at+i*pageSize]
	}
}

// bisection finds where in one segment the workers of a set drop out.
type bisection struct {
	x     *Index
	start uint32 // the first id of the segment
	done  int32  // the blocks before it
	into  []int32
}

// between looks between two blocks of the segment, whose holders are known and differ.
func (b *bisection) between(depth int, low, high []uint64, lowAt, highAt int) {
	if highAt == lowAt+1 {
		b.drop(low, high, b.done+int32(highAt))
		return
	}
	middleAt := (lowAt + highAt) / 2
	middle := b.x.setsAt(depth + 1)
	b.x.intersect(low, b.start+uint32(middleAt), middle)
	if !slices.Equal(low, middle) {
		b.between(depth+1, low, middle, lowAt, middleAt)
	}
	if !slices.Equal(middle, high) {
		b.between(depth+1, middle, high, middleAt, highAt)
	}
}

// drop gives the workers that are in one set and not in the other, which is a part of it, their overlap.
func (b *bisection) drop(from, to []uint64, overlap int32) {
	for i, set := range from {
		if to != nil {
			set &^= to[i]
		}
		for ; set != 0; set &= set - 1 {
			if w := i*64 + bits.TrailingZeros64(set); w < len(b.into) {
				b.into[w] = overlap
			}
		}
	}
}

// IDs goes through the ids of the blocks of a sequence from one (inclusive) to another (exclusive).
func (s Sequence) IDs(from, to int) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		done := 0
		for _, segment := range s.Segments {
			length := int(segment.Len)
			for i := max(0, from-done); i < min(length, to-done); i++ {
				if !yield(segment.Start + uint32(i)) {
					return
				}
			}
			done += length
		}
		for i := max(0, from-done); i < to-done; i++ {
			if !yield(s.Private + uint32(i)) {
				return
			}
		}
	}
}

// At returns the id of the i-th block of a sequence.
func (s Sequence) At(i int) uint32 {
	for _, segment := range s.Segments {
		if i < int(segment.Len) {
			return segment.Start + uint32(i)
		}
		i -= int(segment.Len)
	}
	return s.Private + uint32(i)
}
