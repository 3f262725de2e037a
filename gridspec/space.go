package gridspec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Dimension is one direction of a [Space]: an axis, or several that move together, such as those of zip.
type Dimension struct {
	// Name is the column of the axis; those of axes that move together are joined by "+".
	Name string
	// Paths are the key paths of its axes.
	Paths []string
	// Values holds the number at each place when the axis is numeric and rises or falls all along; nil for choices.
	Values []float64
	// Size is the number of places.
	Size int
	// Traffic says that the axis is about what is served, the workload or the model, rather than how: configurations
	// compare within one place only.
	Traffic bool
}

// Space is the lattice of a spec: every combination of the values of its axes, made when asked for. It costs no memory
// for combinations, so it may have any number of them. It is not safe for concurrent use.
type Space struct {
	// Dimensions are the directions, in the order in which [Spec.Expand] multiplies them.
	Dimensions []Dimension

	spec     *Spec
	expander *expander
}

// Space returns the lattice of the spec. The error is a [Problems] when the spec has no axes.
func (s *Spec) Space() (*Space, error) {
	if len(s.factors) == 0 {
		p := Problem{}
		p.Allowed = "a search needs axes to search over; give some under grid, zip or cases"
		return nil, Problems{p}
	}
	space := &Space{spec: s, expander: newExpander(s)}
	for _, f := range s.factors {
		space.Dimensions = append(space.Dimensions, f.dimension())
	}
	return space, nil
}

func (f factor) dimension() Dimension {
	d := Dimension{Size: len(f.rows), Traffic: f.isTraffic()}
	var names []string
	for i, a := range f.axes {
		names, d.Paths = append(names, a.column), append(d.Paths, a.path)
		if d.Values == nil {
			d.Values = f.ordered(i)
		}
	}
	d.Name = strings.Join(names, "+")
	return d
}

// ordered returns the numbers that an axis of the factor shows, and nil unless they rise or fall all along.
func (f factor) ordered(axis int) []float64 {
	values := make([]float64, len(f.rows))
	for i, row := range f.rows {
		if !row.shown[axis].Kind.Numeric() {
			return nil
		}
		values[i] = row.shown[axis].Float64()
		if i > 1 && (values[i] > values[i-1]) != (values[1] > values[0]) || i > 0 && values[i] == values[i-1] {
			return nil
		}
	}
	return values
}

// isTraffic reports whether a factor changes the workload or the model.
func (f factor) isTraffic() bool {
	served := func(path string) bool {
		return path == workloadPath || strings.HasPrefix(path, workloadPath+".") || path == modelPath
	}
	return slices.ContainsFunc(f.axes, func(a *axis) bool { return served(a.path) }) ||
		slices.ContainsFunc(f.rows, func(o option) bool {
			return o.workload != nil || slices.ContainsFunc(o.set, func(a assignment) bool { return served(a.key.path) })
		})
}

// modelPath is the key path of the model that is served.
const modelPath = "timing.model"

// Count returns the number of combinations, before exclude drops any; one that 64 bits cannot hold is the largest that
// they can.
func (s *Space) Count() uint64 { return product(s.spec.factors) }

// Replicates is how often each combination is simulated.
func (s *Space) Replicates() int { return s.spec.Execution.Replicates }

// Points makes the point of a combination, all its replicates, as [Spec.Expand] does; Index is 0. There are none when
// `exclude` drops it. The error is a [Problems] when the configuration is impossible, unless the spec says
// `on_invalid: skip`: then the points have a SkipReason.
func (s *Space) Points(place []int) ([]Point, error) {
	e := s.expander
	e.reset()
	e.add(s.spec.factors, place, false)
	// One more than there are, so that errors name the combination.
	if err := e.checks.err(2); err != nil {
		return nil, err
	}
	for i := range e.points {
		e.points[i].Index = 0
	}
	return e.points, nil
}

// reset forgets all points.
func (e *expander) reset() {
	clear(e.seen)
	clear(e.dropped)
	clear(e.kinds)
	e.points, e.equal, e.looked, e.checks = nil, 0, 0, newChecks(e.spec)
}

// Included returns the points that the spec adds by hand under include.
func (s *Space) Included() ([]Point, error) {
	e := s.expander
	e.reset()
	for _, f := range s.spec.include {
		e.product(s.spec.includeFactors(f), true)
	}
	e.unifyDerived()
	if err := e.checks.err(e.looked); err != nil {
		return nil, err
	}
	return e.points, nil
}

// maxChecked is the number of combinations up to which [Space.Check] looks at each.
const maxChecked = 20_000

// probes is how many combinations of a larger space it looks at.
const probes = 2_000

// Checked says what [Space.Check] found.
type Checked struct {
	// Looked is the number of combinations that it looked at, All whether these are all.
	Looked int
	All    bool
	// Points holds the points among them, without duplicates, as [Spec.Expand] gives them.
	Points []Point
}

// Check looks at the combinations, or at some of a space of more than 20,000: each value of each axis by itself and
// random combinations. The error is what [Spec.Expand] says of the same combinations.
func (s *Space) Check() (Checked, error) {
	e := newExpander(s.spec)
	var c Checked
	if n := s.Count(); n <= maxChecked {
		c.Looked, c.All = int(n), true
		e.product(s.spec.factors, false)
	} else {
		c.Looked = s.probe(e)
	}
	var err error
	c.Points, err = e.finish()
	if err != nil && !c.All && e.looked == 0 && len(e.checks.found) == 0 {
		return c, s.noneFound(c.Looked)
	}
	return c, err
}

func (s *Space) noneFound(looked int) error {
	p := Problem{}
	p.Path = "exclude"
	p.Allowed = fmt.Sprintf("it drops all of the %d combinations that were tried; leave more", looked)
	return Problems{p}
}

// probe adds some combinations to an expansion and returns how many.
func (s *Space) probe(e *expander) int {
	src := rand.New(rand.NewPCG(0, streamOf("probe")))
	random := func() []int {
		at := make([]int, len(s.Dimensions))
		for i, d := range s.Dimensions {
			at[i] = src.IntN(d.Size)
		}
		return at
	}
	looked := 0
	for i, d := range s.Dimensions {
		step := max(1, d.Size*len(s.Dimensions)/(probes/2))
		for v := 0; v < d.Size; v += step {
			at := random()
			at[i] = v
			e.add(s.spec.factors, at, false)
			looked++
		}
	}
	for ; looked < probes; looked++ {
		e.add(s.spec.factors, random(), false)
	}
	return looked
}
