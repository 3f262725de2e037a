// Package queue runs the points of a sweep on any number of workers, through NATS JetStream.
//
// A sweep's [Coordinator] is the executor of an ordinary sweep: it publishes each point that the sweep has no result for, and
// brings back what workers found. A worker ([Work]) pulls points, simulates them as a sweep does, sends the rows and only then
// acknowledges the points. So a point is always in one of three places: in the stream of points, in the stream of finished
// ones, or on the sweep's disk. Points are pure functions with names of their own, so one that is simulated twice does no harm.
//
// Read names.go first (what is where in the queue), then streams.go, coordinator.go, publish.go, receive.go, and worker.go
// with its parts. connect.go has what can go wrong with a server, package wire what travels.
package queue
