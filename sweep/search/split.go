package search

import "slices"

// NewSplit returns a strategy that searches every combination of places along some dimensions by itself, such as each
// workload, since what is found for one does not compare with another. Make returns the strategy for one combination; its
// space has the other dimensions. Every ask is shared out among the combinations.
func NewSplit(space Space, along []int, make func(space Space, part int) Strategy) Strategy {
	if len(along) == 0 {
		return make(space, 0)
	}
	s := &split{along: along}
	for part, fixed := range combinations(space, along) {
		p := &splitPart{of: s, fixed: fixed}
		p.strategy = make(p.space(space), part)
		s.parts = append(s.parts, p)
	}
	return s
}

// Parts is the number of combinations along dimensions.
func (s Space) Parts(along []int) float64 {
	n := 1.0
	for _, d := range along {
		n *= float64(s.Dimensions[d].Size)
	}
	return n
}

// combinations lists all places along some dimensions, the last one fastest.
func combinations(space Space, along []int) [][]int {
	var small Space
	for _, d := range along {
		small.Dimensions = append(small.Dimensions, space.Dimensions[d])
	}
	var out [][]int
	place := make([]int, len(along))
	for range int(small.size()) {
		out = append(out, slices.Clone(place))
		small.next(place)
	}
	return out
}

type split struct {
	along []int
	parts []*splitPart
	// owners holds the part of each trial that was asked for and not told.
	owners []*splitPart
	next   int
}

// splitPart is the search of one combination.
type splitPart struct {
	of       *split
	fixed    []int
	strategy Strategy
	over     bool
}

// space is what is left of a space when the dimensions of the split are fixed.
func (p *splitPart) space(whole Space) Space {
	var out Space
	for i, d := range whole.Dimensions {
		if !slices.Contains(p.of.along, i) {
			out.Dimensions = append(out.Dimensions, d)
		}
	}
	if whole.Allowed != nil {
		out.Allowed = func(place []int) bool { return whole.Allowed(p.whole(place)) }
	}
	return out
}

// whole adds the fixed dimensions to a place.
func (p *splitPart) whole(place []int) []int {
	out := make([]int, 0, len(place)+len(p.fixed))
	fixed := 0
	for i := range len(place) + len(p.fixed) {
		if at := slices.Index(p.of.along, i); at >= 0 {
			out = append(out, p.fixed[at])
			fixed++
		} else {
			out = append(out, place[i-fixed])
		}
	}
	return out
}

// part leaves the fixed dimensions out of a place.
func (p *splitPart) part(place []int) []int {
	out := make([]int, 0, len(place))
	for i, v := range place {
		if !slices.Contains(p.of.along, i) {
			out = append(out, v)
		}
	}
	return out
}

// Ask asks each part once for its share, going on where the last ask ended, until there are n trials. There are fewer when
// parts have no more, and none when no part has.
func (s *split) Ask(n int) []Trial {
	var out []Trial
	share := max(1, (n+len(s.parts)-1)/len(s.parts))
	for range s.parts {
		p := s.parts[s.next]
		s.next = (s.next + 1) % len(s.parts)
		if p.over {
			continue
		}
		trials := p.strategy.Ask(min(share, n-len(out)))
		p.over = len(trials) == 0
		for _, t := range trials {
			t.Place = p.whole(t.Place)
			out, s.owners = append(out, t), append(s.owners, p)
		}
		if len(out) >= n {
			break
		}
	}
	return out
}

// Tell tells every part its results.
func (s *split) Tell(results []Result) {
	told := map[*splitPart][]Result{}
	for i, r := range results {
		p := s.owners[i]
		r.Place = p.part(r.Place)
		told[p] = append(told[p], r)
	}
	s.owners = s.owners[len(results):]
	for _, p := range s.parts {
		if len(told[p]) > 0 {
			p.strategy.Tell(told[p])
		}
	}
}
