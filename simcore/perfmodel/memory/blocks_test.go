package memory_test

import (
	"encoding/csv"
	"errors"
	"os"
	"strconv"
	"testing"

	"github.com/servegrid/servegrid/simcore/perfmodel/memory"
	"github.com/servegrid/servegrid/simcore/perfmodel/tables"
)

// TestBlocksOfAiconfigurator compares the plans of the embedded rows with aiconfigurator's own block counts.
func TestBlocksOfAiconfigurator(t *testing.T) {
	f, err := os.Open("testdata/aiconfigurator_blocks.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range lines[0] {
		column[name] = i
	}
	fits, deployments := 0, map[*tables.Config]bool{}
	for _, line := range lines[1:] {
		text := func(name string) string { return line[column[name]] }
		number := func(name string) int {
			v, err := strconv.Atoi(text(name))
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		c, problems := tables.Embedded().Find(tables.Query{
			System: text("system"), Backend: text("backend"), BackendVersion: text("backend_version"), Model: text("hf_path"), DType: text("dtype"),
			GEMM: text("gemm"), MoE: text("moe"), KV: text("kv"), FMHA: text("fmha"), TP: number("tp"), DP: number("dp"), EP: number("moe_ep"),
		})
		if problems != nil {
			t.Errorf("%v: %v", line, problems)
			continue
		}
		deployments[c] = true
		plan, err := c.Memory().Plan(memory.Settings{MaxBatchedTokens: number("max_num_batched_tokens")})
		want := number("num_gpu_blocks")
		if want == 0 {
			var full *memory.DoesNotFit
			if !errors.As(err, &full) {
				t.Errorf("%s, %s tokens: %d tokens of KV cache, %v; aiconfigurator says that it does not fit", c, text("max_num_batched_tokens"), plan.KVTokens, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c, err)
			continue
		}
		fits++
		if got := plan.KVTokens / number("block_size"); got < want-1 || got > want+1 {
			t.Errorf("%s, %s tokens: %d blocks, aiconfigurator %d", c, text("max_num_batched_tokens"), got, want)
		}
	}
	if len(deployments) < 40 || fits < 60 {
		t.Errorf("%d deployments, %d plans that fit; 40 and most of 120 are needed", len(deployments), fits)
	}
	t.Logf("%d deployments, %d plans of %d fit", len(deployments), fits, len(lines)-1)
}
