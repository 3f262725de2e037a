package results

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// disaggregated is a point with pools of its own; change may make them differ.
func disaggregated(change func(prefill, decode *simcore.Stage)) Row {
	row := point()
	c := &row.Point.Config
	c.Deployment = simcore.Deployment{Mode: simcore.ModeDisaggregated, Workers: 1, PrefillWorkers: 2, DecodeWorkers: 3}
	c.Prefill = simcore.Stage{Engine: c.Engine, Timing: c.Timing}
	c.Decode = c.Prefill
	change(&c.Prefill, &c.Decode)
	return row
}

// texts are the values of a column, with a dash for null; nil when there is no such column.
func texts(t *Table, name string) []string {
	c := t.Column(name)
	if c == nil {
		return nil
	}
	out := make([]string, c.Len())
	for i := range out {
		if out[i] = "-"; !c.Null[i] {
			out[i] = c.Text(i)
		}
	}
	return out
}

// What the pools have in common stands where aggregated workers have it, the rest with the pools, and what a point does
// not have is null.
func TestSettingsOfPools(t *testing.T) {
	rows := []Row{point(), disaggregated(func(p, d *simcore.Stage) {
		p.Engine.BlockSize, d.Engine.BlockSize = 32, 32
		d.Engine.MaxNumSeqs, d.Timing.TP = 8, 2
		p.Timing.Source, d.Timing.Source, d.Timing.DecodeMs = perfmodel.SourcePolynomial, perfmodel.SourceFixed, 4
	})}
	table := NewTable(rows, Metadata{})
	for name, want := range map[string][]string{
		"engine_block_size":           {"64", "32"},
		"engine_max_num_seqs":         {"256", "-"},
		"prefill_engine_max_num_seqs": {"-", "256"},
		"decode_engine_max_num_seqs":  {"-", "8"},
		"prefill_engine_block_size":   nil,
		"decode_timing_tp":            {"-", "2"},
		"deployment_workers":          {"1", "-"},
		"deployment_decode_workers":   {"-", "3"},
		"timing_source":               {"polynomial", "polynomial, fixed"},
		"gpus":                        {"1", "8"},
	} {
		if diff := cmp.Diff(want, texts(table, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for path := range table.Metadata.Constants {
		if strings.HasPrefix(path, "prefill.") || strings.HasPrefix(path, "decode.") {
			t.Errorf("%s is a constant, although both pools have it", path)
		}
	}
}
