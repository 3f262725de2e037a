package tables

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestDecodeCurve(t *testing.T) {
	c, err := decodeCurve(record{fields: []string{"3", "1 1 14", "log2048", "0 2048 -1024"}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.axis.knots, []float64{1, 2, 16}) || !slices.Equal(c.y, []float64{1, 2, math.Sqrt2}) {
		t.Errorf("knots %v, values %v", c.axis.knots, c.y)
	}
	if c, err = decodeCurve(record{fields: []string{"2", "1 9", "raw", "-0.5 1e-3"}}); err != nil || !slices.Equal(c.y, []float64{-0.5, 1e-3}) {
		t.Errorf("%v, %v", c, err)
	}
}

func TestDecodeGrid(t *testing.T) {
	// In steps of 1/1024 octave the values are 0 1024 / 2048 4096: the last is predicted as 3072.
	c, err := decodeGrid(record{fields: []string{"gen", "1 2", "1 8", "8 0", "0 1024 2048 1024"}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.values, []float64{1, 2, 4, 16}) || !slices.Equal(c.measuredLength, []float64{8, 8}) || c.square {
		t.Errorf("%+v", c)
	}
	if c, err = decodeGrid(record{fields: []string{"ctx", "1 2", "1 8", "4 0", "0 1024 2048 1024"}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.values, []float64{1, math.Sqrt2, 2, 4}) || !slices.Equal(c.measuredLength, []float64{4, 8}) || !c.square {
		t.Errorf("%+v", c)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for want, fields := range map[string][]string{
		"n is 3 with 2 knots and 2 values":     {"3", "1 1", "log2048", "0 1"},
		"n is 2 with 2 knots and 3 values":     {"2", "1 1", "log2048", "0 1 2"},
		"x_delta has 1 knots; 2 to":            {"1", "1", "log2048", "0"},
		"x_delta does not increase at knot 2":  {"2", "1 0", "log2048", "0 1"},
		"x_delta runs from 0 to 1":             {"2", "0 1", "log2048", "0 1"},
		"x_delta runs from 1 to 4294967295":    {"3", "1 2147483647 2147483647", "log2048", "0 1 1"},
		`x_delta: number 2 is "x"`:             {"2", "1 x", "log2048", "0 1"},
		`x_delta: number 1 is ""`:              {"2", "", "log2048", "0 1"},
		`enc is "log"`:                         {"2", "1 1", "log", "0 1"},
		`y: number 2 is "2.5"`:                 {"2", "1 1", "log2048", "0 2.5"},
		"y: value 2 is +Inf":                   {"2", "1 1", "log2048", "0 2147483647"},
		"y: value 1 is 0":                      {"2", "1 1", "log2048", "-2147483648 1"},
		"y: value 2 is NaN":                    {"2", "1 1", "raw", "0 NaN"},
		"y: value 1 is -Inf":                   {"2", "1 1", "raw", "-Inf 1"},
		`kind is "mid"`:                        {"mid", "1 2", "1 2", "0 0", "0 0 0 0"},
		"b has 1 knots":                        {"gen", "1", "1 2", "0", "0 0"},
		"s does not increase at knot 3":        {"gen", "1 2", "1 3 2", "0 0", "0 0 0 0 0 0"},
		"q has 3 values; 2 batches of 2":       {"gen", "1 2", "1 2", "0 0", "0 0 0"},
		"measured has 1 values; it needs one":  {"gen", "1 2", "1 2", "0", "0 0 0 0"},
		"measured is -1 for batch 2; give a":   {"gen", "1 2", "1 2", "0 -1", "0 0 0 0"},
		"q: value 4 is +Inf; a time must be":   {"gen", "1 2", "1 2", "0 0", "0 0 0 2000000"},
		"q: value 1 is 0; a time must be over": {"ctx", "1 2", "1 2", "0 0", "-2000000 0 0 0"},
	} {
		decode := func(r record) error { _, err := decodeCurve(r); return err }
		if len(fields) == 5 {
			decode = func(r record) error { _, err := decodeGrid(r); return err }
		}
		if err := decode(record{fields: fields}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error is %v; it must contain %q", fields, err, want)
		}
	}
}

func TestPowerOfTwo(t *testing.T) {
	for q := -40000.0; q < 40000; q += 7 {
		for _, steps := range []int{curveSteps, gridSteps} {
			if got, want := powerOfTwo(q, steps), math.Exp2(q/float64(steps)); math.Abs(got/want-1) > 1e-14 {
				t.Fatalf("2^(%v/%d) is %v, want %v", q, steps, got, want)
			}
		}
	}
	if powerOfTwo(1024, 1024) != 2 || powerOfTwo(-2048, 2048) != 0.5 || powerOfTwo(0, 1024) != 1 {
		t.Error("whole powers are inexact")
	}
}

func TestParseAttention(t *testing.T) {
	got, err := parseAttention("g1*18+13.2;g2*18+-0.5", kindPrefill)
	if err != nil || !slices.Equal(got, []attentionTerm{{"g1", 18, 13.2}, {"g2", 18, -0.5}}) {
		t.Errorf("%v, %v", got, err)
	}
	for text, kind := range map[string]string{
		"": kindDecode, "g1": kindDecode, "g1*18+1": kindDecode, "g1*18": kindPrefill, "g1*0": kindDecode, "g1*-1": kindDecode,
		"g1*1.5": kindDecode, "g1*18;": kindDecode, "g1*18+x": kindPrefill, "g1*18+NaN": kindPrefill, "g1*18+Inf": kindPrefill,
	} {
		if got, err := parseAttention(text, kind); err == nil {
			t.Errorf("%q gives %v", text, got)
		}
	}
}

// FuzzDecodeCurve looks for curves that are accepted and cannot be read.
func FuzzDecodeCurve(f *testing.F) {
	f.Add("3", "1 1 14", "log2048", "0 2048 -1024", 7)
	f.Add("2", "1 9", "raw", "-0.5 1e-3", 100)
	f.Fuzz(func(t *testing.T, n, x, encoding, y string, v int) {
		c, err := decodeCurve(record{fields: []string{n, x, encoding, y}})
		if err != nil {
			return
		}
		if got := c.at(v); math.IsNaN(got) || math.IsInf(got, 0) {
			t.Errorf("at %d it is %v", v, got)
		}
	})
}

// FuzzDecodeGrid looks for grids that are accepted and cannot be read.
func FuzzDecodeGrid(f *testing.F) {
	f.Add("gen", "1 2", "1 8", "8 0", "0 1024 2048 1024", 3, 5)
	f.Add("ctx", "1 2 4", "1 8", "8 0 1", "0 1 2 3 4 5", 1, 500000)
	f.Fuzz(func(t *testing.T, kind, b, s, measured, q string, batch, length int) {
		g, err := decodeGrid(record{fields: []string{kind, b, s, measured, q}})
		if err != nil {
			return
		}
		g.measured(batch, length)
		if got := g.at(batch, length); math.IsNaN(got) || math.IsInf(got, 0) {
			t.Errorf("at %d, %d it is %v", batch, length, got)
		}
	})
}

// FuzzConfigs looks for rows that break the index over them.
func FuzzConfigs(f *testing.F) {
	text, err := readPackedFile(Embedded().files, "a100_sxm/"+configsFile)
	if err != nil {
		f.Fatal(err)
	}
	lines := strings.SplitAfterN(text, "\n", 4)
	f.Add(strings.Join(lines[:3], ""), "llama-3.1-8b")
	f.Add(lines[0], "")
	f.Fuzz(func(t *testing.T, text, model string) {
		configs, faults := parseConfigs("x/configs.csv.gz", text, "a100_sxm")
		if faults.Error() == "" != (len(faults) == 0) {
			t.Error("faults without a text")
		}
		x := indexRows(configs)
		s := search{set: Embedded(), index: x, query: Query{System: "a100_sxm", Backend: "vllm", Model: model, TP: 1, DP: 1}}
		s.name, _ = x.name(model)
		for _, c := range configs {
			if found, problems := s.choose([]*Config{c}); found == nil && problems == nil {
				t.Error("neither a row nor a problem")
			}
			_ = c.checkMemory()
		}
		s.explainNames()
	})
}
