// Package replay sends a workload to a target as it was recorded, or as a load wants it, and measures what comes back.
//
// It has one goroutine that decides, which is the only one that knows the schedule, and one for each request under way. Read
// options.go for what can be asked, scheduler.go for when requests go out, flight.go for what is measured of one, ahead.go for
// how prompts are made before they are needed, and names.go for what requests and sessions are called.
package replay
