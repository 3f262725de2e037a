// Package planner decides how many workers a deployment has while it serves: NVIDIA Dynamo's SLA planner, rebuilt from
// a description of its behaviour, and other policies to compare it with.
//
// Read config.go for the settings and resolve.go for what they may be, run.go for how a simulation runs with a policy. The
// policy dynamo: dynamo.go with schedule.go and traffic.go for what it sees and when, core.go for one tick, load.go, static.go,
// throughput.go and budget.go for how it decides, seen.go, retention.go and perfmodel.go with storemodel.go (and regression.go,
// of older releases) for how it learns how long a pass takes, bootstrap.go and warmup.go for what it knows at the start, rules.go
// for what differs between releases; package planner/forecast predicts the load. The others: targettracking.go, foresight.go.
// report.go is what all of them tell.
package planner
