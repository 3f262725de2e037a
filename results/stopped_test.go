package results

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Of four points two lost p99_ttft_ms <= 2000 and one p99_e2e_latency_ms <= 900.
const stoppedRows = `status,error,gpus,speedup,p99_ttft_ms,p99_e2e_latency_ms
ok,,1,1,1000,800
ok,,1,2,1900,850
stopped,p99_ttft_ms <= 2000 can no longer hold: 9 of 10 requests were beyond 2000 ms after 1.000 simulated s,8,3,,
stopped,p99_ttft_ms <= 2000 can no longer hold: 9 of 10 requests were beyond 2000 ms after 1.000 simulated s,8,4,,
stopped,p99_e2e_latency_ms <= 900 can no longer hold: 9 of 10 requests were beyond 900 ms after 1.000 simulated s,1,5,,
`

// A point that was stopped has lost limits as tight as the one that it was stopped for; about wider ones nobody knows.
func TestStoppedPointsUnderOtherLimits(t *testing.T) {
	for where, want := range map[string]struct {
		undecided int
		cliff     string
	}{
		"p99_ttft_ms <= 2000 && p99_e2e_latency_ms <= 900":   {0, "kept at speedup 2, lost from 3 on"},
		"p99_ttft_ms < 1500 && p99_e2e_latency_ms <= 900":    {0, "kept at speedup 1, lost from 2 on"},
		"p99_ttft_ms <= 20000 && p99_e2e_latency_ms <= 900":  {2, "kept at speedup 2, lost from 5 on"},
		"p99_ttft_ms <= 2000":                                {1, "kept at speedup 2, lost from 3 on"},
		"p99_ttft_ms <= 20000":                               {3, "kept at all values of speedup"},
		"p99_ttft_ms <= 20000 && gpus <= 4":                  {1, "kept at all values of speedup"}, // others break the second anyway
		"p99_ttft_ms >= 1 && p99_e2e_latency_ms <= 20000":    {3, "kept at all values of speedup"},
		"p99_ttft_ms <= 1800 && p99_e2e_latency_ms <= 20000": {1, "kept at speedup 1, lost from 2 on"},
	} {
		constraints := mustParse(t, where)
		cautions := readContent(t, stoppedRows).Candidates().Cautions(Analysis{Constraints: constraints})
		text := strings.Join(cautions, "\n")
		if got := strings.Contains(text, "stop_when_sla_lost=false"); got != (want.undecided > 0) || got && !strings.Contains(text, ": "+points(want.undecided)+".") {
			t.Errorf("%s: %q; want %s in a caution", where, text, points(want.undecided))
		}
		wider := readContent(t, stoppedRows).Candidates().WiderLimits(constraints)
		if got := strings.Contains(wider, "3 points"); got != (want.undecided == 0) {
			t.Errorf("%s: %q for wider limits, with %d undecided", where, wider, want.undecided)
		}
		table := readContent(t, stoppedRows)
		table.Column("gpus").Role = RolePoint
		cliffs, err := table.Cliffs(CliffSearch{Axis: "speedup", Constraints: constraints, By: []string{}})
		if err != nil || len(cliffs) != 1 {
			t.Errorf("%s: %d curves, %v", where, len(cliffs), err)
			continue
		}
		if got := cliffs[0].Text("speedup"); got != want.cliff {
			t.Errorf("%s: %s; want %s", where, got, want.cliff)
		}
	}
}

// A file that does not say why points were stopped means the bounds of its metadata.
func TestStoppedPointsWithoutAReason(t *testing.T) {
	table := readContent(t, "status,x,y\nok,1,1\nok,2,4\nstopped,3,\n")
	table.Metadata.Constraints = mustParse(t, "y < 5")
	for where, want := range map[string]int{"y < 5": 0, "y <= 4": 0, "y < 6": 1, "z < 5": 1, "y < 5 && z < 5": 0} {
		if got := len(table.Candidates().undecided(mustParse(t, where))); got != want {
			t.Errorf("%s leaves %d undecided, want %d", where, got, want)
		}
	}
}

func TestCliffOfNothingButUndecidedPoints(t *testing.T) {
	_, err := cliffsOf(t, "status,error,x,y\nstopped,y <= 5 can no longer hold: …,1,\nstopped,y <= 5 can no longer hold: …,2,\nok,,,1\n", "x", "y < 50", nil)
	if err == nil || !strings.Contains(err.Error(), "stop_when_sla_lost=false") {
		t.Errorf("%v; want an error with the way out", err)
	}
}

// What has figures but was not simulated to its end is on no frontier.
func TestFailedRowsAreOnNoFrontier(t *testing.T) {
	table := readContent(t, "status,replicate,config,rate\nfailed,0,a,9.5\nfailed,1,a,8.5\nok,0,b,1.5\nok,1,b,2.5\n")
	if err := MarkFrontier(table, Analysis{Objectives: []Objective{{Name: "rate", Maximize: true}}}); err != nil {
		t.Fatal(err)
	}
	want := []bool{false, false, true, true}
	for _, name := range []string{FrontierColumn, NoiseColumn} {
		if diff := cmp.Diff(want, table.Column(name).Bools); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Replicates may have names. Settings tell configurations apart even where each has one row, and are never averaged.
func TestReplicatesOfForeignFiles(t *testing.T) {
	for name, test := range map[string]struct {
		csv   string
		want  int
		cliff string
	}{
		"names, a row for each configuration": {"workers,gpus,p99_ttft_ms,replicate\n1,1,3000,a\n2,2,1500,b\n4,4,800,c\n", 3, "kept at workers 2, lost from 1 down"},
		"two numbers for each of three":       {"workers,gpus,replicate,p99_ttft_ms\n1,1,0,3000\n1,1,1,3100\n2,2,0,1500\n2,2,1,1400\n4,4,0,800\n4,4,1,900\n", 3, "kept at workers 2, lost from 1 down; 2 of 2 replicates agree"},
		"two names for each of three":         {"workers,gpus,replicate,p99_ttft_ms\n1,1,a,3000\n1,1,b,3100\n2,2,a,1500\n2,2,b,1400\n4,4,a,800\n4,4,b,900\n", 3, "kept at workers 2, lost from 1 down; 2 of 2 replicates agree"},
		"an unknown setting":                  {"lanes,replicate,p99_ttft_ms\n1,a,3000\n1,b,3100\n2,a,1500\n2,b,1400\n", 2, "kept at lanes 2, lost from 1 down; 2 of 2 replicates agree"},
	} {
		table := readContent(t, test.csv)
		if got := table.Candidates().Table.Rows(); got != test.want {
			t.Errorf("%s: %d configurations, want %d", name, got, test.want)
		}
		axis := strings.SplitN(test.csv, ",", 2)[0]
		cliffs, err := table.Cliffs(CliffSearch{Axis: axis, Constraints: mustParse(t, "p99_ttft_ms <= 2000")})
		if err != nil || len(cliffs) != 1 || cliffs[0].Text(axis) != test.cliff {
			t.Errorf("%s: %+v, %v; want %s", name, cliffs, err, test.cliff)
		}
	}
}

// Marks are no settings, although a file without roles has few values in them.
func TestMarksAreNoSettings(t *testing.T) {
	table := readContent(t, "workers,feasible,on_frontier,within_noise_of_frontier,at_saturation,search_round,limiting_resource\n1,true,false,true,false,1,none\n2,true,true,true,false,1,router\n")
	for _, c := range table.Columns[1:] {
		if c.Role != RolePoint || c.Doc == "" {
			t.Errorf("%s has the role %q and the meaning %q", c.Name, c.Role, c.Doc)
		}
	}
}

func TestEmptyColumnOfNumbers(t *testing.T) {
	_, err := readContent(t, "a,b\n,1\n,2\n").Column("a").Float64s()
	if err == nil || err.Error() != "column a is empty; numbers are needed" {
		t.Errorf("error %v", err)
	}
}
