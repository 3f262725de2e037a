package roofline

import (
	"encoding/csv"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
	"github.com/servegrid/servegrid/simcore/perfmodel/tables"
)

var update = flag.Bool("update", false, "rewrite testdata/accuracy.txt")

const accuracyFile = "testdata/accuracy.txt"

// measuredErrors are relative errors in per cent, unsigned, of prefill and decode passes.
type measuredErrors [2][]float64

// figures are the median, the bound of two thirds and the 90th percentile.
func (m *measuredErrors) figures(kind int) [3]float64 {
	e := slices.Clone(m[kind])
	slices.Sort(e)
	return [3]float64{e[len(e)/2], e[len(e)*2/3], e[len(e)*9/10]}
}

func (m *measuredErrors) String() string {
	p, d := m.figures(0), m.figures(1)
	return fmt.Sprintf("%5d  %6.1f %6.1f %6.1f  %6.1f %6.1f %6.1f", len(m[0]), p[0], p[1], p[2], d[0], d[1], d[2])
}

// errorsByGroup prices four random prefill and decode passes of each deployment that has a current table, in the
// ranges of perfmodel specification §4, and compares.
func errorsByGroup(t *testing.T) map[string]*measuredErrors {
	t.Helper()
	set := tables.Embedded()
	r := rand.New(rand.NewPCG(5, 4))
	groups := map[string]*measuredErrors{}
	for _, system := range set.Systems() {
		configs, err := set.Configs(system)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range configs {
			if c.Slot != "current" || replaced(c) {
				continue
			}
			table, err := set.Load(c, true)
			if err != nil {
				t.Fatal(err)
			}
			d := deploymentOf(t, c)
			estimate, problems := New(d)
			if len(problems) > 0 {
				t.Fatalf("%s: %v", c, problems)
			}
			names := []string{"backend " + c.Backend, "class " + classOf(d.withDefaults()).String(), "gpu " + c.System, "model " + c.Model + " " + c.DType}
			for range 4 {
				for kind, e := range onePoint(r, estimate, table) {
					for _, name := range names {
						if groups[name] == nil {
							groups[name] = &measuredErrors{}
						}
						groups[name][kind] = append(groups[name][kind], e)
					}
				}
			}
		}
	}
	return groups
}

// replaced reports the rows whose source is known to be wrong (§7.1.2) and that another row replaces.
func replaced(c *tables.Config) bool {
	return c.Backend == backendVLLM && c.DType == catalogue.FP8Block && !c.Corrected
}

func deploymentOf(t *testing.T, c *tables.Config) Deployment {
	t.Helper()
	gpu, err := catalogue.FindGPU(c.System)
	if err != nil {
		t.Fatal(err)
	}
	model, _, err := catalogue.FindModel(c.HFPath)
	if err != nil {
		t.Fatal(err)
	}
	if model.ID != c.Model {
		t.Fatalf("%s is %s in the catalogue and %s in the tables", c.HFPath, model.ID, c.Model)
	}
	return Deployment{GPU: gpu, Model: model, Backend: c.Backend, DType: c.DType, TP: c.TP, DP: c.DP, EP: c.MoEEP}
}

// operators is what estimates and tables have in common.
type operators interface {
	Tokens(x int) float64
	Requests(b int) float64
	PrefillAttention(b, length, prefix int) float64
	Generation(b int) float64
	GenerationAttention(b, sequence int) float64
}

func prefillMs(o operators, b, newTokens, prefix int) float64 {
	return o.Tokens(b*newTokens) + o.Requests(b) + o.PrefillAttention(b, newTokens+prefix, prefix)
}

func decodeMs(o operators, b, context int) float64 {
	return o.Generation(b) + o.GenerationAttention(b, context+1)
}

func onePoint(r *rand.Rand, estimate, truth operators) [2]float64 {
	b, s := 16, 8192
	for b*s > 16384 {
		b, s = logUniform(r, 1, 16), logUniform(r, 64, 8192)
	}
	prefix := 0
	if r.IntN(2) == 0 {
		prefix = logUniform(r, 64, 32768)
	}
	prefill := relativeError(prefillMs(estimate, b, s, prefix), prefillMs(truth, b, s, prefix))
	b, s = 256, 32768
	for b*s > 1<<21 {
		b, s = logUniform(r, 1, 256), logUniform(r, 128, 32768)
	}
	return [2]float64{prefill, relativeError(decodeMs(estimate, b, s), decodeMs(truth, b, s))}
}

func relativeError(got, want float64) float64 { return 100 * math.Abs(got/want-1) }

func logUniform(r *rand.Rand, low, high float64) int {
	return int(math.Round(low * math.Pow(high/low, r.Float64())))
}

// TestAccuracy compares estimates with the tables: by backend the medians are those of the specification's fit (§4),
// and of each class two thirds lie in the band that users are told.
func TestAccuracy(t *testing.T) {
	groups := errorsByGroup(t)
	const slack = 3 // other random points, corrected tables
	for backend, want := range map[string][2]float64{backendVLLM: {18, 19}, backendSGLang: {15, 13}, backendTRTLLM: {13, 13}} {
		g := groups["backend "+backend]
		for kind, name := range []string{"prefill", "decode"} {
			if got := g.figures(kind)[0]; got > want[kind]+slack {
				t.Errorf("%s %s: median error %.1f %%, the specification measured %v %%", backend, name, got, want[kind])
			}
		}
	}
	for c, b := range bands {
		g := groups["class "+class(c).String()]
		if class(c) == foreign {
			continue
		}
		if g == nil {
			t.Errorf("no table in class %s", class(c))
			continue
		}
		for kind, told := range []float64{b.prefillPct, b.decodePct} {
			if got := g.figures(kind)[1]; got > told {
				t.Errorf("class %s: two thirds of errors within %.1f %% (kind %d), users are told %v %%", class(c), got, kind, told)
			}
		}
	}
	compareAccuracy(t, groups)
}

// compareAccuracy holds the measured figures against the file, which documents them.
func compareAccuracy(t *testing.T, groups map[string]*measuredErrors) {
	t.Helper()
	var names []string
	for name := range groups {
		names = append(names, name)
	}
	slices.Sort(names)
	var text strings.Builder
	fmt.Fprintf(&text, "# Error of the analytic estimate against the tables, in %%: points, then median, two thirds and 90th\n"+
		"# percentile of prefill and of decode. Written by go test -run TestAccuracy -update.\n")
	for _, name := range names {
		fmt.Fprintf(&text, "%-32s %s\n", name, groups[name])
	}
	if *update {
		if err := os.WriteFile(accuracyFile, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	stored, err := os.ReadFile(accuracyFile)
	if err != nil {
		t.Fatal(err)
	}
	was, is := strings.Split(string(stored), "\n"), strings.Split(text.String(), "\n")
	if len(was) != len(is) {
		t.Fatalf("%s has %d lines instead of %d; -update rewrites it", accuracyFile, len(was), len(is))
	}
	for i := range is {
		if !alike(was[i], is[i]) {
			t.Errorf("%s, line %d:\nwas %s\nis  %s\n-update rewrites it", accuracyFile, i+1, was[i], is[i])
		}
	}
}

// alike compares words, numbers within 2 points or a tenth, so that a slightly better table changes nothing.
func alike(a, b string) bool {
	return slices.EqualFunc(strings.Fields(a), strings.Fields(b), func(a, b string) bool {
		x, errX := strconv.ParseFloat(a, 64)
		y, errY := strconv.ParseFloat(b, 64)
		if errX != nil || errY != nil {
			return a == b
		}
		return math.Abs(x-y) <= max(2, .1*max(x, y))
	})
}

// TestVLLMBlockFP8 compares with passes that AISimulate 0.13.0 priced, run as a black box: the efficiency of
// block-scaled fp8 on vLLM is not from the tables.
func TestVLLMBlockFP8(t *testing.T) {
	f, err := os.Open("testdata/vllm_fp8_block.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var errs measuredErrors
	for _, row := range rows[1:] {
		gpu, err := catalogue.FindGPU(row[0])
		if err != nil {
			t.Fatal(err)
		}
		model, dtype, err := catalogue.FindModel(row[1])
		if err != nil {
			t.Fatal(err)
		}
		var n [6]int // tp, dp, ep, batch, new tokens, context
		for i, column := range []int{2, 3, 4, 6, 7, 8} {
			if n[i], err = strconv.Atoi(row[column]); err != nil {
				t.Fatal(err)
			}
		}
		want, err := strconv.ParseFloat(row[9], 64)
		if err != nil {
			t.Fatal(err)
		}
		r, problems := New(Deployment{GPU: gpu, Model: model, Backend: backendVLLM, DType: dtype, TP: n[0], DP: n[1], EP: n[2]})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if row[5] == "prefill" {
			errs[0] = append(errs[0], relativeError(prefillMs(r, n[3], n[4], n[5]), want))
		} else {
			errs[1] = append(errs[1], relativeError(decodeMs(r, n[3], n[5]), want))
		}
	}
	t.Logf("points, prefill and decode: %s", &errs)
	for kind, told := range []float64{bands[experted].prefillPct, bands[experted].decodePct} {
		if f := errs.figures(kind); f[0] > 20 || f[1] > told {
			t.Errorf("kind %d: median %.1f %%, two thirds %.1f %%; want at most 20 and %v", kind, f[0], f[1], told)
		}
	}
}
