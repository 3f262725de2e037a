package simcore

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/kvcache/tiers"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/router"
	"github.com/servegrid/servegrid/simcore/rules"
	"github.com/servegrid/servegrid/simcore/workload"
)

// shape narrows the workloads and configurations that a property needs.
type shape struct {
	singleTurn, openLoop, noCap, noZeroOutput, roundRobin bool
}

// drawRequests makes a small workload with many shared prefixes and simultaneous arrivals.
func drawRequests(t *rapid.T, s shape) (blockSize int, requests []workload.Request) {
	blockSize = rapid.SampledFrom([]int{4, 8, 12, 16, 32}).Draw(t, "trace block size")
	sessions := rapid.IntRange(1, 12).Draw(t, "sessions")
	hash := rapid.Uint64Range(0, 5)
	planned := rapid.IntRange(0, 3).Draw(t, "planned") == 0
	if planned {
		hash = rapid.Uint64Range(0, 1) // so that outputs often equal other prompts
	}
	for session := range sessions {
		turns := 1
		if !s.singleTurn {
			turns = rapid.IntRange(1, 3).Draw(t, "turns")
		}
		for turn := range turns {
			r := workload.Request{
				Session:   string(rune('a' + session)),
				ArrivalMs: math.NaN(),
				Output:    rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, 3)).Draw(t, "output"),
				Hashes:    rapid.SliceOfN(hash, 1, 8).Draw(t, "hashes"),
			}
			if !s.noZeroOutput && rapid.IntRange(0, 30).Draw(t, "zero") == 0 {
				r.Output = 0
			}
			r.Input = (len(r.Hashes)-1)*blockSize + rapid.IntRange(1, blockSize).Draw(t, "tail")
			if turn == 0 {
				r.ArrivalMs = float64(rapid.OneOf(rapid.IntRange(0, 5), rapid.IntRange(0, 400)).Draw(t, "arrival"))
			} else {
				r.DelayMs = rapid.SampledFrom([]float64{0, 1, 7.25, 60}).Draw(t, "delay")
			}
			if planned && rapid.Bool().Draw(t, "states output") {
				r.PlannedOutput = rapid.SliceOfN(rapid.Uint32Range(0, 1), r.Output, r.Output).Draw(t, "planned output")
			}
			if rapid.IntRange(0, 2).Draw(t, "hinted") == 0 {
				r.Hints = workload.Hints{
					Priority:       rapid.Int32Range(-1, 3).Draw(t, "priority"),
					StrictPriority: rapid.Uint32Range(0, 1).Draw(t, "strict priority"),
				}
			}
			requests = append(requests, r)
		}
	}
	return blockSize, requests
}

func build(t interface{ Fatal(...any) }, blockSize int, requests []workload.Request) *workload.Workload {
	b := workload.NewBuilder("test", blockSize)
	for _, r := range requests {
		b.Add(r)
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func drawWorkload(t *rapid.T, s shape) *workload.Workload {
	blockSize, requests := drawRequests(t, s)
	return build(t, blockSize, requests)
}

// drawConfig makes a configuration under either rule set, with pools and budgets that are often too small.
func drawConfig(t *rapid.T, s shape) Config {
	c := DefaultConfig()
	c.Compat = rapid.SampledFrom([]rules.Compat{rules.Default, rules.Dynamo13}).Draw(t, "compat")
	sizes := []int{1, 3, 4, 8, 16, 32}
	if c.Compat == rules.Dynamo13 {
		sizes = []int{2, 4, 8, 16, 32}
	}
	c.Deployment.Workers = rapid.IntRange(1, 4).Draw(t, "workers")
	e := &c.Engine
	e.BlockSize = rapid.SampledFrom(sizes).Draw(t, "block size")
	e.NumGPUBlocks = rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(64, 512)).Draw(t, "blocks") * max(1, 16/e.BlockSize)
	e.MaxNumSeqs = rapid.SampledFrom([]int{0, 1, 2, 3, 8}).Draw(t, "sequences")
	e.MaxNumBatchedTokens = rapid.SampledFrom([]int{0, 1, 5, 16, 64, 300}).Draw(t, "budget")
	e.EnableChunkedPrefill = rapid.IntRange(0, 3).Draw(t, "chunked") > 0
	e.EnablePrefixCaching = rapid.IntRange(0, 3).Draw(t, "caching") > 0
	e.SpeedupRatio = rapid.SampledFrom([]float64{0, 1, 3}).Draw(t, "speedup")
	e.DecodeSpeedupRatio = rapid.SampledFrom([]float64{0, 1, 1.7}).Draw(t, "decode speedup")
	e.PreemptionMode = rapid.SampledFrom(engine.PreemptionModes()).Draw(t, "preemption")
	e.ContextLength = rapid.SampledFrom([]int{0, 0, 60, 150}).Draw(t, "context")
	drawScheduler(t, e)
	if rapid.Bool().Draw(t, "fixed") {
		c.Timing.Source, c.Timing.DecodeMs = perfmodel.SourceFixed, 2
		c.Timing.PrefillMs = rapid.SampledFrom([]float64{0, 1, 10}).Draw(t, "prefill ms")
	}
	drawLoad(t, &c.Load, s)
	if !s.roundRobin {
		drawRouter(t, &c.Router)
	}
	if c.Compat == rules.Default && e.EnablePrefixCaching && rapid.IntRange(0, 2).Draw(t, "tiered") == 0 {
		e.KVBytesPerToken = 1000
		drawTiers(t, &c.Tiers)
	}
	if rapid.Bool().Draw(t, "sla") {
		c.SLA = SLA{TTFTMs: 40, ITLMs: 7}
	}
	return c
}

// drawScheduler draws the scheduler and what only one of them has.
func drawScheduler(t *rapid.T, e *engine.Config) {
	e.Type = rapid.SampledFrom(engine.Types()).Draw(t, "engine")
	if e.Type != engine.TypeSGLang {
		return
	}
	e.SGLang = engine.SGLangConfig{
		SchedulePolicy:           rapid.SampledFrom(engine.SchedulePolicies()).Draw(t, "schedule policy"),
		ChunkedPrefillSize:       e.BlockSize * rapid.SampledFrom([]int{0, 1, 2, 10}).Draw(t, "chunk"),
		MaxPrefillTokens:         rapid.SampledFrom([]int{0, 0, 16, 100}).Draw(t, "prefill tokens"),
		ClipMaxNewTokens:         rapid.SampledFrom([]int{0, 1, 10}).Draw(t, "clip"),
		ScheduleConservativeness: rapid.SampledFrom([]float64{0, .1, 1}).Draw(t, "conservativeness"),
	}
}

// drawRouter makes a router that often keeps requests.
func drawRouter(t *rapid.T, c *router.Config) {
	c.Policy = rapid.OneOf(rapid.SampledFrom(router.Policies()), rapid.Just(router.PolicyKVRouter)).Draw(t, "router policy")
	c.Seed = rapid.Uint64Range(0, 3).Draw(t, "router seed")
	c.PrefixAffinityTokens = rapid.SampledFrom([]int{1, 16}).Draw(t, "affinity tokens")
	c.RouterTemperature = rapid.SampledFrom([]float64{0, 0, .5}).Draw(t, "temperature")
	c.OverlapScoreCreditDecay = rapid.SampledFrom([]float64{0, 0, .5}).Draw(t, "decay")
	c.PrefillLoadScale = rapid.SampledFrom([]float64{0, 1, 2}).Draw(t, "scale")
	c.RouterTrackActiveBlocks = rapid.IntRange(0, 3).Draw(t, "tracks blocks") > 0
	c.RouterAssumeKVReuse = rapid.IntRange(0, 3).Draw(t, "assumes reuse") > 0
	c.RouterTrackPrefillTokens = rapid.IntRange(0, 3).Draw(t, "tracks prefill") > 0
	if c.Policy == router.PolicyKVRouter && c.RouterTrackPrefillTokens && rapid.IntRange(0, 3).Draw(t, "predicts") == 0 {
		c.RouterPrefillLoadModel = router.PrefillLoadAIC
	}
	c.RouterQueueThreshold = rapid.SampledFrom([]float64{router.Unset, 0, .1, 1, 16}).Draw(t, "threshold")
	c.RouterQueuePolicy = rapid.SampledFrom(router.QueuePolicies()).Draw(t, "queue policy")
}

// drawTiers makes lower memory tiers that are often too small, and links that are often slow: tokens have 1000 bytes.
func drawTiers(t *rapid.T, c *tiers.Config) {
	c.NumG2Blocks = rapid.IntRange(1, 60).Draw(t, "host blocks")
	c.NumG3Blocks = rapid.SampledFrom([]int{0, 0, 10, 100}).Draw(t, "disk blocks")
	c.EnableG4Storage = rapid.IntRange(0, 2).Draw(t, "object store") == 0
	c.WorkersPerNode = rapid.IntRange(0, 2).Draw(t, "workers per node")
	bandwidths, latencies := tierSpeeds(c)
	for i := range bandwidths {
		*bandwidths[i] = rapid.SampledFrom([]float64{0, .0001, .002, .05}).Draw(t, "bandwidth")
		*latencies[i] = rapid.SampledFrom([]float64{0, 0, 3.25}).Draw(t, "latency")
	}
	c.OffloadPolicy = rapid.SampledFrom(tiers.OffloadPolicies()).Draw(t, "offload")
	c.OffloadBatchSize = rapid.SampledFrom([]int{1, 3, 16}).Draw(t, "batch")
	c.OnboardPolicy = rapid.SampledFrom(tiers.OnboardPolicies()).Draw(t, "onboard")
}

// tierSpeeds lists how fast the links between tiers are.
func tierSpeeds(c *tiers.Config) (bandwidths, latencies []*float64) {
	return []*float64{&c.BandwidthG1ToG2, &c.BandwidthG2ToG1, &c.BandwidthG2ToG3, &c.BandwidthG3ToG2, &c.BandwidthG2ToG4, &c.BandwidthG4ToG2},
		[]*float64{&c.LatencyG1ToG2, &c.LatencyG2ToG1, &c.LatencyG2ToG3, &c.LatencyG3ToG2, &c.LatencyG2ToG4, &c.LatencyG4ToG2}
}

func drawLoad(t *rapid.T, l *Load, s shape) {
	modes := []LoadMode{LoadTrace, LoadRate, LoadConcurrency}
	if s.openLoop {
		modes = modes[:2]
	}
	l.Mode = rapid.SampledFrom(modes).Draw(t, "mode")
	l.Speedup = rapid.SampledFrom([]float64{1, 1, .5, 3}).Draw(t, "arrival speedup")
	switch l.Mode {
	case LoadRate:
		l.Rate = rapid.SampledFrom([]float64{5, 37, 1000}).Draw(t, "rate")
	case LoadConcurrency:
		l.Concurrency = rapid.IntRange(1, 6).Draw(t, "concurrency")
	}
	if !s.noCap {
		l.MaxSimTimeSeconds = rapid.SampledFrom([]float64{0, 0, .002, .06, .3}).Draw(t, "cap")
	}
}

// growing is a timing model whose decode steps take longer as the context grows.
type growing struct{}

func (growing) Price(p *perfmodel.Pass) perfmodel.Price {
	var out perfmodel.Price
	if n := p.Prefill.Requests; n > 0 {
		out.PrefillMs = 3 + .01*float64(n*(p.Prefill.Length-p.Prefill.Prefix))
	}
	if d := p.Decode; d.Requests > 0 {
		out.DecodeMs = 1.5 + .013*float64(d.Context) + .1*float64(d.Requests)
		out.Extrapolated = d.Context%7 == 0
	}
	return out
}

func (growing) ContextFree() bool { return false }
func (growing) PerRequest() bool  { return false }

func drawModel(t *rapid.T) perfmodel.Model {
	if rapid.IntRange(0, 2).Draw(t, "context-dependent") == 0 {
		return growing{}
	}
	return nil
}

// outcome is all that a run returns.
type outcome struct {
	Report  *Report
	Records []RequestRecord
	Err     error
}

// simulate runs a configuration. An error must be a *StuckError, and come soon.
func simulate(t rapid.TB, cfg Config, w *workload.Workload, opt Options) outcome {
	t.Helper()
	var o outcome
	opt.Records = func(r RequestRecord) { o.Records = append(o.Records, r) }
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	o.Report, o.Err = Run(ctx, cfg, w, opt)
	if o.Err != nil {
		var stuck *StuckError
		if !asStuck(o.Err, &stuck) {
			t.Fatalf("%v (%T)", o.Err, o.Err)
		}
	}
	return o
}

// lives compares what users can see of two outcomes.
var lives = cmp.Options{
	cmpopts.IgnoreUnexported(engine.Request{}, Handoff{}),
	cmpopts.SortSlices(func(a, b RequestRecord) bool { return a.Request < b.Request }),
}

func diffOutcomes(want, got outcome) string {
	return cmp.Diff(want.Report, got.Report) + cmp.Diff(want.Records, got.Records, lives)
}

// relabelled returns the requests with every hash id replaced, equal ones by equal ones.
func relabelled(requests []workload.Request) []workload.Request {
	out := slices.Clone(requests)
	for i := range out {
		out[i].Hashes = slices.Clone(out[i].Hashes)
		for k, id := range out[i].Hashes {
			out[i].Hashes[k] = (id + 12345) * 0x9e3779b97f4a7c15
		}
	}
	return out
}
