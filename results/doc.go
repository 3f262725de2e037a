// Package results holds what a sweep found: the table of points, its files, and the analyses that read it.
//
// A [Row] is the outcome of one point. [NewTable] turns rows into a [Table] of typed columns, which the writers
// ([WriteParquet], [WriteCSV], [WriteJSON] and, in package arrowipc, Arrow) put into files and [ReadTable] reads
// back, also from files that other tools made. [Frontier] and [Constraint] answer which configurations are worth
// choosing, and [WriteReport] draws it all as one offline HTML page.
//
// Read row.go and table.go for the data, schema.go for the columns, then one file a format, frontier.go and
// report.go.
package results
