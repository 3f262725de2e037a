package timeplot

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPayload(t *testing.T) {
	nan := math.NaN()
	at := []float64{0, 1.23456, 2, 3}
	p := newPayload(Page{
		EndSeconds: 4,
		Charts: []Chart{{
			Title: "A", Unit: "ms", Levels: []Level{{"SLA", 1500}},
			Series: []Series{
				{Name: "gaps", Look: Line, AtSeconds: at, Values: []float64{nan, 1.234567, nan, 12345678}},
				{Name: "shared", Colour: 1, Look: Steps, AtSeconds: at, Values: []float64{1, 1, 2, math.Inf(1)}},
				{Name: "nothing", AtSeconds: at, Values: []float64{nan, nan, nan, nan}},
			},
		}},
		Tracks: []Track{{Title: "T", Rows: []TrackRow{{Name: "r", AtSeconds: at, States: []string{"", "up", "up", "new"}}}}},
	}, []State{{Name: "up", Meaning: "more", Kind: KindUp}})
	for name, check := range map[string][2]string{
		"times":  {marshal(t, p.Times), "[[0,1.235,2,3]]"},
		"gaps":   {marshal(t, p.Charts[0].Series[0].Values), "[1.2346,null,1.2346e+07]"},
		"shared": {marshal(t, p.Charts[0].Series[1].Values), "[1,1,2,null]"},
		"track":  {marshal(t, p.Tracks[0].Rows), `[{"name":"r","times":[0,1.235,3],"states":[-1,0,1]}]`},
		"states": {marshal(t, p.States), `[{"name":"up","meaning":"more","kind":"up"},{"name":"new","meaning":"","kind":"quiet"}]`},
	} {
		if check[0] != check[1] {
			t.Errorf("%s: got %s; want %s", name, check[0], check[1])
		}
	}
	if s := p.Charts[0].Series; len(s) != 2 || s[0].From != 1 || s[0].Times != s[1].Times {
		t.Errorf("%+v", s)
	}
}

// TestThinKeepsExtremes: a long series keeps its greatest and its least value, and stays in order.
func TestThinKeepsExtremes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(mostPoints, 4*mostPoints).Draw(r, "n")
		peak := rapid.IntRange(0, n-1).Draw(r, "peak")
		at, values := make([]float64, n), make([]float64, n)
		for i := range at {
			at[i], values[i] = float64(i), math.Sin(float64(i))
		}
		values[peak] = 7
		times, kept := thin(at, values)
		if len(times) != len(kept) || len(kept) > mostPoints || !slices.IsSorted(times) {
			r.Fatalf("%d of %d values", len(kept), n)
		}
		if place := slices.Index(kept, 7.); place < 0 || times[place] != float64(peak) || slices.Min(kept) != slices.Min(values) {
			r.Fatalf("the extremes are lost")
		}
	})
}

func TestPage(t *testing.T) {
	var page strings.Builder
	if err := Write(&page, Page{Title: "Empty", EndSeconds: 1}, nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), `"charts":[]`) {
		t.Error("an empty page lacks its data")
	}
}
