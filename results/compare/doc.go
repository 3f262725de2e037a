// Package compare says what differs between two sets of results, or between two points, and why.
//
// [Tables] pairs the points of two tables and lists the settings, figures and frontier points that differ. [Points] lays two
// points side by side. [Explain] and [Reasons] split a difference of latencies into the parts of the requests' time.
package compare
