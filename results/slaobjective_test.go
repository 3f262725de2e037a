package results

import (
	"fmt"
	"testing"

	"github.com/servegrid/servegrid/simcore"
)

// TestAttainmentReplacesTheConstraints bounds no percentile where how many requests keep the SLA is an objective.
func TestAttainmentReplacesTheConstraints(t *testing.T) {
	row := point()
	row.Point.Config.SLA = simcore.SLA{TTFTMs: 1500}
	for name, want := range map[string]int{"sla_attainment": 0, "goodput_request_throughput_rps": 0, "gpu_hours": 1} {
		table := NewTable([]Row{row}, Metadata{Objectives: []Objective{{Name: name}}})
		if got := table.Metadata.Constraints; len(got) != want {
			t.Errorf("objective %s: constraints %v, want %d", name, got, want)
		}
	}
}

// TestMeanBounds takes the bounds of the SLA that all points have for those of the means.
func TestMeanBounds(t *testing.T) {
	table := &Table{Metadata: Metadata{Constants: map[string]any{"sla.ttft_ms": 1500.0, "sla.itl_ms": int64(40), "sla.e2e_ms": 0.0, "engine.block_size": 64.0}}}
	got := fmt.Sprint(table.MeanSLAConstraints())
	if want := "[mean_ttft_ms <= 1500 mean_tpot_ms <= 40]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, constants := range []map[string]any{nil, {"sla.ttft_ms": "fast"}} {
		table.Metadata.Constants = constants
		if got := table.MeanSLAConstraints(); len(got) > 0 {
			t.Errorf("%v: %v", constants, got)
		}
	}
}
