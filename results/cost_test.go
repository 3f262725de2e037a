package results

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// billed returns a row of 2 GPUs that ran for a time, at a price.
func billed(hours float64, price metrics.GPUPrice) Row {
	row := point()
	row.Point.Config.Timing.TP, row.Point.GPUPrice = 2, price
	row.Metrics = make([]float64, len(metrics.Fields()))
	for i, f := range metrics.Fields() {
		switch f.Name {
		case "gpu_hours":
			row.Metrics[i] = hours
		case "total_input_tokens":
			row.Metrics[i] = 4e6
		case "total_output_tokens":
			row.Metrics[i] = 5e5
		default:
			row.Metrics[i] = -7
		}
	}
	return row
}

func metricOf(row Row, name string) float64 {
	return row.Metrics[slices.IndexFunc(metrics.Fields(), func(f metrics.Field) bool { return f.Name == name })]
}

func TestSetCost(t *testing.T) {
	row := billed(3, metrics.GPUPrice{USDPerHour: 2, TDPWatts: 500})
	shared := row.Metrics
	row.SetCost()
	for name, want := range map[string]float64{
		"cost_usd": 6, "cost_usd_per_gpu": 3, "cost_usd_per_mtok_input": 1.5, "cost_usd_per_mtok_output": 12,
		"max_energy_kwh": 1.5, "max_energy_kwh_per_gpu": .75, "max_energy_j_per_output_token": 10.8, "mean_ttft_ms": -7, "gpu_hours": 3,
	} {
		if got := metricOf(row, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if slices.Contains(shared, 6) {
		t.Error("the metrics of an equal point changed too")
	}
	row.Point.GPUPrice = metrics.GPUPrice{TDPWatts: 500}
	if row.SetCost(); !math.IsNaN(metricOf(row, "cost_usd")) || metricOf(row, "max_energy_kwh") != 1.5 {
		t.Errorf("without a price the cost is %v", metricOf(row, "cost_usd"))
	}
	for _, metrics := range [][]float64{nil, {1, 2}} {
		odd := Row{Metrics: metrics}
		if odd.SetCost(); !slices.Equal(odd.Metrics, metrics) {
			t.Errorf("a row with %d metrics has %d", len(metrics), len(odd.Metrics))
		}
	}
	failed := billed(math.NaN(), metrics.GPUPrice{USDPerHour: 2})
	for i := range failed.Metrics {
		failed.Metrics[i] = math.NaN()
	}
	if failed.SetCost(); slices.ContainsFunc(failed.Metrics, func(v float64) bool { return !math.IsNaN(v) }) {
		t.Errorf("a failed row costs something: %v", failed.Metrics)
	}
}

// TestCostColumns checks which tables have columns of cost: those with a GPU whose price or power is known, also before
// anything has been simulated, so that they can be objectives.
func TestCostColumns(t *testing.T) {
	known := billed(3, metrics.GPUPrice{USDPerHour: 2, TDPWatts: 500})
	known.SetCost()
	unknown := billed(3, metrics.GPUPrice{})
	unknown.SetCost()
	planned := point()
	planned.Point.GPUPrice = metrics.GPUPrice{USDPerHour: 1}
	for _, test := range []struct {
		name string
		rows []Row
		want []string
	}{
		{"known", []Row{known}, []string{"6"}},
		{"one of two", []Row{unknown, known}, []string{"", "6"}},
		{"unknown", []Row{unknown}, nil},
		{"nothing simulated", []Row{planned}, []string{""}},
	} {
		var got []string
		if c := NewTable(test.rows, Metadata{}).Column("cost_usd"); c != nil {
			for row := range test.rows {
				got = append(got, c.Text(row))
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestProvenanceColumns checks what rows of each source say about their figures.
func TestProvenanceColumns(t *testing.T) {
	skipped := onGPU(t, "h200_sxm", 0)[0]
	skipped.Status = StatusSkipped
	rows := []Row{onGPU(t, "h200_sxm", 0)[0], onGPU(t, "mi300x", 0)[0], point(), skipped}
	table := NewTable(rows, Metadata{})
	for name, want := range map[string][]string{
		"timing_source":            {"table", "analytic", "polynomial", "table"},
		"timing_mode":              {"mocker", "mocker", "", "mocker"},
		"timing_data":              {"vllm 0.24.0 on h200_sxm (aiconfigurator-core 0.12.0)", "roofline of mi300x", "", ""},
		"timing_digest":            {"*", "", "", ""},
		"timing_prefill_error_pct": {"*", "40", "", ""},
		"timing_decode_error_pct":  {"*", "40", "", ""},
		"timing_anomaly":           {"false", "", "", ""},
	} {
		c := table.Column(name)
		var got []string
		for row := range rows {
			text := c.Text(row)
			if want[row] == "*" && text != "" {
				text = "*"
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(want, got); diff != "" || c.Role != RolePoint {
			t.Errorf("%s has role %s (-want +got):\n%s", name, c.Role, diff)
		}
	}
}
