package metrics

// NearestRank is a percentile, from 0 to 100, of sorted values of which there is at least one: the least of them that is no smaller
// than so many percent of them. Reports have the reference's percentiles, which are those of [Summary].
func NearestRank(sorted []float64, percent int) float64 {
	return sorted[max((percent*len(sorted)+99)/100-1, 0)]
}
