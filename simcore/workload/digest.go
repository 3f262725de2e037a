package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
)

// digest takes in what identifies a workload, number by number.
type digest struct {
	hash hash.Hash
	used int // bytes of buf
	buf  [1 << 15]byte
}

func newDigest() *digest { return &digest{hash: sha256.New()} }

func (d *digest) put(v uint64) {
	if d.used == len(d.buf) {
		d.flush()
	}
	binary.LittleEndian.PutUint64(d.buf[d.used:], v)
	d.used += 8
}

func (d *digest) flush() {
	d.hash.Write(d.buf[:d.used])
	d.used = 0
}

// sum returns the digest in hex.
func (d *digest) sum() string {
	d.flush()
	return hex.EncodeToString(d.hash.Sum(nil))
}

func (w *Workload) computeDigest() string {
	d := newDigest()
	d.put(uint64(w.BlockSize))
	d.put(uint64(w.Requests()))
	d.put(uint64(w.Sessions()))
	for _, s := range w.SessionStart {
		d.put(uint64(s))
	}
	for i := range w.Input {
		d.put(uint64(w.Input[i])<<32 | uint64(w.Output[i]))
		d.put(math.Float64bits(w.ArrivalMs[i]))
		d.put(math.Float64bits(w.DelayMs[i]))
		d.put(uint64(w.HashCount(i)))
		for _, run := range w.planned[int32(i)] {
			d.put(uint64(run.count-1)<<32 | run.token) // tokens have 32 bits
		}
	}
	for _, run := range w.runs {
		for _, id := range w.names[run.Start : run.Start+run.Len] {
			d.put(id)
		}
	}
	for _, hints := range w.hints {
		d.put(uint64(uint32(hints.Priority))<<32 | uint64(hints.StrictPriority))
		d.put(uint64(len(hints.PolicyClass)))
		for _, c := range []byte(hints.PolicyClass) {
			d.put(uint64(c))
		}
	}
	if w.Graph != nil {
		w.Graph.addTo(d)
	}
	if w.transcripts != nil {
		w.transcripts.addTo(d)
	}
	return d.sum()
}

func (g *Graph) addTo(d *digest) {
	for i := range g.Rank {
		d.put(uint64(uint32(g.Rank[i]))<<32 | uint64(uint32(g.Play[i])))
		d.put(math.Float64bits(g.NotBeforeMs[i]))
		edges := g.Edges(int32(i))
		d.put(uint64(len(edges)))
		for _, e := range edges {
			d.put(uint64(uint32(e.From))<<32 | uint64(e.Trigger)<<8 | uint64(e.Relation))
			d.put(math.Float64bits(e.DelayMs))
		}
	}
}

func (t *transcripts) addTo(d *digest) {
	for i := range t.first {
		d.put(uint64(t.end[i])<<32 | uint64(t.answered[i]))
	}
	for _, r := range t.runs {
		made := uint64(0)
		if r.generated {
			made = 1
		}
		d.put(r.token)
		d.put(uint64(r.count)<<1 | made)
	}
}
