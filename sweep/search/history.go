package search

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
)

// history is what a strategy remembers: which places it asked for, which exist, and what came of them.
type history struct {
	space   Space
	src     *rand.Rand
	asked   map[string]bool
	allowed map[string]bool
	results []Result
}

func newHistory(space Space, seed uint64) *history {
	return &history{
		space: space, src: rand.New(rand.NewPCG(seed, 0x5ea4c4)),
		asked: map[string]bool{}, allowed: map[string]bool{},
	}
}

// keyOf is a place as the key of a map.
func keyOf(place []int) string {
	b := make([]byte, 0, 2*len(place))
	for _, p := range place {
		b = binary.AppendUvarint(b, uint64(p))
	}
	return string(b)
}

// open reports whether a place exists and was not asked for.
func (h *history) open(place []int) bool {
	key := keyOf(place)
	if h.asked[key] {
		return false
	}
	ok, known := h.allowed[key]
	if !known {
		ok = h.space.Allowed == nil || h.space.Allowed(place)
		if len(h.allowed) >= maxRemembered {
			clear(h.allowed)
		}
		h.allowed[key] = ok
	}
	return ok
}

// maxRemembered bounds the places of which a strategy remembers whether they exist.
const maxRemembered = 1 << 20

// trial notes that a place is asked for and returns it as a trial of the whole workload.
func (h *history) trial(place []int) Trial {
	h.asked[keyOf(place)] = true
	return Trial{Place: place, Fidelity: 1}
}

// tell adds results.
func (h *history) tell(results []Result) { h.results = append(h.results, results...) }

// size is the number of places of the space, as far as a float can say.
func (s Space) size() float64 {
	n := 1.0
	for _, d := range s.Dimensions {
		n *= float64(d.Size)
	}
	return n
}

// random returns an open place; none when the space has no more of them, or so few that none was found.
func (h *history) random() ([]int, bool) {
	place := make([]int, len(h.space.Dimensions))
	for range maxDraws {
		for i, d := range h.space.Dimensions {
			place[i] = h.src.IntN(d.Size)
		}
		if h.open(place) {
			return place, true
		}
	}
	if h.space.size() > maxRemembered {
		return nil, false
	}
	return h.firstFrom(place)
}

// maxDraws is how often a random place is drawn before the space is looked through.
const maxDraws = 1000

// firstFrom returns the first open place after another one, in the order of the lattice and around its end.
func (h *history) firstFrom(place []int) ([]int, bool) {
	start := slices.Clone(place)
	for {
		h.space.next(place)
		if h.open(place) {
			return place, true
		}
		if slices.Equal(place, start) {
			return nil, false
		}
	}
}

// next moves on to the next place, the last dimension fastest, and from the last to the first.
func (s Space) next(place []int) {
	for i := len(place) - 1; i >= 0; i-- {
		if place[i]++; place[i] < s.Dimensions[i].Size {
			return
		}
		place[i] = 0
	}
}

// design returns up to n open places that cover every dimension evenly: a Latin hypercube whose outermost strata are at
// the ends. Places that do not exist are replaced by random ones.
func (h *history) design(n int) [][]int {
	columns := make([][]int, len(h.space.Dimensions))
	for i, d := range h.space.Dimensions {
		columns[i] = make([]int, n)
		for k, at := range h.src.Perm(n) {
			if d.Values == nil || n == 1 {
				columns[i][k] = at % d.Size
			} else {
				columns[i][k] = int(math.Round(float64(at) * float64(d.Size-1) / float64(n-1)))
			}
		}
	}
	var out [][]int
	seen := map[string]bool{}
	for k := range n {
		place := make([]int, len(columns))
		for i := range columns {
			place[i] = columns[i][k]
		}
		for tries := 0; !h.open(place) || seen[keyOf(place)]; tries++ {
			var ok bool
			if place, ok = h.random(); !ok || tries > maxDraws {
				return out
			}
		}
		seen[keyOf(place)] = true
		out = append(out, slices.Clone(place))
	}
	return out
}

// front returns the results that are feasible and not dominated, in the order in which they came.
func (h *history) front() []Result {
	var f Front
	for _, r := range h.results {
		if r.Feasible() {
			f.admit(r)
		}
	}
	return f.members
}

// neighbours calls add with the places that are one move away: so many steps up or down along an ordered dimension, or
// another choice. The place that add gets is valid during the call.
func (s Space) neighbours(place []int, step int, add func([]int)) {
	at := slices.Clone(place)
	for i, d := range s.Dimensions {
		was := at[i]
		if d.Values == nil {
			for c := range d.Size {
				if c != was {
					at[i] = c
					add(at)
				}
			}
		} else {
			for _, to := range []int{was - step, was + step} {
				if to >= 0 && to < d.Size {
					at[i] = to
					add(at)
				}
			}
		}
		at[i] = was
	}
}
