package sweep

import (
	"encoding/binary"
	"hash/maphash"
	"math"

	"github.com/servegrid/servegrid/results"
)

// finality orders the results of one point: one of a lower finality gives way to one of a higher.
type finality int8

const (
	// attempt is a failure that says nothing of the point: another machine, or another time, may find its result.
	attempt finality = iota
	// early is a simulation that ended once a bound could not hold any more.
	early
	// full is an outcome of the whole simulation: figures, or a failure that every simulation of the point has.
	full
)

func (r *result) finality() finality {
	switch {
	case r.Status == results.StatusStopped:
		return early
	case r.Status == results.StatusFailed && givesWay(r.Reason):
		return attempt
	}
	return full
}

// givesWay reports whether a failure may come from where and when the point was simulated.
func givesWay(reason string) bool {
	switch reason {
	case ReasonTimeout, ReasonPanic, ReasonWorkload, ReasonSimulation, ReasonWorkerLost, ReasonOtherVersion,
		ReasonEnvironment, ReasonRefused, ReasonNotPortable:
		return true
	}
	return false
}

// givesWayTo reports whether a result that the same journal has later takes the place of this one: unless it says less of the point,
// such as a timeout after figures.
func (s stored) givesWayTo(later stored) bool {
	alike := s.simulator == later.simulator && s.complete == later.complete
	return !alike || later.finality() >= s.finality()
}

// contradicts reports whether two results of one ID cannot both be right. A simulation has one outcome, but a machine may
// fail to find it.
func (r *result) contradicts(other *result) bool {
	return r.finality() == other.finality() && r.finality() > attempt && r.fingerprint() != other.fingerprint()
}

var fingerprints = maphash.MakeSeed()

// fingerprint sums up what equal simulations agree in: figures, reason and bound, but neither wall time nor message. It holds
// within this process.
func (r *result) fingerprint() uint64 {
	var h maphash.Hash
	h.SetSeed(fingerprints)
	for _, text := range [...]string{string(r.Status), r.Reason, r.WorkloadDigest, r.Lost.Metric} {
		h.WriteString(text)
		h.WriteByte(0)
	}
	writeFloat(&h, r.Lost.Limit)
	if r.Status == results.StatusOK {
		for i, v := range r.Metrics {
			if !results.IsCost(i) { // those come with the point's price
				writeFloat(&h, v)
			}
		}
	}
	return h.Sum64()
}

// writeFloat adds a figure to a hash. All that is not a number is the same.
func writeFloat(h *maphash.Hash, v float64) {
	if math.IsNaN(v) {
		v = math.NaN()
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], math.Float64bits(v))
	h.Write(b[:])
}
