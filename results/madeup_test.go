package results

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/workload"
)

// madeUpRows returns the rows of a plausible sweep: concurrency by workers by token budget by policy, with a few
// failed and skipped points. Equal seeds give equal rows.
func madeUpRows(seed uint64) []Row {
	rng := rand.New(rand.NewPCG(seed, 1))
	var rows []Row
	for _, workers := range []int{1, 2, 4, 8} {
		for _, policy := range []string{"round_robin", "kv_router"} {
			for _, budget := range []int{2048, 8192, 16384} {
				for c := range 13 {
					rows = append(rows, madeUpRow(rng, len(rows), workers, policy, budget, int(math.Round(math.Pow(2, float64(c)*0.75)))))
				}
			}
		}
	}
	return rows
}

func madeUpRow(rng *rand.Rand, index, workers int, policy string, budget, concurrency int) Row {
	config, _ := gridspec.DefaultConfig().Resolve()
	config.Load.Mode, config.Load.Concurrency = simcore.LoadConcurrency, concurrency
	config.Deployment.Workers = workers
	config.Engine.MaxNumBatchedTokens = budget
	config.Timing.TP = 2
	row := Row{
		ID: fmt.Sprintf("%016x", rng.Uint64()), Status: StatusOK, WallSeconds: 0.02 + 0.1*rng.Float64(),
		WorkloadDigest: "5d2c0a3f8f3e7d9b",
		Point: &gridspec.Point{
			Index: index, Config: config,
			Workload: workload.Spec{Preset: &workload.PresetSpec{Name: "chat", Requests: 2000}},
			Axes: []gridspec.AxisValue{
				intAxis("workers", "deployment.workers", workers),
				{Column: "router_policy", Path: "router.policy", Value: text(policy)},
				intAxis("max_num_batched_tokens", "engine.max_num_batched_tokens", budget),
				intAxis("concurrency", "load.concurrency", concurrency),
			},
		},
	}
	switch {
	case workers == 1 && policy == "kv_router":
		row.Status, row.Reason, row.Error = StatusSkipped, "excluded", "a KV router needs more than one worker"
		row.Metrics = nil
	case rng.Float64() < 0.012:
		row.Status, row.Reason, row.Error = StatusFailed, "timeout", "the simulation took longer than 5m"
	default:
		row.Metrics = madeUpMetrics(rng, workers, policy, budget, concurrency)
	}
	return row
}

func intAxis(column, path string, n int) gridspec.AxisValue {
	return gridspec.AxisValue{Column: column, Path: path, Value: integer(n)}
}

// madeUpMetrics follows the shape of real serving: speed per user falls and throughput saturates with load.
func madeUpMetrics(rng *rand.Rand, workers int, policy string, budget, concurrency int) []float64 {
	perWorker := float64(concurrency) / float64(workers)
	noise := func(spread float64) float64 { return 1 + spread*(rng.Float64()-0.5) }
	reuse := 0.32
	if policy == "kv_router" {
		reuse = 0.58
	}
	stepMs := (6.5 + 0.11*perWorker*(1+float64(budget)/30000)*(1.35-reuse)) * noise(0.08)
	user := 1000 / stepMs
	throughput := math.Min(perWorker, 300) * user * float64(workers) * noise(0.06) * (0.8 + 0.4*reuse)
	ttft := (60 + 1800*(1-reuse)*perWorker/float64(60+budget/64)) * noise(0.2)
	known := map[string]float64{
		"num_requests": 2000, "completed_requests": 2000, "rejected_requests": 0, "left_out_records": 0, "extrapolated_pass_ratio": 0, "duration_ms": 4e8 / throughput,
		"total_input_tokens": 1890112, "total_output_tokens": 398711,
		"output_throughput_tok_s":               throughput,
		"output_throughput_tok_s_per_gpu":       throughput / float64(2*workers),
		"mean_output_token_throughput_per_user": user, "prefix_cache_reused_ratio": reuse * noise(0.05),
		"mean_ttft_ms": ttft, "p99_ttft_ms": 3.1 * ttft, "mean_itl_ms": stepMs, "p99_itl_ms": 2.2 * stepMs,
		"mean_tpot_ms": stepMs, "p99_tpot_ms": 1.4 * stepMs, "p99_e2e_latency_ms": 3*ttft + 420*stepMs,
		"decode_worker_utilisation": math.Min(1, perWorker/300), "preemptions": math.Floor(math.Max(0, perWorker-180)),
	}
	out := make([]float64, len(metrics.Fields()))
	for i, f := range metrics.Fields() {
		out[i] = math.NaN()
		if v, ok := known[f.Name]; ok {
			out[i] = v
		} else if !f.Optional || IsCost(i) {
			out[i] = math.Round(rng.Float64()*1e4) / 10
			if f.Integer {
				out[i] = math.Floor(out[i])
			}
		}
	}
	return out
}
