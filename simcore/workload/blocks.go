package workload

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Segment is a run of consecutive sequence ids: Start, Start+1, … Start+Len-1.
type Segment struct{ Start, Len uint32 }

// BlockTable says which KV blocks each prompt consists of, for one KV block size. A block is named by its
// sequence id, a dense integer that stands for the block's tokens and everything before them: two prompts share
// a leading block exactly when they have the same id there. The table is immutable and shared by every
// simulation with the same block size.
type BlockTable struct {
	// BlockSize is the number of tokens in a KV block.
	BlockSize int
	// IDs is the number of sequence ids: all are below it. Those from Shared on are of one request alone.
	IDs, Shared uint32
	// KnownOutputs reports that some requests' known blocks hold output, so that a block can become shareable as
	// tokens are generated.
	KnownOutputs bool

	prompts  []promptBlocks
	segments []Segment
	slots    *slotTable // has the segments and names the ids, of requests that come one by one
}

// promptBlocks says where the blocks of one request are.
type promptBlocks struct {
	segment  uint32 // the first of its segments
	segments uint32 // how many there are
	known    int32
	private  uint32
}

// Segments returns the sequence ids of a request's known full blocks, in prompt order. They cover the prompt's
// full blocks and, with planned outputs, those of the output. The slice must not be changed.
func (t *BlockTable) Segments(request int) []Segment {
	if t.slots != nil {
		return t.slots.rows[request]
	}
	p := &t.prompts[request]
	return t.segments[p.segment : p.segment+p.segments]
}

// Known is the number of blocks that Segments covers.
func (t *BlockTable) Known(request int) int { return int(t.prompts[request].known) }

// Private returns the id of the k-th block after the known ones. Its content is the request's own, so no other
// request ever has it.
func (t *BlockTable) Private(request, k int) uint32 { return t.prompts[request].private + uint32(k) }

// Key names a block by its content: by its id, or where ids are used again by what it was called when it came.
func (t *BlockTable) Key(id uint32) uint64 {
	if t.slots != nil {
		return t.slots.key(id)
	}
	return uint64(id)
}

// Select fills into with the rows of some requests, in their order, so that a simulation of those alone finds them
// side by side in memory. Sequence ids stay as they are.
func (t *BlockTable) Select(requests []int32, into *BlockTable) {
	into.BlockSize, into.IDs, into.Shared, into.KnownOutputs = t.BlockSize, t.IDs, t.Shared, t.KnownOutputs
	into.prompts, into.segments = into.prompts[:0], into.segments[:0]
	for _, r := range requests {
		p := t.prompts[r]
		own := t.segments[p.segment : p.segment+p.segments]
		p.segment = uint32(len(into.segments))
		into.prompts = append(into.prompts, p)
		into.segments = append(into.segments, own...)
	}
}

// tableKey selects a block table.
type tableKey struct {
	blockSize int
	sharing   bool
}

// Blocks returns the block table for a KV block size in tokens. Without sharing every block is private, which is
// how an engine without prefix caching sees prompts. Tables are made once and kept. A workload with more blocks
// than 32 bits can number is an error.
func (w *Workload) Blocks(blockSize int, sharing bool) (*BlockTable, error) {
	key := tableKey{blockSize, sharing}
	w.tableMu.Lock()
	defer w.tableMu.Unlock()
	if t, ok := w.tables[key]; ok {
		return t, w.tableErrs[key]
	}
	t, err := w.makeTable(blockSize, sharing)
	w.tables[key], w.tableErrs[key] = t, err
	return t, err
}

func (w *Workload) makeTable(blockSize int, sharing bool) (*BlockTable, error) {
	if w.tableOf != nil {
		return w.tableOf(blockSize, sharing)
	}
	t := &BlockTable{BlockSize: blockSize, prompts: make([]promptBlocks, w.Requests())}
	var shared uint64
	switch {
	case !sharing || len(w.runs) == 0 && w.planned == nil && w.transcripts == nil:
		// All blocks are private.
	case w.BlockSize%blockSize == 0 && w.planned == nil && w.transcripts == nil:
		shared = w.alignedSegments(t)
	default:
		shared = w.contentSegments(t)
		t.KnownOutputs = w.planned != nil || w.transcripts != nil
	}
	if shared < math.MaxUint32 {
		t.Shared = uint32(shared)
		for i := range w.Input {
			t.prompts[i].private = uint32(shared)
			// One block more than needed, for the partial block that a last token may open.
			all := (uint64(w.Input[i])+uint64(w.Output[i]))/uint64(blockSize) + 2
			shared += all - uint64(t.prompts[i].known)
			if shared >= math.MaxUint32 {
				break
			}
		}
	}
	if shared >= math.MaxUint32 {
		return nil, fmt.Errorf("workload %s has more than %d KV blocks of %d tokens; use a larger block size", w.Name, uint32(math.MaxUint32), blockSize)
	}
	t.IDs = uint32(shared)
	return t, nil
}

// alignedSegments fills the table when every trace block is a whole number of KV blocks: each node of the chain
// index then owns that many consecutive ids. It returns the number of ids.
func (w *Workload) alignedSegments(t *BlockTable) uint64 {
	chains := w.chains()
	perNode := w.BlockSize / t.BlockSize
	if uint64(chains.nodes)*uint64(perNode) >= math.MaxUint32 {
		return math.MaxUint32
	}
	t.segments = make([]Segment, 0, len(chains.runs))
	for i := range w.Input {
		full := uint32(0)
		if w.runStart[i+1] > w.runStart[i] {
			full = uint32(int(w.Input[i]) / t.BlockSize)
		}
		p := &t.prompts[i]
		p.segment, p.known = uint32(len(t.segments)), int32(full)
		for _, run := range chains.runs[chains.runStart[i]:chains.runStart[i+1]] {
			if full == 0 {
				break
			}
			n := min(run.Len*uint32(perNode), full)
			t.segments = append(t.segments, Segment{run.Start * uint32(perNode), n})
			full -= n
		}
		p.segments = uint32(len(t.segments)) - p.segment
	}
	return uint64(chains.nodes) * uint64(perNode)
}

// chainIndex numbers every distinct chain of trace blocks. A node is a hash id together with all ids before it.
type chainIndex struct {
	nodes    uint32
	runStart []uint32
	runs     []Segment // runs of consecutive node numbers, request by request
}

type chainKey struct {
	parent, name uint32
}

// noNode stands for "no node" and for the parent of a first block.
const noNode = math.MaxUint32

func newChainIndex(w *Workload) *chainIndex {
	c := &chainIndex{runStart: make([]uint32, 1, w.Requests()+1), runs: make([]Segment, 0, 3*w.Requests())}
	// In most traces an id names its whole prefix, so it occurs under one parent only.
	first := make([]firstNode, len(w.names))
	further := map[chainKey]uint32{}
	for i := range w.Input {
		left := uint32(math.MaxUint32)
		if w.BlockSize > 0 {
			left = uint32((int(w.Input[i]) + w.BlockSize - 1) / w.BlockSize)
		}
		parent, start := uint32(noNode), len(c.runs)
		for _, run := range w.promptRuns(i) {
			run.Len = min(run.Len, left)
			left -= run.Len
			for name := run.Start; name < run.Start+run.Len; name++ {
				f := first[name]
				node := f.node - 1
				switch {
				case f.node == 0:
					node = c.nodes
					c.nodes++
					first[name] = firstNode{node + 1, parent}
				case f.parent != parent:
					key := chainKey{parent, name}
					other, ok := further[key]
					if !ok {
						other = c.nodes
						c.nodes++
						further[key] = other
					}
					node = other
				}
				c.runs = appendID(c.runs, start, node)
				parent = node
			}
		}
		c.runStart = append(c.runStart, uint32(len(c.runs)))
	}
	return c
}

// appendID adds an id to the segments from start on: to the last one if it comes next there.
func appendID(segments []Segment, start int, id uint32) []Segment {
	if last := len(segments) - 1; last >= start && segments[last].Start+segments[last].Len == id {
		segments[last].Len++
		return segments
	}
	return append(segments, Segment{id, 1})
}

// firstNode is the first node made for a block name, plus one so that 0 means none, and that node's parent.
type firstNode struct{ node, parent uint32 }

// contentSegments fills the table when KV blocks and trace blocks overlap in any way, or when outputs are known:
// each KV block is identified by its parent and the runs of equal tokens it is made of. It returns the number of
// ids.
func (w *Workload) contentSegments(t *BlockTable) uint64 {
	ids := map[string]uint32{}
	var key []byte
	for i := range w.Input {
		p := &t.prompts[i]
		p.segment = uint32(len(t.segments))
		if tokens := w.known(i); tokens.next() {
			parent := uint32(noNode)
			for block := 0; ; block++ {
				key = binary.LittleEndian.AppendUint32(key[:0], parent)
				var full bool
				if key, full = tokens.appendBlock(key, t.BlockSize); !full {
					break
				}
				id, ok := ids[string(key)]
				if !ok {
					id = uint32(len(ids))
					ids[string(key)] = id
				}
				t.segments = appendID(t.segments, int(p.segment), id)
				parent = id
				p.known++
			}
		}
		p.segments = uint32(len(t.segments)) - p.segment
	}
	return uint64(len(ids))
}

// knownTokens walks the known tokens of a request as runs of equal ones: each hash id stands for BlockSize copies of one
// token, and the planned output follows; or its session's transcript.
type knownTokens struct {
	names     []uint64  // hash ids by block name
	blocks    []Segment // block names of the prompt that have not been walked
	at        uint32    // how many of the first segment have
	blockSize int
	input     int // tokens of the prompt that have not been walked
	runs      []tokenRun
	run       tokenRun // what is left of the run at hand
}

func (w *Workload) known(request int) knownTokens {
	if w.transcripts != nil {
		return knownTokens{runs: w.transcripts.known(request)}
	}
	if w.runStart[request+1] == w.runStart[request] {
		return knownTokens{} // unknown tokens come before what might be known
	}
	return knownTokens{names: w.names, blocks: w.promptRuns(request), blockSize: w.BlockSize, input: int(w.Input[request]), runs: w.planned[int32(request)]}
}

// next goes on to the next run when the one at hand is used up; false means that there is none.
func (k *knownTokens) next() bool {
	switch {
	case k.run.count > 0:
	case k.input > 0:
		count := min(k.input, k.blockSize)
		k.run = tokenRun{token: k.names[k.blocks[0].Start+k.at], count: int32(count)}
		k.input -= count
		if k.at++; k.at == k.blocks[0].Len {
			k.blocks, k.at = k.blocks[1:], 0
		}
	case len(k.runs) > 0:
		k.run, k.runs = k.runs[0], k.runs[1:]
	default:
		return false
	}
	return true
}

// appendBlock appends the next size tokens as canonical (token, count) runs; full is false when fewer are left.
func (k *knownTokens) appendBlock(key []byte, size int) (_ []byte, full bool) {
	var at tokenRun
	emit := func() {
		count := uint64(at.count) << 1
		if at.generated {
			count |= 1
		}
		key = binary.AppendUvarint(binary.AppendUvarint(key, at.token), count)
	}
	for left := int32(size); left > 0; {
		if !k.next() {
			return key, false
		}
		n := min(left, k.run.count)
		if at.count > 0 && at.token == k.run.token && at.generated == k.run.generated {
			at.count += n
		} else {
			if at.count > 0 {
				emit()
			}
			at = tokenRun{k.run.token, n, k.run.generated}
		}
		k.run.count -= n
		left -= n
	}
	emit()
	return key, true
}
