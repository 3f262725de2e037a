// Package tracetools turns workloads into trace files and into other workloads: the same requests in another format, the
// same without what could tell where they come from, or more requests of the same kind.
//
// Read convert.go for the formats that can be written, then one file a format; anonymize.go and synthesize.go change
// workloads. What a step cannot keep it says in a note.
package tracetools

import (
	"fmt"
	"math"
	"slices"

	"github.com/servegrid/servegrid/simcore/workload"
)

// requests is a workload taken apart, so that it can be changed and put together again. Requests are in the workload's
// order; edges are by the request that waits.
type requests struct {
	name      string
	blockSize int
	list      []workload.GraphRequest
	edges     [][]workload.Edge
	plays     []string // in order
	graph     bool
	rank      []int32 // of a graph: the order of its source
}

func takeApart(w *workload.Workload) *requests {
	r := &requests{name: w.Name, blockSize: w.BlockSize, graph: w.Graph != nil}
	r.list = make([]workload.GraphRequest, w.Requests())
	for s := range w.Sessions() {
		name, given := w.SessionLabel(s)
		if !given && w.Graph == nil && w.SessionStart[s+1]-w.SessionStart[s] == 1 {
			name = "" // it stays without a name
		}
		for i := w.SessionStart[s]; i < w.SessionStart[s+1]; i++ {
			r.list[i].Request = workload.Request{
				ID: w.ID(int(i)), Session: name, ArrivalMs: w.ArrivalMs[i], DelayMs: w.DelayMs[i], Input: int(w.Input[i]), Output: int(w.Output[i]),
				Hashes: w.Hashes(int(i)), PlannedOutput: w.PlannedOutput(int(i)), Hints: w.Hints(int(i)),
			}
		}
	}
	if g := w.Graph; g != nil {
		r.plays, r.rank = g.PlayNames, g.Rank
		r.edges = make([][]workload.Edge, len(r.list))
		for s := range w.Sessions() {
			for i := w.SessionStart[s]; i < w.SessionStart[s+1]; i++ {
				x := &r.list[i]
				x.NotBeforeMs, x.Play, x.ToolWaitMs = g.NotBeforeMs[i], g.PlayNames[g.Play[i]], g.ToolWaitMs[i]
				x.RecordedStartMs, x.RecordedEndMs = g.RecordedStartMs[i], g.RecordedEndMs[i]
				if parent := g.Parent[s]; parent >= 0 {
					x.ParentSession = w.SessionName(int(parent))
				}
				if model := g.Model[i]; model >= 0 {
					x.Model = g.ModelNames[model]
				}
				r.edges[i] = g.Edges(i)
			}
		}
	}
	return r
}

// build puts the requests together again.
func (r *requests) build() (*workload.Workload, error) {
	if !r.graph {
		b := workload.NewBuilder(r.name, r.blockSize)
		for i := range r.list {
			b.Add(r.list[i].Request)
		}
		return b.Build()
	}
	order := make([]int32, len(r.list)) // by rank
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return int(r.rank[a]) - int(r.rank[b]) })
	b := workload.NewGraphBuilder(r.name, r.blockSize)
	place := make(map[string]int, len(r.plays))
	for i, play := range r.plays {
		place[play] = i
	}
	b.PlayOrder = func(x, y string) int { return place[x] - place[y] }
	number := make([]int32, len(r.list))
	for _, i := range order {
		number[i] = b.Add(r.list[i])
	}
	for _, i := range order {
		for _, e := range r.edges[i] {
			e.From = number[e.From]
			b.AddEdge(number[i], e)
		}
	}
	return b.Build()
}

// prompts gives requests the hash ids that a format wants: one for each block of the prompt, the last, partial one too.
// What a workload does not name is the request's own.
type prompts struct {
	w         *workload.Workload
	blockSize int
	table     *workload.BlockTable // of prompts that are known without ids; nil when there are none
	renamed   map[uint64]uint64    // nil when ids stay as they are
	next      uint64               // an id that nobody has
	invented  int                  // blocks that got an id of their own
}

// exactIDs is the greatest id that every JSON reader keeps exact.
const exactIDs = 1 << 53

// newPrompts takes blockSize for a workload that has none.
func newPrompts(w *workload.Workload, blockSize int) (*prompts, error) {
	p := &prompts{w: w, blockSize: w.BlockSize}
	if p.blockSize == 0 {
		p.blockSize = blockSize
		return p, nil
	}
	named, most := 0, uint64(0)
	for i := range w.Requests() {
		for _, id := range w.Hashes(i) {
			most = max(most, id)
			named++
		}
	}
	if p.next = most + 1; most >= exactIDs {
		p.next, p.renamed = 0, map[uint64]uint64{}
	}
	if named == 0 {
		table, err := w.Blocks(w.BlockSize, true)
		if err != nil {
			return nil, err
		}
		p.table, p.next = table, uint64(table.Shared)
	}
	return p, nil
}

// append adds an id for each block of a request's prompt.
func (p *prompts) append(ids []uint64, request int) []uint64 {
	blocks := (int(p.w.Input[request]) + p.blockSize - 1) / p.blockSize
	end := len(ids) + blocks
	for ids = p.appendKnown(ids, request, blocks); len(ids) < end; p.next++ {
		ids = append(ids, p.next)
		p.invented++
	}
	return ids
}

// appendKnown adds those ids of the first blocks of a prompt that the workload has.
func (p *prompts) appendKnown(ids []uint64, request, blocks int) []uint64 {
	known := p.w.Hashes(request)
	for _, id := range known[:min(len(known), blocks)] {
		ids = append(ids, p.rename(id))
	}
	if p.table != nil {
		full := len(ids) + int(p.w.Input[request])/p.blockSize
		for _, s := range p.table.Segments(request) {
			for k := uint32(0); k < s.Len && len(ids) < full; k++ {
				ids = append(ids, uint64(s.Start+k))
			}
		}
	}
	return ids
}

func (p *prompts) rename(id uint64) uint64 {
	if p.renamed == nil {
		return id
	}
	other, ok := p.renamed[id]
	if !ok {
		other = p.next
		p.renamed[id] = other
		p.next++
	}
	return other
}

// planned returns the exact output of a request, whose tokens are named like blocks.
func (p *prompts) planned(request int) []uint32 {
	tokens := p.w.PlannedOutput(request)
	if p.renamed == nil || tokens == nil {
		return tokens
	}
	out := make([]uint32, len(tokens))
	for i, t := range tokens {
		out[i] = uint32(p.rename(uint64(t)))
	}
	return out
}

// schedule says when requests would run if each took the time that the trace states.
type schedule struct{ start, end []float64 }

func newSchedule(w *workload.Workload) schedule {
	s := schedule{start: w.RecordedStarts()}
	s.end = slices.Clone(s.start)
	for i := range s.end {
		s.end[i] += w.RecordedServiceMs(i)
	}
	return s
}

// rounded is a time in ms without the noise of sums, to a microsecond.
func rounded(ms float64) float64 { return math.Round(ms*1000) / 1000 }

// notes collects what a step could not keep.
type notes []string

func (n *notes) add(format string, args ...any) { *n = append(*n, fmt.Sprintf(format, args...)) }
