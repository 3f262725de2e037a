package requests

import (
	"fmt"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// The keys under which the metadata of a table says how its requests were served; the others are key paths of a spec.
const (
	KeyModel     = "timing.model"
	KeyBlockSize = "engine.block_size"
	// KeyTopology is the workers and the routing policy in words, KeyCache what was in the prefix cache at the beginning.
	KeyTopology = "topology"
	KeyCache    = "cache"
)

// Describe notes in the metadata of a table of simulated requests which workload and which deployment they are of.
func Describe(t *results.Table, w *workload.Workload, cfg simcore.Config) {
	if resolved, problems := cfg.Resolve(); problems.Err() == nil { // as it was simulated
		cfg = resolved
	}
	first := cfg.Stages()[0]
	t.Metadata.Workloads = map[string]string{w.Name: w.Digest()}
	t.Metadata.Constants = map[string]any{KeyBlockSize: first.Engine.BlockSize, KeyTopology: topology(cfg), KeyCache: "empty"}
	if first.Timing.Model != "" {
		t.Metadata.Constants[KeyModel] = first.Timing.Model
	}
}

func topology(cfg simcore.Config) string {
	d := cfg.Deployment
	if d.Mode == simcore.ModeDisaggregated {
		return fmt.Sprintf("%d prefill and %d decode workers, %s, %s", d.PrefillWorkers, d.DecodeWorkers, cfg.Prefill.Engine.Type, cfg.Router.Policy)
	}
	if d.Workers == 1 {
		return fmt.Sprintf("1 worker, %s", cfg.Engine.Type)
	}
	return fmt.Sprintf("%d workers, %s, %s", d.Workers, cfg.Engine.Type, cfg.Router.Policy)
}
