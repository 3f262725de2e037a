package results

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/servegrid/servegrid/simcore/metrics"
)

func TestCautions(t *testing.T) {
	for name, test := range map[string]struct {
		csv      string
		analysis Analysis
		want     []string
	}{
		"nothing": {"status,gpu,tps,rejected_requests,extrapolated_pass_ratio\nok,h200,1,0,0.5\n", Analysis{}, nil},
		"rejections by their share": {
			"status,tps,rejected_requests,num_requests\nok,9,5,10\nok,1,6,20\nok,9,0,20\nskipped,,,\n", Analysis{},
			[]string{"Requests are rejected at 2 points, 1 of them on the frontier (up to 5 of 10: prompts longer than the context or the KV pool); see rejected_requests."},
		},
		"failures of live runs": {
			"status,tps,failed_requests,num_requests\nok,9,1,10\nok,1,,20\nfailed,1,9,20\n", Analysis{},
			[]string{"Requests failed at 1 point, 1 of them on the frontier (up to 1 of 10); see failed_requests and error_kinds."},
		},
		"damaged traces": {
			"status,tps,left_out_records\nok,9,3\nok,1,0\nok,9,12\nskipped,,\n", Analysis{},
			[]string{"A damaged trace was replayed without what is damaged at 2 points (up to 12 records or files); see left_out_records."},
		},
		"rejections off the frontier, without a total": {
			"tps,rejected_requests\n1,5\n2,0\n", Analysis{},
			[]string{"Requests are rejected at 1 point (up to 5: prompts longer than the context or the KV pool); see rejected_requests."},
		},
		"no price": {
			"status,gpu,tps,cost_usd,cost_usd_per_mtok_output,gpu_hours\nok,gb300,1,,,2\nok,gb300,2,,,2\nok,h200,3,4,5,2\nfailed,gb200,,,,\nok,l4,1,,,0\n",
			Analysis{Objectives: []Objective{{Name: "cost_usd_per_mtok_output"}, {Name: "tps", Maximize: true}}},
			[]string{"Without cost_usd_per_mtok_output and so not compared: 3 points (no price of gb300; set prices.gb300)."},
		},
		"no value in a bound, which is an objective too": {
			"gpu,tps,p99_itl_ms\na,1,\nb,2,3\n",
			Analysis{Objectives: []Objective{{Name: "tps", Maximize: true}, {Name: "p99_itl_ms"}}, Constraints: mustParse(t, "p99_itl_ms <= 5")},
			[]string{"Without p99_itl_ms and so not compared: 1 point."},
		},
		"extrapolated": {
			"status,tps,extrapolated_pass_ratio\nok,1,0.5\nok,2,0.751\nok,2,0.6\nfailed,,1\n", Analysis{},
			[]string{"More than half of the passes lie outside of what was measured at 2 points, up to 75 % (extrapolated_pass_ratio)."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			table, a := readContent(t, test.csv), test.analysis
			if a.Objectives == nil {
				a.Objectives = []Objective{{Name: "tps", Maximize: true}}
			}
			if err := MarkFrontier(table, a); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, table.Candidates().Cautions(a), equalNil); diff != "" {
				t.Errorf("cautions (-want +got):\n%s", diff)
			}
		})
	}
}

// equalNil takes no caution for an empty list of them.
var equalNil = cmp.Comparer(func(a, b []string) bool { return slices.Equal(a, b) })

// TestCautionsOfASweep names GPUs that no axis has, and counts replicates once.
func TestCautionsOfASweep(t *testing.T) {
	all := onGPU(t, "gb300", 0)
	row := all[slices.IndexFunc(all, func(r Row) bool { return r.Status == StatusOK })]
	row.Point.Axes = row.Point.Axes[1:]
	row.Point.GPUPrice = metrics.GPUPrice{TDPWatts: 1400}
	row.SetCost()
	rows := []Row{replicateAxis(row, 0), replicateAxis(row, 1)}
	got := NewTable(rows, Metadata{}).Candidates().Cautions(Analysis{Objectives: []Objective{{Name: "cost_usd"}}})
	want := []string{"Without cost_usd and so not compared: 1 point (no price of gb300; set prices.gb300)."}
	if diff := cmp.Diff(want, got, equalNil); diff != "" {
		t.Errorf("cautions (-want +got):\n%s", diff)
	}
}

func TestWholePercent(t *testing.T) {
	for share, want := range map[float64]string{0: "0 %", 1e-9: "<1 %", .004: "<1 %", .006: "1 %", .24: "24 %", .754: "75 %", .994: "99 %", .999: ">99 %", 1: "100 %"} {
		if got := WholePercent(share); got != want {
			t.Errorf("%v is %s, want %s", share, got, want)
		}
	}
}
