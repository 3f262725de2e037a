package gridspec

import (
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// sampler is one way to draw samples of a space.
type sampler struct {
	// name is the key of the spec.
	name string
	// of returns the spec's request for it, or nil.
	of func(*document) *sampling
	// maxAxes bounds the axes of a space; 0 means no bound.
	maxAxes int
	// column returns n numbers in [0, 1) for the axis at an index. Only src may decide what is random.
	column func(src *rand.PCG, n, axis int) []float64
}

// samplers lists the ways to sample in the order in which they multiply.
func samplers() []sampler {
	return []sampler{
		{name: "random", of: func(d *document) *sampling { return d.Random }, column: independent},
		{name: "lhs", of: func(d *document) *sampling { return d.LHS }, column: latinHypercube},
		{name: "sobol", of: func(d *document) *sampling { return d.Sobol }, column: shiftedSobol, maxAxes: sobolDimensions},
	}
}

// sampled adds the factor of one sampler. Every axis has a random stream of its own, named by its path, so that
// adding or moving an axis leaves the others' samples alone.
func (b *axisBuilder) sampled(method sampler, space *sampling, seed uint64) {
	home := join(method.name, "space")
	if space.Samples < 1 || space.Samples > maxAxisValues {
		b.add(join(method.name, "samples"), space.Samples, "give 1 to %d samples", maxAxisValues)
		return
	}
	if len(space.Space) == 0 {
		b.addMessage(home, "give at least one axis, such as `engine.max_num_seqs: {int: [1, 512]}`")
		return
	}
	if method.maxAxes > 0 && len(space.Space) > method.maxAxes {
		b.addMessage(home, "it has %d axes; %s takes at most %d, lhs any number", len(space.Space), method.name, method.maxAxes)
		return
	}
	f := factor{rows: make([]option, space.Samples)}
	for i, path := range b.origins.sorted(home, space.Space) {
		a := b.newAxis(home, path)
		if a == nil {
			continue
		}
		at := join(home, path)
		quantile, ok := b.distribution(at, space.Space[path])
		if !ok {
			continue
		}
		src := rand.NewPCG(seed, streamOf(method.name+":"+path))
		drawn := b.draw(at, path, quantile, method.column(src, space.Samples, i))
		b.claim(home, path, drawn)
		if len(drawn) < len(f.rows) {
			continue // reported; the spec is refused
		}
		for j, o := range drawn {
			f.rows[j] = f.rows[j].with(o)
		}
		f.axes = append(f.axes, a)
	}
	b.addFactor(f)
}

// draw returns the samples of one axis. The first wrong value ends them, as all would be wrong alike.
func (b *axisBuilder) draw(at, path string, quantile func(float64) any, column []float64) []option {
	drawn := make([]option, 0, len(column))
	for _, u := range column {
		o, ok := b.option(at, path, quantile(u))
		if !ok {
			break
		}
		drawn = append(drawn, o)
	}
	return drawn
}

func streamOf(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// distribution returns the function that turns a number in [0, 1) into a value of the axis.
func (b *axisBuilder) distribution(at string, domain any) (func(u float64) any, bool) {
	if _, isList := domain.([]any); isList {
		return b.choices(at, domain)
	}
	name, args, round, ok := b.generator(at, domain, slices.Concat(distributions(), generators()))
	if !ok {
		return nil, false
	}
	switch {
	case name == "choices":
		if _, isList := args.([]any); !isList {
			b.add(join(at, name), args, "give a list of values")
			return nil, false
		}
		return b.choices(join(at, name), args)
	case slices.Contains(generators(), name):
		return b.choices(at, domain)
	}
	value, ok := b.interval(join(at, name), name, args)
	if !ok || !round {
		return value, ok
	}
	return func(u float64) any { return math.Round(value(u).(float64)) }, true
}

func (b *axisBuilder) choices(at string, domain any) (func(u float64) any, bool) {
	values, ok := b.domain(at, domain)
	return func(u float64) any { return values[int(u*float64(len(values)))] }, ok
}

func (b *axisBuilder) interval(at, name string, args any) (func(u float64) any, bool) {
	n, ok := b.numbers(at, args, "low", "high")
	if !ok {
		return nil, false
	}
	low, high := n[0], n[1]
	switch {
	case low >= high:
		b.add(at, args, "low is below high")
	case name == "loguniform" && low <= 0:
		b.add(at, args, "low is above 0")
	case name == "int" && (low != math.Trunc(low) || high != math.Trunc(high) || high-low >= 1<<52):
		b.add(at, args, "low and high are whole numbers, less than 2^52 apart")
	case name == "int":
		return func(u float64) any { return low + math.Floor(u*(high-low+1)) }, true
	case name == "loguniform":
		return func(u float64) any {
			return tidy(math.Exp(math.Log(low) + u*(math.Log(high)-math.Log(low))))
		}, true
	default:
		return func(u float64) any { return tidy(low + u*(high-low)) }, true
	}
	return nil, false
}

// unit draws a number in [0, 1). It uses 53 bits of the generator directly, so that no change of the standard
// library's distributions can move a sample.
func unit(src *rand.PCG) float64 { return float64(src.Uint64()>>11) / (1 << 53) }

func independent(src *rand.PCG, n, _ int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = unit(src)
	}
	return out
}

// latinHypercube places one number in each of n equal strata, in random order.
func latinHypercube(src *rand.PCG, n, _ int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = (float64(i) + unit(src)) / float64(n)
	}
	for i := n - 1; i > 0; i-- {
		high, _ := bits.Mul64(src.Uint64(), uint64(i+1)) // the bias is below n/2^64
		j := int(high)
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// shiftedSobol is a Sobol sequence whose digits are flipped by one random mask, which keeps its balance and makes
// it depend on the seed.
func shiftedSobol(src *rand.PCG, n, axis int) []float64 {
	mask := uint32(src.Uint64() >> 32)
	out := make([]float64, n)
	for i, x := range sobolSequence(axis, n) {
		out[i] = float64(x^mask) / (1 << 32)
	}
	return out
}
