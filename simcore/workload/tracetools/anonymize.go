package tracetools

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/servegrid/servegrid/simcore/workload"
)

// Anonymize returns the same work under other names: hash ids, requests, sessions, plays, models and policy classes are
// numbered, hash ids in an order that the seed draws, and times count from the first start. Lengths, times, who shares
// what with whom and who waits for whom stay. The notes say what was left out.
func Anonymize(w *workload.Workload, seed uint64) (_ *workload.Workload, notes []string, err error) {
	r := takeApart(w)
	r.name = "anonymous"
	a := anonymizer{ids: shuffledIDs(r, seed), keepPlanned: w.Format == workload.FormatDynamo}
	zero := math.Inf(1)
	for i := range r.list {
		if at := r.list[i].ArrivalMs; !math.IsNaN(at) {
			zero = min(zero, at)
		}
	}
	recorded := math.Inf(1)
	for i := range r.list {
		if at := r.list[i].RecordedStartMs; r.graph && !math.IsNaN(at) {
			recorded = min(recorded, at)
		}
	}
	for i := range r.list {
		x := &r.list[i]
		place := i
		if r.graph {
			place = int(r.rank[i])
		}
		x.ID = requestID(place+1, len(r.list))
		x.Session, x.ParentSession = a.sessions.of(x.Session, "session_%d"), a.sessions.of(x.ParentSession, "session_%d")
		x.Play, x.Model, x.Hints.PolicyClass = a.plays.of(x.Play, "play_%d"), a.models.of(x.Model, "model_%d"), a.classes.of(x.Hints.PolicyClass, "class_%d")
		if !math.IsNaN(x.ArrivalMs) {
			x.ArrivalMs -= zero
		}
		x.RecordedStartMs -= recorded
		x.RecordedEndMs -= recorded
		x.Hashes = a.hashes(x.Hashes)
		x.PlannedOutput = a.planned(x.PlannedOutput)
	}
	for i, play := range r.plays {
		// Plays keep their order, so they are named in it.
		r.plays[i] = a.plays.of(play, "play_%d")
	}
	if a.dropped > 0 {
		notes = append(notes, fmt.Sprintf("the exact answers of %d requests are left out, because tokens are content; their lengths stay", a.dropped))
	}
	out, err := r.build()
	if err != nil {
		return nil, nil, err
	}
	out.Format = w.Format
	return out, notes, nil
}

type anonymizer struct {
	ids                              map[uint64]uint64
	sessions, plays, models, classes numbered
	keepPlanned                      bool
	dropped                          int
}

// shuffledIDs gives each hash id another one, below their number.
func shuffledIDs(r *requests, seed uint64) map[uint64]uint64 {
	ids := map[uint64]uint64{}
	see := func(id uint64) {
		if _, known := ids[id]; !known {
			ids[id] = uint64(len(ids))
		}
	}
	for i := range r.list {
		for _, id := range r.list[i].Hashes {
			see(id)
		}
		for _, t := range r.list[i].PlannedOutput {
			see(uint64(t))
		}
	}
	order := rand.New(rand.NewPCG(seed, 0x616e6f6e)).Perm(len(ids))
	for id, n := range ids {
		ids[id] = uint64(order[n])
	}
	return ids
}

func (a *anonymizer) hashes(ids []uint64) []uint64 {
	out := make([]uint64, len(ids))
	for i, id := range ids {
		out[i] = a.ids[id]
	}
	return out
}

// planned keeps exact answers that are names of blocks. Others are text: whoever has the numbers of its tokens in another
// order can tell which they are by how often they occur.
func (a *anonymizer) planned(tokens []uint32) []uint32 {
	if tokens == nil {
		return nil
	}
	if !a.keepPlanned {
		a.dropped++
		return nil
	}
	out := make([]uint32, len(tokens))
	for i, t := range tokens {
		out[i] = uint32(a.ids[uint64(t)])
	}
	return out
}

// numbered gives names numbers in order of appearance.
type numbered struct{ names map[string]string }

func (n *numbered) of(name, format string) string {
	if name == "" {
		return ""
	}
	if n.names == nil {
		n.names = map[string]string{}
	}
	other, known := n.names[name]
	if !known {
		other = fmt.Sprintf(format, len(n.names)+1)
		n.names[name] = other
	}
	return other
}
