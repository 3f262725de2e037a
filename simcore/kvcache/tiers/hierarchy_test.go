package tiers

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/kvcache"
	"github.com/servegrid/servegrid/simcore/workload"
)

// prompt is a sequence of so many blocks from an id on.
func prompt(first, blocks uint32) kvcache.Sequence {
	return kvcache.Sequence{Segments: []workload.Segment{{Start: first, Len: blocks}}, Known: int32(blocks)}
}

// down lists the blocks of a prompt as a cache evicts them.
func down(first, blocks uint32) []uint32 {
	var out []uint32
	for i := int(blocks) - 1; i >= 0; i-- {
		out = append(out, first+uint32(i))
	}
	return out
}

// enabled is a configuration with host memory; blocks have 1e6 bytes, so that 1 GB/s moves one in a ms.
func enabled(change func(*Config)) Config {
	c := DefaultConfig()
	c.NumG2Blocks = 100
	change(&c)
	return c
}

func newTest(workers int, change func(*Config)) *Hierarchy {
	return New(enabled(change), Deployment{Workers: workers, BlockTokens: 10, BytesPerToken: 100_000, IDs: 10_000})
}

// TestWayDownAndUp follows a prompt by hand through all tiers.
func TestWayDownAndUp(t *testing.T) {
	h := newTest(1, func(c *Config) {
		c.NumG2Blocks, c.NumG3Blocks, c.EnableG4Storage, c.OffloadBatchSize = 4, 4, true, 2
		c.BandwidthG1ToG2, c.BandwidthG2ToG1 = 2, 4
		c.BandwidthG2ToG3, c.BandwidthG3ToG2, c.LatencyG3ToG2 = 1, 1, 3
		c.BandwidthG2ToG4, c.BandwidthG4ToG2, c.LatencyG4ToG2 = .5, .5, 10
	})
	s := prompt(0, 12)
	h.Offload(0, 0, down(0, 4)) // two batches of two blocks share 2 GB/s: 2 ms
	if got := h.Find(0, 1.9, s, 0, 12); len(got) != 0 {
		t.Fatalf("copies are found before they are there: %v", got)
	}
	if diff := cmp.Diff([]Choice{{4, 1}}, h.Find(0, 2, s, 0, 12)); diff != "" {
		t.Fatal(diff)
	}
	// Four more push the first four to disk, where they are after four more ms, and four more those to the object store.
	h.Offload(0, 2, down(4, 4))
	h.Offload(0, 20, down(8, 4))
	// At 22 blocks 4 to 7 begin to be written to disk; at 26 they are there, and blocks 0 to 3 begin to go to the object
	// store, which takes 8 ms.
	if got := h.Find(0, 33.9, s, 0, 12); len(got) != 0 {
		t.Fatalf("found on the way to the object store: %v", got)
	}
	if diff := cmp.Diff([]Choice{{4, 10 + 8 + 1}, {8, 10 + 8 + 2}, {12, 10 + 8 + 3}}, h.Find(0, 34, s, 0, 12)); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]Choice{{4, 4 + 3 + 1}, {8, 4 + 3 + 2}}, h.Find(0, 41, s, 4, 12)); diff != "" {
		t.Fatal(diff)
	}
	if h.Load(0, 7, 41, 8) || h.NextWake() != 42 { // blocks 8 to 11 take 1 ms
		t.Fatalf("something happens at %v", h.NextWake())
	}
	if got := h.TakeLoaded(48.9); len(got) != 0 {
		t.Fatalf("early: %v", got)
	}
	if diff := cmp.Diff([]Loaded{{0, 7, 49}}, h.TakeLoaded(49)); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([4]int64{0, 40, 40, 0}, h.Report(60).HitTokens); diff != "" {
		t.Fatal(diff)
	}
}

// TestLoadsShareLinks checks that workers of a node share its disk, and others do not.
func TestLoadsShareLinks(t *testing.T) {
	h := newTest(3, func(c *Config) {
		c.NumG2Blocks, c.NumG3Blocks, c.WorkersPerNode = 10, 100, 2
		c.BandwidthG3ToG2 = 1
	})
	for w := range 3 {
		h.Offload(w, 0, down(0, 10))
		h.Offload(w, 0, down(100, 10)) // the others are on disk now
	}
	for w := range 3 {
		if diff := cmp.Diff([]Choice{{10, []float64{10, 20, 10}[w]}}, h.Find(w, 0, prompt(0, 10), 0, 10)); diff != "" {
			t.Fatalf("worker %d: %s", w, diff)
		}
		h.Load(w, int32(w), 0, 10)
	}
	if diff := cmp.Diff([]Loaded{{2, 2, 10}, {0, 0, 20}, {1, 1, 20}}, slices.Clone(h.TakeLoaded(100))); diff != "" {
		t.Fatal(diff)
	}
}

// TestCopiesToWhereTheyAreCostNothing checks that only what is missing is copied.
func TestCopiesToWhereTheyAreCostNothing(t *testing.T) {
	h := newTest(1, func(c *Config) { c.NumG3Blocks = 10 })
	h.Offload(0, 0, down(0, 6))
	h.Offload(0, 1, down(0, 8))
	if got := h.Report(2).Links[deviceToHost].Bytes; got != 8e6 {
		t.Errorf("%v bytes for 8 blocks", got)
	}
}

// TestSlowLinksDrop checks that a link which cannot move all that it gets goes on moving what it can: no more blocks are under
// way than host memory has, none twice, and the others are lost.
func TestSlowLinksDrop(t *testing.T) {
	h := newTest(1, func(c *Config) {
		c.NumG2Blocks, c.NumG3Blocks, c.OffloadBatchSize = 20, 1000, 5
		c.BandwidthG2ToG3 = 1 // a block in 1 ms
	})
	const rounds = 1000
	for i := range uint32(rounds) {
		h.Offload(0, float64(i), down(10*i, 10)) // of which ten push as many others out
	}
	r := h.Report(rounds)
	moved := int64(r.Links[hostToDisk].Bytes / 1e6)
	if moved < rounds-2*20 || moved > rounds {
		t.Errorf("%d blocks were moved, and the link has room for %d", moved, rounds)
	}
	if blocks := int64(h.disks[0].blocks); blocks != moved {
		t.Errorf("%d blocks are on disk, and %d were moved", blocks, moved)
	}
	if dropped := r.Links[hostToDisk].Dropped; dropped < 10*rounds-20-moved-20 || dropped > 10*rounds-20-moved {
		t.Errorf("%d blocks were lost of %d, and %d moved", dropped, 10*rounds-20, moved)
	}
}

// TestNothingIsLost offloads and loads at random, and looks at what must hold at any time.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		workers := rapid.IntRange(1, 4).Draw(rt, "workers")
		bandwidth := rapid.SampledFrom([]float64{0, .5, 3})
		latency := rapid.SampledFrom([]float64{0, 0, 1.5})
		c := enabled(func(c *Config) {
			c.NumG2Blocks = rapid.IntRange(1, 30).Draw(rt, "host")
			c.NumG3Blocks = rapid.IntRange(0, 40).Draw(rt, "disk")
			c.EnableG4Storage = rapid.Bool().Draw(rt, "object")
			c.WorkersPerNode = rapid.IntRange(0, workers).Draw(rt, "node")
			c.OffloadBatchSize = rapid.IntRange(1, 5).Draw(rt, "batch")
			for _, b := range []*float64{&c.BandwidthG1ToG2, &c.BandwidthG2ToG1, &c.BandwidthG2ToG3, &c.BandwidthG3ToG2, &c.BandwidthG2ToG4, &c.BandwidthG4ToG2} {
				*b = bandwidth.Draw(rt, "bandwidth")
			}
			for _, l := range []*float64{&c.LatencyG1ToG2, &c.LatencyG2ToG1, &c.LatencyG2ToG3, &c.LatencyG3ToG2, &c.LatencyG2ToG4, &c.LatencyG4ToG2} {
				*l = latency.Draw(rt, "latency")
			}
		})
		h := New(c, Deployment{Workers: workers, BlockTokens: 10, BytesPerToken: 100_000, IDs: 1000})
		p := &play{Hierarchy: h, rt: rt, copied: map[uint32]bool{}, ever: map[uint32]bool{}, waiting: map[int32]int{}}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			p.now += rapid.SampledFrom([]float64{0, 0, .5, 20}).Draw(rt, "pause")
			p.step(workers)
			p.check()
		}
		p.end()
	})
}

// play is a random use of a hierarchy.
type play struct {
	*Hierarchy
	rt       *rapid.T
	now      float64
	copied   map[uint32]bool // and not loaded since
	ever     map[uint32]bool
	waiting  map[int32]int // the worker of each request that loads
	requests int32
	loadedB  float64 // bytes loaded
}

func (p *play) step(workers int) {
	worker := rapid.IntRange(0, workers-1).Draw(p.rt, "worker")
	first := rapid.Uint32Range(0, 6).Draw(p.rt, "prompt") * 50
	blocks := rapid.Uint32Range(1, 12).Draw(p.rt, "blocks")
	if rapid.Bool().Draw(p.rt, "down") {
		p.Offload(worker, p.now, down(first, blocks))
		for _, id := range down(first, blocks) {
			p.copied[id], p.ever[id] = true, true
		}
		return
	}
	p.take() // as a runtime does before anything else at a time
	from := rapid.IntRange(0, int(blocks)).Draw(p.rt, "from")
	choices := p.Find(worker, p.now, prompt(first, blocks), from, int(blocks))
	if len(choices) == 0 {
		return
	}
	c := choices[rapid.IntRange(0, len(choices)-1).Draw(p.rt, "choice")]
	for i := range c.Blocks {
		if id := first + uint32(from+i); p.tierOf(worker, id) == absent || !p.ever[id] {
			p.rt.Fatalf("found block %d, which no tier has", id)
		}
	}
	for i := range c.Blocks {
		delete(p.copied, first+uint32(from+i)) // GPU memory has it
	}
	p.requests++
	p.loadedB += float64(c.Blocks) * 1e6
	if atOnce := p.Load(worker, p.requests, p.now, c.Blocks); !atOnce {
		p.waiting[p.requests] = worker
	} else if c.PredictedMs != 0 {
		p.rt.Fatalf("predicted %v ms, and took none", c.PredictedMs)
	}
}

// take removes the requests that have got what they load.
func (p *play) take() {
	for _, l := range p.TakeLoaded(p.now) {
		if worker, ok := p.waiting[l.Request]; !ok || worker != l.Worker || l.AtMs > p.now {
			p.rt.Fatalf("loaded %+v, at %v", l, p.now)
		}
		delete(p.waiting, l.Request)
	}
}

func (p *play) check() {
	for _, s := range slices.Concat(p.hosts, p.disks) {
		if s.blocks > s.capacity || s.peak > s.capacity {
			p.rt.Fatalf("%d blocks where %d go", s.blocks, s.capacity)
		}
	}
	for i, w := range p.ways {
		if w.blocks < 0 || w.blocks > w.limit {
			p.rt.Fatalf("%d blocks are under way on link %d, and at most %d may be", w.blocks, i, w.limit)
		}
	}
	if wake := p.NextWake(); (len(p.waiting) == 0) != math.IsInf(wake, 1) {
		p.rt.Fatalf("%d requests wait, and something happens at %v", len(p.waiting), wake)
	}
}

// end lets everything arrive. Where there is an object store, all that was copied is somewhere.
func (p *play) end() {
	for len(p.waiting) > 0 {
		p.now = max(p.now, p.NextWake())
		p.take()
	}
	r := p.Report(p.now + 1e9)
	if hits := r.HitTokens[host] + r.HitTokens[disk] + r.HitTokens[object]; float64(hits)*100_000 != p.loadedB || r.Links[hostToDevice].Bytes != p.loadedB {
		p.rt.Fatalf("%d tokens hit and %v bytes loaded, want %v", hits, r.Links[hostToDevice].Bytes, p.loadedB)
	}
	dropped := int64(0)
	for i := range p.ways {
		if p.ways[i].blocks != 0 {
			p.rt.Fatalf("%d blocks are under way at the end", p.ways[i].blocks)
		}
		dropped += p.ways[i].dropped
	}
	if p.object == nil || dropped > 0 {
		return
	}
	for id := range p.copied {
		somewhere := p.object.has(id)
		for _, s := range slices.Concat(p.hosts, p.disks) {
			somewhere = somewhere || s.has(id)
		}
		if !somewhere {
			p.rt.Fatalf("block %d is lost", id)
		}
	}
}

// BenchmarkOffload copies prompts down through host memory and disk, and loads them again. One op is 100 blocks each way.
func BenchmarkOffload(b *testing.B) {
	h := newTest(1, func(c *Config) {
		c.NumG2Blocks, c.NumG3Blocks, c.EnableG4Storage, c.NumG4Blocks = 1000, 2000, true, 4000
		c.BandwidthG1ToG2, c.BandwidthG2ToG1, c.BandwidthG2ToG3, c.BandwidthG3ToG2 = 64, 64, 4, 4
	})
	b.ReportAllocs()
	blocks := down(0, 100)
	for i := 0; b.Loop(); i++ {
		now := float64(i) * 100
		for k := range blocks {
			blocks[k] = uint32(i%90)*100 + uint32(99-k)
		}
		h.Offload(0, now, blocks)
		if found := h.Find(0, now+50, prompt(uint32((i+80)%90)*100, 100), 0, 100); len(found) > 0 {
			h.Load(0, 1, now+50, found[len(found)-1].Blocks)
		}
		h.TakeLoaded(now + 99)
	}
}

// TestWorkersJoinAndLeave checks that a worker which leaves takes its host memory along, that its disk stays, and that another
// one gets its number when nothing is on its way there any more.
func TestWorkersJoinAndLeave(t *testing.T) {
	h := newTest(2, func(c *Config) {
		c.WorkersPerNode, c.NumG3Blocks, c.BandwidthG1ToG2 = 2, 100, 1
	})
	h.Offload(1, 0, down(0, 3))
	if inHost, _ := h.Overlap(1, 10, prompt(0, 3), 0, 3); inHost != 3 {
		t.Fatalf("%d blocks in host memory, want 3", inHost)
	}
	h.Offload(1, 10, down(10, 4))
	h.Leave(1, 11)
	first := h.Join(11) // what was sent is still on its way
	h.Leave(first, 12)
	second := h.Join(30)
	if first != 2 || second != 1 {
		t.Errorf("the numbers are %d and %d, want 2 and 1", first, second)
	}
	if inHost, below := h.Overlap(second, 30, prompt(0, 3), 0, 3); inHost+below != 0 {
		t.Errorf("the new worker has %d blocks in host memory and %d below", inHost, below)
	}
	if inHost, below := h.Overlap(second, 30, prompt(10, 4), 0, 4); inHost+below != 0 {
		t.Errorf("the new worker has %d blocks in host memory and %d below of what was on its way", inHost, below)
	}
	third := h.Join(31)
	if h.nodeOf(second) != 0 || h.nodeOf(third) != 1 {
		t.Errorf("the workers are on nodes %d and %d, want 0, which has room, and 1", h.nodeOf(second), h.nodeOf(third))
	}
	if r := h.Report(40); r.Stores[0].PeakBlocks != 3 || r.Stores[0].MeanBlocks <= 0 {
		t.Errorf("host memory %+v", r.Stores[0])
	}
}
