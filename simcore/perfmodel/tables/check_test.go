package tables

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// folder is the text of a folder of tables by file.
type folder map[string]string

// exampleFolder is one system with two rows, which share their curves, and a check of each kind.
func exampleFolder() folder {
	x, y, grid := "1 9 90", "0 2048 2048", "1 2,1 9,9 0,0 1024 2048 1024"
	c := contentID("c", []string{x, encodingLog, y})
	ctx := contentID("g", append([]string{kindPrefill}, strings.Split(grid, ",")...))
	gen := contentID("g", append([]string{kindDecode}, strings.Split(grid, ",")...))
	return folder{
		"gpu1/configs.csv.gz": strings.Join(configColumns, ",") + "\n" +
			exampleRow(c, ctx, gen, nil) + exampleRow(c, ctx, gen, map[string]string{"dtype": "fp8", "gemm": "fp8", "anomaly": "1"}),
		"gpu1/curves.csv.gz": "id,n,x_delta,enc,y\n" + strings.Join([]string{c, "3", x, encodingLog, y}, ",") + "\n",
		"gpu1/grids.csv.gz":  "id,kind,b,s,measured,q\n" + ctx + ",ctx," + grid + "\n" + gen + ",gen," + grid + "\n",
		"unavailable.csv":    "slot,system,backend,model,dtype,par,error\ncurrent,gpu1,vllm,tiny,nvfp4,\"{\"\"tp\"\": 1}\",no fp4 units\n",
		// Tokens(1) is 1, Requests(1) is 1, one layer of attention 1 us and its constant 1 ms; Generation(1) is 1.
		"checks.csv.gz": strings.Join(checkColumns, ",") + "\n" +
			"current,gpu1,vllm,1.0,org/tiny,bf16,1,1,1,1,0,prefill,1,1,0,3.001\n" +
			"current,gpu1,vllm,1.0,org/tiny,fp8,1,1,1,1,0,decode,1,1,0,2\n",
	}
}

// exampleRow is a row of exampleFolder with some of its fields changed.
func exampleRow(curve, ctx, gen string, change map[string]string) string {
	values := map[string]string{
		"slot": "current", "system": "gpu1", "backend": "vllm", "backend_version": "1.0", "model": "tiny", "hf_path": "org/tiny", "dtype": "bf16",
		"gemm": "bfloat16", "moe": "bfloat16", "kv": "bfloat16", "fmha": "bfloat16", "weights_bytes": "1000", "gpu_mem_bytes": "10000",
		"kv_bytes_per_token": "1", "kv_bytes_64": "64", "kv_bytes_4096": "4096", "kv_bytes_131072": "131072", "mem_fraction": "0.9", "max_kv_tokens": "8000",
		"c_tok": curve, "c_log": curve, "g_tok": curve, "ctx_att": ctx + "*1+1000", "gen_att": gen + "*1",
		"silicon_pct_prefill": "", "silicon_pct_decode": "90", "generator": "hand", "measured": "2026-11-28",
	}
	for _, column := range []string{"tp", "dp", "moe_tp", "moe_ep", "layers"} {
		values[column] = "1"
	}
	fields := make([]string, len(configColumns))
	for i, column := range configColumns {
		fields[i] = "0"
		if v, ok := values[column]; ok {
			fields[i] = v
		}
		if v, ok := change[column]; ok {
			fields[i] = v
		}
	}
	return strings.Join(fields, ",") + "\n"
}

// write writes the folder, packing what is to be packed, and returns where.
func (f folder) write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range f {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		content := []byte(text)
		if strings.HasSuffix(name, ".gz") {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			_, err := z.Write(content)
			if err := errors.Join(err, z.Close()); err != nil {
				t.Fatal(err)
			}
			content = packed.Bytes()
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCheck(t *testing.T) {
	set, report, err := Check(exampleFolder().write(t))
	if err != nil {
		t.Fatal(err)
	}
	if report.Configs != 2 || report.Curves != 1 || report.Grids != 2 || report.Anomalies != 1 || len(report.Systems) != 1 {
		t.Errorf("report is %+v", report)
	}
	if p := report.Prefill; p.Count != 1 || p.Errors.Max > 1e-9 {
		t.Errorf("prefill points are %+v", p)
	}
	if d := report.Decode; d.Count != 1 || !close(d.Errors.Max, 49.95) || !strings.Contains(d.Worst, "checks.csv.gz:3: gpu1 vllm 1.0 tiny fp8 tp 1 dp 1 ep 1, batch 1, new 1, before 0: 1.001 ms, source 2 ms") {
		t.Errorf("decode points are %+v", d)
	}
	c, problems := set.Find(Query{System: "gpu1", Backend: "vllm", Model: "org/Tiny", DType: "fp8", TP: 1, DP: 1})
	if problems != nil || !c.Anomaly || c.SiliconPrefillPct != -1 || c.SiliconDecodePct != 90 || c.GPUs() != 1 {
		t.Errorf("%+v, %v", c, problems)
	}
	if _, problems := set.Find(Query{System: "gpu1", Backend: "vllm", Model: "tiny", DType: "nvfp4", TP: 1, DP: 1}); !strings.Contains(problems.Error(), "the source refused this one: no fp4 units") {
		t.Error(problems)
	}
}

// TestCheckFaults damages the example in one place at a time.
func TestCheckFaults(t *testing.T) {
	example := exampleFolder()
	grids := strings.Split(example["gpu1/grids.csv.gz"], "\n")
	replace := func(file, old, fresh string) folder {
		if !strings.Contains(example[file], old) {
			t.Fatalf("%s lacks %q", file, old)
		}
		return folder{file: strings.Replace(example[file], old, fresh, 1)}
	}
	configs, curves := "gpu1/configs.csv.gz", "gpu1/curves.csv.gz"
	for name, test := range map[string]struct {
		change folder
		want   []string
	}{
		"a changed curve": {replace(curves, "0 2048 2048", "0 2048 2049"), []string{"gpu1/curves.csv.gz:2: ", "the contents hash to c"}},
		"a changed grid":  {replace("gpu1/grids.csv.gz", "9 0", "9 9"), []string{"gpu1/grids.csv.gz:2: ", "the contents hash to g"}},
		"a lost value":    {replace(curves, "0 2048 2048", "0 2048"), []string{"n is 3 with 3 knots and 2 values", "hash"}},
		"a curve twice, differently": {
			folder{curves: example[curves] + strings.Split(strings.Split(example[curves], "\n")[1], ",")[0] + ",2,1 1,log2048,0 0\n"},
			[]string{"gpu1/curves.csv.gz:3: id c", "is there before, on line 2"},
		},
		"a grid lost":             {folder{"gpu1/grids.csv.gz": grids[0] + "\n" + grids[1] + "\n"}, []string{"gpu1/configs.csv.gz:2: ", "gen_att is g", "which grids.csv.gz does not have", "configs.csv.gz:3: "}},
		"grids of the wrong kind": {replace(configs, strings.Split(grids[1], ",")[0], strings.Split(grids[2], ",")[0]), []string{"configs.csv.gz:2:", "a grid of kind gen; it must be of kind ctx"}},
		"a curve lost":            {folder{curves: "id,n,x_delta,enc,y\n"}, []string{"c_tok is c", "c_log is c", "g_tok is c", "which curves.csv.gz does not have"}},
		"a row twice":             {folder{configs: example[configs] + strings.Split(example[configs], "\n")[1] + "\n"}, []string{"configs.csv.gz:4: gpu1 vllm 1.0 tiny bf16 tp 1 dp 1 ep 1 is there before, on line 2"}},
		"another system":          {replace(configs, "gpu1,", "gpu2,"), []string{"configs.csv.gz:2: system is gpu2; it must be the name of the folder, gpu1"}},
		"no number":               {replace(configs, ",1000,", ",many,"), []string{`configs.csv.gz:2: weights_bytes is "many": give a number of 0 or more`}},
		"infinite":                {replace(configs, ",1000,", ",Inf,"), []string{`weights_bytes is "Inf"`}},
		"no backend":              {replace(configs, "vllm", "llmv"), []string{`backend is "llmv": use one of: vllm, sglang, trtllm`}},
		"a memory that is wrong":  {replace(configs, ",8000,", ",9000,"), []string{"configs.csv.gz:2:", "max_kv_tokens is 9000, but the memory columns leave room for 8000"}},
		"no memory":               {replace(configs, ",10000,", ",0,"), []string{"gpu_mem_bytes and weights_bytes must be over 0"}},
		"a falling KV curve":      {replace(configs, ",131072,", ",13,"), []string{"it must be over 0 and grow"}},
		"a column lost":           {replace(configs, "qk_norm_us", "qk_norm"), []string{"configs.csv.gz:1: lacks the columns qk_norm_us"}},
		"other columns of curves": {replace(curves, "x_delta", "x"), []string{"curves.csv.gz:1: the columns are", "they must be id,n,x_delta,enc,y"}},
		"a line cut short":        {folder{curves: example[curves] + "c1,2"}, []string{"curves.csv.gz:3: 2 fields; 5 are needed"}},
		"a row cut short":         {folder{configs: example[configs] + "current,gpu1\n"}, []string{"configs.csv.gz:4: wrong number of fields"}},
		"an empty file":           {folder{configs: ""}, []string{"configs.csv.gz:1: has no header"}},
		"a check of no row":       {replace("checks.csv.gz", "tiny,fp8", "tiny,fp4"), []string{"checks.csv.gz:3: 0 rows of gpu1/configs.csv.gz are of this deployment"}},
		"a check without a time":  {replace("checks.csv.gz", "3.001", "0"), []string{`checks.csv.gz:2: ms is "0": a pass takes longer than 0`}},
		"unavailable":             {replace("unavailable.csv", `{""tp"": 1}`, "tp1"), []string{"unavailable.csv:2: par is"}},
	} {
		t.Run(name, func(t *testing.T) {
			damaged := exampleFolder()
			for file, text := range test.change {
				damaged[file] = text
			}
			_, _, err := Check(damaged.write(t))
			var faults Faults
			if !errors.As(err, &faults) {
				t.Fatalf("error is %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error is\n%v\nit must contain %q", err, want)
				}
			}
		})
	}
}

// TestCheckListsAll damages several files at once.
func TestCheckListsAll(t *testing.T) {
	damaged := exampleFolder()
	damaged["gpu1/curves.csv.gz"] = strings.Replace(damaged["gpu1/curves.csv.gz"], "2048 2048", "2048 0", 1)
	damaged["gpu1/configs.csv.gz"] = strings.Replace(damaged["gpu1/configs.csv.gz"], "vllm", "v", 1)
	damaged["checks.csv.gz"] = strings.Replace(damaged["checks.csv.gz"], "decode", "both", 1)
	dir := damaged.write(t)
	if err := os.WriteFile(filepath.Join(dir, "gpu1", gridsFile), []byte("no gzip"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := Check(dir)
	for _, want := range []string{"curves.csv.gz:2:", "configs.csv.gz:2:", "checks.csv.gz:3:", "grids.csv.gz: is no gzip file"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is\n%v\nit must contain %q", err, want)
		}
	}
}

func TestFaultsAreCutOff(t *testing.T) {
	if text := make(Faults, 70).Error(); strings.Count(text, "\n") != maxFaultsShown || !strings.HasSuffix(text, "and 20 more") {
		t.Errorf("%d lines: %s", strings.Count(text, "\n")+1, text)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir: "holds no system", file: "is a file", filepath.Join(dir, "none"): "no such file"} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v; it must contain %q", path, err, want)
		}
	}
}

// TestDamageIsFoundWhenRead checks that a folder that is opened without a check does not price with damaged curves.
func TestDamageIsFoundWhenRead(t *testing.T) {
	damaged := exampleFolder()
	damaged["gpu1/curves.csv.gz"] = strings.Replace(damaged["gpu1/curves.csv.gz"], "2048 2048", "2048 2049", 1)
	set, err := Open(damaged.write(t))
	if err != nil {
		t.Fatal(err)
	}
	c, problems := set.Find(Query{System: "gpu1", Backend: "vllm", Model: "tiny", TP: 1, DP: 1})
	if problems != nil {
		t.Fatal(problems)
	}
	if _, err := set.Load(c, true); err == nil || !strings.Contains(err.Error(), "gpu1/curves.csv.gz:2: curve") {
		t.Errorf("error is %v", err)
	}
}
