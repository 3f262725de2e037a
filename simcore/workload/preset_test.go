package workload

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func mustGenerate(t testing.TB, s PresetSpec) *Workload {
	t.Helper()
	w, err := s.Generate()
	if err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	return w
}

// TestPresetDigests pins what each preset generates: results of earlier sweeps are comparable only while equal
// specs give equal work.
func TestPresetDigests(t *testing.T) {
	want := map[string]string{
		PresetChat:        "e5f7c31d6732da707f3042e638d5d55ee4d4522a9e6e4044f431aaa967a22073",
		PresetAgentic:     "1aba2e50e36099da6c45286a27a3744c26612579a033b6092310b58328136ef0",
		PresetToolAgent:   "29ce8f8098015d3068fdf60bbf4c673824c1b212de31aeefd0d3280f933f262a",
		PresetLongContext: "2f000a6ad0417c68f124e66972be81901ef6de1d9f7989e9e9c53172e9301186",
		PresetBursty:      "715c7980d26cb36f52b143e6aba84cc15883b8a384739004bde3ef3b60890a4e",
	}
	for _, name := range PresetNames() {
		s := PresetSpec{Name: name, Requests: 500, Seed: 1}
		got := mustGenerate(t, s).Digest()
		if got != want[name] {
			t.Errorf("%s: digest %s, want %s", name, got, want[name])
		}
		if again := mustGenerate(t, s).Digest(); again != got {
			t.Errorf("%s: two runs gave %s and %s", name, got, again)
		}
		s.Seed = 2
		if other := mustGenerate(t, s).Digest(); other == got {
			t.Errorf("%s: seeds 1 and 2 gave the same workload", name)
		}
	}
}

func TestPresetDefaults(t *testing.T) {
	for _, name := range PresetNames() {
		requests, rate := PresetDefaults(name)
		w := mustGenerate(t, PresetSpec{Name: name})
		if w.Requests() != requests || w.Name != name {
			t.Errorf("%s: got %d requests named %q, want %d", name, w.Requests(), w.Name, requests)
		}
		starts := Stats(w).Arrivals
		if perStart := rate * float64(w.Sessions()) / float64(requests); math.Abs(starts.Rate/perStart-1) > 4/math.Sqrt(float64(w.Sessions())) {
			t.Errorf("%s: %g starts per second, want about %g", name, starts.Rate, perStart)
		}
	}
	if requests, rate := PresetDefaults("nope"); requests != 0 || rate != 0 {
		t.Errorf("unknown preset: got defaults %d, %g", requests, rate)
	}
}

// TestBursty counts the arrivals of the preset in its crests, troughs and bursts.
func TestBursty(t *testing.T) {
	w := mustGenerate(t, PresetSpec{Name: PresetBursty, Requests: 48_000, Seed: 1})
	if rate := Stats(w).Arrivals.Rate; math.Abs(rate-4) > .15 {
		t.Errorf("%.3f requests per second, want 4", rate)
	}
	perWave := make([]float64, 20) // requests by the part of a wave, each 20 s
	most, from := 0, 0
	for i, at := range w.ArrivalMs {
		perWave[int(at/20_000)%20]++
		for w.ArrivalMs[from] < at-10_000 {
			from++
		}
		most = max(most, i-from)
	}
	if ratio := slices.Max(perWave) / slices.Min(perWave); ratio < 4 || ratio > 7 {
		t.Errorf("crest over trough is %.2f, want 5 in 20 s of a wave from 1 to 7", ratio)
	}
	if most < 100 || most > 250 {
		t.Errorf("at most %d requests in 10 s, want about 150 in a burst on a crest", most)
	}
}

func TestPresetRate(t *testing.T) {
	for _, name := range PresetNames() {
		_, rate := PresetDefaults(name)
		slow := mustGenerate(t, PresetSpec{Name: name, Requests: 600, Seed: 3})
		fast := mustGenerate(t, PresetSpec{Name: name, Requests: 600, Seed: 3, Rate: 4 * rate})
		if got := Stats(fast).Arrivals.Rate / Stats(slow).Arrivals.Rate; math.Abs(got-4) > .25 {
			t.Errorf("%s: four times the rate gives %.3f times the starts per second", name, got)
		}
		if name == PresetAgentic && !slices.Equal(slow.Input, fast.Input) {
			t.Errorf("%s: the rate changed the prompts", name)
		}
	}
}

func TestPresetScale(t *testing.T) {
	for _, name := range PresetNames() {
		base := PresetSpec{Name: name, Requests: 3000, Seed: 4}
		double := base
		double.Scale = 2
		a, b := mustGenerate(t, base), mustGenerate(t, double)
		if diff := cmp.Diff(a.SessionStart, b.SessionStart); diff != "" {
			t.Errorf("%s: the scale changed the sessions: %s", name, diff)
		}
		firsts := a.SessionStart[:a.Sessions()]
		for _, i := range firsts {
			if a.ArrivalMs[i] != b.ArrivalMs[i] {
				t.Fatalf("%s: the scale moved the arrival of request %d from %g to %g", name, i, a.ArrivalMs[i], b.ArrivalMs[i])
			}
		}
		sa, sb := Stats(a), Stats(b)
		for what, ratio := range map[string]float64{
			"input":  sb.InputTokens.Mean / sa.InputTokens.Mean,
			"output": sb.OutputTokens.Mean / sa.OutputTokens.Mean,
		} {
			if math.Abs(ratio-2) > .05 {
				t.Errorf("%s: scale 2 gives %.3f times the %s tokens", name, ratio, what)
			}
		}
	}
}

// TestPresetContinuation shows that a larger workload continues a smaller one and does not stretch it.
func TestPresetContinuation(t *testing.T) {
	for _, name := range PresetNames() {
		long := mustGenerate(t, PresetSpec{Name: name, Requests: 900, Seed: 5})
		short := mustGenerate(t, PresetSpec{Name: name, Requests: 500, Seed: 5})
		for i := range short.Requests() {
			same := short.Input[i] == long.Input[i] && short.Output[i] == long.Output[i] &&
				slices.Equal(short.Hashes(i), long.Hashes(i)) && equalOrNaN(short.ArrivalMs[i], long.ArrivalMs[i])
			if !same {
				t.Fatalf("%s: request %d differs between 500 and 900 requests", name, i)
			}
		}
	}
}

func equalOrNaN(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

func TestPresetDuration(t *testing.T) {
	for _, name := range PresetNames() {
		_, rate := PresetDefaults(name)
		w := mustGenerate(t, PresetSpec{Name: name, DurationSeconds: 1200, Rate: rate, Seed: 6})
		last := w.ArrivalMs[w.SessionStart[w.Sessions()-1]]
		if last >= 1_200_000 || last < 700_000 {
			t.Errorf("%s: the last session of 1200 s starts at %g ms", name, last)
		}
		both := mustGenerate(t, PresetSpec{Name: name, DurationSeconds: 1200, Requests: 10, Seed: 6})
		if both.Requests() != 10 {
			t.Errorf("%s: got %d requests, want the 10 that end the workload before its duration", name, both.Requests())
		}
	}
}

func TestPresetValidate(t *testing.T) {
	tests := []struct {
		name string
		spec PresetSpec
		want []string // parts of the error, a line each
	}{
		{"unknown", PresetSpec{Name: "caht"}, []string{`name: "caht" is not allowed; use one of: chat, agentic, tool-agent, long-context, bursty; did you mean "chat"?`}},
		{"missing", PresetSpec{}, []string{`name: "" is not allowed; use one of: chat, agentic, tool-agent, long-context, bursty`}},
		{
			"all at once",
			PresetSpec{Name: "chat", Requests: -1, Rate: math.NaN(), DurationSeconds: math.Inf(1), Scale: -2},
			[]string{"requests: -1 ", "rate: NaN ", "scale: -2 ", "duration_s: +Inf "},
		},
		{"too many", PresetSpec{Name: "chat", DurationSeconds: 1e9}, []string{"duration_s: 1e+09 is not allowed; at 3.4"}},
		{"too fast", PresetSpec{Name: "chat", Rate: 1e9}, []string{"rate: 1e+09 "}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.spec.Generate()
			if err == nil {
				t.Fatal("got no error")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tt.want) {
				t.Fatalf("got %d problems, want %d:\n%v", len(lines), len(tt.want), err)
			}
			for i, part := range tt.want {
				if !strings.HasPrefix(lines[i], part) {
					t.Errorf("got  %s\nwant %s…", lines[i], part)
				}
			}
		})
	}
}

func TestPresetRequestsAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := PresetSpec{
			Name:            rapid.SampledFrom(PresetNames()).Draw(t, "name"),
			Requests:        rapid.IntRange(1, 150).Draw(t, "requests"),
			Rate:            rapid.SampledFrom([]float64{0, minPresetRate, .3, 7, 20}).Draw(t, "rate"),
			DurationSeconds: rapid.SampledFrom([]float64{0, 1e-3, 60, 1e5}).Draw(t, "duration"),
			Scale:           rapid.SampledFrom([]float64{0, minPresetScale, .1, 1.7, maxPresetScale}).Draw(t, "scale"),
			Seed:            rapid.Uint64().Draw(t, "seed"),
		}
		if s.Scale == maxPresetScale {
			s.Requests = min(s.Requests, 3) // a prompt may have a million hash ids
		}
		w, err := s.Generate()
		if err != nil {
			t.Fatal(err)
		}
		if w.Requests() > s.Requests || w.Requests() < 1 {
			t.Fatalf("got %d requests, want 1 to %d", w.Requests(), s.Requests)
		}
		checkValid(t, w)
	})
}

// checkValid fails unless lengths, times and hash ids are what a trace may hold.
func checkValid(t *rapid.T, w *Workload) {
	last := 0.0
	for session := range w.Sessions() {
		for i := w.SessionStart[session]; i < w.SessionStart[session+1]; i++ {
			in, out := w.Input[i], w.Output[i]
			if in < 1 || in > MaxTokens || out < 1 || out > MaxTokens {
				t.Fatalf("request %d has lengths %d and %d", i, in, out)
			}
			if got, want := len(w.Hashes(int(i))), (int(in)+w.BlockSize-1)/w.BlockSize; got != want {
				t.Fatalf("request %d of %d tokens has %d hash ids, want %d", i, in, got, want)
			}
			if first := i == w.SessionStart[session]; first {
				if !(w.ArrivalMs[i] >= last) || w.ArrivalMs[i] > maxTimeMs || w.DelayMs[i] != 0 {
					t.Fatalf("session %d starts at %g after %g with a delay of %g", session, w.ArrivalMs[i], last, w.DelayMs[i])
				}
				last = w.ArrivalMs[i]
			} else if !(w.DelayMs[i] >= 0) || w.DelayMs[i] > maxTimeMs {
				t.Fatalf("request %d has a delay of %g", i, w.DelayMs[i])
			}
		}
	}
	if first := w.ArrivalMs[0]; first != 0 {
		t.Fatalf("the first arrival is %g, want 0", first)
	}
}

func TestQuantiles(t *testing.T) {
	var q quantiles
	for i, level := range quantileLevels {
		q[i] = 10 * level
	}
	for _, u := range []float64{0, .003, .5, .777, .9995, 1} {
		if got := q.at(u); math.Abs(got-10*u) > 1e-9 {
			t.Errorf("at(%g) = %g, want %g", u, got, 10*u)
		}
	}
	if got := q.mean(); math.Abs(got-5) > 1e-9 {
		t.Errorf("mean = %g, want 5", got)
	}
}

func TestFitsAreDistributions(t *testing.T) {
	tables := map[string][]quantiles{PresetAgentic: {
		agenticFit.pauseSeconds, agenticFit.output, agenticFit.growth, agenticFit.earlyGrowth, agenticFit.limit,
		agenticFit.compactKeep, agenticFit.compactTo,
	}}
	for _, k := range agenticFit.kinds {
		tables[PresetAgentic] = append(tables[PresetAgentic], k.first, k.turns)
	}
	for _, name := range PresetNames() {
		if f, ok := conversationPreset(name); ok {
			tables[name] = []quantiles{f.gapSeconds, f.output, f.growth, f.editKeep, f.editNew}
			for _, o := range f.openings {
				tables[name] = append(tables[name], o.input, o.output)
			}
		}
		for i, q := range tables[name] {
			if !slices.IsSorted(q[:]) {
				t.Errorf("%s: table %d is not in order: %v", name, i, q)
			}
		}
	}
}

func BenchmarkPreset(b *testing.B) {
	for _, name := range PresetNames() {
		requests := 12_000
		if name == PresetAgentic {
			requests = 1806
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for seed := uint64(0); b.Loop(); seed++ {
				mustGenerate(b, PresetSpec{Name: name, Requests: requests, Seed: seed})
			}
		})
	}
}
