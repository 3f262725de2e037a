package tiers

import "github.com/servegrid/servegrid/simcore/kvcache"

// piece is neighbouring blocks of a prompt in the same tier.
type piece struct {
	tier   int
	blocks []uint32
}

// load is what one request loads.
type load struct {
	worker  int
	request int32
	parts   int // transfers to GPU memory that have not arrived
	blocks  [absent]int32
	startMs float64
}

// Choice is a part of a prompt that may be loaded.
type Choice struct {
	// Blocks is its length, from the first one that is looked for.
	Blocks int
	// PredictedMs is how long loading it would take if as many transfers as now shared the links all the time.
	PredictedMs float64
}

// Find looks for the blocks of a sequence from one (inclusive) to another (exclusive) in the tiers below a worker, each
// in the fastest one that has it, up to the first that none has. It returns how many there are, and, before that, how
// many up to each change of tier: parts of a prompt that are worth loading even where the rest is too slow. The slice
// is valid until the next call.
func (h *Hierarchy) Find(worker int, now float64, s kvcache.Sequence, from, to int) []Choice {
	h.advance(now)
	h.found, h.choices = h.found[:0], h.choices[:0]
	var counts [absent]int
	n := 0
	for id := range s.IDs(from, to) {
		tier := h.tierOf(worker, id)
		if tier == absent {
			break
		}
		if last := len(h.found) - 1; last < 0 || h.found[last].tier != tier {
			h.choose(worker, n, counts)
			h.addPiece(tier)
		}
		last := &h.found[len(h.found)-1]
		last.blocks = append(last.blocks, id)
		counts[tier]++
		n++
	}
	h.choose(worker, n, counts)
	return h.choices
}

// addPiece begins another piece, in the memory of one that is no longer needed.
func (h *Hierarchy) addPiece(tier int) {
	if n := len(h.found); n < cap(h.found) {
		h.found = h.found[:n+1]
		h.found[n].tier, h.found[n].blocks = tier, h.found[n].blocks[:0]
		return
	}
	h.found = append(h.found, piece{tier: tier})
}

// choose adds a choice, unless there is nothing to load.
func (h *Hierarchy) choose(worker, blocks int, counts [absent]int) {
	if blocks == 0 {
		return
	}
	predict := func(kind, blocks int) float64 {
		if blocks == 0 {
			return 0
		}
		return h.links[h.linkOf(kind, worker)].predict(float64(blocks) * h.blockBytes)
	}
	staging := max(predict(diskToHost, counts[disk]), predict(objectToHost, counts[object]))
	h.choices = append(h.choices, Choice{blocks, staging + predict(hostToDevice, blocks)})
}

// tierOf returns the fastest tier below a worker that has a block.
func (h *Hierarchy) tierOf(worker int, id uint32) int {
	switch {
	case h.hosts[worker].has(id):
		return host
	case h.disks != nil && h.disks[h.nodeOf(worker)].has(id):
		return disk
	case h.object != nil && h.object.has(id):
		return object
	}
	return absent
}

// Load begins to load the first blocks of those that the latest Find has found, for a request of the same worker. It
// reports whether they are there at once; otherwise [Hierarchy.TakeLoaded] tells when.
func (h *Hierarchy) Load(worker int, request int32, now float64, blocks int) (atOnce bool) {
	id := h.newLoad()
	h.loads[id] = load{worker: worker, request: request, parts: 1, startMs: now}
	h.underWay++
	firstLink := [absent]int{host: hostToDevice, disk: diskToHost, object: objectToHost}
	for tier := host; tier < absent; tier++ {
		part := h.newTransfer(h.linkOf(firstLink[tier], worker), id)
		h.fillPart(part, tier, blocks)
		if n := len(h.transfers[part].blocks); n > 0 {
			h.loads[id].parts++
			h.loads[id].blocks[tier] = int32(n)
			h.use(worker, tier, h.transfers[part].blocks)
			h.send(part, now)
		} else {
			h.spareTransfers = append(h.spareTransfers, part)
		}
	}
	if h.loads[id].parts == 1 {
		h.finishLoad(id)
		return true
	}
	h.loads[id].parts--
	return false
}

// fillPart gives a transfer those of the first blocks found that a tier has.
func (h *Hierarchy) fillPart(id int32, tier, blocks int) {
	t := &h.transfers[id]
	for _, p := range h.found {
		n := min(blocks, len(p.blocks))
		if p.tier == tier {
			t.blocks = append(t.blocks, p.blocks[:n]...)
		}
		blocks -= n
	}
}

// use notes that blocks of a tier are loaded, the last ones of a prompt being used less recently. Host memory that need not
// have what the GPU has gives up those first.
func (h *Hierarchy) use(worker, tier int, blocks []uint32) {
	owner := worker
	if tier == disk {
		owner = h.nodeOf(worker)
	}
	s := h.storeOf(tier, owner)
	for i := len(blocks) - 1; i >= 0; i-- {
		if tier == host && h.exclusive {
			s.cool(blocks[i])
		} else {
			s.touch(blocks[i])
		}
	}
}

func (h *Hierarchy) newLoad() int32 {
	if n := len(h.spareLoads); n > 0 {
		id := h.spareLoads[n-1]
		h.spareLoads = h.spareLoads[:n-1]
		return id
	}
	h.loads = append(h.loads, load{})
	return int32(len(h.loads) - 1)
}

// staged takes blocks that have come to host memory on to the GPU. Where host memory need not have what the GPU has and is
// full, they only pass through.
func (h *Hierarchy) staged(id int32, now float64) {
	worker := h.loads[h.transfers[id].load].worker
	blocks := h.transfers[id].blocks
	if h.exclusive {
		for _, block := range blocks {
			h.hosts[worker].putSpare(block, now)
		}
	} else {
		h.store(host, worker, blocks, now)
	}
	h.sendOn(id, h.linkOf(hostToDevice, worker), now)
}

// partLoaded notes that a part of a load has arrived, and the request when it was the last one.
func (h *Hierarchy) partLoaded(id int32, now float64) {
	l := &h.loads[id]
	if l.parts--; l.parts > 0 {
		return
	}
	h.loaded = append(h.loaded, Loaded{Worker: l.worker, Request: l.request, AtMs: now})
	if h.waited++; !h.endless {
		h.waits.Add(now - l.startMs)
	}
	h.finishLoad(id)
}

// finishLoad counts what a request has loaded.
func (h *Hierarchy) finishLoad(id int32) {
	for tier, n := range h.loads[id].blocks {
		h.hitTokens[tier] += int64(n) * int64(h.blockTokens)
	}
	h.underWay--
	h.spareLoads = append(h.spareLoads, id)
}

// Overlap returns how many blocks of a sequence from one (inclusive) to another (exclusive) the tiers below a worker
// have, up to the first that none has: in host memory and below it. It is what a router sees.
func (h *Hierarchy) Overlap(worker int, now float64, s kvcache.Sequence, from, to int) (inHost, below int) {
	h.advance(now)
	for id := range s.IDs(from, to) {
		switch h.tierOf(worker, id) {
		case host:
			inHost++
		case absent:
			return inHost, below
		default:
			below++
		}
	}
	return inHost, below
}
