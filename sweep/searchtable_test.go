package sweep

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

var update = flag.Bool("update", false, "simulate the tables that searches are tested on again")

// searchTables are the spaces that were simulated as a whole, by the name of the table. Those of halving are one space on
// the beginning of a longer workload.
var searchTables = map[string]gridspec.Source{
	"gpus":          {Path: "../examples/gpus/grid.yaml"},
	"search":        {Path: "../examples/search/grid.yaml"},
	"disaggregated": {Path: "search/testdata/disaggregated.yaml"},
	"halving-27":    gpusOn(1. / 27),
	"halving-9":     gpusOn(1. / 9),
	"halving-3":     gpusOn(1. / 3),
	"halving-1":     gpusOn(1),
}

// gpusOn is the space of examples/gpus on the beginning of 2,000 requests.
func gpusOn(share float64) gridspec.Source {
	return gridspec.Source{Path: "../examples/gpus/grid.yaml", Set: []string{"workload.preset.requests=2000", fmt.Sprint("workload.share=", share)}}
}

// recordedTable is a whole space with its figures; see the tests of package search, which read it.
type recordedTable struct {
	Dimensions []recordedDimension
	Along      []int
	Objectives int
	Figures    [][]*float64
}

type recordedDimension struct {
	Name   string
	Values []float64
	Size   int
}

// TestRecordedTables checks that the tables hold what the simulator gives, at some places. With -update it simulates all
// of them: minutes.
func TestRecordedTables(t *testing.T) {
	for name, source := range searchTables {
		t.Run(name, func(t *testing.T) {
			spec, err := gridspec.Load(source)
			if err != nil {
				t.Fatal(err)
			}
			space, err := spec.Space()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("search/testdata", name+".json.gz")
			places := allPlaces(space)
			if *update {
				writeTable(t, file, recordTable(t, spec, space, places))
				return
			}
			want := readRecorded(t, file)
			if testing.Short() {
				t.Skip("simulates points")
			}
			src := rand.New(rand.NewPCG(1, 1))
			chosen := make([][]int, len(places)) // the others are left out
			for range 8 {
				i := src.IntN(len(places))
				chosen[i] = places[i]
			}
			got := recordTable(t, spec, space, chosen)
			for i, place := range chosen {
				if place != nil && !sameFigures(got.Figures[i], want.Figures[i]) {
					t.Errorf("the table is not up to date at %v; run go test ./sweep -run TestRecordedTables -update", place)
				}
			}
		})
	}
}

// allPlaces lists the places of a space, the last dimension fastest.
func allPlaces(space *gridspec.Space) [][]int {
	out := make([][]int, 0, space.Count())
	place := make([]int, len(space.Dimensions))
	for range space.Count() {
		out = append(out, slices.Clone(place))
		for i := len(place) - 1; i >= 0; i-- {
			if place[i]++; place[i] < space.Dimensions[i].Size {
				break
			}
			place[i] = 0
		}
	}
	return out
}

// recordTable simulates places; nil ones have no figures.
func recordTable(t *testing.T, spec *gridspec.Spec, space *gridspec.Space, places [][]int) recordedTable {
	t.Helper()
	objectives := results.DefaultObjectives()
	var points []gridspec.Point
	at := make([]int, len(places))
	for i, place := range places {
		at[i] = -1
		if place == nil {
			continue
		}
		made, err := space.Points(place)
		if err != nil {
			t.Fatal(err)
		}
		if len(made) > 0 && made[0].SkipReason == "" {
			at[i] = len(points)
			points = append(points, made[0])
		}
	}
	out := mustRun(t, points, Options{Dir: t.TempDir()})
	a := results.Analysis{Objectives: objectives, Constraints: results.CommonConstraints(points, objectives)}
	table := recordedTable{Along: TrafficOf(space), Objectives: len(objectives), Figures: make([][]*float64, len(places))}
	for _, d := range space.Dimensions {
		table.Dimensions = append(table.Dimensions, recordedDimension{d.Name, d.Values, d.Size})
	}
	for i, row := range at {
		if row >= 0 && out.Rows[row].Status == results.StatusOK {
			table.Figures[i] = rounded(a.Figures(out.Rows[row : row+1]))
		}
	}
	return table
}

// rounded keeps six digits.
func rounded(objectives, margins []float64) []*float64 {
	var out []*float64
	for _, v := range slices.Concat(objectives, margins) {
		if math.IsNaN(v) {
			out = append(out, nil)
			continue
		}
		size := math.Pow(10, 5-math.Floor(math.Log10(max(math.Abs(v), 1e-12))))
		v = math.Round(v*size) / size
		out = append(out, &v)
	}
	return out
}

func sameFigures(a, b []*float64) bool {
	return slices.EqualFunc(a, b, func(x, y *float64) bool {
		return x == nil && y == nil || x != nil && y != nil && math.Abs(*x-*y) <= 1e-5*math.Abs(*y)
	})
}

func writeTable(t *testing.T, path string, table recordedTable) {
	t.Helper()
	var out bytes.Buffer
	zipped, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err := json.NewEncoder(zipped).Encode(table); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

func readRecorded(t *testing.T, path string) recordedTable {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zipped)
	if err != nil {
		t.Fatal(err)
	}
	var out recordedTable
	if err := json.NewDecoder(strings.NewReader(string(text))).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}
