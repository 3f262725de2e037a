// Package sensitivity says which axes of a sweep matter for which metric, and where a metric moves against what one
// expects of an axis.
//
// [Analyse] splits the variance of each metric into what axes do by themselves and together (Sobol indices): exactly on a
// full grid, by a fitted model on any other set of points, with its share of the variance and an interval for each figure.
// [Surprises] looks at pairs of points that differ in one axis only.
//
// Read analyse.go and surprises.go for what there is, cells.go for how a table becomes a design, then exact.go, or basis.go
// and fit.go.
package sensitivity
