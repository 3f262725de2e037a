package results

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func cliffsOf(t *testing.T, csv, axis, where string, by []string) ([]Cliff, error) {
	t.Helper()
	constraints, err := ParseConstraints(where)
	if err != nil {
		t.Fatal(err)
	}
	return readContent(t, csv).Cliffs(CliffSearch{Axis: axis, Constraints: constraints, By: by})
}

// coldStart are the figures of the reference's sweep over start-up times (planner specification §17.1).
const coldStart = `startup_time,p90_ttft_ms
0,1119.49
10,1913.9
20,1505.09
30,2426.22
40,13759.36
50,1324.57
60,1789.74
80,11077.25
100,22061.17
300,97217.71
`

func TestCliffs(t *testing.T) {
	for _, test := range []struct {
		name, csv, axis, where string
		by                     []string
		want                   []string
	}{
		{"a curve that is not monotone", coldStart, "startup_time", "p90_ttft_ms <= 5000", nil,
			[]string{"kept at startup_time 60, lost from 80 on; not monotone: lost at 40 already, kept again at 50, 60"}},
		{"one that is", coldStart, "startup_time", "p90_ttft_ms <= 15000", nil, []string{"kept at startup_time 80, lost from 100 on"}},
		{"two bounds", coldStart, "startup_time", "p90_ttft_ms <= 15000 && p90_ttft_ms < 2000", nil,
			[]string{"kept at startup_time 60, lost from 80 on; not monotone: lost at 30 already, kept again at 50, 60"}},
		{"never lost", coldStart, "startup_time", "p90_ttft_ms <= 1e6", nil, []string{"kept at all values of startup_time"}},
		{"always lost", coldStart, "startup_time", "p90_ttft_ms <= 1", nil, []string{"lost at all values of startup_time"}},
		{"lost and kept again", "x,y\n1,1\n2,9\n3,1\n", "x", "y < 5", nil, []string{"kept at x 3, the last value; not monotone: lost at 2 already, kept again at 3"}},
		{"towards low values", "workers,y\n1,900\n2,800\n4,100\n8,50\n", "workers", "y <= 100", nil, []string{"kept at workers 4, lost from 2 down"}},
		{"a curve for each of the others", "gpu,x,y\nh200,1,1\nb200,1,1\nh200,2,9\nb200,2,1\n", "x", "y < 5", nil,
			[]string{"kept at x 1, lost from 2 on", "kept at all values of x"}},
		{"one curve of several", "gpu,x,y\nh200,1,1\nb200,1,1\nh200,2,9\nb200,2,1\n", "x", "y < 5 && gpu == b200", nil, []string{"kept at all values of x"}},
		{"all in one", "gpu,x,y\nh200,1,1\nb200,1,1\nh200,2,9\nb200,2,1\n", "x", "y < 5", []string{}, []string{"kept at x 1, lost from 2 on"}},
		{"points that were stopped have lost the SLA", "status,x,y\nok,1,1\nok,2,4\nstopped,3,\nstopped,4,\n", "x", "y < 5", nil, []string{"kept at x 2, lost from 3 on"}},
		{"points that failed do not count", "status,x,y\nok,1,1\nfailed,2,\nok,3,1\nok,4,9\n", "x", "y < 5", nil, []string{"kept at x 3, lost from 4 on"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cliffs, err := cliffsOf(t, test.csv, test.axis, test.where, test.by)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range cliffs {
				got = append(got, c.Text(test.axis))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCliffOverReplicates has one of three replicates lose the SLA earlier, while the mean does not.
func TestCliffOverReplicates(t *testing.T) {
	var csv strings.Builder
	csv.WriteString("x,replicate,y\n")
	for x, ys := range [][]float64{{1, 1, 1}, {1, 2, 11}, {1, 2, 12}, {20, 21, 22}} {
		for replicate, y := range ys {
			fmt.Fprintf(&csv, "%d,%d,%g\n", 10*x, replicate, y)
		}
	}
	cliffs, err := cliffsOf(t, csv.String(), "x", "y <= 10", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := cliffs[0]
	const want = "kept at x 20, lost from 30 on; 2 of 3 replicates agree, theirs are lost from 10 to 30"
	if got := c.Text("x"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if c.Confidence == nil || math.Abs(*c.Confidence-2./3) > 1e-12 || c.Points[1].Keeping != 2 || c.Points[1].Runs != 3 {
		t.Errorf("%+v", c)
	}
}

func TestCliffRefusals(t *testing.T) {
	for _, test := range []struct {
		name, csv, axis, where string
		by                     []string
		want                   string
	}{
		{"unknown axis", coldStart, "start_time", "p90_ttft_ms < 1", nil, "did you mean startup_time?"},
		{"unknown bound", coldStart, "startup_time", "p99_ttft_ms < 1", nil, "did you mean p90_ttft_ms?"},
		{"words", "gpu,y\nh200,1\nb200,2\n", "gpu", "y < 2", nil, "axis gpu: column gpu holds text"},
		{"unknown column", coldStart, "startup_time", "p90_ttft_ms < 1", []string{"gpu"}, "curves by gpu: unknown column"},
		{"never alone", "size,x,y\nsmall,10,1\nlarge,20,9\n", "x", "y < 5", nil, "axis x never varies while size stay as they are"},
		{"no figure", "gpu,x,y\nh200,1,1\nb200,2,1\n", "x", "gpu == h200", nil, "give constraints on figures"},
		{"nothing", "status,x,p90_ttft_ms\nfailed,1,\nfailed,2,\nok,,3\n", "x", "p90_ttft_ms < 5", nil, "no point has a value and all figures"},
		{"a bound on replicates", "x,replicate,y\n1,0,1\n1,1,1\n", "x", "replicate < 5", nil, "column replicate neither bounds"},
	} {
		_, err := cliffsOf(t, test.csv, test.axis, test.where, test.by)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v; want %q", test.name, err, test.want)
		}
	}
	if _, err := readContent(t, coldStart).Cliffs(CliffSearch{Axis: "startup_time"}); err == nil || !strings.Contains(err.Error(), "give constraints") {
		t.Errorf("no constraints: %v", err)
	}
}

// TestCliffProperties: the edge parts what is kept from what is lost for good, whatever the curve.
func TestCliffProperties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		kept := rapid.SliceOfN(rapid.Bool(), 2, 12).Draw(r, "kept")
		var csv strings.Builder
		csv.WriteString("x,y\n")
		for i, k := range kept {
			fmt.Fprintf(&csv, "%d,%d\n", i, map[bool]int{true: 1, false: 9}[k])
		}
		cliffs, err := cliffsOf(t, csv.String(), "x", "y < 5", nil)
		if err != nil {
			r.Fatal(err)
		}
		c := cliffs[0]
		beyond := func(x float64, b *CliffBracket) bool {
			return b != nil && (c.Falling && x <= b.Lost || !c.Falling && x >= b.Lost)
		}
		regained := 0
		for _, p := range c.Points {
			if p.Kept && beyond(p.Value, c.Edge) {
				r.Fatalf("%v is kept beyond the edge %+v", p, c.Edge)
			}
			if !p.Kept && !beyond(p.Value, c.FirstLost) {
				r.Fatalf("%v is lost before the first lost value %+v", p, c.FirstLost)
			}
			if p.Kept && beyond(p.Value, c.FirstLost) {
				regained++
			}
		}
		if regained != len(c.Regained) {
			r.Fatalf("%d values are regained; it says %v", regained, c.Regained)
		}
	})
}
