package router

import (
	"math/bits"

	"github.com/servegrid/servegrid/simcore/kvcache"
)

// activeBlocks counts, for each worker, the distinct full prompt blocks of its unfinished requests. Those of any
// prompt are a prefix of it, so an index finds all workers' at once.
type activeBlocks struct {
	index *kvcache.Index
	total []int64 // by worker
	users userCounts
}

// newActiveBlocks returns an account for blocks of which those below the given id may be of several requests.
func newActiveBlocks(workers int, shared uint32) *activeBlocks {
	return &activeBlocks{index: kvcache.NewIndex(workers, shared), total: make([]int64, workers)}
}

// grow makes room for so many workers.
func (a *activeBlocks) grow(workers int) {
	a.index.Grow(workers)
	a.total = grown(a.total, workers)
}

// overlaps stores, for each worker, how many of the first n blocks of a sequence are active.
func (a *activeBlocks) overlaps(s kvcache.Sequence, n int, into []int32) {
	a.index.Overlaps(s, n, into)
}

// add makes the first n blocks of a sequence active on a worker, where the first ones are already.
func (a *activeBlocks) add(worker int32, s kvcache.Sequence, n, already int) {
	a.total[worker] += int64(n - already)
	at := 0
	for _, segment := range s.Segments {
		length := min(int(segment.Len), n-at)
		if length <= 0 {
			return
		}
		a.users.add(worker, segment.Start, length, 1)
		if fresh := min(length, at+length-already); fresh > 0 {
			a.index.Store(int(worker), segment.Start+uint32(length-fresh), fresh)
		}
		at += length
	}
}

// remove takes the first n blocks of a sequence off a worker; those of other requests stay.
func (a *activeBlocks) remove(worker int32, s kvcache.Sequence, n int) {
	at := 0
	for _, segment := range s.Segments {
		length := min(int(segment.Len), n-at)
		if length <= 0 {
			break
		}
		if gone := a.users.add(worker, segment.Start, length, -1); gone > 0 {
			a.index.Remove(int(worker), segment.Start+uint32(length-gone), gone)
			a.total[worker] -= int64(gone)
		}
		at += length
	}
	a.total[worker] -= int64(n - at)
}

const (
	groupBits = 6
	groupSize = 1 << groupBits
	groupMask = groupSize - 1
)

// userCounts says how many unfinished requests of a worker have a block. It keeps the counts of groupSize neighbouring
// blocks together, in a hash table by worker and group: there are far more of those than are ever in use.
type userCounts struct {
	table  []userEntry // open addressing, linear probing; at most half full
	used   int
	groups []userGroup
	spare  []int32
}

// userEntry is a key of the table and its group plus 1; 0 means empty.
type userEntry struct {
	key   uint64
	group int32
}

// userGroup holds the counts of a group, and how many of them are not 0.
type userGroup struct {
	counts [groupSize]int32
	used   int32
}

// add changes the counts of n blocks by 1 or -1, and returns how many are 0 then. Those are the last ones, because
// requests have blocks from the front.
func (u *userCounts) add(worker int32, start uint32, n int, by int32) (unused int) {
	for n > 0 {
		at := int(start & groupMask)
		run := min(groupSize-at, n)
		place := u.find(uint64(worker)<<32 | uint64(start>>groupBits))
		group := &u.groups[u.table[place].group-1]
		for i := range group.counts[at : at+run] {
			count := &group.counts[at+i]
			if *count == 0 {
				group.used++
			}
			if *count += by; *count == 0 {
				group.used--
				unused++
			}
		}
		if group.used == 0 {
			u.drop(place)
		}
		start += uint32(run)
		n -= run
	}
	return unused
}

// find returns the place of a key in the table; a new key gets a group of zeros.
func (u *userCounts) find(key uint64) int {
	if 2*u.used >= len(u.table) {
		u.grow()
	}
	place := u.home(key)
	for ; u.table[place].group != 0; place = (place + 1) & (len(u.table) - 1) {
		if u.table[place].key == key {
			return place
		}
	}
	u.used++
	group := int32(len(u.groups))
	if n := len(u.spare); n > 0 {
		group = u.spare[n-1]
		u.spare = u.spare[:n-1]
	} else {
		u.groups = append(u.groups, userGroup{})
	}
	u.table[place] = userEntry{key, group + 1}
	return place
}

// drop removes an entry and moves those behind it that would no longer be found.
func (u *userCounts) drop(place int) {
	u.spare = append(u.spare, u.table[place].group-1)
	u.used--
	mask := len(u.table) - 1
	for next := (place + 1) & mask; u.table[next].group != 0; next = (next + 1) & mask {
		home := u.home(u.table[next].key)
		if (next-home)&mask >= (next-place)&mask {
			u.table[place] = u.table[next]
			place = next
		}
	}
	u.table[place] = userEntry{}
}

// home is where a key belongs: the high bits of a product with 2^64 over the golden ratio (Knuth, The Art of Computer
// Programming 3, 6.4).
func (u *userCounts) home(key uint64) int {
	return int(key * 0x9e3779b97f4a7c15 >> (64 - bits.TrailingZeros(uint(len(u.table)))))
}

func (u *userCounts) grow() {
	old := u.table
	u.table = make([]userEntry, max(64, 2*len(old)))
	for _, e := range old {
		if e.group == 0 {
			continue
		}
		place := u.home(e.key)
		for u.table[place].group != 0 {
			place = (place + 1) & (len(u.table) - 1)
		}
		u.table[place] = e
	}
}
