// Package wire is what travels through a queue: points, finished points, lists of files and notes about workers and tries. Anybody
// in a namespace may publish anything, so everything here is bounded in length and checked when it is read. It knows nothing of
// the server, so that its parsers can be fuzzed by themselves.
package wire
