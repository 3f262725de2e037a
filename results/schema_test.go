package results

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/workload"
)

func TestNewTable(t *testing.T) {
	rows := madeUpRows(1)
	table := NewTable(rows, Metadata{Spec: "name: made-up\n"})
	if table.Rows() != len(rows) {
		t.Fatalf("%d rows; want %d", table.Rows(), len(rows))
	}
	want := []string{"id", "status", "reason", "error", "wall_s", "workers", "router_policy", "max_num_batched_tokens", "concurrency", "workload", "gpus"}
	if diff := cmp.Diff(want, table.names()[:len(want)]); diff != "" {
		t.Errorf("first columns (-want +got):\n%s", diff)
	}
	last := []string{"timing_source", "timing_mode", "timing_data", "timing_digest", "timing_prefill_error_pct", "timing_decode_error_pct",
		"timing_anomaly", "workload_digest", "simulator_version"}
	if diff := cmp.Diff(last, table.names()[len(table.Columns)-len(last):]); diff != "" {
		t.Errorf("last columns (-want +got):\n%s", diff)
	}
	for _, c := range table.Columns {
		if c.Role == "" || c.Len() != len(rows) {
			t.Errorf("column %s has role %q and %d rows", c.Name, c.Role, c.Len())
		}
	}
	if got := table.Metadata.Constants["engine.block_size"]; got != int64(64) {
		t.Errorf("constant engine.block_size is %v; want 64", got)
	}
	if diff := cmp.Diff(map[string]string{"chat": "5d2c0a3f8f3e7d9b"}, table.Metadata.Workloads); diff != "" {
		t.Errorf("workloads (-want +got):\n%s", diff)
	}
	for _, name := range []string{"sla_attainment", "goodput_request_throughput_rps", "replicate", "engine_block_size"} {
		if table.Column(name) != nil {
			t.Errorf("column %s is there", name)
		}
	}
}

func TestMetricsAreNullUnlessOK(t *testing.T) {
	rows := madeUpRows(1)
	table := NewTable(rows, Metadata{})
	statuses := map[Status]int{}
	for i, r := range rows {
		statuses[r.Status]++
		for _, name := range []string{"num_requests", "mean_ttft_ms"} {
			if null := table.Column(name).Null[i]; null != (r.Status != StatusOK) {
				t.Errorf("row %d is %s and its %s null: %v", i, r.Status, name, null)
			}
		}
		if null := table.Column("reason").Null[i]; null != (r.Status == StatusOK) {
			t.Errorf("row %d is %s and its reason null: %v", i, r.Status, null)
		}
	}
	if len(statuses) != 3 {
		t.Fatalf("the rows have the statuses %v; all three are needed here", statuses)
	}
}

func TestNonFiniteMetricsAreNull(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		row := madeUpRows(1)[100]
		for i := range row.Metrics {
			row.Metrics[i] = v
		}
		for _, c := range NewTable([]Row{row}, Metadata{}).Columns {
			if c.Role == RoleMetric && !c.Null[0] {
				t.Errorf("%s of %v is not null", c.Name, v)
			}
		}
	}
}

// point is a row with the axes only.
func point(axes ...gridspec.AxisValue) Row {
	config, _ := gridspec.DefaultConfig().Resolve()
	return Row{ID: "x", Status: StatusOK, Point: &gridspec.Point{Config: config, Axes: axes}}
}

func TestAxisColumns(t *testing.T) {
	axis := func(column, path string, v gridspec.Value) gridspec.AxisValue {
		return gridspec.AxisValue{Column: column, Path: path, Value: v}
	}
	cases := []struct {
		name string
		rows []Row
		want map[string]gridspec.Kind
		text map[string][]string
	}{
		{"absent at a point", []Row{point(intAxis("tp", "timing.tp", 2)), point()},
			map[string]gridspec.Kind{"tp": gridspec.KindInt}, map[string][]string{"tp": {"2", ""}}},
		{"whole and real", []Row{point(axis("s", "load.speedup", integer(1))), point(axis("s", "load.speedup", float(1.5)))},
			map[string]gridspec.Kind{"s": gridspec.KindFloat}, map[string][]string{"s": {"1", "1.5"}}},
		{"number and string", []Row{point(axis("s", "case", integer(1))), point(axis("s", "case", text("auto")))},
			map[string]gridspec.Kind{"s": gridspec.KindString}, map[string][]string{"s": {"1", "auto"}}},
		{"names of metrics and other columns", []Row{point(axis("gpu_hours", "gpu_hours", float(1)), intAxis("id", "x.id", 7), intAxis("status", "status", 3))},
			map[string]gridspec.Kind{"axis_gpu_hours": gridspec.KindFloat, "x_id": gridspec.KindInt, "axis_status": gridspec.KindInt, "gpu_hours": gridspec.KindFloat}, nil},
		{"settings that say where the figures come from", []Row{point(axis("timing_mode", "timing.mode", text("fused")), axis("timing_data", "timing.data", text("old")))},
			map[string]gridspec.Kind{"timing_mode": gridspec.KindString, "axis_timing_data": gridspec.KindString, "timing_data": gridspec.KindString},
			map[string][]string{"timing_mode": {"fused"}, "timing_data": {""}}},
		{"the same name twice", []Row{point(intAxis("size", "a.size", 1), intAxis("size", "b.size", 2))},
			map[string]gridspec.Kind{"size": gridspec.KindInt, "b_size": gridspec.KindInt}, nil},
		{"derived GPUs win", []Row{point(intAxis("gpus", "gpus", 99))},
			map[string]gridspec.Kind{"gpus": gridspec.KindInt}, map[string][]string{"gpus": {"99"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			table := NewTable(c.rows, Metadata{})
			if err := table.checkNames(); err != nil {
				t.Error(err)
			}
			for name, kind := range c.want {
				column := table.Column(name)
				if column == nil || column.Kind != kind {
					t.Errorf("column %s is %+v; want kind %d among %v", name, column, kind, table.names())
				}
			}
			for name, want := range c.text {
				column := table.Column(name)
				for row := range want {
					if got := column.Text(row); got != want[row] {
						t.Errorf("%s of row %d is %q; want %q", name, row, got, want[row])
					}
				}
			}
		})
	}
}

func TestSettingsThatDifferAreColumns(t *testing.T) {
	a, b := point(intAxis("block_size", "engine.block_size", 16)), point(intAxis("block_size", "engine.block_size", 32))
	a.Point.Config.Engine.BlockSize, b.Point.Config.Engine.BlockSize = 16, 32
	b.Point.Config.Engine.NumGPUBlocks = 4096
	b.Point.Replicate = 1
	table := NewTable([]Row{a, b}, Metadata{})
	c := table.Column("engine_num_gpu_blocks")
	if c == nil || c.Role != RoleConfig || c.Unit != "blocks" || !slices.Equal(c.Ints, []int64{16384, 4096}) {
		t.Errorf("engine_num_gpu_blocks is %+v", c)
	}
	if table.Column("engine_block_size") != nil {
		t.Error("the axis engine.block_size has a second column")
	}
	if table.Column("replicate") == nil {
		t.Error("two replicates have no column")
	}
	if _, constant := table.Metadata.Constants["engine.block_size"]; constant {
		t.Error("an axis is among the constants")
	}
}

func TestGoodputColumnsNeedAnSLA(t *testing.T) {
	row := point()
	row.Metrics = make([]float64, len(metrics.Fields()))
	table := NewTable([]Row{row}, Metadata{})
	for _, f := range metrics.Fields() {
		if isGoodput(f.Name) && table.Column(f.Name) == nil {
			t.Errorf("column %s is missing", f.Name)
		}
	}
}

func TestWorkloadAxisReplacesTheLabel(t *testing.T) {
	row := point(gridspec.AxisValue{Column: "workload", Path: "workload", Value: text("busy")})
	row.Point.Workload = workload.Spec{Name: "other"}
	table := NewTable([]Row{row}, Metadata{})
	if err := table.checkNames(); err != nil {
		t.Error(err)
	}
	if got := table.Column("workload"); got.Role != RoleAxis || got.Text(0) != "busy" {
		t.Errorf("workload is %+v", got)
	}
}

func TestEmptyTableHasColumns(t *testing.T) {
	if names := NewTable(nil, Metadata{}).names(); !slices.Contains(names, "mean_ttft_ms") || !slices.Contains(names, "id") {
		t.Errorf("columns of no rows: %v", names)
	}
}

func TestLookupNamesTheNearest(t *testing.T) {
	_, err := NewTable(madeUpRows(1), Metadata{}).Lookup("p99_tttf_ms")
	if err == nil || !strings.Contains(err.Error(), `unknown column "p99_tttf_ms"; did you mean p99_ttft_ms?`) {
		t.Errorf("error %v", err)
	}
}
