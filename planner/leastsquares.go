package planner

import "math"

// plane is a linear function of a load: intercept + slope · x.
type plane struct {
	slope     [2]float64
	intercept float64
}

// at returns its value.
func (p plane) at(x [2]float64) float64 {
	return p.intercept + p.slope[0]*x[0] + p.slope[1]*x[1]
}

// sensible tells whether no slope is negative. With clampFirst a negative first one is taken for zero, unless it is so by
// rounding only and stays.
func (p *plane) sensible(clampFirst bool) bool {
	first := &p.slope[0]
	if clampFirst && *first < -1e-6 {
		*first = 0
	}
	return (clampFirst || *first >= 0) && p.slope[1] >= 0
}

// nonNegative fits a plane without negative slopes, and not below zero without a load: of the planes that leave some of
// these out, the best.
func nonNegative(samples []sample, dims int) (best plane) {
	if best = leastSquares(samples, dims); best.natural() {
		return best
	}
	best, least := plane{}, math.Inf(1)
	for parts := range 1 << (dims + 1) {
		p := fitParts(samples, parts)
		errors := 0.0
		for _, s := range samples {
			e := s.y - p.at(s.x)
			errors += e * e
		}
		if p.natural() && errors < least {
			best, least = p, errors
		}
	}
	return best
}

// natural tells whether nothing is negative.
func (p plane) natural() bool { return p.intercept >= 0 && p.slope[0] >= 0 && p.slope[1] >= 0 }

// fitParts fits a plane of which only parts are not zero: bit 0 is the intercept, the others are the slopes.
func fitParts(samples []sample, parts int) plane {
	unit := [3]float64{1}
	for _, s := range samples {
		unit[1], unit[2] = max(unit[1], s.x[0]), max(unit[2], s.x[1])
	}
	var m [3][4]float64
	for i := range m {
		m[i][i] = 1 // what is left out solves to zero
	}
	for i := range m {
		if parts>>i&1 == 0 || unit[i] == 0 {
			continue
		}
		for j := range m {
			m[i][j] = 0
			for _, s := range samples {
				if parts>>j&1 == 1 && unit[j] > 0 {
					row := [3]float64{1, s.x[0], s.x[1]}
					m[i][j] += row[i] / unit[i] * row[j] / unit[j]
				}
			}
		}
		m[i][3] = 0
		for _, s := range samples {
			m[i][3] += [3]float64{1, s.x[0], s.x[1]}[i] / unit[i] * s.y
		}
	}
	v, ok := eliminate(m, 3)
	if !ok {
		return plane{intercept: math.NaN()}
	}
	for i := range v {
		if unit[i] > 0 {
			v[i] /= unit[i]
		}
	}
	return plane{intercept: v[0], slope: [2]float64{v[1], v[2]}}
}

// leastSquares fits a plane to samples of loads with dims numbers: of all that fit equally well the one with the least
// slopes. Without samples it is zero.
func leastSquares(samples []sample, dims int) plane {
	n := float64(len(samples))
	if n == 0 {
		return plane{}
	}
	var meanX [2]float64
	meanY := 0.0
	for _, s := range samples {
		meanY += s.y
		for i := range dims {
			meanX[i] += s.x[i]
		}
	}
	meanY /= n
	for i := range dims {
		meanX[i] /= n
	}
	p := plane{slope: centredSlopes(samples, meanX, meanY, dims)}
	p.intercept = meanY - p.slope[0]*meanX[0] - p.slope[1]*meanX[1]
	return p
}

// centredSlopes returns the slopes of the least squares through the means: by the singular values of the matrix of loads,
// which one rotation of its two columns gives, because loads are often nearly collinear and normal equations would lose
// half of the digits.
func centredSlopes(samples []sample, meanX [2]float64, meanY float64, dims int) (slope [2]float64) {
	cos, sin := rotation(samples, meanX, dims)
	var square, product [2]float64 // of the rotated columns, with themselves and with the times
	for _, s := range samples {
		a, b := s.x[0]-meanX[0], 0.0
		if dims == 2 {
			b = s.x[1] - meanX[1]
		}
		u, v, y := cos*a-sin*b, sin*a+cos*b, s.y-meanY
		square[0] += u * u
		square[1] += v * v
		product[0] += u * y
		product[1] += v * y
	}
	// Singular values below the rounding of the greatest are zero, and with them their part of the slopes.
	cut := max(math.Sqrt(square[0]), math.Sqrt(square[1])) * float64(max(len(samples), dims)) * 0x1p-52
	var z [2]float64
	for i := range z {
		if math.Sqrt(square[i]) > cut {
			z[i] = product[i] / square[i]
		}
	}
	return [2]float64{cos*z[0] + sin*z[1], -sin*z[0] + cos*z[1]}
}

// rotation returns cosine and sine of the angle that makes the two columns of the centred loads orthogonal. Loads whose
// columns differ much in size take several steps until nothing is left of their product.
func rotation(samples []sample, meanX [2]float64, dims int) (cos, sin float64) {
	cos = 1
	if dims < 2 {
		return cos, sin
	}
	for range 8 {
		var uu, vv, uv float64
		for _, s := range samples {
			a, b := s.x[0]-meanX[0], s.x[1]-meanX[1]
			u, v := cos*a-sin*b, sin*a+cos*b
			uu += u * u
			vv += v * v
			uv += u * v
		}
		if math.Abs(uv) <= 0x1p-53*math.Sqrt(uu*vv) {
			return cos, sin
		}
		zeta := (vv - uu) / (2 * uv)
		t := math.Copysign(1/(math.Abs(zeta)+math.Hypot(1, zeta)), zeta)
		c := 1 / math.Hypot(1, t)
		s := c * t
		cos, sin = c*cos-s*sin, s*cos+c*sin
	}
	return cos, sin
}
