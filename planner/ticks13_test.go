package planner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/servegrid/servegrid/simcore/rules"
)

// tick13 is a tick of a recorded run of 1.3.1: what it saw, and what it reckoned and decided.
type tick13 struct {
	At               float64
	Load, Throughput bool
	Ready            []int
	Traffic          []*float64
	Passes           []columns13
	Want             struct {
		ScaleTo         []*int `json:"scale_to"`
		Load            string
		Throughput      string
		Requests, Input *float64
		Output          *float64
		RPS             [2]*float64
		TTFT, ITL       *float64
		Bounds          [2]int
	}
}

// columns13 is passes, column by column; 0 stands for a column of zeros.
type columns13 [10]json.RawMessage

func (c columns13) passes(t *testing.T) []pass {
	t.Helper()
	var columns [10][]float64
	for i := range c {
		if !bytes.Equal(c[i], []byte("0")) {
			if err := json.Unmarshal(c[i], &columns[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	passes := make([]pass, len(columns[9]))
	for i := range passes {
		var v [10]float64
		for j := range columns {
			if columns[j] != nil {
				v[j] = columns[j][i]
			}
		}
		v[9] /= 1e9
		passes[i] = *loggedPass(v)
	}
	return passes
}

// TestTicksOfDynamo13 feeds the core with recorded runs that never forget a pass, so that nothing depends on the order of a
// hash map: all it reckons must be as recorded.
func TestTicksOfDynamo13(t *testing.T) {
	lines := bufio.NewScanner(openRecorded(t, "testdata/ticks13.jsonl.gz"))
	lines.Buffer(nil, 1<<24)
	var c *core
	ticks, run := 0, ""
	var pending [2][]pass // since the last look at the engines
	for lines.Scan() {
		if bytes.HasPrefix(lines.Bytes(), []byte(`{"run"`)) {
			c, run = newCore13(t, lines.Bytes())
			pending = [2][]pass{}
			continue
		}
		var k tick13
		if err := json.Unmarshal(lines.Bytes(), &k); err != nil {
			t.Fatal(err)
		}
		ticks++
		for i := range k.Passes {
			pending[i] = append(pending[i], k.Passes[i].passes(t)...)
		}
		k.compare(t, c, pending, fmt.Sprintf("%s at %v s", run, k.At))
		if k.Load {
			pending = [2][]pass{}
		}
	}
	if ticks != 143 {
		t.Errorf("%d ticks", ticks)
	}
}

func newCore13(t *testing.T, head []byte) (*core, string) {
	t.Helper()
	h := struct {
		Run       string
		Config    Config
		Sequences int64
		Workers   []int
	}{Config: DefaultConfig()}
	if err := json.Unmarshal(head, &h); err != nil {
		t.Fatal(err)
	}
	kinds := []poolKind{aggregatedPool}
	if len(h.Workers) == 2 {
		kinds = []poolKind{prefillPool, decodePool}
	}
	var setups []poolSetup
	for i, kind := range kinds {
		setups = append(setups, poolSetup{
			kind: kind, gpus: 1, workers: h.Workers[i],
			limits: limits{batchedTokens: 8192, sequences: h.Sequences, kvTokens: 1 << 20},
		})
	}
	c, err := newCore(h.Config, rulesFor(rules.Dynamo13), setups)
	if err != nil {
		t.Fatal(err)
	}
	return c, h.Run
}

func (k *tick13) compare(t *testing.T, c *core, passes [2][]pass, where string) {
	t.Helper()
	in := tickInput{atMs: k.At * 1000, nowMs: k.At * 1000, load: k.Load, throughput: k.Throughput}
	if k.Traffic != nil {
		in.traffic = &Load{
			DurationSeconds: *k.Traffic[0], Requests: *k.Traffic[1], InputTokens: *k.Traffic[2], OutputTokens: *k.Traffic[3],
			KVHitRate: *k.Traffic[4],
		}
	}
	for i, ready := range k.Ready {
		p := poolInput{passes: passes[i]}
		for id := range ready {
			p.ready = append(p.ready, int32(id))
		}
		in.pools = append(in.pools, p)
	}
	got, targets := c.tick(&in)
	last := len(k.Ready) - 1
	for i, ready := range k.Ready {
		target, want := ready, k.Want.ScaleTo
		if targets != nil {
			target = targets[i]
		}
		if want != nil && want[i+1-last] != nil {
			ready = *want[i+1-last]
		}
		if target != ready {
			t.Errorf("%s: pool %d shall have %d workers, want %d", where, i, target, ready)
		}
		if b := k.Want.Bounds[i+1-last]; got.Pools[i].LowerBound != b {
			t.Errorf("%s: pool %d is bound to %d, want %d", where, i, got.Pools[i].LowerBound, b)
		}
	}
	if got.LoadReason != k.Want.Load || got.ThroughputReason != k.Want.Throughput {
		t.Errorf("%s: reasons %q and %q, want %q and %q", where, got.LoadReason, got.ThroughputReason, k.Want.Load, k.Want.Throughput)
	}
	for _, figure := range []struct {
		name string
		got  float64
		want *float64
	}{
		{"requests", got.Predicted.Requests, k.Want.Requests},
		{"input tokens", got.Predicted.InputTokens, k.Want.Input},
		{"output tokens", got.Predicted.OutputTokens, k.Want.Output},
		{"prefill capacity", got.Pools[0].RequestsPerSecond, k.Want.RPS[0]},
		{"decode capacity", got.Pools[last].RequestsPerSecond, k.Want.RPS[1]},
		{"TTFT", got.Pools[0].EstimatedTTFTMs, k.Want.TTFT},
		{"ITL", got.Pools[last].EstimatedITLMs, k.Want.ITL},
	} {
		if math.IsNaN(figure.got) != (figure.want == nil) ||
			figure.want != nil && math.Abs(figure.got-*figure.want) > 1e-6*math.Abs(*figure.want) {
			want := math.NaN()
			if figure.want != nil {
				want = *figure.want
			}
			t.Errorf("%s: %s %v, want %v", where, figure.name, figure.got, want)
		}
	}
}
