package workload

import (
	"container/heap"
	"slices"
)

// conversationFit describes an open-loop workload in which a request opens a conversation or carries one on. In
// both cases it is a row of its own, with the whole prompt, as in the Mooncake traces.
type conversationFit struct {
	requests  int     // of the trace it is fitted to
	rate      float64 // mean requests per second of that trace
	blockSize int     // tokens per hash id
	arrivals  arrivalFit
	// warmUpSeconds is how long the process runs before the workload begins, so that conversations are under way.
	warmUpSeconds float64
	// maxInput ends a conversation whose next prompt would be longer, in tokens.
	maxInput int
	// systems are the fixed system prompts that prompts begin with; none means that they begin with nothing shared.
	systems []systemPrompt
	// openings are the kinds of first prompts.
	openings []opening
	// follow is the chance that a second, third, … prompt is carried on too; the last entry holds for all later.
	follow []float64
	// gapSeconds is the time from a prompt to the one that carries it on.
	gapSeconds quantiles
	// output is the answer's length of prompts that carry a conversation on.
	output quantiles
	// growth is how many tokens longer than the last prompt, and its answer when keepsReply, the next prompt is.
	growth     quantiles
	keepsReply bool
	// edit is the share of follow-ups that keep just the part editKeep of the last prompt's blocks and add editNew
	// tokens: an edited or branched conversation, another question about the same document.
	edit              float64
	editKeep, editNew quantiles
}

// systemPrompt is a fixed system prompt of so many tokens, used by a share of the openings.
type systemPrompt struct {
	share  float64
	tokens float64
}

// opening is a kind of first prompt.
type opening struct {
	share  float64
	input  quantiles // tokens after the system prompt
	output quantiles // tokens
	follow float64   // chance of being carried on
}

// conversation is the state of one conversation: its last prompt, and when the next is due.
type conversation struct {
	dueMs         float64
	number        int
	turn          int
	system        int      // tokens of the system prompt
	blocks        []uint64 // ids of the prompt's full blocks
	input, output int
	follow        float64
}

// conversationDraws are the random numbers of one request. All are drawn for each, used or not, so that what is
// drawn for the next does not depend on the knobs.
type conversationDraws struct {
	input, output                                  float64
	system, opening, edit, editKeep, follow, gapAt float64
}

func (s streams) drawConversation() conversationDraws {
	return conversationDraws{
		input: s.lengths.Float64(), output: s.lengths.Float64(),
		system: s.sharing.Float64(), opening: s.sharing.Float64(), edit: s.sharing.Float64(),
		editKeep: s.sharing.Float64(), follow: s.sharing.Float64(), gapAt: s.sharing.Float64(),
	}
}

// conversationMaker generates one workload.
type conversationMaker struct {
	fit            *conversationFit
	scale          float64
	nextID         uint64
	opened         int
	waiting        conversationQueue
	systemBlocks   [][]uint64
	systemWeights  []float64
	openingWeights []float64
}

// generate makes the workload of a spec without defaults left open.
func (f *conversationFit) generate(s PresetSpec) (*Workload, error) {
	b := NewBuilder(s.Name, f.blockSize)
	m := f.newMaker(s.Scale)
	m.warmUp(s)
	random := workloadPhase.open(s.Seed)
	clock := newArrivals(f.arrivals, f.rate, s.Rate, random.arrivals)
	var hashes []uint64
	for at := clock.next(); b.Requests() < s.Requests && at < s.DurationSeconds*1000; at = clock.next() {
		c := m.prompt(at, random.drawConversation())
		hashes = append(hashes[:0], c.blocks...)
		if c.input%f.blockSize > 0 {
			hashes = append(hashes, m.newID())
		}
		b.Add(Request{ArrivalMs: at, Input: c.input, Output: c.output, Hashes: hashes})
	}
	return b.Build()
}

// warmUp lets conversations get under way before time 0. Its streams are its own, so that its length, which
// depends on the rate, leaves the draws of the workload as they are.
func (m *conversationMaker) warmUp(s PresetSpec) {
	random := warmUpPhase.open(s.Seed)
	clock := newArrivals(m.fit.arrivals, m.fit.rate, s.Rate, random.arrivals)
	lengthMs := m.fit.warmUpSeconds * 1000
	for at := clock.next(); at < lengthMs; at = clock.next() {
		m.prompt(at-lengthMs, random.drawConversation())
	}
}

// prompt makes the prompt that arrives at a time, in ms: the next of the conversation that has been due for
// longest, or the first of a new one.
func (m *conversationMaker) prompt(at float64, d conversationDraws) *conversation {
	var c *conversation
	if len(m.waiting) > 0 && m.waiting[0].dueMs <= at {
		if due := heap.Pop(&m.waiting).(*conversation); m.carryOn(due, d) {
			c = due
		}
	}
	if c == nil {
		c = m.open(d)
	}
	if d.follow < c.follow {
		c.dueMs = at + float64(m.fit.gapSeconds.at(d.gapAt)*1000)
		heap.Push(&m.waiting, c)
	}
	return c
}

func (f *conversationFit) newMaker(scale float64) *conversationMaker {
	m := &conversationMaker{fit: f, scale: scale}
	for _, p := range f.systems {
		m.systemWeights = append(m.systemWeights, p.share)
		blocks := make([]uint64, scaledTokens(p.tokens, scale, 0)/f.blockSize)
		for i := range blocks {
			blocks[i] = m.newID()
		}
		m.systemBlocks = append(m.systemBlocks, blocks)
	}
	for _, o := range f.openings {
		m.openingWeights = append(m.openingWeights, o.share)
	}
	return m
}

func (m *conversationMaker) newID() uint64 {
	m.nextID++
	return m.nextID - 1
}

// open starts a conversation.
func (m *conversationMaker) open(d conversationDraws) *conversation {
	o := &m.fit.openings[pick(d.opening, m.openingWeights)]
	m.opened++
	c := &conversation{number: m.opened, follow: o.follow}
	tokens := o.input.at(d.input)
	if len(m.fit.systems) > 0 {
		system := pick(d.system, m.systemWeights)
		tokens += m.fit.systems[system].tokens
		c.system = scaledTokens(m.fit.systems[system].tokens, m.scale, 0)
		c.blocks = append(c.blocks, m.systemBlocks[system]...)
	}
	m.become(c, scaledTokens(tokens, m.scale, 1), o.output.at(d.output))
	return c
}

// carryOn makes c's next prompt; it returns false when that would be too long.
func (m *conversationMaker) carryOn(c *conversation, d conversationDraws) bool {
	f := m.fit
	kept, input := c.input/f.blockSize, c.input
	if d.edit < f.edit {
		kept = max(c.system/f.blockSize, int(float64(kept)*f.editKeep.at(d.editKeep)))
		input = max(c.system, kept*f.blockSize+scaledTokens(f.editNew.at(d.input), m.scale, 1))
	} else {
		grown := scaledTokens(f.growth.at(d.input), m.scale, -c.input)
		if f.keepsReply {
			grown = max(0, grown+c.output)
		}
		input = max(1, input+grown)
	}
	if float64(input) > float64(f.maxInput)*m.scale {
		return false
	}
	c.blocks = c.blocks[:min(kept, len(c.blocks))]
	m.become(c, input, f.output.at(d.output))
	c.follow = f.follow[min(c.turn, len(f.follow)-1)]
	c.turn++
	return true
}

// become gives c a prompt of so many tokens that begins with c.blocks.
func (m *conversationMaker) become(c *conversation, input int, output float64) {
	c.input, c.output = input, scaledTokens(output, m.scale, 1)
	full := input / m.fit.blockSize
	c.blocks = c.blocks[:min(full, len(c.blocks))]
	c.blocks = slices.Grow(c.blocks, full-len(c.blocks))
	for len(c.blocks) < full {
		c.blocks = append(c.blocks, m.newID())
	}
}

// conversationQueue is a heap of the conversations that wait for their next prompt, the first due on top.
type conversationQueue []*conversation

func (q conversationQueue) Len() int { return len(q) }
func (q conversationQueue) Less(i, j int) bool {
	if q[i].dueMs != q[j].dueMs {
		return q[i].dueMs < q[j].dueMs
	}
	return q[i].number < q[j].number
}
func (q conversationQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *conversationQueue) Push(c any)   { *q = append(*q, c.(*conversation)) }
func (q *conversationQueue) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	*q = (*q)[:last]
	return c
}
