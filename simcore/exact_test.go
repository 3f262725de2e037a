package simcore

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// exact prices passes with the very values that aiconfigurator gave in a recorded run, so that an error of the engine
// cannot hide behind one of the tables.
type exact struct {
	t      *testing.T
	prices map[[4]int]float64 // prefill: 'p', requests, new, prefix; decode: 'd', requests, context, 0
}

func (e exact) Price(p *perfmodel.Pass) perfmodel.Price {
	var out perfmodel.Price
	if n := p.Prefill.Requests; n > 0 && p.Prefill.Length > p.Prefill.Prefix {
		out.PrefillMs = e.at('p', n, p.Prefill.Length-p.Prefill.Prefix, p.Prefill.Prefix)
	}
	if n := p.Decode.Requests; n > 0 {
		out.DecodeMs = max(1, e.at('d', n, p.Decode.Context, 0))
	}
	return out
}

func (e exact) at(key ...int) float64 {
	ms, ok := e.prices[[4]int(key)]
	if !ok {
		e.t.Fatalf("the recorded run had no pass of %c %v", key[0], key[1:])
	}
	return ms
}

func (exact) ContextFree() bool { return false }
func (exact) PerRequest() bool  { return false }

func readExact(t *testing.T, path string) exact {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	e := exact{t, map[[4]int]float64{}}
	for s := bufio.NewScanner(z); s.Scan(); {
		f := strings.Fields(s.Text())
		key := [4]int{int(f[0][0])}
		for i := range 3 {
			if key[i+1], err = strconv.Atoi(f[i+1]); err != nil {
				t.Fatal(err)
			}
		}
		if e.prices[key], err = strconv.ParseFloat(f[4], 64); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// TestExactPasses replays recorded runs of the reference 1.2.1 with the pass times that it had. Every figure agrees to
// the last digits.
func TestExactPasses(t *testing.T) {
	const golden = "../cmd/servegrid/testdata/golden"
	recorded, err := os.ReadFile(filepath.Join(golden, "tables/cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(recorded, &all); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"chat-h200-8b-w1", "longctx-h200-8b-w2", "shortchat-h200-8b-w2", "conv500-h200-8b-w4"} {
		t.Run(name, func(t *testing.T) {
			args, want := exactCase(t, all, name)
			cfg := DefaultConfig()
			cfg.Compat = rules.Dynamo12
			cfg.Deployment.Workers, err = strconv.Atoi(args[2])
			if err != nil {
				t.Fatal(err)
			}
			set, err := rules.For(cfg.Compat)
			if err != nil {
				t.Fatal(err)
			}
			spec := workload.DefaultTraceSpec()
			spec.Path = exactTrace(t, filepath.Join(golden, "traces"), args[0])
			w, err := workload.Spec{Trace: &spec}.Load(context.Background(), workload.Source{Rules: set, EngineBlockSize: cfg.Engine.BlockSize})
			if err != nil {
				t.Fatal(err)
			}
			report, err := Run(context.Background(), cfg, w, Options{model: readExact(t, filepath.Join(golden, "tables", name+".txt.gz"))})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range metrics.Fields() {
				expected, recorded := want[f.Name]
				if got, ok := f.Value(report); recorded && ok && math.Abs(got-expected) > 1e-9*max(1, math.Abs(expected)) {
					t.Errorf("%s = %v, want %v (off by %g)", f.Name, got, expected, got/expected-1)
				}
			}
		})
	}
}

func exactCase(t *testing.T, all []json.RawMessage, name string) (args []string, want map[string]float64) {
	t.Helper()
	for _, text := range all {
		var c struct {
			Name     string
			Args     []string
			Expected map[string]any
		}
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		if c.Name != name {
			continue
		}
		want = map[string]float64{}
		for key, v := range c.Expected {
			if n, ok := v.(float64); ok {
				want[key] = n
			}
		}
		return c.Args, want
	}
	t.Fatalf("no case %s", name)
	return nil, nil
}

// exactTrace returns a made trace, or the first rows of a real one where shared data is.
func exactTrace(t *testing.T, folder, name string) string {
	t.Helper()
	if name != "conv500.jsonl" {
		return filepath.Join(folder, name)
	}
	dir := os.Getenv("SHARED_DATA_DIR")
	if dir == "" {
		dir = "../../shared"
	}
	data, err := os.ReadFile(filepath.Join(dir, "traces/mooncake/conversation_trace.jsonl"))
	if err != nil {
		t.Skip("needs the real traces: set SHARED_DATA_DIR to the folder that holds traces/mooncake")
	}
	lines := slices.Collect(strings.SplitAfterSeq(string(data), "\n"))
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(lines[:500], "")), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}
