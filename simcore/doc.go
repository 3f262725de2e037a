// Package simcore simulates an LLM-serving deployment: requests arrive, are routed to workers, and each worker's
// scheduler, KV cache and timing model decide when their tokens come out. A simulation is deterministic,
// single-threaded, and depends on nothing but its [Config] and its workload.
//
// Read config.go for what can be configured, run.go for the one entry point, driver.go for when requests are
// released, graphdriver.go for those of request graphs, alone.go, cluster.go and disagg.go for the three loops, autoscaler.go
// and scaling.go for workers that come and go, report.go for how the outcome is summed up. The parts of a worker live in the
// sub-packages engine, kvcache and perfmodel.
package simcore
