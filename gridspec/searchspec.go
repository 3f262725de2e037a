package gridspec

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Search says how a search chooses the points to simulate. Without a method all points are.
type Search struct {
	// Method is the strategy: refine, bayes, evolve or random look for the frontier, halving does so on shortened
	// workloads, saturation looks for the edge of the SLA along one axis. Empty means all points.
	Method SearchMethod `json:"method"`
	// Points is how many combinations may be simulated: a number, or a share of all such as 15%. A combination on half the
	// workload counts half. 0 means 15 %, at most 1,000; for saturation as many as it takes.
	Points SearchPoints `json:"points"`
	// Batch is how many combinations are simulated before the strategy hears of them; 0 means a thirtieth of Points, 4 to
	// 64. It decides what is simulated, so that execution.jobs does not.
	Batch int `json:"batch"`
	// Patience ends the search when so many batches in a row did not improve the frontier; 0 means never.
	Patience int `json:"patience"`
	// Seed decides everything that is random; 0 means execution.seed.
	Seed uint64 `json:"seed"`
	// Population is the number of combinations that have offspring with evolve; 0 means 32.
	Population int `json:"population"`
	// Axis is the axis along which saturation looks for the edge, such as load.rate.
	Axis string `json:"axis"`
	// Smallest says that saturation looks for the smallest value that keeps the SLA, as with deployment.workers, instead of
	// the largest.
	Smallest bool `json:"smallest"`
	// Tolerance is how far apart the last value that keeps the SLA and the first that does not may be, relative to the
	// smaller one; 0 means that saturation goes on until they are neighbours.
	Tolerance float64 `json:"tolerance"`
	// Checks is how many further values on either side of an edge saturation tries, to see whether there is just one.
	Checks int `json:"checks"`
	// Eta is by how much each round of halving has fewer combinations on more of the workload than the one before, 1.1 or more; 0 means 3.
	Eta float64 `json:"eta"`
	// MinFidelity is the share of the workload that the first round of halving replays; 0 means 1/27.
	MinFidelity float64 `json:"min_fidelity"`
}

// SearchMethod names a strategy.
type SearchMethod string

// The search methods.
const (
	// SearchNone simulates all points.
	SearchNone SearchMethod = ""
	// SearchRefine refines a coarse design around the frontier.
	SearchRefine SearchMethod = "refine"
	// SearchBayes chooses from the whole space by expected improvement.
	SearchBayes SearchMethod = "bayes"
	// SearchEvolve mixes and moves the best.
	SearchEvolve SearchMethod = "evolve"
	// SearchRandom draws at random.
	SearchRandom SearchMethod = "random"
	// SearchHalving halves the candidates on more and more of the workload.
	SearchHalving SearchMethod = "halving"
	// SearchSaturation bisects along an axis.
	SearchSaturation SearchMethod = "saturation"
)

// choices returns the accepted values.
func (SearchMethod) choices() []string {
	return []string{string(SearchRefine), string(SearchBayes), string(SearchEvolve), string(SearchRandom), string(SearchHalving), string(SearchSaturation)}
}

// SearchPoints is a number of combinations, or below 1 a share of all; 0 leaves it open.
type SearchPoints float64

func (p *SearchPoints) fromSpec(v any) string {
	const allowed = "give a number of 1 or more, or a share such as 15%"
	if text, ok := v.(string); ok {
		share, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(text, "%")), 64)
		if err != nil || !strings.HasSuffix(text, "%") || !(share > 0 && share <= 100) {
			return allowed
		}
		// All of them are a number too large to reach.
		if *p = SearchPoints(share / 100); share == 100 {
			*p = math.MaxInt32
		}
		return ""
	}
	n, ok := wholeNumber(v)
	if !ok || n < 0 {
		return allowed
	}
	*p = SearchPoints(n)
	return ""
}

// Share returns the share of all combinations that it is; false when it is a number of them.
func (p SearchPoints) Share() (float64, bool) {
	if p == math.MaxInt32 {
		return 1, true
	}
	return float64(p), p > 0 && p < 1
}

const (
	// defaultSearchShare and defaultSearchPoints are what a search may simulate unless the spec says more.
	defaultSearchShare  = 0.15
	defaultSearchPoints = 1000
)

// Of returns how many of so many combinations may be simulated, at least 1.
func (p SearchPoints) Of(total uint64) int {
	n := float64(p)
	switch {
	case p == 0:
		n = min(math.Ceil(defaultSearchShare*float64(total)), defaultSearchPoints)
	case p < 1:
		n = math.Floor(n*float64(total) + 1e-9)
	}
	return int(max(1, min(n, float64(total), math.MaxInt32)))
}

// optionsOf lists the options that just some methods have.
var optionsOf = []struct {
	name    string
	given   func(*Search) any
	methods []SearchMethod
}{
	{"population", func(s *Search) any { return orNil(s.Population) }, []SearchMethod{SearchEvolve}},
	{"axis", func(s *Search) any { return orNil(s.Axis) }, []SearchMethod{SearchSaturation}},
	{"smallest", func(s *Search) any { return orNil(s.Smallest) }, []SearchMethod{SearchSaturation}},
	{"tolerance", func(s *Search) any { return orNil(s.Tolerance) }, []SearchMethod{SearchSaturation}},
	{"checks", func(s *Search) any { return orNil(s.Checks) }, []SearchMethod{SearchSaturation}},
	{"eta", func(s *Search) any { return orNil(s.Eta) }, []SearchMethod{SearchHalving}},
	{"min_fidelity", func(s *Search) any { return orNil(s.MinFidelity) }, []SearchMethod{SearchHalving}},
}

// orNil is nil for a value that says nothing.
func orNil[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

// leastEta bounds the rounds of halving: below it they are hundreds that hardly differ.
const leastEta = 1.1

// checkSearch reports everything that is wrong with the search section.
func (s *Spec) checkSearch(c *collector) {
	search := &s.Search
	for _, o := range optionsOf {
		v := o.given(search)
		if v == nil || slices.Contains(o.methods, search.Method) {
			continue
		}
		c.add("search."+o.name, v, "it belongs to search.method %s", o.methods[0])
	}
	least := func(name string, v int) {
		if v < 0 {
			c.add("search."+name, v, "give 0 or more")
		}
	}
	least("batch", search.Batch)
	least("patience", search.Patience)
	least("population", search.Population)
	least("checks", search.Checks)
	if search.Tolerance < 0 {
		c.add("search.tolerance", search.Tolerance, "give 0 or more, such as 0.01 for 1 %%")
	}
	if search.Eta != 0 && !(search.Eta >= leastEta) {
		c.add("search.eta", search.Eta, "give %v or more, or 0 for 3", leastEta)
	}
	if search.MinFidelity < 0 || search.MinFidelity > 1 {
		c.add("search.min_fidelity", search.MinFidelity, "give a share above 0 and up to 1, or 0 for 1/27")
	}
	if search.Method == SearchSaturation {
		s.checkSearchAxis(c)
	}
}

// checkSearchAxis reports an axis of saturation that the spec does not have.
func (s *Spec) checkSearchAxis(c *collector) {
	var paths []string
	for _, a := range s.axes {
		if a.path == s.Search.Axis || a.column == s.Search.Axis {
			return
		}
		paths = append(paths, a.path)
	}
	c.add("search.axis", s.Search.Axis, "name one of the spec's axes: %s", strings.Join(paths, ", "))
}
