package gridspec

import "math/bits"

// sobolDimensions is the number of axes that the table of direction numbers covers.
const sobolDimensions = 32

// sobolDirection describes one dimension: a primitive polynomial over GF(2) of degree len(initial), whose inner
// coefficients are the bits of coefficients, and the first direction numbers.
type sobolDirection struct {
	coefficients uint32
	initial      []uint32
}

// sobolDirections returns the numbers of S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better
// two-dimensional projections", SIAM J. Sci. Comput. 30 (2008), from the second dimension on.
func sobolDirections() [sobolDimensions - 1]sobolDirection {
	return [...]sobolDirection{
		{0, []uint32{1}},
		{1, []uint32{1, 3}},
		{1, []uint32{1, 3, 1}},
		{2, []uint32{1, 1, 1}},
		{1, []uint32{1, 1, 3, 3}},
		{4, []uint32{1, 3, 5, 13}},
		{2, []uint32{1, 1, 5, 5, 17}},
		{4, []uint32{1, 1, 5, 5, 5}},
		{7, []uint32{1, 1, 7, 11, 19}},
		{11, []uint32{1, 1, 5, 1, 1}},
		{13, []uint32{1, 1, 1, 3, 11}},
		{14, []uint32{1, 3, 5, 5, 31}},
		{1, []uint32{1, 3, 3, 9, 7, 49}},
		{13, []uint32{1, 1, 1, 15, 21, 21}},
		{16, []uint32{1, 3, 1, 13, 27, 49}},
		{19, []uint32{1, 1, 1, 15, 7, 5}},
		{22, []uint32{1, 3, 1, 15, 13, 25}},
		{25, []uint32{1, 1, 5, 5, 19, 61}},
		{1, []uint32{1, 3, 7, 11, 23, 15, 103}},
		{4, []uint32{1, 3, 7, 13, 13, 15, 69}},
		{7, []uint32{1, 1, 3, 13, 7, 35, 63}},
		{8, []uint32{1, 3, 5, 9, 1, 25, 53}},
		{14, []uint32{1, 3, 1, 13, 9, 35, 107}},
		{19, []uint32{1, 3, 1, 5, 27, 61, 31}},
		{21, []uint32{1, 1, 5, 11, 19, 41, 61}},
		{28, []uint32{1, 3, 5, 3, 3, 13, 69}},
		{31, []uint32{1, 1, 7, 13, 1, 19, 1}},
		{32, []uint32{1, 3, 7, 5, 13, 19, 59}},
		{37, []uint32{1, 1, 3, 9, 25, 29, 41}},
		{41, []uint32{1, 3, 5, 13, 23, 1, 55}},
		{42, []uint32{1, 3, 7, 3, 13, 59, 17}},
	}
}

// sobolSequence returns the first n points of one dimension as fractions of 2^32, in Gray code order.
func sobolSequence(dimension, n int) []uint32 {
	v := directionNumbers(dimension)
	out := make([]uint32, n)
	for i := 1; i < n; i++ {
		out[i] = out[i-1] ^ v[bits.TrailingZeros32(uint32(i))]
	}
	return out
}

// directionNumbers expands the table's entry of a dimension to 32 numbers; the first dimension is van der
// Corput's sequence.
func directionNumbers(dimension int) [32]uint32 {
	var v [32]uint32
	if dimension == 0 {
		for i := range v {
			v[i] = 1 << (31 - i)
		}
		return v
	}
	d := sobolDirections()[dimension-1]
	degree := len(d.initial)
	for i := range v {
		if i < degree {
			v[i] = d.initial[i] << (31 - i)
			continue
		}
		v[i] = v[i-degree] ^ v[i-degree]>>degree
		for k := 1; k < degree; k++ {
			if d.coefficients>>(degree-1-k)&1 == 1 {
				v[i] ^= v[i-k]
			}
		}
	}
	return v
}
