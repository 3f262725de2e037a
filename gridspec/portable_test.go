package gridspec_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/gridspec"
)

// Every point of every example keeps its content ID on the way to another machine and back.
func TestPortable(t *testing.T) {
	var specs []string
	err := filepath.WalkDir("../examples", func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".yaml" {
			specs = append(specs, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, path := range specs {
		spec, err := gridspec.Load(gridspec.Source{Path: path})
		if err != nil {
			continue // files of other kinds
		}
		points, err := spec.Expand(gridspec.ExpandOptions{})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		step := max(len(points)/40, 1)
		for i := 0; i < len(points); i += step {
			if points[i].SkipReason == "" {
				checkPortable(t, path, points[i])
				tried++
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d points were tried", tried)
	}
}

// Numbers keep their kind and every digit.
func TestPortableNumbers(t *testing.T) {
	spec, err := gridspec.Load(gridspec.Source{Data: []byte(`
workload: {synthetic: {input_tokens: 10, output_tokens: 2, requests: 1, seed: 9223372036854775807}}
grid:
  sla.ttft_ms: [1e19, 1.8446744073709552e19, 1e20, 9.99e20, 1e21, 1.7976931348623157e308, 2.5, 2, 5e-324, 9007199254740993]
  deployment.workers: [1, 1048576]
`)})
	if err != nil {
		t.Fatal(err)
	}
	points, err := spec.Expand(gridspec.ExpandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		checkPortable(t, "numbers", p)
	}
}

func checkPortable(t *testing.T, path string, p gridspec.Point) {
	t.Helper()
	dir := t.TempDir()
	var declared []string
	text, err := p.Portable(func(key, file string) (string, error) {
		sum := sha256.Sum256([]byte(file))
		name := hex.EncodeToString(sum[:]) + "/" + filepath.Base(file)
		declared = append(declared, name)
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			return "", err
		}
		return name, os.Symlink(file, filepath.Join(dir, name))
	})
	if err != nil {
		t.Fatalf("%s, point %d: %v", path, p.Index, err)
	}
	back, err := gridspec.FromPortable(text, dir, declared)
	if err != nil {
		t.Fatalf("%s, point %d: %v\n%s", path, p.Index, err, text)
	}
	back.Replicate = p.Replicate
	if want, got := p.ContentID("d"), back.ContentID("d"); want != got {
		t.Fatalf("%s, point %d: content ID %s became %s\n%s", path, p.Index, want, got, text)
	}
	if len(declared) > 0 {
		return
	}
	// Earlier releases wrote YAML.
	back, err = gridspec.FromPortable(p.Alone(""), dir, nil)
	if err != nil {
		t.Fatalf("%s, point %d: as YAML: %v", path, p.Index, err)
	}
	back.Replicate = p.Replicate
	if want, got := p.ContentID("d"), back.ContentID("d"); want != got {
		t.Fatalf("%s, point %d: as YAML: content ID %s became %s", path, p.Index, want, got)
	}
}

// A text from elsewhere can read nothing but the files that were declared with it.
func TestFromPortableRefuses(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret.jsonl")
	if err := os.WriteFile(secret, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	const preset = "workload: {preset: {name: chat, requests: 5}}\n"
	tests := []struct{ name, text, message string }{
		{"absolute path", fmt.Sprintf("workload: {trace: {path: %s}}", secret), "workload.trace.path"},
		{"upwards", "workload: {trace: {path: ../secret.jsonl}}", "workload.trace.path"},
		{"undeclared", "workload: {trace: {paths: [abc/trace.jsonl]}}", "workload.trace.paths"},
		{"standard input", "workload: {trace: {path: '-'}}", "workload.trace.path"},
		{"URL", "workload: {trace: {path: 'file:///etc/passwd'}}", "workload.trace.path"},
		{"tables", preset + "timing: {tables: /etc, gpu: h200_sxm, model: qwen3-0.6b}", "timing.tables"},
		{"profile", preset + "timing: {profile: /etc/passwd}", "timing.profile"},
		{"model", preset + "timing: {gpu: h200_sxm, model: /etc/config.json}", "timing.model"},
		{"policy classes", preset + "router: {policy: kv_router, router_policy_config: /etc/passwd}", "router.router_policy_config"},
		{"predictor", preset + "planner: {policy: dynamo, load_predictor_warmup_trace: /etc/passwd}", "planner.load_predictor_warmup_trace"},
		{"stage", preset + "deployment: {mode: disaggregated}\nprefill: {timing: {profile: /etc/passwd}}", "prefill.timing.profile"},
		{"axis", preset + "grid: {deployment.workers: [1, 2]}", "grid"},
		{"output", preset + "output: {dir: /tmp/elsewhere}", "output"},
		{"include", preset + "include: [{timing.profile: /etc/passwd}]", "include"},
		{"workloads", "workload: [{preset: {name: chat}}, {preset: {name: agent}}]", "workload"},
		{"replicates", preset + "execution: {replicates: 2}", "execution"},
		{"unknown", preset + "surprise: 1", "surprise"},
		{"not YAML", "{", ""},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := gridspec.FromPortable([]byte(tt.text), dir, []string{"aa/known.jsonl"})
			if err == nil || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("error %v, want one about %q", err, tt.message)
			}
			if err != nil && strings.Contains(err.Error(), "root:") {
				t.Errorf("the error shows what is in a file: %v", err)
			}
		})
	}
	t.Setenv("SERVEGRID_DEPLOYMENT__WORKERS", "7")
	p, err := gridspec.FromPortable([]byte(preset), dir, nil)
	if err != nil || p.Config.Deployment.Workers == 7 {
		t.Errorf("the environment counts: %d workers, error %v", p.Config.Deployment.Workers, err)
	}
}

func BenchmarkPortable(b *testing.B) {
	spec, err := gridspec.Load(gridspec.Source{Path: "../examples/gpus/grid.yaml"})
	if err != nil {
		b.Fatal(err)
	}
	points, err := spec.Expand(gridspec.ExpandOptions{})
	if err != nil {
		b.Fatal(err)
	}
	keep := func(_, path string) (string, error) { return path, nil }
	var text []byte
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			if text, err = points[0].Portable(keep); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := gridspec.FromPortable(text, spec.Dir, []string{points[0].Config.Timing.Profile}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
