package profile

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// TestReferencePasses compares with passes of the reference, recorded as a black box: one vLLM worker with blocks of
// 64 tokens and idle between requests, so that the first token comes after one prefill and one decode step, and the
// second after another step. The files are NumPy's own.
func TestReferencePasses(t *testing.T) {
	f, err := os.Open("testdata/reference/passes.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	profiles := map[string]*Profile{}
	worst := 0.0
	for _, record := range records[1:] {
		name := record[0]
		if profiles[name] == nil {
			profiles[name] = mustRead(t, filepath.Join("testdata/reference", name))
		}
		p, input := profiles[name], int(number(t, record[1]))
		firstMs := p.PrefillMs(1, input, 0) + referenceDecodeMs(p, input)
		secondMs := referenceDecodeMs(p, input+1)
		for i, got := range []float64{firstMs, secondMs} {
			difference := math.Abs(got - number(t, record[2+i]))
			worst = max(worst, difference)
			if difference > 1.1e-6 { // two parts, each rounded to whole nanoseconds
				t.Errorf("%s, prompt of %d tokens: token %d takes %v ms, the reference's %s", name, input, i+1, got, record[2+i])
			}
		}
	}
	if len(records) != 251 || len(profiles) != 5 {
		t.Errorf("%d passes of %d profiles were compared", len(records)-1, len(profiles))
	}
	t.Logf("worst difference %.3g ms", worst)
}

// referenceDecodeMs is a step of one request, with the floor that the reference has.
func referenceDecodeMs(p *Profile, context int) float64 {
	return max(1, p.DecodeMs(1, (context+63)/64*64, context))
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mustRead(t testing.TB, path string) *Profile {
	t.Helper()
	p, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
