package gridspec_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/gridspec"
)

func TestWarnings(t *testing.T) {
	const gpus, pool = "more GPUs for one worker make nothing faster", "a larger pool looks faster"
	const planned = "the polynomial timing model is of no GPU and no model"
	for _, tc := range []struct {
		name, spec, where, want string
	}{
		{"tp", "grid: {timing.tp: [1, 2]}", "grid.yaml:2:8", "grid.timing.tp: the polynomial timing model does not know it: " + gpus},
		{"dp in a case", "cases: {a: {}, b: {timing: {dp: 2}}}", "grid.yaml:2:29", gpus},
		{"blocks", "lhs: {samples: 9, space: {engine.num_gpu_blocks: {int: [100, 9000]}}}", "grid.yaml:2:27", pool},
		{"block size", "grid: {engine: [{block_size: 16}, {block_size: 32}]}", "grid.yaml:2:18", pool},
		{"one of two models", "grid: {timing.tp: [1, 2]}\ncases: {a: {}, b: {timing: {source: fixed, decode_ms: 1}}}", "grid.yaml:2:8", gpus},
		{"same pool", "zip: {engine.block_size: [16, 32], engine.num_gpu_blocks: [200, 100]}", "", ""},
		{"same GPUs", "zip: {timing.tp: [1, 2], timing.dp: [2, 1]}", "", ""},
		{"one value", "grid: {timing.tp: [4]}", "", ""},
		{"fixed", "timing: {source: fixed, decode_ms: 1}\ngrid: {timing.tp: [1, 2]}", "", ""},
		{"fixed as an axis", "timing: {decode_ms: 1}\ngrid: {timing.source: [fixed], timing.tp: [1, 2]}", "", ""},
		{"a GPU", "timing: {gpu: h200, model: llama-3.1-8b}\ngrid: {timing.tp: [1, 2], engine.block_size: [16, 32]}", "", ""},
		{"GPUs as an axis", "timing: {model: llama-3.1-8b}\ngrid: {timing.gpu: [h200, mi300x], timing.tp: [1, 2]}", "", ""},
		{"a profile", "timing: {profile: p.csv}\ngrid: {timing.tp: [1, 2]}", "", ""},
		{"a GPU for its price alone", "timing: {source: polynomial, gpu: h200}\ngrid: {timing.tp: [1, 2]}", "grid.yaml:3:8", gpus},
		{"one of two with a GPU", "grid: {timing.tp: [1, 2]}\ncases: {a: {}, b: {timing: {gpu: h200, model: llama-3.1-8b}}}", "grid.yaml:2:8", gpus},
		{"pool of what fits", "grid: {engine.num_gpu_blocks: [null, 20000]}", "grid.yaml:2:8", pool},
		{"pool written out", "grid: {engine.num_gpu_blocks: [null, 16384]}", "", ""},
		{"a planner", "planner: {policy: dynamo}", "grid.yaml:2:11", "planner.policy: " + planned},
		{"a planner as an axis", "grid: {planner.policy: [static, dynamo]}", "grid.yaml:2:33", planned},
		{"a planner in a case", "cases: {a: {}, b: {planner: {policy: target_tracking}}}", "grid.yaml:2:30", planned},
		{"no planner", "grid: {planner.policy: [static]}", "", ""},
		{"a planner with a GPU", "timing: {gpu: h200, model: llama-3.1-8b}\nplanner: {policy: dynamo}", "", ""},
		{"a planner with fixed times", "timing: {source: fixed, decode_ms: 1}\nplanner: {policy: dynamo}", "", ""},
		{"other axes", "grid: {deployment.workers: [1, 2]}", "", ""},
	} {
		s, err := gridspec.Load(gridspec.Source{Path: "grid.yaml", Data: []byte(chat + tc.spec)})
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		got := s.Warnings()
		switch {
		case tc.want == "" && len(got) > 0:
			t.Errorf("%s: %v", tc.name, got)
		case tc.want != "" && (len(got) != 1 || got[0].Where != tc.where || !strings.Contains(got[0].Error(), tc.want)):
			t.Errorf("%s: got %v, want one at %s with %q", tc.name, got, tc.where, tc.want)
		}
	}
}

// Variables of other programs that happen to start like ours are no error.
func TestForeignVariables(t *testing.T) {
	s, err := gridspec.Load(gridspec.Source{Data: []byte(chat), Env: []string{"SERVEGRID_HOME=/x", "SERVEGRID_=1", "SERVEGRID_NAME=a", "HOME=/y"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range s.Warnings() {
		got = append(got, w.Where)
	}
	if diff := cmp.Diff([]string{"SERVEGRID_", "SERVEGRID_HOME"}, got); diff != "" || s.Name != "a" {
		t.Error(s.Name, diff)
	}
}

func TestNoPoints(t *testing.T) {
	s, err := gridspec.Load(gridspec.Source{Path: "grid.yaml", Data: []byte(chat + "grid: {timing.tp: [1, 2, 4]}\nderive: {double: tp * 2}\nexclude:\n  - tp > 1\n  - tp > 100\n  - double == 2\n")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Expand(gridspec.ExpandOptions{})
	checkProblems(t, err, []string{
		`grid.yaml:5:5: exclude[0]: "tp > 1" is not allowed; no point is left: it drops 2 of 3`,
		`grid.yaml:7:5: exclude[2]: "double == 2" is not allowed; no point is left: it drops 1 of 3`,
	})
	if strings.Contains(err.Error(), "tp > 100") {
		t.Errorf("an expression that drops nothing is blamed: %v", err)
	}
}

func TestWorkloadLabels(t *testing.T) {
	for _, tc := range []struct {
		workloads string
		want      []string
	}{
		{"[{preset: {name: chat, rate: 4}}, {preset: {name: chat, rate: 8}}, {trace: {path: traces/monday.jsonl.zst}}]",
			[]string{"chat rate=4", "chat rate=8", "monday.jsonl.zst"}},
		{"[{preset: {name: chat}}, {preset: {name: chat, rate: 8, seed: 3}}, {name: mine, preset: {name: chat, rate: 2}}]",
			[]string{"chat", "chat rate=8 seed=3", "mine"}},
		{"[{synthetic: {input_tokens: 5, output_tokens: 2, requests: 3}}, {synthetic: {input_tokens: 5, output_tokens: 2, requests: 4}}]",
			[]string{"synthetic 5/2 requests=3", "synthetic 5/2 requests=4"}},
		{"[{trace: {path: a/x.jsonl}}, {trace: {path: b/x.jsonl, block_size: 16}}]",
			[]string{"x.jsonl path=a/x.jsonl", "x.jsonl path=b/x.jsonl block_size=16"}},
	} {
		ps := expand(t, load(t, "workload: "+tc.workloads))
		if diff := cmp.Diff(tc.want, column(t, ps, "workload")); diff != "" {
			t.Errorf("%s: %s", tc.workloads, diff)
		}
	}
}

// Values that cannot be are listed with what cannot be read, in the order of the file.
func TestProblemsTogether(t *testing.T) {
	_, err := gridspec.Load(gridspec.Source{Path: "grid.yaml", Data: []byte(`
workload:
  preset: {name: chatty, requests: many}
engine: {blok_size: 3}
sla: {ttft_ms: -1}
execution: {jobs: -1}
`), Set: []string{"engine.max_num_seqs=-5"}})
	checkProblems(t, err, nil)
	var got []string
	for _, line := range strings.Split(err.Error(), "\n") {
		got = append(got, strings.SplitN(line, ": ", 3)[0]+" "+strings.SplitN(line, ": ", 3)[1])
	}
	want := []string{
		"grid.yaml:3:12 workload.preset.name",
		"grid.yaml:3:26 workload.preset.requests",
		"grid.yaml:4:10 engine.blok_size",
		"grid.yaml:5:7 sla.ttft_ms",
		"grid.yaml:6:13 execution.jobs",
		"--set engine.max_num_seqs=-5 engine.max_num_seqs",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%v", diff, err)
	}
}

// So are those of a listed workload.
func TestListedWorkloadsTogether(t *testing.T) {
	_, err := gridspec.Load(gridspec.Source{Path: "grid.yaml", Data: []byte("workload:\n  - preset: {name: chat}\n  - preset: {name: nope}\nenigne: {}")})
	checkProblems(t, err, []string{
		`grid.yaml:3:14: workload[1].preset.name: "nope" is not allowed; use one of`, "grid.yaml:4:1: enigne: unknown key",
	})
}

// A problem with a point has the place of the value that causes it.
func TestPlacesOfPoints(t *testing.T) {
	for _, tc := range []struct{ name, spec, want string }{
		{"listed workload", "workload:\n  - preset: {name: chat}\n  - preset: {name: nope}", `grid.yaml:3:14: workload[1].preset.name: "nope"`},
		{"included workload", chat + "include:\n  - workload:\n      preset: {name: nope}", `grid.yaml:4:16: include[0].workload.preset.name: "nope"`},
		{"case", chat + "cases:\n  a: {}\n  b:\n    timing:\n      tp: 0", "grid.yaml:6:7: timing.tp: 0"},
		{"workload axis", chat + "grid:\n  workload.preset.rate: [1, -1]", "grid.yaml:3:3: grid.workload.preset.rate: -1"},
		{"many axes", chat + "grid: {deployment.workers: [1, 0], engine.block_size: [16, 32], engine.num_gpu_blocks: [1000, 2000], engine.max_num_seqs: [1, 2], load.speedup: [1, 2]}", "max_num_seqs=1, … and 15 more points"},
	} {
		s, err := gridspec.Load(gridspec.Source{Path: "grid.yaml", Data: []byte(tc.spec)})
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		_, err = s.Expand(gridspec.ExpandOptions{})
		checkProblems(t, err, []string{tc.want})
	}
}
