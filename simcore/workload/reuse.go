package workload

import (
	"math"
	"slices"
)

// ReuseStatistics says which part of the prompts an earlier prompt already had. Only full blocks of
// [Workload.BlockSize] tokens count, and a block is a hit only when all blocks before it in its prompt are.
// Requests are taken in order of start, as if service took the time that the trace states, if it does, and none else.
type ReuseStatistics struct {
	// BlockSize is the number of tokens in a block.
	BlockSize int `json:"block_size"`
	// Blocks is the number of full prompt blocks; UniqueBlocks counts equal ones once.
	Blocks       int `json:"blocks"`
	UniqueBlocks int `json:"unique_blocks"`
	// Ideal is the share of the blocks that a cache without limit would hit.
	Ideal float64 `json:"ideal"`
	// LRU holds the hit ratio of caches of limited size, in the order asked for.
	LRU []CacheReuse `json:"lru,omitempty"`
}

// CacheReuse is the share of prompt blocks that hit in a cache of a given size that evicts the least recently
// used block, the last block of a prompt first.
type CacheReuse struct {
	CacheBlocks int     `json:"cache_blocks"`
	HitRatio    float64 `json:"hit_ratio"`
}

// CacheSizes lists sizes for a curve of hit ratios: perOctave of them from one to the next power of two, from least
// blocks to what holds all of unique blocks.
func CacheSizes(least, unique, perOctave int) []int {
	var sizes []int
	for k := 0; ; k++ {
		size := int(math.Round(float64(max(least, 1)) * math.Exp2(float64(k)/float64(perOctave))))
		if len(sizes) == 0 || size > sizes[len(sizes)-1] {
			sizes = append(sizes, size)
		}
		if size >= unique {
			return sizes
		}
	}
}

// reuseStatistics measures all cache sizes in one pass: a cache of n blocks holds the n blocks used last, so a block
// hits if fewer than n others were used since (Mattson's stack distance). A prompt uses its first block last, so that a
// block is always used later than what follows it, and the blocks of a prompt that hit are its first ones.
func reuseStatistics(w *Workload, cacheBlocks []int) *ReuseStatistics {
	fullBlocks, count := w.fullBlocks()
	r := &ReuseStatistics{BlockSize: w.BlockSize}
	recent := newRecency(count)
	// within[i] counts the hits that need the i-th of the sorted sizes and no smaller one.
	sizes := slices.Clone(cacheBlocks)
	slices.Sort(sizes)
	within := make([]int, len(sizes)+1)
	known := 0
	var nodes []uint32
	for _, request := range startOrder(w) {
		nodes = fullBlocks(nodes[:0], request)
		r.Blocks += len(nodes)
		for _, node := range nodes {
			if distance, ok := recent.distance(node); ok {
				known++
				at, _ := slices.BinarySearch(sizes, distance+1)
				within[at]++
			} else {
				r.UniqueBlocks++
			}
		}
		for _, node := range slices.Backward(nodes) {
			recent.use(node)
		}
	}
	r.Ideal = ratio(known, r.Blocks)
	hits := make(map[int]int, len(sizes))
	sum := 0
	for i, size := range sizes {
		sum += within[i]
		hits[size] = sum
	}
	for _, size := range cacheBlocks {
		r.LRU = append(r.LRU, CacheReuse{CacheBlocks: size, HitRatio: ratio(hits[size], r.Blocks)})
	}
	return r
}

func ratio(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// fullBlocks returns a function that appends the numbers of a request's full prompt blocks, each standing for all before
// it too, and how many numbers there are.
func (w *Workload) fullBlocks() (appendTo func(nodes []uint32, request int) []uint32, count int) {
	segments := func(request int) []Segment { return nil }
	if w.transcripts != nil {
		if table, err := w.Blocks(w.BlockSize, true); err == nil { // else nothing is known of what is shared
			segments, count = table.Segments, int(table.Shared)
		}
	} else {
		c := w.chains()
		segments = func(request int) []Segment { return c.runs[c.runStart[request]:c.runStart[request+1]] }
		count = int(c.nodes)
	}
	return func(nodes []uint32, request int) []uint32 {
		left := uint32(w.Input[request]) / uint32(w.BlockSize)
		for _, run := range segments(request) {
			for k := range min(run.Len, left) {
				nodes = append(nodes, run.Start+k)
			}
			left -= min(run.Len, left)
		}
		return nodes
	}, count
}

// recency orders nodes by their last use. Each use takes the next place of a line; a tree of sums counts how many places
// after a given one are still a node's last. When the line is full the places are numbered anew, so that memory grows
// with the nodes and not with their uses.
type recency struct {
	place []uint32 // of each node's last use, from 1; 0 for none
	nodes []uint32 // the node at each place, as far as it is still its last use
	sums  []uint32 // a Fenwick tree over places
	next  uint32
	used  int // nodes that were used
}

func newRecency(nodes int) *recency {
	places := 2*nodes + 64
	return &recency{place: make([]uint32, nodes), nodes: make([]uint32, places+1), sums: make([]uint32, places+1), next: 1}
}

// distance counts the nodes used since a node's last use; ok is false when it was never used.
func (r *recency) distance(node uint32) (distance int, ok bool) {
	at := r.place[node]
	if at == 0 {
		return 0, false
	}
	upTo := uint32(0)
	for i := at; i > 0; i &= i - 1 {
		upTo += r.sums[i]
	}
	return r.used - int(upTo), true
}

// use makes a node the last one used.
func (r *recency) use(node uint32) {
	if int(r.next) == len(r.sums) {
		r.renumber()
	}
	if at := r.place[node]; at != 0 {
		r.add(at, math.MaxUint32) // takes one away
	} else {
		r.used++
	}
	r.place[node], r.nodes[r.next] = r.next, node
	r.add(r.next, 1)
	r.next++
}

func (r *recency) add(at, change uint32) {
	for i := at; int(i) < len(r.sums); i += i & -i {
		r.sums[i] += change
	}
}

// renumber moves the last uses to the first places, in their order.
func (r *recency) renumber() {
	to := uint32(1)
	for at := uint32(1); at < r.next; at++ {
		if node := r.nodes[at]; r.place[node] == at {
			r.nodes[to], r.place[node] = node, to
			to++
		}
	}
	r.next = to
	clear(r.sums)
	for i := uint32(1); i < to; i++ {
		r.sums[i]++
	}
	for i := 1; i < len(r.sums); i++ {
		if up := i + i&-i; up < len(r.sums) {
			r.sums[up] += r.sums[i]
		}
	}
}
