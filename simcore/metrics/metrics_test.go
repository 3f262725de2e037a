package metrics

import (
	"bufio"
	"cmp"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// naive summarises values by the definitions, one sample at a time.
func naive(values []float64) Summary {
	n := len(values)
	if n == 0 {
		return Summary{}
	}
	values = slices.Sorted(slices.Values(values))
	var sum, squares float64
	for _, v := range values {
		sum += v
	}
	mean := sum / float64(n)
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	// The rank is rounded half away from zero, in integers so that no rounding error comes in.
	at := func(percent int) float64 { return values[((n-1)*percent*2+100)/200] }
	return Summary{
		Mean: mean, Min: values[0], Max: values[n-1], Median: at(50), P75: at(75), P90: at(90), P95: at(95), P99: at(99),
		Std: math.Sqrt(squares / float64(n)),
	}
}

// closeTo allows for another order of summation; rates reach 1e9.
var closeTo = cmpopts.EquateApprox(1e-9, 1e-6)

func TestPercentileRanks(t *testing.T) {
	for _, test := range []struct {
		n    int
		want Summary // of the values 0 to n-1: the ranks themselves
	}{
		{1, Summary{}},
		{2, Summary{Mean: .5, Max: 1, Median: 1, P75: 1, P90: 1, P95: 1, P99: 1, Std: .5}}, // rank .5 rounds up
		{3, Summary{Mean: 1, Max: 2, Median: 1, P75: 2, P90: 2, P95: 2, P99: 2, Std: math.Sqrt(2. / 3)}},
		{4, Summary{Mean: 1.5, Max: 3, Median: 2, P75: 2, P90: 3, P95: 3, P99: 3, Std: math.Sqrt(1.25)}},
		{11, Summary{Mean: 5, Max: 10, Median: 5, P75: 8, P90: 9, P95: 10, P99: 10, Std: math.Sqrt(10)}},
		{101, Summary{Mean: 50, Max: 100, Median: 50, P75: 75, P90: 90, P95: 95, P99: 99, Std: math.Sqrt(850)}},
	} {
		var v Values
		for i := range test.n {
			v.Add(float64(test.n - 1 - i))
		}
		if diff := gocmp.Diff(test.want, v.Summary(), closeTo); diff != "" {
			t.Errorf("%d values (-want +got):\n%s", test.n, diff)
		}
	}
}

func TestNothingRecorded(t *testing.T) {
	var v Values
	var g GapRecorder
	for name, got := range map[string]Summary{"values": v.Summary(), "gaps": g.ITL(), "throughput": g.ThroughputPerUser()} {
		if got != (Summary{}) {
			t.Errorf("%s: got %+v, want zeros", name, got)
		}
	}
}

func TestValuesEqualNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(-1, 5), rapid.Float64Range(0, 1e6), rapid.Just(3.5)), 0, 300).Draw(t, "values")
		var v Values
		v.Grow(len(values) / 2)
		for i, value := range values {
			if i == len(values)/2 {
				v.Summary() // one more summary on the way changes nothing
			}
			v.Add(value)
			values[i] = max(value, 0)
		}
		if diff := gocmp.Diff(naive(values), v.Summary(), closeTo); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestGapsEqualNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g GapRecorder
		var ms, rates []float64
		gap := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(5e6, 6e6), rapid.Int64Range(0, 1e12))
		for range rapid.IntRange(0, 100).Draw(t, "gaps") {
			ns, count := gap.Draw(t, "gap"), rapid.IntRange(1, 20).Draw(t, "count")
			g.RecordGaps(perfmodel.Nanoseconds(ns), int64(count))
			for range count {
				ms = append(ms, float64(ns)/1e6)
				if ns > 0 {
					rates = append(rates, 1000/(float64(ns)/1e6))
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "look") == 0 {
				g.ITL()
			}
		}
		if diff := gocmp.Diff(naive(ms), g.ITL(), closeTo); diff != "" {
			t.Fatalf("gaps (-want +got):\n%s", diff)
		}
		if diff := gocmp.Diff(naive(rates), g.ThroughputPerUser(), closeTo); diff != "" {
			t.Fatalf("tokens/s (-want +got):\n%s", diff)
		}
	})
}

// TestManyGapsAreFolded records far more entries than are collected before a fold, most of them distinct.
func TestManyGapsAreFolded(t *testing.T) {
	var g GapRecorder
	var want []float64
	next := uint64(1)
	for range 10 * minFold {
		next = next*6364136223846793005 + 1442695040888963407
		ns := next >> 40
		g.RecordGaps(perfmodel.Nanoseconds(ns), 1)
		want = append(want, float64(ns)/1e6)
	}
	if diff := gocmp.Diff(naive(want), g.ITL(), closeTo); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for range 10 * minFold {
		g.RecordGaps(7, 1)
		g.RecordGaps(9, 1)
	}
	if n := cap(g.recent); n > 32*minFold {
		t.Errorf("%d entries wait to be folded", n)
	}
}

func TestSortSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOf(rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 5), rapid.Uint64Range(1<<40, 1<<40+9))).Draw(t, "keys")
		samples := make([]sample, len(keys))
		for i, key := range keys {
			samples[i] = sample{key, int64(i)}
		}
		want := slices.Clone(samples)
		slices.SortStableFunc(want, func(a, b sample) int { return cmp.Compare(a.key, b.key) })
		spare := make([]sample, rapid.IntRange(0, 20).Draw(t, "spare"))
		got, room := sortSamples(samples, spare)
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if len(got) > 0 && len(room) > 0 && &got[0] == &room[0] {
			t.Fatal("the spare room is the result")
		}
	})
}

func TestFields(t *testing.T) {
	var report Report
	seen := map[string]bool{}
	for _, f := range Fields() {
		if seen[f.Name] {
			t.Errorf("%s occurs twice", f.Name)
		}
		seen[f.Name] = true
		if f.Unit == "" || !strings.HasSuffix(f.Doc, ".") {
			t.Errorf("%s has unit %q and documentation %q", f.Name, f.Unit, f.Doc)
		}
		if f.Name != strings.ToLower(f.Name) || strings.Contains(f.Name, " ") {
			t.Errorf("%q is no key", f.Name)
		}
		needsSLA := strings.Contains(f.Name, "goodput") || f.Name == "sla_attainment"
		needsGPU := strings.HasPrefix(f.Name, "cost_") || strings.HasPrefix(f.Name, "max_energy_")
		needsMore := f.Name == "prefill_worker_utilisation" || strings.HasSuffix(f.Name, "_router_queue_ms") || strings.HasSuffix(f.Name, "_handoff_ms") ||
			regexp.MustCompile("(^|_)g[1-4]_|onboard_wait").MatchString(f.Name) ||
			regexp.MustCompile("_time_(ms|share)$").MatchString(f.Name) ||
			regexp.MustCompile("^workers_|^(peak|mean)_(prefill|decode)_workers$|^(starting|draining)_worker_").MatchString(f.Name) ||
			regexp.MustCompile("^planner_ticks$|^scal(e|ing)_|^replica_transitions$").MatchString(f.Name)
		needsScenario := OfAgentX(f.Name) || OfLive(f.Name)
		if _, ok := f.Value(&report); ok == f.Optional || f.Optional != (needsSLA || needsGPU || needsMore || needsScenario) {
			t.Errorf("%s: optional is %v, and a plain report has it: %v", f.Name, f.Optional, ok)
		}
	}
	for _, key := range referenceKeys(t) {
		if !seen[key] {
			t.Errorf("the reference's key %s is missing", key)
		}
	}
}

// referenceKeys lists the keys of the reference's report that do not depend on the machine.
func referenceKeys(t *testing.T) []string {
	t.Helper()
	file, err := os.Open("testdata/reference_keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var keys []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		keys = append(keys, lines.Text())
	}
	if len(keys) < 60 {
		t.Fatalf("only %d keys", len(keys))
	}
	return keys
}

// TestFieldsReadTheirFigure sets every number of a report to another value and checks that no two fields show the
// same one.
func TestFieldsReadTheirFigure(t *testing.T) {
	next := 0.0
	summary := func() Summary {
		var s Summary
		for _, p := range []*float64{&s.Mean, &s.Min, &s.Max, &s.Median, &s.P75, &s.P90, &s.P95, &s.P99, &s.Std} {
			next++
			*p = 100 + next
		}
		return s
	}
	queue, handoff := summary(), summary()
	tiers := Tiers{
		LookedUpTokens: 2, HitTokens: [4]int64{1001, 1003, 1005, 1007}, Waits: summary(), WaitCount: 41,
		Links:  [6]LinkUse{{42, 43, 90}, {44, 45, 91}, {46, 47, 92}, {48, 49, 93}, {50, 51, 94}, {52, 53, 95}},
		Stores: [3]StoreUse{{54, 55, 56}, {57, 58, 59}, {60, 61, 62}},
	}
	agentX := AgentX{
		WarmUpRequests: 63, StartMs: 64, NeverIssued: 65, StartedPlays: 66, CompletedPlays: 67, IdleCuts: 68, IdleCutMs: 69, TheoreticalHitRatio: 70,
		TotalThroughputTokSPerGPU: 71, InputThroughputTokSPerGPU: 72, E2EPerToken: summary(), PlayLatency: summary(),
	}
	scaling := Scaling{
		Prefill: PoolScaling{WorkersAdded: 3000, WorkersCancelled: 3001, WorkersRemoved: 3002, PeakReady: 3003, MeanReady: 3004, StartingSeconds: 3005, DrainingSeconds: 3006},
		Decode:  PoolScaling{WorkersAdded: 4000, WorkersCancelled: 4100, WorkersRemoved: 4200, PeakReady: 4300, MeanReady: 4400, StartingSeconds: 4500, DrainingSeconds: 4600},
	}
	live := Live{
		PlannedRequests: 70_000, FailedRequests: 71_000, CancelledRequests: 72_000, OutputMismatches: 73_000, ScheduleLag: summary(),
		KnowsDeployment: true, KnowsReuse: true, KnowsGaps: true, KnowsPreemptions: true,
	}
	r := Report{
		LatencyParts: &LatencyParts{QueueMs: 5000, PrefillMs: 5100, TransferMs: 5200, DecodeMs: 5300, StallMs: 5400},
		Limited:      Limited{Compute: 5500, BatchSlots: 5600, KVMemory: 5700, Transfer: 5800, Router: 5900},
		Scaling:      &scaling, Planning: &Planning{Ticks: 60_000, ScaleUps: 61_000, ScaleDowns: 62_000, Transitions: 64_000},
		AgentX: &agentX, PrefillUtilisation: 35, DecodeUtilisation: 36, RouterQueue: &queue, Handoff: &handoff, Tiers: &tiers,
		NumRequests: 1, CompletedRequests: 2, RejectedRequests: 3, TruncatedRequests: 4, UnfinishedRequests: 5, Preemptions: 6, LeftOutRecords: 52_000,
		TotalInputTokens: 7, TotalOutputTokens: 8, DurationMs: 9, RequestThroughputRPS: 10, InputThroughputTokS: 11,
		OutputThroughputTokS: 12, TotalThroughputTokS: 13, PrefixCacheReusedRatio: 14, FirstAdmissionReusedRatio: 15,
		PrefillWorkerSeconds: 16, DecodeWorkerSeconds: 17, PrefillGPUsPerWorker: 18, DecodeGPUsPerWorker: 19, GPUHours: 20, MeanGPUs: 50_000, PeakGPUs: 51_000,
		OutputThroughputTokSPerGPU: 21, TTFT: summary(), TTST: summary(), TPOT: summary(), ITL: summary(), E2ELatency: summary(),
		OutputTokenThroughputPerUser: summary(),
		Goodput:                      &Goodput{CompletedRequests: 22, RequestThroughputRPS: 23, OutputThroughputTokS: 24, SLAAttainment: 25},
		Passes:                       26, ExtrapolatedPassRatio: 27,
		Cost: &Cost{USD: 28, USDPerGPU: 29, USDPerMtokInput: 30, USDPerMtokOutput: 31, MaxEnergyKWh: 32, MaxEnergyKWhPerGPU: 33, MaxEnergyJPerOutputToken: 34},
	}
	ofLive := r
	ofLive.Live = &live
	by := map[float64]string{}
	for _, f := range Fields() {
		v, ok := f.Value(&r)
		if OfLive(f.Name) {
			v, ok = f.Value(&ofLive)
		}
		if !ok || v == 0 || by[v] != "" {
			t.Errorf("%s is %v, %v; so is %q", f.Name, v, ok, by[v])
		}
		by[v] = f.Name
	}
	if want := 38 + 6*9 + 2*4 + 3*5 + 37 + 10 + 5 + 10 + 4*6 + 4 + 5; len(by) != want {
		t.Errorf("%d fields, want %d", len(by), want)
	}
	for name, want := range map[string]float64{"p99_ttft_ms": r.TTFT.P99, "median_itl_ms": r.ITL.Median,
		"std_output_token_throughput_per_user": r.OutputTokenThroughputPerUser.Std, "min_tpot_ms": r.TPOT.Min,
		"cost_usd_per_mtok_input": r.Cost.USDPerMtokInput, "cost_usd_per_mtok_output": r.Cost.USDPerMtokOutput, "max_energy_kwh_per_gpu": r.Cost.MaxEnergyKWhPerGPU} {
		if by[want] != name {
			t.Errorf("%s shows %q", name, by[want])
		}
	}
}

func TestLimitingResource(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		shares []float64
		want   string
	}{
		{[]float64{0, 0, 0, 0, 0}, LimitNone},
		{[]float64{.01, .01, .01, .01, .01}, LimitNone},
		{[]float64{.01, .02, .01, .01, .01}, "batch_slots"},
		{[]float64{0, 0, .3, .3, 0}, "kv_memory"},
		{[]float64{0, 0, 0, 0, 1}, "router"},
		{[]float64{.5, 0, 0, 0, .2}, "compute"},
		{[]float64{nan, nan, nan, nan, nan}, LimitNone},
	} {
		if got := LimitingResource(test.shares); got != test.want {
			t.Errorf("%v: %s, want %s", test.shares, got, test.want)
		}
	}
	known := map[string]bool{}
	for _, f := range Fields() {
		known[f.Name] = true
	}
	for _, l := range LimitFields() {
		if !known[l.Field] {
			t.Errorf("there is no field %s", l.Field)
		}
	}
}

// TestWithCost works out a bill by hand: 2.5 GPU-hours at 4 USD and 700 W.
func TestWithCost(t *testing.T) {
	plain := Report{GPUHours: 2.5, TotalInputTokens: 40_000_000, TotalOutputTokens: 5_000_000}
	for _, test := range []struct {
		name   string
		report Report
		price  GPUPrice
		want   map[string]float64
	}{
		{"both known", plain, GPUPrice{USDPerHour: 4, TDPWatts: 700}, map[string]float64{
			"cost_usd": 10, "cost_usd_per_gpu": 2.5, "cost_usd_per_mtok_input": .25, "cost_usd_per_mtok_output": 2,
			"max_energy_kwh": 1.75, "max_energy_kwh_per_gpu": .4375, "max_energy_j_per_output_token": 1.26,
		}},
		{"of changing GPUs", Report{GPUHours: 2.5, TotalInputTokens: 40_000_000, TotalOutputTokens: 5_000_000, MeanGPUs: 2.5}, GPUPrice{USDPerHour: 4, TDPWatts: 700}, map[string]float64{
			"cost_usd": 10, "cost_usd_per_gpu": 4, "cost_usd_per_mtok_input": .25, "cost_usd_per_mtok_output": 2,
			"max_energy_kwh": 1.75, "max_energy_kwh_per_gpu": .7, "max_energy_j_per_output_token": 1.26,
		}},
		{"no price", plain, GPUPrice{TDPWatts: 700}, map[string]float64{
			"max_energy_kwh": 1.75, "max_energy_kwh_per_gpu": .4375, "max_energy_j_per_output_token": 1.26,
		}},
		{"nothing known", plain, GPUPrice{}, map[string]float64{}},
		{"no tokens", Report{GPUHours: 1}, GPUPrice{USDPerHour: 2, TDPWatts: 500}, map[string]float64{
			"cost_usd": 2, "cost_usd_per_gpu": .5, "max_energy_kwh": .5, "max_energy_kwh_per_gpu": .125,
		}},
		{"no tokens and nothing known", Report{}, GPUPrice{}, map[string]float64{}},
	} {
		priced := test.report.WithCost(test.price, 4)
		got := map[string]float64{}
		for _, f := range Fields() {
			if v, ok := f.Value(&priced); ok && (strings.HasPrefix(f.Name, "cost_") || strings.HasPrefix(f.Name, "max_energy_")) {
				got[f.Name] = v
			}
		}
		if diff := gocmp.Diff(test.want, got, cmpopts.EquateApprox(1e-15, 0)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if test.report.Cost != nil {
			t.Errorf("%s: the report that was priced has changed", test.name)
		}
	}
}

// BenchmarkGaps records and summarises a million gaps, a tenth of them distinct.
func BenchmarkGaps(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var g GapRecorder
		next := uint64(1)
		for range 1_000_000 {
			next = next*6364136223846793005 + 1442695040888963407
			g.RecordGaps(perfmodel.Nanoseconds(5e6+next>>40%100_000), 1)
		}
		g.ITL()
		g.ThroughputPerUser()
	}
}
