package search

import "math"

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
func NewHalving(space Space, opt HalvingOptions, seed uint64) Strategy {
	if !(opt.Eta > 1) {
		opt.Eta = 3
	}
	if !(opt.MinFidelity > 0) {
		opt.MinFidelity = 1. / 27
	}
	h := &halving{eta: opt.Eta, fidelity: math.Min(1, opt.MinFidelity)}
	places := newHistory(space, seed)
	if n := h.beginners(opt.Cost); n < space.size() {
		h.queue = places.design(int(n))
	} else {
		h.queue = places.all()
	}
	h.left = len(h.queue)
	return h
}

type halving struct {
	eta float64
	// fidelity is that of the round, queue what is still to be asked of it, left how many are to be told, and told what
	// was.
	fidelity float64
	queue    [][]int
	left     int
	told     []Result
}

// beginners returns how many candidates the first round may have so that all rounds cost so much; infinity without a bound.
func (h *halving) beginners(cost float64) float64 {
	if cost <= 0 {
		return math.Inf(1)
	}
	each := 0.0 // of one candidate of the first round, with its share of those that follow
	for share, fidelity := 1.0, h.fidelity; ; share, fidelity = share/h.eta, h.following(fidelity) {
		each += share * fidelity
		if fidelity == 1 {
			break
		}
	}
	return math.Max(1, math.Floor(cost/each))
}

// following returns the fidelity of the round after one. The last step may be a little longer, rather than that two rounds
// replay almost the same.
func (h *halving) following(fidelity float64) float64 {
	if next := fidelity * h.eta; next < 0.75 {
		return next
	}
	return 1
}

// Ask returns trials of the round under way, or begins the next one when all of it was told.
func (h *halving) Ask(n int) []Trial {
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

func (h *halving) nextRound() {
	keep := int(math.Ceil(float64(len(h.told)) / h.eta))
	ranked := rankResults(h.told)
	for _, r := range ranked[:min(keep, len(ranked))] {
		h.queue = append(h.queue, r.Place)
	}
	h.fidelity, h.left, h.told = h.following(h.fidelity), len(h.queue), nil
}

// Tell hears results of the round.
func (h *halving) Tell(told []Result) {
	h.told = append(h.told, told...)
	h.left -= len(told)
}

// all returns every place that exists, in the order of the lattice.
func (h *history) all() [][]int {
	var out [][]int
	place := make([]int, len(h.space.Dimensions))
	for i := 0.0; i < h.space.size(); i++ {
		if h.open(place) {
			out = append(out, append([]int(nil), place...))
		}
		h.space.next(place)
	}
	return out
}
