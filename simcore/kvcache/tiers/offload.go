package tiers

import "github.com/servegrid/servegrid/simcore/kvcache"

// Follow takes in how a worker's GPU memory has changed, where blocks are copied down as they leave it. What is in host
// memory already costs nothing. The room of a copied block may be used at once, as the copy reads a snapshot.
func (h *Hierarchy) Follow(worker int, now float64, changes []kvcache.Change) {
	h.advance(now)
	b := h.belowDevice(worker)
	for _, c := range changes {
		for id := c.Start + c.Len; id > c.Start; id-- {
			if c.Evicted {
				b.add(id-1, now)
			} else {
				h.hosts[worker].cool(id - 1)
			}
		}
	}
	b.end(now)
}

// Offload copies blocks of a worker's GPU memory to its host memory, those first that are used less recently.
func (h *Hierarchy) Offload(worker int, now float64, blocks []uint32) {
	h.advance(now)
	b := h.belowDevice(worker)
	for _, id := range blocks {
		b.add(id, now)
	}
	b.end(now)
}

func (h *Hierarchy) belowDevice(worker int) batches {
	return batches{h: h, to: h.hosts[worker], link: h.linkOf(deviceToHost, worker), id: none}
}

// way is what goes down on a link: how many blocks now, how many at most, as they are read from memory of that size, and
// how many were lost for that.
type way struct {
	blocks, limit int
	dropped       int64
}

// batches copies blocks to a lower tier, several at once.
type batches struct {
	h    *Hierarchy
	to   *store // nil when they are lost
	link int32
	id   int32 // the transfer that is being filled, or none
}

// add copies a block, unless it is on its way to the tier or there already: it then counts as used after those that were
// added before. It is lost when too many are on their way.
func (b *batches) add(block uint32, now float64) {
	if b.to == nil {
		return
	}
	way := &b.h.ways[b.link]
	if b.to.has(block) || b.to.expects(block) || way.blocks >= way.limit {
		b.end(now)
		switch { // that may have changed all of it
		case b.to.touch(block) || b.to.expects(block):
			return
		case way.blocks >= way.limit:
			way.dropped++
			return
		}
	}
	if b.id == none {
		b.id = b.h.newTransfer(b.link, none)
	}
	b.to.expect(block)
	way.blocks++
	t := &b.h.transfers[b.id]
	t.blocks = append(t.blocks, block)
	if len(t.blocks) >= b.h.cfg.OffloadBatchSize {
		b.end(now)
	}
}

// end sends what has been added.
func (b *batches) end(now float64) {
	if b.id != none {
		b.h.send(b.id, now)
		b.id = none
	}
}

// store keeps blocks in a tier, those first that are used less recently. What has to go for them goes to the tier below.
func (h *Hierarchy) store(tier, owner int, blocks []uint32, now float64) {
	s, b := h.storeOf(tier, owner), h.below(tier, owner)
	for _, id := range blocks {
		if victim, evicted := s.put(id, now); evicted {
			b.add(victim, now)
		}
	}
	b.end(now)
}

// storeOf returns a tier's store of a worker or node.
func (h *Hierarchy) storeOf(tier, owner int) *store {
	switch tier {
	case host:
		return h.hosts[owner]
	case disk:
		return h.disks[owner]
	}
	return h.object
}

// below says where blocks go that a tier has no room for: from host memory to disk, or to the object store where there is
// no disk; from disk to the object store. A disk is read for that in the background, so that no request waits the longer.
func (h *Hierarchy) below(tier, owner int) batches {
	b := batches{h: h, to: h.object, id: none}
	switch {
	case tier == host && h.disks != nil:
		b.to, b.link = h.disks[h.nodeOf(owner)], h.linkOf(hostToDisk, owner)
	case tier == host:
		b.link = h.linkOf(hostToObject, owner)
	case tier == disk:
		b.link = h.nodeLink(hostToObject, owner)
	default:
		b.to = nil
	}
	return b
}
