package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// agentXBlocks names the KV blocks of the plays of a scenario when users begin them: as the conversation's blocks, moved
// to a range of sequence ids that only plays with the same salt have.
type agentXBlocks struct {
	expansion *agentXExpansion
	base      []int32 // the request of the base that each request repeats
	plays     []plannedPlay
	begun     []begunPlay
	tables    []*agentXTable
}

// plannedPlay is a play of a scenario.
type plannedPlay struct {
	source, instance, user int32
	first, end             int32 // its requests are among these
	over                   bool  // all of the conversation has been when it is over: no other play has its instance
}

// begunPlay is a play that a user began.
type begunPlay struct{ play, user int32 }

// agentXTable is a block table of a scenario.
type agentXTable struct {
	*BlockTable
	of       *BlockTable         // of the base
	compact  []compactIDs        // of each source play
	next     uint32              // the next sequence id that no salt has
	firstIDs map[[2]int32]uint32 // of each salt and source play
}

// compactIDs renames the sequence ids of a conversation to those from 0 to count-1.
type compactIDs struct {
	runs  []compactRun // in order of their ids
	count uint32
}

// compactRun is a run of ids of which the first gets another name.
type compactRun struct {
	Segment
	to uint32
}

func newAgentXBlocks(x *agentXExpansion) *agentXBlocks { return &agentXBlocks{expansion: x} }

// begin names the blocks of a play in all tables.
func (b *agentXBlocks) begin(play, user int32) {
	b.begun = append(b.begun, begunPlay{play, user})
	for _, t := range b.tables {
		b.name(t, begunPlay{play, user})
	}
}

// table makes the table for a KV block size, with what has begun. Requests that have not have their numbers of blocks only.
func (b *agentXBlocks) table(blockSize int, sharing bool) (*BlockTable, error) {
	x := b.expansion
	of, err := x.base.Blocks(blockSize, sharing)
	if err != nil {
		return nil, err
	}
	t := &agentXTable{
		BlockTable: &BlockTable{BlockSize: blockSize, KnownOutputs: of.KnownOutputs, prompts: make([]promptBlocks, len(b.base))},
		of:         of, compact: make([]compactIDs, len(x.plays)), firstIDs: map[[2]int32]uint32{},
	}
	for i := range t.compact {
		t.compact[i] = newCompactIDs(of, x.plays[i].requests)
	}
	shared := uint64(of.Shared)
	if x.plan.Salt != SaltNone {
		shared = 0
		for i, play := range b.plays {
			if play.over || i >= x.scenario.WarmUps {
				shared += uint64(t.compact[play.source].count)
			}
		}
	}
	all := shared
	for i := range t.prompts {
		p := &t.prompts[i]
		p.known, p.private = int32(b.known(t, int32(i))), uint32(all)
		all += (uint64(x.w.Input[i])+uint64(x.w.Output[i]))/uint64(blockSize) + 2 - uint64(p.known)
	}
	if all >= math.MaxUint32 {
		return nil, fmt.Errorf("the AgentX scenario has more than %d KV blocks of %d tokens; use a larger block size or a shorter window", uint32(math.MaxUint32), blockSize)
	}
	t.Shared, t.IDs = uint32(shared), uint32(all)
	for _, play := range b.begun {
		b.name(t, play)
	}
	b.tables = append(b.tables, t)
	return t.BlockTable, nil
}

// known is the number of known blocks of a request; the output of one that warms up is not known.
func (b *agentXBlocks) known(t *agentXTable, request int32) int {
	x := b.expansion
	known := t.of.Known(int(b.base[request]))
	if x.scenario.WarmUp(x.w.Graph.Play[request]) {
		known = min(known, int(x.w.Input[request])/t.BlockSize)
	}
	return known
}

// name gives the requests of a play their blocks.
func (b *agentXBlocks) name(t *agentXTable, begun begunPlay) {
	planned := &b.plays[begun.play]
	first := b.firstID(t, planned, begun.user)
	for request := planned.first; request < planned.end; request++ {
		if b.expansion.w.Graph.Play[request] != begun.play {
			continue
		}
		p := &t.prompts[request]
		p.segment = uint32(len(t.segments))
		left := uint32(p.known)
		for _, s := range t.of.Segments(int(b.base[request])) {
			if s.Len = min(s.Len, left); s.Len == 0 {
				break
			}
			left -= s.Len
			if b.expansion.plan.Salt != SaltNone {
				s.Start = first + t.compact[planned.source].of(s.Start)
			}
			t.segments = append(t.segments, s)
		}
		p.segments = uint32(len(t.segments)) - p.segment
	}
}

// firstID is the first sequence id of a play's range, taken when a salt first has the conversation.
func (b *agentXBlocks) firstID(t *agentXTable, planned *plannedPlay, user int32) uint32 {
	salt := [2]int32{planned.instance, planned.source}
	if b.expansion.plan.Salt == SaltUser {
		salt[0] = user
	}
	first, ok := t.firstIDs[salt]
	if !ok {
		first = t.next
		t.firstIDs[salt] = first
		t.next += t.compact[planned.source].count
	}
	return first
}

// newCompactIDs renames the ids of some requests, and those only.
func newCompactIDs(t *BlockTable, requests []int32) compactIDs {
	var all []Segment
	for _, r := range requests {
		all = append(all, t.Segments(int(r))...)
	}
	slices.SortFunc(all, func(a, b Segment) int { return cmp.Compare(a.Start, b.Start) })
	var c compactIDs
	for _, s := range all {
		last := len(c.runs) - 1
		if last < 0 || c.runs[last].Start+c.runs[last].Len < s.Start {
			c.runs = append(c.runs, compactRun{s, c.count})
			c.count += s.Len
		} else if end, more := c.runs[last].Start+c.runs[last].Len, s.Start+s.Len; end < more {
			c.runs[last].Len += more - end
			c.count += more - end
		}
	}
	return c
}

// of is the new name of an id.
func (c *compactIDs) of(id uint32) uint32 {
	at, exact := slices.BinarySearchFunc(c.runs, id, func(r compactRun, id uint32) int { return cmp.Compare(r.Start, id) })
	if !exact {
		at--
	}
	return c.runs[at].to + id - c.runs[at].Start
}
