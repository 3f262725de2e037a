package kvcache

import "slices"

// copies are the slots of a cache that hold the content of a block which another slot, the one that the pages know, has
// already. Those of one block form a ring in the order in which they were taken.
type copies struct {
	oldest map[uint32]int32 // place in slots of the oldest copy, by block
	slots  []blockCopy
	spare  []int32 // places in slots that are not in use
	stamps []uint32
}

// blockCopy is one further slot with the content of a block.
type blockCopy struct {
	holder       int32  // the request that holds it, nobody, or unused
	stamp        uint32 // number of the release that put it in the eviction queue
	older, newer int32  // its neighbours in the ring
}

const (
	nobody = -1
	unused = -2
)

func (c *copies) reset() {
	clear(c.oldest)
	c.slots, c.spare = c.slots[:0], c.spare[:0]
}

// add gives a request a further copy of a block.
func (c *copies) add(id uint32, holder int32) {
	if c.oldest == nil {
		c.oldest = map[uint32]int32{}
	}
	at := int32(len(c.slots))
	if n := len(c.spare); n > 0 {
		at, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		c.slots = append(c.slots, blockCopy{})
	}
	first, ok := c.oldest[id]
	if !ok {
		c.oldest[id] = at
		c.slots[at] = blockCopy{holder: holder, older: at, newer: at}
		return
	}
	last := c.slots[first].older
	c.slots[at] = blockCopy{holder: holder, older: last, newer: first}
	c.slots[last].newer, c.slots[first].older = at, at
}

// release lets go of the copy of a block that a request holds, in the release of the given number. It reports whether
// there is one.
func (c *copies) release(id uint32, holder int32, stamp uint32) bool {
	first := c.oldest[id]
	for at := c.slots[first].older; ; at = c.slots[at].older { // what is held is rather new
		if s := &c.slots[at]; s.holder == holder {
			s.holder, s.stamp = nobody, stamp
			return true
		}
		if at == first {
			return false
		}
	}
}

// released returns the place of the copy of a block that was let go of by the release of the given number.
func (c *copies) released(id uint32, stamp uint32) (at int32, ok bool) {
	first := c.oldest[id]
	for at := first; ; {
		if s := &c.slots[at]; s.holder == nobody && s.stamp == stamp {
			return at, true
		}
		if at = c.slots[at].newer; at == first {
			return 0, false
		}
	}
}

// remove takes out the copy of a block at the given place, and reports whether it was the last one.
func (c *copies) remove(id uint32, at int32) (last bool) {
	s := c.slots[at]
	c.slots[at].holder = unused
	c.spare = append(c.spare, at)
	if s.newer == at {
		delete(c.oldest, id)
		return true
	}
	c.slots[s.older].newer, c.slots[s.newer].older = s.newer, s.older
	if c.oldest[id] == at {
		c.oldest[id] = s.newer
	}
	return false
}

// releases returns the numbers of the releases that let go of copies which wait to be evicted, in order. They are valid
// until the next call.
func (c *copies) releases() []uint32 {
	c.stamps = c.stamps[:0]
	for _, s := range c.slots {
		if s.holder == nobody {
			c.stamps = append(c.stamps, s.stamp)
		}
	}
	slices.Sort(c.stamps)
	return c.stamps
}
