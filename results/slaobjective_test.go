package results

import (
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
