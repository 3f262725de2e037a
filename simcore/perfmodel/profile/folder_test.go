package profile

import (
	"archive/zip"
	"math"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// folder writes files below a new folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	prefillNPZ  = "selected_prefill_interpolation/raw_data.npz"
	prefillJSON = "prefill_raw_data.json"
	decodeJSON  = "decode_raw_data.json"

	// Prefill takes 5 ms and 0.02 ms a token, a step 4 ms, 0.1 ms a request and 0.0001 ms a KV token.
	goodPrefill = `{"prefill_isl": [100, 1000.5, 2000], "prefill_ttft": [7, 25, 45], "prefill_thpt_per_gpu": [1, 1, 1]}`
	goodDecode  = `{"x_kv_usage": [0.01, 0.08, 0.08, 0.64], "y_context_length": [1000, 1000, 4000, 4000],
		"z_itl": [4.2, 5.6, 5.0, 12.0], "max_kv_tokens": 100000}`
)

func TestFolderIsLinear(t *testing.T) {
	p := mustRead(t, folder(t, map[string]string{prefillJSON: goodPrefill, decodeJSON: goodDecode}))
	for tokens, want := range map[int]float64{100: 7, 550: 16, 2000: 45, 4000: 85} {
		if got := p.PrefillMs(1, tokens, 0); math.Abs(got-want) > 1e-9 {
			t.Errorf("prefill of %d tokens takes %v ms, want %v", tokens, got, want)
		}
	}
	// At the points of the regular grid the fit is exact: here its last ones.
	if got, want := p.DecodeMs(1, 64000, 4000), 4+.1*16+6.4; math.Abs(got-want) > 1e-9 {
		t.Errorf("a step takes %v ms, want %v", got, want)
	}
	if p.MeasuredPrefill(1, 99, 0) || !p.MeasuredPrefill(1, 2000, 0) || p.MeasuredDecode(1, 64000, 4001) || !p.MeasuredDecode(1, 64000, 4000) {
		t.Error("the measured range is wrong")
	}
	if p.ContextFree() {
		t.Error("at fixed KV tokens, a longer context means fewer requests")
	}
}

// TestClearedSlope checks what the reference does where more requests with the same KV tokens look faster.
func TestClearedSlope(t *testing.T) {
	p := mustRead(t, "testdata/reference/folder_clamp")
	if !p.ContextFree() {
		t.Error("the number of requests still counts")
	}
}

func TestNPZBeforeJSON(t *testing.T) {
	npz := zipped(zip.Store, member{"prefill_isl.npy", doubles("(2,)", 0.5+10, 20)}, member{"prefill_ttft.npy", doubles("(2,)", 1, 2)})
	p := mustRead(t, folder(t, map[string]string{prefillNPZ: string(npz), prefillJSON: goodPrefill, decodeJSON: goodDecode}))
	if got := p.PrefillMs(1, 10, 0); math.Abs(got-1) > 1e-9 {
		t.Errorf("prefill takes %v ms; the .npz file says 1", got)
	}
}

func TestDamagedFolder(t *testing.T) {
	for _, test := range []struct {
		name            string
		prefill, decode string
		want            string
	}{
		{"no prefill", "", goodDecode, "has neither " + filepath.FromSlash(prefillNPZ) + " nor prefill_raw_data.json"},
		{"no decode", goodPrefill, "", "nor decode_raw_data.json"},
		{"no JSON", "{", goodDecode, "prefill_raw_data.json: unexpected end of JSON input"},
		{"no object", "[]", goodDecode, "prefill_raw_data.json: json: cannot unmarshal array"},
		{"missing", `{"prefill_isl": [1, 2]}`, goodDecode, "prefill_raw_data.json: array prefill_ttft is missing; the file holds: prefill_isl"},
		{"text", `{"prefill_isl": [1, "2"], "prefill_ttft": [1, 2]}`, goodDecode, "array prefill_isl is no list of numbers"},
		{"null", `{"prefill_isl": [1, null], "prefill_ttft": [1, 2]}`, goodDecode, "array prefill_isl: value 2 is null"},
		{"null array", `{"prefill_isl": null, "prefill_ttft": [1, 2]}`, goodDecode, "array prefill_isl: is empty"},
		{"empty", `{"prefill_isl": [], "prefill_ttft": []}`, goodDecode, "array prefill_isl: is empty"},
		{"lengths", `{"prefill_isl": [1, 2], "prefill_ttft": [1, 2, 3]}`, goodDecode, "array prefill_ttft has 3 values, prefill_isl 2"},
		{"no time", `{"prefill_isl": [1, 2], "prefill_ttft": [1, 0]}`, goodDecode, "array prefill_ttft: value 2 is 0"},
		{"one length", `{"prefill_isl": [7, 7.5], "prefill_ttft": [1, 2]}`, goodDecode, "all prompts have 7 tokens"},
		{"falling", `{"prefill_isl": [1, 2], "prefill_ttft": [2, 1]}`, goodDecode, "prefill_ttft falls by 1 ms a token"},
		{"no pool", goodPrefill, `{"x_kv_usage": [0.1], "y_context_length": [10], "z_itl": [4], "max_kv_tokens": 0}`, "decode_raw_data.json: array max_kv_tokens: value 1 is 0"},
		{"tiny", goodPrefill, `{"x_kv_usage": [0.1], "y_context_length": [10], "z_itl": [4], "max_kv_tokens": 10}`, "decode_raw_data.json: at most 1 KV tokens and 1 tokens of context"},
		{"falling decode", goodPrefill, `{"x_kv_usage": [0.1, 0.9], "y_context_length": [100, 100], "z_itl": [9, 4], "max_kv_tokens": 1000}`, "z_itl falls by"},
		{"both", "{", `{"max_kv_tokens": 1}`, "array x_kv_usage is missing"},
	} {
		files := map[string]string{}
		if test.prefill != "" {
			files[prefillJSON] = test.prefill
		}
		if test.decode != "" {
			files[decodeJSON] = test.decode
		}
		refused(t, test.name, folder(t, files), test.want)
	}
	damaged := folder(t, map[string]string{prefillNPZ: "no zip", decodeJSON: goodDecode})
	refused(t, "damaged .npz", damaged, filepath.FromSlash(prefillNPZ)+": is not an .npz file")
}

// TestFitPlane recovers planes, whatever the variables' scales.
func TestFitPlane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slope := func(name string) float64 { return rapid.Float64Range(-5, 5).Draw(t, name) }
		want := plane{slope("intercept"), slope("x"), slope("y")}
		scale := rapid.SampledFrom([]float64{1, 1e-3, 1e4}).Draw(t, "scale")
		var x, y, z []float64
		for _, corner := range [][2]float64{{0, 0}, {1, 0}, {0, 1}, {1, 1.5}, {.3, .2}} {
			x, y = append(x, 100+scale*corner[0]), append(y, 7+corner[1])
			z = append(z, want.at(x[len(x)-1], y[len(y)-1]))
		}
		got := fitPlane(x, y, z)
		for i := range x {
			if math.Abs(got.at(x[i], y[i])-z[i]) > 1e-8*(1+math.Abs(z[i])) {
				t.Fatalf("%+v became %+v", want, got)
			}
		}
	})
	// y = 2x: of all fits with x + 2y = 5 a unit of x the smallest has the slopes 1 and 2.
	if got := fitPlane([]float64{0, 1, 2}, []float64{0, 2, 4}, []float64{1, 6, 11}); got != (plane{1, 1, 2}) {
		t.Errorf("the fit of collinear points is %+v", got)
	}
	if got := fitPlane([]float64{3, 3}, []float64{1, 1}, []float64{5, 7}); got != (plane{6, 0, 0}) {
		t.Errorf("the fit of one point is %+v", got)
	}
	if got := fitPlane([]float64{3, 3}, []float64{1, 2}, []float64{5, 7}); got != (plane{3, 0, 2}) {
		t.Errorf("the fit along y is %+v", got)
	}
}
