// Package endpoint is a simulated deployment behind HTTP: the routes of an OpenAI-compatible server, the metrics of the engine that
// it simulates, and faults on demand.
//
// Read server.go for what it is made of, handle.go for the way of a request, choice.go for its answers, decode.go and prompt.go for
// what comes in, answer.go, stream.go and encode.go for what goes out, faulty.go for what goes wrong on purpose, metrics.go for what Prometheus
// sees; the room fault has the rules of what goes wrong.
package endpoint
