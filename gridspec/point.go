package gridspec

import (
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Kind is the type of an axis value and of its column in the results.
type Kind int8

// The kinds of axis values.
const (
	KindString Kind = iota
	KindInt
	KindFloat
	KindBool
)

// Value is one typed axis value. Only the field that Kind names is meaningful.
type Value struct {
	Kind  Kind
	Str   string
	Int   int64
	Float float64
	Bool  bool
}

// AxisValue is the value of one axis, derived expression, case name or replicate at one point.
type AxisValue struct {
	// Column is the axis's name in the results: the key path's last part when that is unique, the whole path
	// joined by "_" otherwise.
	Column string
	// Path is the key path, such as "engine.block_size"; derived values have their name.
	Path string
	// Value is the value at this point.
	Value Value
}

// Point is one configuration to simulate, as it comes out of [Spec.Expand].
type Point struct {
	// Index is the point's place in the expansion, from 0.
	Index int
	// Axes holds the value of every axis, in the order of the spec, then derived values.
	Axes []AxisValue
	// Config is the complete configuration, resolved: with every default and whatever follows from GPU and model
	// filled in.
	Config Config
	// GPUPrice is what a GPU of the point costs and draws; it does not change the simulation.
	GPUPrice metrics.GPUPrice
	// Workload is what the point replays. Points share its sections, so nobody changes them.
	Workload workload.Spec
	// Replicate counts the repetitions of the same configuration, from 0.
	Replicate int
	// SkipReason is a stable category when the point is impossible and the spec says `on_invalid: skip`; the
	// point is then not simulated but kept as a row. SkipMessage says what is impossible.
	SkipReason, SkipMessage string
}
