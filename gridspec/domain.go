package gridspec

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxAxisValues bounds the values of one axis and the samples of a space.
const maxAxisValues = 100_000

// generators lists the keys of a mapping that generates the values of an axis.
func generators() []string { return []string{"range", "linspace", "logspace", "powers"} }

// distributions lists the keys of a mapping that random, lhs and sobol can draw from besides.
func distributions() []string { return []string{"uniform", "loguniform", "int", "choices"} }

// domain returns the values of an axis: a list, or a mapping with one generator.
func (b *axisBuilder) domain(at string, domain any) ([]any, bool) {
	if list, ok := domain.([]any); ok {
		if len(list) == 0 {
			b.addMessage(at, "an axis needs at least one value")
		}
		if len(list) > maxAxisValues {
			b.addMessage(at, "it has %d values; an axis has at most %d", len(list), maxAxisValues)
		}
		return list, len(list) > 0 && len(list) <= maxAxisValues
	}
	name, args, round, ok := b.generator(at, domain, generators())
	if !ok {
		return nil, false
	}
	values, ok := b.generate(join(at, name), name, args)
	if !ok {
		return nil, false
	}
	out := make([]any, 0, len(values))
	for _, v := range values {
		if round {
			v = math.Round(v)
		}
		if n := len(out); n == 0 || out[n-1] != v {
			out = append(out, any(v))
		}
	}
	return out, true
}

// generator reads a mapping with one of the allowed keys and an optional `round`.
func (b *axisBuilder) generator(at string, domain any, allowed []string) (name string, args any, round, ok bool) {
	m, isMap := domain.(map[string]any)
	if !isMap {
		b.add(at, domain, "give a list of values, or a mapping with one of: %s", strings.Join(allowed, ", "))
		return "", nil, false, false
	}
	ok = true
	for _, k := range b.origins.sorted(at, m) {
		switch {
		case k == "round":
			if round, ok = m[k].(bool); !ok {
				b.add(join(at, k), m[k], "give true or false")
				return "", nil, false, false
			}
		case !slices.Contains(allowed, k):
			if slices.Contains(distributions(), k) {
				b.addMessage(join(at, k), "this draws samples, so it belongs below random, lhs or sobol; here use a list or one of: %s", strings.Join(allowed, ", "))
			} else {
				b.addUnknown(join(at, k), k, append(slices.Clone(allowed), "round"))
			}
			ok = false
		case name != "":
			b.addMessage(join(at, k), "an axis has one of: %s; there is already %s", strings.Join(allowed, ", "), name)
			ok = false
		default:
			name, args = k, m[k]
		}
	}
	if name == "" && ok {
		b.addMessage(at, "give one of: %s", strings.Join(allowed, ", "))
		ok = false
	}
	return name, args, round, ok
}

// generate computes the values of a generator. Their last digits are rounded away, so that every machine gets the
// same ones.
func (b *axisBuilder) generate(at, name string, args any) ([]float64, bool) {
	switch name {
	case "range":
		return b.steps(at, args)
	case "powers":
		return b.powers(at, args)
	}
	n, ok := b.numbers(at, args, "first", "last", "number of values")
	if !ok {
		return nil, false
	}
	first, last, count := n[0], n[1], n[2]
	if count != math.Trunc(count) || count < 1 {
		b.add(at, args, "the number of values is a whole number of 1 or more")
		return nil, false
	}
	if name == "logspace" && (first <= 0 || last <= 0) {
		b.add(at, args, "first and last are values above 0")
		return nil, false
	}
	return b.series(at, count, func(i float64) float64 {
		switch {
		case i == 0:
			return first
		case i == count-1:
			return last
		case name == "logspace":
			return math.Exp(math.Log(first) + (math.Log(last)-math.Log(first))*i/(count-1))
		}
		return first + (last-first)*i/(count-1)
	})
}

// steps computes `range: [start, stop, step]`; stop is a value when a step hits it.
func (b *axisBuilder) steps(at string, args any) ([]float64, bool) {
	n, ok := b.numbers(at, args, "start", "stop", "step")
	if !ok {
		return nil, false
	}
	start, stop, step := n[0], n[1], n[2]
	if step == 0 || (stop-start)*step < 0 {
		b.add(at, args, "the step leads from start to stop and is not 0")
		return nil, false
	}
	const slack = 1e-9 // of a step, for steps such as 0.1
	count := math.Floor((stop-start)/step+slack) + 1
	return b.series(at, count, func(i float64) float64 { return start + i*step })
}

func (b *axisBuilder) powers(at string, args any) ([]float64, bool) {
	n, ok := b.numbers(at, args, "base", "first exponent", "last exponent")
	if !ok {
		return nil, false
	}
	base, from, to := n[0], n[1], n[2]
	if base <= 0 || from != math.Trunc(from) || to < from {
		b.add(at, args, "the base is above 0 and the exponents are whole numbers in rising order")
		return nil, false
	}
	return b.series(at, math.Floor(to-from)+1, func(i float64) float64 { return math.Pow(base, from+i) })
}

// series evaluates a function at 0, 1, ... count-1.
func (b *axisBuilder) series(at string, count float64, value func(i float64) float64) ([]float64, bool) {
	if !(count <= maxAxisValues) {
		b.addMessage(at, "it makes %.0f values; an axis has at most %d", count, maxAxisValues)
		return nil, false
	}
	out := make([]float64, int(count))
	for i := range out {
		if out[i] = tidy(value(float64(i))); math.IsInf(out[i], 0) {
			b.addMessage(at, "value %d is too large", i)
			return nil, false
		}
	}
	return out, true
}

// numbers reads a list of numbers whose meanings are given.
func (b *axisBuilder) numbers(at string, args any, meanings ...string) ([]float64, bool) {
	list, _ := args.([]any)
	out := make([]float64, 0, len(meanings))
	for _, v := range list {
		if n, ok := number(v); ok {
			out = append(out, n)
		}
	}
	if len(list) != len(meanings) || len(out) != len(list) {
		b.add(at, args, "give a list of numbers: [%s]", strings.Join(meanings, ", "))
		return nil, false
	}
	return out, true
}

// tidy keeps 12 significant digits of a computed value that is not a whole number. Machines differ in the last
// digits of logarithms and fused products, and content IDs must not.
func tidy(v float64) float64 {
	if v == math.Trunc(v) || math.IsInf(v, 0) {
		return v
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64)
	if err != nil {
		return v
	}
	return rounded
}
