package planner

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// openRecorded reads a compressed file.
func openRecorded(t testing.TB, path string) io.Reader {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// simulate runs a simulation of a workload with a planner.
func simulate(t rapid.TB, cfg simcore.Config, p Config, spec workload.Spec) *Outcome {
	t.Helper()
	resolved, problems := cfg.Resolve()
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	set, err := rules.For(cfg.Compat)
	if err != nil {
		t.Fatal(err)
	}
	w, err := spec.Load(context.Background(), workload.Source{Rules: set, EngineBlockSize: resolved.Stages()[0].Engine.BlockSize})
	if err != nil {
		t.Fatal(err)
	}
	out, err := Run(context.Background(), cfg, p, w, simcore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// testLimits are an engine whose passes never split a prompt.
var testLimits = limits{batchedTokens: 1 << 20, sequences: 256, kvTokens: 1 << 30}

// testSLA is a configuration with target sla whose latencies and slopes are exact in binary: with [testPlane], 1024 queued
// tokens take 125 ms, and 65,536 decoding ones lengthen a pass by 62.5 ms.
func testSLA() Config {
	c := DefaultConfig()
	c.Policy, c.OptimizationTarget = PolicyDynamo, "sla"
	c.TTFTMs, c.ITLMs = 125, 62.5
	c.EnableLoadScaling, c.EnableThroughputScaling = true, false
	c.LoadPredictor = "constant"
	return c
}

var testPlane = plane{slope: [2]float64{0x1p-13, 0x1p-20}}

// newTestCore makes a planner for pools that learned what told says, and learn nothing more. Its rules are those of the
// releases that have the single regression, unless change does otherwise.
func newTestCore(t *testing.T, config Config, compat rules.Compat, told ...poolSetup) *core {
	t.Helper()
	c, err := newCore(config, rulesFor(compat), told)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range c.pools {
		if p.model == nil {
			continue
		}
		m := newRegression(p.kind, &config, p.limits)
		m.fitted, m.ready, m.stale, m.kept.count = testPlane, true, false, config.LoadMinObservations
		p.model = &toldModel{regression: *m}
	}
	return c
}

// regressionOf is what the pool's model learned.
func regressionOf(p *pool) *regression { return &p.model.(*toldModel).regression }

// always is the mean of a value that never changes.
func always(v float64) movingAverage { return movingAverage{ring: []float64{v}, kept: 1, sum: v} }

// workers are the passes of workers 0, 1, …: queued prompt tokens, tokens of decoding and of preempted requests.
func workers(loads ...[3]int64) (passes []pass) {
	for i, l := range loads {
		passes = append(passes, pass{
			worker: int32(i), queuedPrefillTokens: l[0], decodeTokens: l[1], queuedDecodeTokens: l[2], wallSeconds: 1,
		})
	}
	return passes
}

// ids are those of n workers.
func ids(n int) (out []int32) {
	for i := range n {
		out = append(out, int32(i))
	}
	return out
}
