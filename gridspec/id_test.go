package gridspec_test

import (
	"math"
	"testing"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
)

// TestContentIDGolden pins IDs: a change of one makes every stored result of such a point worthless, and needs a
// new simcore.SemanticVersion only when the outcome of points changes as well.
func TestContentIDGolden(t *testing.T) {
	if simcore.SemanticVersion != "6" {
		t.Skip("the IDs below are those of version 6")
	}
	for _, tc := range []struct{ spec, want string }{
		{"", "34e9ce5b733877428d2dadf860f05fa2"},
		{"engine: {block_size: 16, max_num_seqs: null}", "09d0bcdd8f29c9c0f08b106156fd3650"},
		{"load: {rate: 0.1}\nsla: {ttft_ms: 1e-7}\ntiming: {source: fixed, decode_ms: 2.5}\ncompat: dynamo-1.3", "1178b47a0d16df5ffb84dfcc855c130c"},
	} {
		if got := expand(t, load(t, chat+tc.spec))[0].ContentID("digest"); got != tc.want {
			t.Errorf("%q has ID %s, want %s", tc.spec, got, tc.want)
		}
	}
}

func TestContentIDDependsOnTheOutcomeOnly(t *testing.T) {
	base := expand(t, load(t, chat))[0]
	id := base.ContentID("digest")
	same := map[string]gridspec.Point{
		"derived":       expand(t, load(t, chat+"derive: {x: '1'}"))[0],
		"axis":          expand(t, load(t, chat+"grid: {engine.block_size: [64]}"))[0],
		"written out":   expand(t, load(t, chat+"engine: {type: vllm, block_size: 64}\nload: {mode: trace}"))[0],
		"name":          expand(t, load(t, chat+"name: other"))[0],
		"output":        expand(t, load(t, chat+"output: {dir: x}\nexecution: {jobs: 3}"))[0],
		"source":        expand(t, load(t, chat+"timing: {source: polynomial}"))[0],
		"blocks":        expand(t, load(t, chat+"engine: {num_gpu_blocks: 16384}"))[0],
		"prices":        expand(t, load(t, chat+"prices: {h200: 1}"))[0],
		"other index":   expand(t, load(t, chat+"grid: {engine.block_size: [16, 64]}"))[1],
		"negative zero": {Config: base.Config},
	}
	p := same["negative zero"]
	p.Config.SLA.TTFTMs = math.Copysign(0, -1)
	same["negative zero"] = p
	for name, p := range same {
		if got := p.ContentID("digest"); got != id {
			t.Errorf("%s: the ID changed", name)
		}
	}
	other := map[string]string{
		"workload":  base.ContentID("other"),
		"replicate": gridspec.Point{Config: base.Config, Replicate: 1}.ContentID("digest"),
	}
	for name, spec := range map[string]string{
		"engine": "engine: {block_size: 16}", "sla": "sla: {ttft_ms: 1}", "compat": "compat: dynamo-1.3",
		"load": "load: {speedup: 2}", "switch": "engine: {enable_prefix_caching: false}",
	} {
		other[name] = expand(t, load(t, chat+spec))[0].ContentID("digest")
	}
	seen := map[string]string{id: "the base"}
	for name, got := range other {
		if twin, twice := seen[got]; twice || len(got) != 32 {
			t.Errorf("%s has the ID of %s", name, twin)
		}
		seen[got] = name
	}
}
