package workload

import (
	"slices"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore/rules"
)

const appliedComputeRows = `{"num_turns":2,"input_prompt_length":1000,"assistant_response_length":[40,30],"tool_call_output_length":[100,600],"tool_call_latency":[0.25,0.5],"final_assistant_response_length":20}
{"num_turns":0,"input_prompt_length":400,"assistant_response_length":[],"tool_call_output_length":[],"tool_call_latency":[],"final_assistant_response_length":10}
`

func TestAppliedCompute(t *testing.T) {
	w, err := loadText(appliedComputeRows)
	if err != nil {
		t.Fatal(err)
	}
	if w.Format != FormatAppliedCompute {
		t.Errorf("it is read as %s", w.Format)
	}
	if want := []int32{1000, 1140, 1770, 400}; !slices.Equal(w.Input, want) {
		t.Errorf("inputs %v, want %v", w.Input, want)
	}
	if want := []int32{40, 30, 20, 10}; !slices.Equal(w.Output, want) {
		t.Errorf("outputs %v, want %v", w.Output, want)
	}
	if want := []float64{0, 250, 500, 0}; !slices.Equal(w.DelayMs, want) {
		t.Errorf("delays %v, want %v", w.DelayMs, want)
	}
	if ok, _ := w.HasArrivals(); ok {
		t.Error("it claims to state when sessions start")
	}
	if got, want := w.Hashes(2), []uint64{1, 2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("the last prompt has ids %v, want %v", got, want)
	}
}

// Sessions of one prefix group share the given part of the first prompt.
func TestAppliedComputeSharing(t *testing.T) {
	session := strings.SplitAfter(appliedComputeRows, "\n")[0]
	load := func(set rules.Set) *Workload {
		trace := DefaultTraceSpec()
		trace.Path, trace.Format, trace.SharedPrefixRatio, trace.PrefixGroups, trace.BlockSize = "-", FormatAppliedCompute, 0.5, 2, 100
		w, err := Spec{Trace: &trace}.Load(t.Context(), Source{Stdin: strings.NewReader(session + session + session), Rules: set})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	lead := func(w *Workload, a, b int) int {
		x, y := w.Hashes(a), w.Hashes(b)
		n := 0
		for n < min(len(x), len(y)) && x[n] == y[n] {
			n++
		}
		return n
	}
	w := load(rules.Set{})
	if same, other := lead(w, 0, 6), lead(w, 0, 3); same != 5 || other != 0 {
		t.Errorf("of a group %d ids are shared, want 5; of two groups %d, want 0", same, other)
	}
	if all := lead(load(rules.Set{OnePrefixGroup: true}), 0, 3); all != 5 {
		t.Errorf("with one group %d ids are shared, want 5", all)
	}
}

func TestAppliedComputeRefuses(t *testing.T) {
	for _, test := range []struct{ name, from, to, want string }{
		{"a missing field", `"num_turns":2,`, ``, "1: num_turns: is missing"},
		{"a short list", `[40,30]`, `[40]`, "1: assistant_response_length is of 1 elements: does not match num_turns, 2"},
		{"no prompt", `"input_prompt_length":1000`, `"input_prompt_length":0`, "1: input_prompt_length is 0: must be positive"},
		{"a negative wait", `[0.25,0.5]`, `[0.25,-0.5]`, "1: tool_call_latency[1] is -0.5: must be from 0"},
		{"no list", `[0.25,0.5]`, `3`, "tool_call_latency"},
		{"a field twice", `"num_turns":2,`, `"num_turns":2,"num_turns":2,`, "1: num_turns: is given twice"},
		{"an endless answer", `[40,30]`, `[40,300000000]`, "turn 2: the prompt or an answer is longer than"},
		{"an endless session", `[100,600]`, `[200000000,200000000]`, "the last prompt of 400001070 tokens"},
		{"no JSON", `{"num_turns":2`, `{"num_turns":2,,`, "1: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := strings.Replace(appliedComputeRows, test.from, test.to, 1)
			if text == appliedComputeRows {
				t.Fatal("nothing is changed")
			}
			_, err := loadText(text, func(s *TraceSpec) { s.Format = FormatAppliedCompute })
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func FuzzAppliedCompute(f *testing.F) {
	f.Add(appliedComputeRows)
	f.Add(`{"num_turns":1e0}`)
	f.Fuzz(func(t *testing.T, text string) {
		checkReadings(t, FormatAppliedCompute, []byte(text), func(w *Workload) {
			for i := range w.Requests() {
				if have, want := len(w.Hashes(i)), (int(w.Input[i])+w.BlockSize-1)/w.BlockSize; have != want {
					t.Fatalf("request %d of %d tokens has %d ids, want %d", i, w.Input[i], have, want)
				}
			}
		})
	})
}

func FuzzDelta(f *testing.F) {
	f.Add(`{"session_id":"a","timestamp":0,"input_length":5,"output_length":3,"hash_ids":[1]}` + "\n" + `{"session_id":"a","output_length":1,"hash_ids":[1]}`)
	f.Fuzz(func(t *testing.T, text string) {
		w, err := loadText(text, func(s *TraceSpec) { asDelta(s); s.BlockSize = 8 })
		if err != nil {
			return
		}
		if _, err := w.Blocks(4, true); err != nil {
			t.Log(err)
		}
		checkReadings(t, FormatMooncakeDelta, []byte(text), func(*Workload) {})
	})
}
