package perfmodel

import (
	"cmp"
	"math"

	"github.com/servegrid/servegrid/simcore/problem"
)

// adjusted is a model with what a measured run says that it lacks.
type adjusted struct {
	Model
	prefillScale, decodeScale, passMs float64
}

// Price adds the overhead once a pass: to the prompts where the pass has any, since the engine may drop the price of a decode
// step that gives no token.
func (m adjusted) Price(p *Pass) Price {
	out := m.Model.Price(p)
	// Explicit conversions keep the compiler from fusing the products on some architectures.
	out.PrefillMs = float64(m.prefillScale * out.PrefillMs)
	out.DecodeMs = float64(m.decodeScale * out.DecodeMs)
	switch {
	case p.Prefill.Requests > 0:
		out.PrefillMs += m.passMs
	case p.Decode.Requests > 0:
		out.DecodeMs += m.passMs
	}
	return out
}

// adjusts reports whether a pass takes another time than the model says. A scale that nobody set leaves it as it is.
func (c Config) adjusts() bool {
	return c.PassOverheadMs != 0 || cmp.Or(c.PrefillScale, 1) != 1 || cmp.Or(c.DecodeScale, 1) != 1
}

func (c Config) validateAdjustment() problem.List {
	var l problem.List
	for _, s := range []struct {
		key   string
		value float64
	}{{"prefill_scale", c.PrefillScale}, {"decode_scale", c.DecodeScale}} {
		if !(s.value > 0) || math.IsInf(s.value, 0) {
			l.Add(s.key, s.value, "give a factor above 0; 1 changes nothing")
		}
	}
	for _, d := range []struct {
		key   string
		value float64
	}{{"pass_overhead_ms", c.PassOverheadMs}, {"request_overhead_ms", c.RequestOverheadMs}} {
		if !(d.value >= 0) || math.IsInf(d.value, 0) {
			l.Add(d.key, d.value, "give a duration of 0 ms or more")
		}
	}
	return l
}
