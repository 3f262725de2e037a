package profile

// plane is intercept + slope·x + slope2·y.
type plane struct{ intercept, slope, slope2 float64 }

func (p plane) at(x, y float64) float64 {
	return p.intercept + float64(p.slope*x) + float64(p.slope2*y)
}

// collinear is the share of y's spread that x must leave unexplained for both slopes to be told apart.
const collinear = 1e-12

// fitPlane fits z by least squares over x and y. Where these vary together, or not at all, it returns the smallest
// slopes of the best fits, as the reference's fit does.
func fitPlane(x, y, z []float64) plane {
	meanX, meanY, meanZ := mean(x), mean(y), mean(z)
	xx, xz := spread(x, x, meanX, meanX), spread(x, z, meanX, meanZ)
	yy, yz := spread(y, y, meanY, meanY), spread(y, z, meanY, meanZ)
	var p plane
	switch {
	case xx == 0 && yy == 0:
	case xx == 0:
		p.slope2 = yz / yy
	default:
		ratio := spread(x, y, meanX, meanY) / xx // of y to x
		// What is left of y beside x, taken point by point: the difference of large sums would lose it.
		var left, leftZ float64
		for i := range x {
			r := y[i] - meanY - ratio*(x[i]-meanX)
			left += r * r
			leftZ += r * (z[i] - meanZ)
		}
		if left <= collinear*yy {
			slope := xz / xx
			p.slope = slope / (1 + ratio*ratio)
			p.slope2 = p.slope * ratio
			break
		}
		p.slope2 = leftZ / left
		p.slope = xz/xx - ratio*p.slope2
	}
	p.intercept = meanZ - p.slope*meanX - p.slope2*meanY
	return p
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// spread is the sum of the products of two variables' distances from their means.
func spread(a, b []float64, meanA, meanB float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - meanA) * (b[i] - meanB)
	}
	return sum
}
