// Package planner decides how many workers a deployment has while it serves: NVIDIA Dynamo's SLA planner, rebuilt from
// a description of its behaviour, and other policies to compare it with.
//
// Read config.go for the settings, run.go for how a simulation runs with a planner, planner.go for one tick, observe.go
// for what it sees, load.go, static.go and throughput.go for how it decides, regression.go and retention.go for how it
// learns how long a pass takes, package planner/forecast for how it predicts the load, report.go for what it tells.
package planner
