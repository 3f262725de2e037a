package search

import (
	"math"
	"slices"
)

// HalvingOptions configure [NewHalving].
type HalvingOptions struct {
	// Cost is what the trials may cost together, in whole workloads, and decides how many begin; 0 begins with every
	// candidate.
	Cost float64
	// Eta is by how much each round has fewer candidates and more of the workload than the one before; 0 means 3.
	Eta float64
	// MinFidelity is the share of the workload that the first round replays; 0 means 1/27.
	MinFidelity float64
}

// NewHalving returns successive halving: many candidates on the beginning of the workload, the best of them on Eta times as
// much of it, and so on until the last ones replay all of it. The best are those that keep the constraints and that no
// other dominates, then those which only these dominate, and so on. See K. Jamieson and A. Talwalkar, "Non-stochastic Best
// Arm Identification and Hyperparameter Optimization", AISTATS 2016.
//
// What a candidate does in the beginning of a workload is not quite what it does in all of it: queues have not grown yet,
// caches are cold. So the figures of a round rank its candidates and are used for nothing else.
//
// A candidate that is left alone replays all of the workload at once, since there is nothing to rank. Where none of a
// round succeeds, as many as would have come to the end do so too, so that their failures are seen.
func NewHalving(space Space, opt HalvingOptions, seed uint64) *Halving {
	if !(opt.Eta > 1) {
		opt.Eta = 3
	}
	if !(opt.MinFidelity > 0) {
		opt.MinFidelity = 1. / 27
	}
	h := &Halving{eta: opt.Eta, fidelity: math.Min(1, opt.MinFidelity)}
	places := newHistory(space, seed)
	if n := h.beginners(opt.Cost); n < space.size() {
		h.queue = places.design(int(n))
	} else {
		h.queue = places.all()
	}
	h.begin(h.fidelity)
	h.trials = h.plan(h.left, h.fidelity).trials
	return h
}

// Halving is successive halving; [NewHalving] makes one.
type Halving struct {
	eta float64
	// fidelity is that of the round, queue what is still to be asked of it, left how many are to be told, and told what
	// was.
	fidelity float64
	queue    [][]int
	left     int
	told     []Result
	trials   int
}

// Trials is the number of trials of all rounds, as long as some of each succeed.
func (h *Halving) Trials() int { return h.trials }

// begin begins a round with what is in the queue.
func (h *Halving) begin(fidelity float64) {
	if h.fidelity, h.left = fidelity, len(h.queue); h.left == 1 {
		h.fidelity = 1
	}
}

// beginners returns how many candidates the first round may have so that all rounds cost so much; infinity without a bound.
func (h *Halving) beginners(cost float64) float64 {
	if cost <= 0 {
		return math.Inf(1)
	}
	fit := func(n float64) bool { return h.plan(int(n), h.fidelity).cost <= cost+1e-9 }
	low, high := 1.0, math.Floor(math.Min(cost/h.fidelity, math.MaxInt32))+1 // low fits or is the least, high does not fit
	for low+1 < high {
		if middle := math.Floor((low + high) / 2); fit(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// plan is what so many candidates of a round and all that follow come to.
type plan struct {
	trials int
	cost   float64 // in whole workloads
	last   int     // candidates of the last round
}

func (h *Halving) plan(candidates int, fidelity float64) plan {
	var p plan
	for {
		if candidates == 1 {
			fidelity = 1
		}
		p.trials, p.cost, p.last = p.trials+candidates, p.cost+float64(candidates)*fidelity, candidates
		if fidelity == 1 {
			return p
		}
		candidates, fidelity = h.survivors(candidates), h.following(fidelity)
	}
}

// survivors is how many of the candidates of a round go on.
func (h *Halving) survivors(candidates int) int { return int(math.Ceil(float64(candidates) / h.eta)) }

// following returns the fidelity of the round after one. The last step may be a little longer, rather than that two rounds
// replay almost the same.
func (h *Halving) following(fidelity float64) float64 {
	if next := fidelity * h.eta; next < 0.75 {
		return next
	}
	return 1
}

// Ask returns trials of the round under way, or begins the next one when all of it was told.
func (h *Halving) Ask(n int) []Trial {
	if len(h.queue) == 0 && h.left == 0 && h.fidelity < 1 {
		h.nextRound()
	}
	var out []Trial
	for len(out) < n && len(h.queue) > 0 {
		out = append(out, Trial{Place: h.queue[0], Fidelity: h.fidelity})
		h.queue = h.queue[1:]
	}
	return out
}

func (h *Halving) nextRound() {
	following := h.following(h.fidelity)
	going, ranked := h.survivors(len(h.told)), rankResults(h.told)
	if len(ranked) == 0 {
		going, ranked, following = h.plan(len(h.told), h.fidelity).last, h.told, 1
	}
	for _, r := range ranked[:min(going, len(ranked))] {
		h.queue = append(h.queue, r.Place)
	}
	h.told = nil
	h.begin(following)
}

// Tell hears results of the round.
func (h *Halving) Tell(told []Result) {
	h.told = append(h.told, told...)
	h.left -= len(told)
}

// all returns every place that exists, in the order of the lattice.
func (h *history) all() [][]int {
	var out [][]int
	place := make([]int, len(h.space.Dimensions))
	for i := 0.0; i < h.space.size(); i++ {
		if h.open(place) {
			out = append(out, slices.Clone(place))
		}
		h.space.next(place)
	}
	return out
}
