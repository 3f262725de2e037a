// Package tiers simulates the memory below that of GPUs in which a deployment keeps KV blocks: host memory of each worker
// (G2), a disk of each node (G3), an object store of the whole deployment (G4), and the links between them.
//
// A block is named by its sequence id, as in package kvcache. Read config.go for what users say, hierarchy.go for what
// an engine and a runtime see, offload.go for the way down and load.go for the way up, store.go for one tier and link.go
// for how transfers share one link.
package tiers

import (
	"math"

	"github.com/servegrid/servegrid/simcore/metrics"
)

// The tiers, as they are numbered in figures. The first one is the GPUs' own memory.
const (
	device = iota
	host
	disk
	object
	absent
)

// The kinds of links, in the order of [Config.links].
const (
	deviceToHost = iota
	hostToDevice
	hostToDisk
	diskToHost
	hostToObject
	objectToHost
	linkKinds

	// A worker has the first two, a node the others.
	linksOfWorker = 2
	linksOfNode   = linkKinds - linksOfWorker
)

// Hierarchy is the lower tiers of all workers of a deployment. Times are simulated ms and never go back.
type Hierarchy struct {
	cfg            Config
	blockBytes     float64
	blockTokens    int
	workersPerNode int
	// exclusive says that blocks are copied down as they leave the GPU, so that host memory need not have those that come
	// back. Otherwise they were copied when their request was complete, and host memory keeps them.
	exclusive bool
	endless   bool

	ids       uint32
	hosts     []*store // by worker
	node      []int32  // of each worker
	disks     []*store // by node; nil when there are none
	object    *store   // nil when there is none
	links     []link
	places    []linkPlace
	workerAt  []int32 // the first link of each worker, which are in a row, nodeAt that of each node
	nodeAt    []int32
	onNode    []int    // workers of each node
	free      []int    // numbers of workers that are gone
	retired   []*store // host memory of those
	nodeLimit int      // how many blocks may go down at once on a link of a node
	due       []float64
	ways      []way   // of each link, for those that go down
	next      float64 // the least of due
	latest    float64 // when anything was asked or told last

	transfers      []transfer
	spareTransfers []int32
	loads          []load
	spareLoads     []int32
	underWay       int // loads
	loaded, taken  []Loaded
	found          []piece // what Find found
	choices        []Choice

	lookedUpTokens int64
	hitTokens      [absent]int64 // by tier
	waits          metrics.Values
	waited         int64
}

// Deployment is what a hierarchy knows of the workers above it.
type Deployment struct {
	// Workers is their number.
	Workers int
	// BlockTokens is the number of tokens in a KV block, BytesPerToken the size of a token's KV cache on one GPU.
	BlockTokens, BytesPerToken int
	// IDs is the number of sequence ids: all are below it.
	IDs uint32
	// Endless says that requests come without end, so that there is no report and nothing is kept for one.
	Endless bool
}

// transfer is some blocks on a link.
type transfer struct {
	link   int32
	blocks []uint32
	load   int32 // what it is a part of, or none
}

// none is the load of a transfer that nobody waits for.
const none = -1

// New returns empty tiers for a valid configuration that has any.
func New(cfg Config, d Deployment) *Hierarchy {
	h := &Hierarchy{
		cfg:            cfg,
		blockBytes:     float64(d.BlockTokens) * float64(d.BytesPerToken),
		blockTokens:    d.BlockTokens,
		workersPerNode: cfg.WorkersPerNode,
		exclusive:      cfg.OffloadPolicy == OffloadOnEvict,
		next:           math.Inf(1),
		endless:        d.Endless,
	}
	if h.workersPerNode == 0 {
		h.workersPerNode = d.Workers
	}
	h.ids, h.nodeLimit = d.IDs, cfg.NumG2Blocks*min(h.workersPerNode, d.Workers)
	for w := range d.Workers {
		h.addWorker(w / h.workersPerNode)
	}
	for range (d.Workers + h.workersPerNode - 1) / h.workersPerNode {
		h.addNode()
	}
	for _, node := range h.node {
		h.onNode[node]++
	}
	if cfg.EnableG4Storage {
		h.object = newStore(cfg.NumG4Blocks, d.IDs)
	}
	return h
}

// linkPlace says which link one is.
type linkPlace struct {
	kind  int8
	owner int32 // a worker or a node
}

// addWorker adds a worker of a node, with empty host memory.
func (h *Hierarchy) addWorker(node int) {
	h.workerAt = append(h.workerAt, h.addLinks(0, linksOfWorker, len(h.hosts), h.cfg.NumG2Blocks))
	h.hosts = append(h.hosts, newStore(h.cfg.NumG2Blocks, h.ids))
	h.node = append(h.node, int32(node))
}

// addNode adds a node without workers, with an empty disk.
func (h *Hierarchy) addNode() {
	if h.cfg.NumG3Blocks > 0 {
		h.disks = append(h.disks, newStore(h.cfg.NumG3Blocks, h.ids))
	}
	h.nodeAt = append(h.nodeAt, h.addLinks(linksOfWorker, linkKinds, len(h.nodeAt), h.nodeLimit))
	h.onNode = append(h.onNode, 0)
}

// addLinks adds kinds of links of a worker or node, on which so many blocks may be under way, and returns the place of the
// first one.
func (h *Hierarchy) addLinks(from, to, owner, limit int) int32 {
	first := int32(len(h.links))
	for i, k := range h.cfg.links()[from:to] {
		h.links = append(h.links, link{rate: k.bandwidth * 1e6, latencyMs: k.latencyMs, now: h.latest}) // GB/s to bytes/ms
		h.places = append(h.places, linkPlace{int8(from + i), int32(owner)})
		h.due = append(h.due, math.Inf(1))
		h.ways = append(h.ways, way{limit: limit})
	}
	return first
}

// Join adds a worker whose host memory is empty, on the first node that has room, and returns its number. A number is used
// again when nothing is on its way any more to or from the worker that had it.
func (h *Hierarchy) Join(now float64) (worker int) {
	h.advance(now)
	node := 0
	for node < len(h.onNode) && h.cfg.WorkersPerNode > 0 && h.onNode[node] >= h.workersPerNode {
		node++
	}
	if node == len(h.onNode) {
		h.addNode()
	}
	h.onNode[node]++
	for i, w := range h.free {
		if h.atRest(w) {
			h.free = append(h.free[:i], h.free[i+1:]...)
			h.hosts[w], h.node[w] = newStore(h.cfg.NumG2Blocks, h.ids), int32(node)
			h.hosts[w].since, h.hosts[w].born = now, now
			return w
		}
	}
	h.addWorker(node)
	worker = len(h.hosts) - 1
	h.hosts[worker].since, h.hosts[worker].born = now, now
	return worker
}

// Leave takes away a worker without requests, with its host memory. What is on its way there is lost.
func (h *Hierarchy) Leave(worker int, now float64) {
	h.advance(now)
	gone := h.hosts[worker]
	gone.settle(now)
	if !h.endless {
		h.retired = append(h.retired, gone)
	}
	rest := newStore(h.cfg.NumG2Blocks, h.ids) // for what still comes
	rest.since, rest.born, rest.died = now, now, now
	h.hosts[worker] = rest
	h.onNode[h.node[worker]]--
	h.free = append(h.free, worker)
}

// atRest reports whether nothing is on the links of a worker.
func (h *Hierarchy) atRest(worker int) bool {
	for _, due := range h.due[h.workerAt[worker] : h.workerAt[worker]+linksOfWorker] {
		if !math.IsInf(due, 1) {
			return false
		}
	}
	return true
}

// nodeOf is the node of a worker.
func (h *Hierarchy) nodeOf(worker int) int { return int(h.node[worker]) }

// linkOf is the place of a worker's link of some kind, which it may share with the others of its node.
func (h *Hierarchy) linkOf(kind, worker int) int32 {
	if kind < linksOfWorker {
		return h.workerAt[worker] + int32(kind)
	}
	return h.nodeLink(kind, h.nodeOf(worker))
}

func (h *Hierarchy) nodeLink(kind, node int) int32 {
	return h.nodeAt[node] + int32(kind-linksOfWorker)
}

// kindOf returns the kind of a link, and its worker or node.
func (h *Hierarchy) kindOf(place int32) (kind, owner int) {
	p := h.places[place]
	return int(p.kind), int(p.owner)
}

// NextWake returns when something may happen that a request waits for; infinity when none waits.
func (h *Hierarchy) NextWake() float64 {
	switch {
	case h == nil || h.underWay == 0 && len(h.loaded) == 0:
		return math.Inf(1)
	case len(h.loaded) > 0:
		return h.loaded[0].AtMs
	}
	return h.next
}

// Loaded says that all that a request loads is there.
type Loaded struct {
	Worker  int
	Request int32
	AtMs    float64
}

// TakeLoaded returns the requests that have got all that they load by now, in the order in which that happened. The
// slice is valid until time passes.
func (h *Hierarchy) TakeLoaded(now float64) []Loaded {
	if h == nil {
		return nil
	}
	h.advance(now)
	h.loaded, h.taken = h.taken[:0], h.loaded
	return h.taken
}

// advance lets transfers arrive that are due by now, in order of time.
func (h *Hierarchy) advance(now float64) {
	h.latest = max(h.latest, now)
	for h.next <= now {
		at, place := h.next, h.soonest()
		for {
			a, ok := h.links[place].take(at)
			if !ok {
				break
			}
			h.arrived(a.transfer, a.at)
		}
		h.due[place] = h.links[place].next()
		h.next = h.due[h.soonest()]
	}
}

// soonest returns the first link of those on which something arrives next.
func (h *Hierarchy) soonest() int {
	best := 0
	for i, at := range h.due {
		if at < h.due[best] {
			best = i
		}
	}
	return best
}

// newTransfer returns a transfer without blocks yet, as a part of a load or of none.
func (h *Hierarchy) newTransfer(link, load int32) int32 {
	id := int32(len(h.transfers))
	if n := len(h.spareTransfers); n > 0 {
		id = h.spareTransfers[n-1]
		h.spareTransfers = h.spareTransfers[:n-1]
	} else {
		h.transfers = append(h.transfers, transfer{blocks: make([]uint32, 0, min(h.cfg.OffloadBatchSize, 64))})
	}
	t := &h.transfers[id]
	t.link, t.load, t.blocks = link, load, t.blocks[:0]
	return id
}

// send puts a transfer on its link.
func (h *Hierarchy) send(id int32, now float64) {
	place := h.transfers[id].link
	l := &h.links[place]
	l.start(now, float64(len(h.transfers[id].blocks))*h.blockBytes, id)
	if l.rate == 0 && l.latencyMs == 0 {
		l.take(now)
		h.arrived(id, now)
		return
	}
	h.due[place] = l.next()
	h.next = min(h.next, h.due[place])
}

// sendOn puts the blocks of a transfer that has arrived on another link.
func (h *Hierarchy) sendOn(id, link int32, now float64) {
	next := h.newTransfer(link, h.transfers[id].load)
	t := &h.transfers[next]
	t.blocks = append(t.blocks, h.transfers[id].blocks...)
	h.send(next, now)
}

// arrived does what follows from the arrival of a transfer.
func (h *Hierarchy) arrived(id int32, now float64) {
	t := h.transfers[id]
	if t.load == none {
		h.ways[t.link].blocks -= len(t.blocks)
	}
	switch kind, owner := h.kindOf(t.link); {
	case kind == deviceToHost:
		h.store(host, owner, t.blocks, now)
	case kind == hostToDisk:
		h.store(disk, owner, t.blocks, now)
	case kind == hostToObject:
		h.store(object, 0, t.blocks, now)
	case kind == hostToDevice:
		h.partLoaded(t.load, now)
	default:
		h.staged(id, now)
	}
	h.spareTransfers = append(h.spareTransfers, id)
}
