package gridspec_test

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/gridspec"
)

func expandShard(t testing.TB, s *gridspec.Spec, index, count int) []gridspec.Point {
	t.Helper()
	ps, err := s.Expand(gridspec.ExpandOptions{Shard: gridspec.Shard{Index: index, Count: count}})
	if err != nil {
		t.Fatalf("shard %d/%d: %v", index, count, err)
	}
	return ps
}

// pointText names a point by everything but its place.
func pointText(p gridspec.Point) string {
	return fmt.Sprintf("%s %+v %v %s", p.ContentID(""), p.Axes, p.Replicate, p.SkipMessage)
}

// placesOf returns the shard of every point, and reports points in none or several.
func placesOf(t rapid.TB, s *gridspec.Spec, count int) map[string]int {
	all, err := s.Expand(gridspec.ExpandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	place := map[string]int{}
	at := 0
	order := map[string]int{}
	for i, p := range all {
		order[pointText(p)] = i
	}
	for index := 1; index <= count; index++ {
		ps, err := s.Expand(gridspec.ExpandOptions{Shard: gridspec.Shard{Index: index, Count: count}})
		if err != nil {
			t.Fatal(err)
		}
		before := -1
		for i, p := range ps {
			text := pointText(p)
			if other, twice := place[text]; twice {
				t.Fatalf("%s is in the shards %d and %d", text, other, index)
			}
			place[text] = index
			at++
			if p.Index != i {
				t.Errorf("point %d of its shard has the index %d", i, p.Index)
			}
			if now, ok := order[text]; !ok || now <= before {
				t.Errorf("shard %d has points out of order, or others", index)
			} else {
				before = now
			}
		}
	}
	if at != len(all) {
		t.Fatalf("%d points in all shards, want %d", at, len(all))
	}
	return place
}

// drawSpec draws a spec and an extension of it: more values, in another order, perhaps an axis and replicates.
func drawSpec(rt *rapid.T) (spec, extended string) {
	values := map[string][]string{
		"deployment.workers":           {"1", "2", "3", "4", "5"},
		"engine.block_size":            {"16", "32", "64", "128"},
		"engine.enable_prefix_caching": {"true", "false"},
		"load.speedup":                 {"0.5", "1", "1.5", "2"},
		"workload.preset.rate":         {"1", "2", "3.5"},
		"timing":                       {"{source: polynomial}", "{source: fixed, prefill_ms: 1, decode_ms: 1}", "{gpu: h200, model: llama-3.1-8b}", "{gpu: h200_sxm, model: llama-3.1-8b}"},
	}
	axes := rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(values))), 1, 3, rapid.ID[string]).Draw(rt, "axes")
	var small, large []string
	for _, axis := range axes {
		order := rapid.Permutation(values[axis]).Draw(rt, axis)
		n := rapid.IntRange(1, len(order)).Draw(rt, axis+" values")
		small = append(small, axis+": ["+strings.Join(order[:n], ", ")+"]")
		large = append(large, axis+": ["+strings.Join(rapid.Permutation(order).Draw(rt, axis+" reordered"), ", ")+"]")
	}
	replicates := rapid.IntRange(1, 2).Draw(rt, "replicates")
	text := func(axes []string, replicates int) string {
		return chat + fmt.Sprintf("execution: {replicates: %d, seeds: derived, on_invalid: skip}\nderive: {half: 'workers / 2'}\nexclude: ['workers == 3 && block_size == 32']\n", replicates) +
			"grid: {" + strings.Join(axes, ", ") + "}\n"
	}
	return text(small, replicates), text(large, replicates+rapid.IntRange(0, 1).Draw(rt, "more"))
}

// Every point is in one shard, whichever others there are.
func TestShardsAreStable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		spec, extended := drawSpec(rt)
		count := rapid.IntRange(1, 5).Draw(rt, "count")
		small, err := gridspec.Load(gridspec.Source{Data: []byte(spec)})
		if err != nil {
			rt.Fatal(err)
		}
		large, err := gridspec.Load(gridspec.Source{Data: []byte(extended)})
		if err != nil {
			rt.Fatal(err)
		}
		before := shardByContent(rt, small, count)
		after := shardByContent(rt, large, count)
		placesOf(rt, small, count)
		for key, shard := range before {
			if now, ok := after[key]; !ok || now != shard {
				rt.Errorf("%s was in shard %d and is in %d", key, shard, now)
			}
		}
		for key, shard := range shardByContent(rt, small, 2*count) {
			if (shard-1)%count != before[key]-1 {
				rt.Errorf("shard %d of %d is not in shard %d of %d", shard, 2*count, before[key], count)
			}
		}
	})
}

// shardByContent returns the shard of every point by its content ID and workload.
func shardByContent(t rapid.TB, s *gridspec.Spec, count int) map[string]int {
	place := map[string]int{}
	for index := 1; index <= count; index++ {
		ps, err := s.Expand(gridspec.ExpandOptions{Shard: gridspec.Shard{Index: index, Count: count}})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range ps {
			place[fmt.Sprintf("%s %+v", p.ContentID(""), *p.Workload.Preset)] = index
		}
	}
	return place
}

func TestShardsAreBalanced(t *testing.T) {
	s := load(t, chat+"execution: {replicates: 2}\ngrid: {engine.num_gpu_blocks: {range: [1000, 1999, 1]}, deployment.workers: [1, 2, 3]}")
	const count = 16
	expected := 6000.0 / count
	together := 0
	for index := 1; index <= count; index++ {
		ps := expandShard(t, s, index, count)
		if n := float64(len(ps)); math.Abs(n-expected) > 4*math.Sqrt(expected) {
			t.Errorf("shard %d has %v points of about %v", index, n, expected)
		}
		for i := 1; i < len(ps); i++ {
			if ps[i].Replicate == 1 && ps[i-1].Replicate == 0 && ps[i].Config == ps[i-1].Config {
				together++
			}
		}
	}
	if together == 0 || together > 400 {
		t.Errorf("both replicates of %d points are in one shard, want about %d", together, 3000/count)
	}
}

// Shards do not depend on where files are, nor on the name of the workload.
func TestShardsAgreeAcrossMachines(t *testing.T) {
	const spec = "workload: {%s trace: {path: traces/a.jsonl, format: mooncake}}\ngrid: {deployment.workers: [1, 2, 3, 4, 5, 6, 7, 8]}"
	var want []string
	for i, name := range []string{"", "name: other,"} {
		dir := filepath.Join(t.TempDir(), strings.Repeat("deep/", i))
		s, err := gridspec.Load(gridspec.Source{Data: fmt.Appendf(nil, spec, name), Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		got := column(t, expandShard(t, s, 1, 2), "workers")
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) == 8 || len(got) == 0 {
			t.Errorf("the shard differs, or has all or nothing: %v", got)
		}
	}
}

// A shard knows what is wrong with the points of the others, and has the types of their columns.
func TestShardsSeeAllPoints(t *testing.T) {
	impossible := load(t, chat+"grid: {engine.num_gpu_blocks: [1000, 2000, 3000], engine.max_num_seqs: [1, 2, -5]}")
	fractions := load(t, chat+"grid: {deployment.workers: [1, 2, 4, 6, 8]}\nderive: {half: 'workers % 2 == 0 ? workers / 2 : 0.5', whole: 'workers'}")
	for index := 1; index <= 9; index++ {
		shard := gridspec.ExpandOptions{Shard: gridspec.Shard{Index: index, Count: 9}}
		if _, err := impossible.Expand(shard); err == nil || !strings.Contains(err.Error(), "max_num_seqs") {
			t.Errorf("shard %d: %v", index, err)
		}
		for _, p := range expandShard(t, fractions, index, 9) {
			if k := p.Axes[1].Value.Kind; k != gridspec.KindFloat {
				t.Errorf("half is of kind %d in shard %d", k, index)
			}
		}
	}
}

func TestShardLimits(t *testing.T) {
	s := load(t, chat+"grid: {deployment.workers: {range: [1, 100, 1]}}")
	for _, tc := range []struct {
		shard gridspec.Shard
		max   int
		want  string
	}{
		{gridspec.Shard{Index: 1, Count: 10}, 10, ""},
		{gridspec.Shard{Index: 1, Count: 10}, 9, "at most 9 in each of 10 shards are allowed; raise --max-points, make more shards"},
		{gridspec.Shard{}, 99, "at most 99 are allowed"},
		{gridspec.Shard{Index: 1, Count: 1}, 99, "at most 99 are allowed"},
		{gridspec.Shard{Index: 11, Count: 10}, 0, "shard 11/10 does not exist; the shards of 10 are 1/10 to 10/10"},
		{gridspec.Shard{Index: 0, Count: 10}, 0, "shard 0/10 does not exist"},
		{gridspec.Shard{Index: 1}, 0, "shard 1/0 does not exist"},
	} {
		_, err := s.Expand(gridspec.ExpandOptions{Shard: tc.shard, MaxPoints: tc.max})
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s at most %d: %v, want %q", tc.shard, tc.max, err, tc.want)
		}
	}
}

// Combinations without any point in the shard are no error, those that are excluded everywhere are.
func TestEmptyShard(t *testing.T) {
	s := load(t, chat)
	empty := 0
	for index := 1; index <= 5; index++ {
		if len(expandShard(t, s, index, 5)) == 0 {
			empty++
		}
	}
	if empty != 4 {
		t.Errorf("%d of 5 shards of one point are empty", empty)
	}
	none := load(t, chat+"exclude: ['true']")
	if _, err := none.Expand(gridspec.ExpandOptions{Shard: gridspec.Shard{Index: 1, Count: 2}}); err == nil {
		t.Error("a spec without points has shards")
	}
}
