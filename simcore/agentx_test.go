package simcore

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/workload"
)

// agentXGolden is a run of the newest peer's scenario with the traces that it had. Times are in ms, those of requests
// from the start of the measured window.
type agentXGolden struct {
	Name, Format   string
	Files          map[string]string
	Lanes          int
	StartsMs       []float64 // where the first plays start, as the peer drew it
	WarmUp         string    // the setting; "" for repeated prefixes
	ProfileStartMs float64   // 0 when the warm-up takes another time: the peer delays what comes before a live trajectory
	DurationS      float64   // 0: each lane plays its first play and no more
	Issued         int64
	PlaysStarted   int64
	PlaysCompleted int64
	ObservationMs  float64
	Requests       [][]any // id, arrival, first token, last token, reused tokens; the recorded tables stop at 60
}

// TestAgentXGolden replays the newest peer's runs of the scenario from the starts that it drew, request by request, with
// the idle time that is cut while it runs and the warm-ups of each user (aiperf#1413).
func TestAgentXGolden(t *testing.T) {
	file, err := os.Open("testdata/agentx.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var goldens []agentXGolden
	if err := json.NewDecoder(z).Decode(&goldens); err != nil || len(goldens) < 24 {
		t.Fatalf("%d runs: %v", len(goldens), err)
	}
	for _, golden := range goldens {
		t.Run(golden.Name, golden.check)
	}
}

func (g agentXGolden) check(t *testing.T) {
	dir := t.TempDir()
	spec := workload.DefaultTraceSpec()
	for name, text := range g.Files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		spec.Path = filepath.Join(dir, name)
	}
	if len(g.Files) > 1 {
		spec.Path = dir
	}
	w, err := workload.Spec{Trace: &spec}.Load(context.Background(), workload.Source{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks, cfg.Engine.MaxNumBatchedTokens = 64, 100_000, 2_000_000
	cfg.Timing.Source, cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = perfmodel.SourceFixed, 1, 1
	cfg.Load.Mode, cfg.Load.Concurrency = LoadConcurrency, g.Lanes
	cfg.AgentX.Preset, cfg.AgentX.DurationS, cfg.AgentX.WarmUp = AgentXInferenceX, g.DurationS, g.WarmUp
	firstOnly := g.DurationS == 0
	if firstOnly {
		// The peer ends with the first plays, has their floors and cuts no idle time.
		cfg.AgentX.DurationS, cfg.AgentX.GlobalIdleCapS, cfg.AgentX.TreeIdleCapS = 1000, 0, 0
	}
	var records []RequestRecord
	report, err := Run(context.Background(), cfg, w, Options{
		Records: func(r RequestRecord) { records = append(records, r) },
		plan: func(p *workload.AgentXPlan) {
			p.Shuffle, p.DropLong, p.ContextLength, p.StartsMs, p.Floors = false, false, 0, g.StartsMs, firstOnly
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	start := report.AgentX.StartMs
	if g.ProfileStartMs != 0 && start != g.ProfileStartMs {
		t.Errorf("the window starts at %v, want %v", start, g.ProfileStartMs)
	}
	got := map[string]int{}
	measured := 0
	for _, r := range records {
		if r.WarmUp || firstOnly && r.Play >= g.Lanes {
			continue
		}
		measured++
		got[agentXLine(w.ID(r.Request), r.Life.ArrivalMs-start, r.Life.FirstTokenMs-start, r.Life.LastTokenMs-start, float64(r.Life.ReusedFirst))]++
	}
	for _, r := range g.Requests {
		line := agentXLine(r[0].(string), r[1].(float64), r[2].(float64), r[3].(float64), r[4].(float64))
		if got[line]--; got[line] < 0 {
			t.Errorf("there is no request %s", line)
		}
	}
	if t.Failed() {
		t.Logf("other requests:\n%s", strings.Join(leftOver(got), "\n"))
	}
	if firstOnly {
		if measured != len(g.Requests) {
			t.Errorf("%d requests, want %d", measured, len(g.Requests))
		}
		return
	}
	if report.NumRequests != g.Issued || math.Abs(report.DurationMs-g.ObservationMs) > 1e-3 {
		t.Errorf("%d requests in %v ms, want %d in %v", report.NumRequests, report.DurationMs, g.Issued, g.ObservationMs)
	}
	if a := report.AgentX; a.StartedPlays != g.PlaysStarted || a.CompletedPlays != g.PlaysCompleted {
		t.Errorf("%d plays started and %d completed, want %d and %d", a.StartedPlays, a.CompletedPlays, g.PlaysStarted, g.PlaysCompleted)
	}
}

// agentXLine writes a request with times to the µs.
func agentXLine(id string, arrival, first, last, reused float64) string {
	return fmt.Sprintf("%012.3f %s %.3f %.3f %.0f", arrival, id, first, last, reused)
}

func leftOver(lines map[string]int) (left []string) {
	for line, n := range lines {
		if n > 0 {
			left = append(left, line)
		}
	}
	slices.Sort(left)
	return left
}

// BenchmarkAgentXWindow plays the example's conversations with 8 users; time and memory follow the length of the window,
// the name of each case in s.
func BenchmarkAgentXWindow(b *testing.B) {
	spec := workload.DefaultTraceSpec()
	spec.Path = "../examples/agentx/conversations.jsonl.zst"
	w, err := workload.Spec{Trace: &spec}.Load(context.Background(), workload.Source{})
	if err != nil {
		b.Fatal(err)
	}
	for _, seconds := range []float64{1e3, 1e4, 1e5} {
		b.Run(fmt.Sprint(seconds), func(b *testing.B) {
			cfg := DefaultConfig()
			cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = 64, 20_000
			cfg.Load.Mode, cfg.Load.Concurrency = LoadConcurrency, 8
			cfg.AgentX.Preset, cfg.AgentX.DurationS = AgentXRFC, seconds
			benchmarkRun(b, cfg, w)
		})
	}
}
