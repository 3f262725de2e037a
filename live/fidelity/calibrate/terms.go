package calibrate

import (
	"cmp"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// term is a setting of the timing model that a run may tell.
type term struct {
	key string
	// of is where it is, and read what it means there, since a factor that nobody set is 1.
	of   func(*perfmodel.Config) *float64
	read func(float64) float64
	// least is the smallest value, and step how far it is changed to see what that does.
	least, step float64
}

func asIs(v float64) float64       { return v }
func oneIfUnset(v float64) float64 { return cmp.Or(v, 1) }

// termCount is how many terms there are.
const termCount = 4

// terms are in the order in which they are kept when a run cannot tell them apart.
var terms = [termCount]term{
	{"decode_scale", func(c *perfmodel.Config) *float64 { return &c.DecodeScale }, oneIfUnset, .01, .2},
	{"prefill_scale", func(c *perfmodel.Config) *float64 { return &c.PrefillScale }, oneIfUnset, .01, .2},
	{"request_overhead_ms", func(c *perfmodel.Config) *float64 { return &c.RequestOverheadMs }, asIs, 0, 2},
	{"pass_overhead_ms", func(c *perfmodel.Config) *float64 { return &c.PassOverheadMs }, asIs, 0, 1},
}

// values are the terms, by their place in terms.
type values [termCount]float64

// valuesOf are the terms of a configuration: those of its first workers, as all have the same ones after a calibration.
func valuesOf(cfg *simcore.Config) values {
	var v values
	timing := cfg.Stages()[0].Timing
	for i, t := range terms {
		v[i] = t.read(*t.of(&timing))
	}
	return v
}

// apply sets the terms of all workers.
func (v values) apply(cfg simcore.Config) simcore.Config {
	for i, t := range terms {
		for _, timing := range []*perfmodel.Config{&cfg.Timing, &cfg.Prefill.Timing, &cfg.Decode.Timing} {
			*t.of(timing) = v[i]
		}
	}
	return cfg
}
