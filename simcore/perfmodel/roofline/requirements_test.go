package roofline

import (
	"errors"
	"math"
	"testing"

	"github.com/servegrid/servegrid/simcore/perfmodel/memory"
	"github.com/servegrid/servegrid/simcore/perfmodel/tables"
)

// TestMemoryEqualsTables checks the memory computed from shapes against every current row of the tables: weights and
// activations to a millionth, KV bytes exactly. That is closer than the source's own tolerance.
func TestMemoryEqualsTables(t *testing.T) {
	set := tables.Embedded()
	for _, system := range set.Systems() {
		configs, err := set.Configs(system)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range configs {
			if c.Slot != "current" {
				continue
			}
			got, want := mustNew(t, deploymentOf(t, c)).Memory(), c.Memory()
			for _, p := range []struct {
				name            string
				got, want, part float64
			}{
				{"weights", got.WeightsBytes, want.WeightsBytes, 1e-6},
				{"activations at 8192 tokens", got.Activations8192Bytes, want.Activations8192Bytes, 1e-6},
				{"activations per token", got.ActivationBytesPerToken, want.ActivationBytesPerToken, 1e-6},
				{"least activations", got.MinActivationBytes, want.MinActivationBytes, 1e-6},
				{"communication", got.CommunicationBytes, want.CommunicationBytes, 0},
				{"runtime", got.OtherBytes, want.OtherBytes, 1e-6},
				{"GPU", got.GPUBytes, want.GPUBytes, 1e-3}, // the catalogue rounds to a tenth of a GiB
				{"KV of 64", got.KV.Bytes64, want.KV.Bytes64, 0},
				{"KV of 4096", got.KV.Bytes4096, want.KV.Bytes4096, 0},
				{"KV of 131072", got.KV.Bytes131072, want.KV.Bytes131072, 0},
				{"fraction", got.DefaultFraction, want.DefaultFraction, 0},
			} {
				if math.Abs(p.got-p.want) > p.part*p.want {
					t.Errorf("%s: %s is %v, the table has %v", c, p.name, p.got, p.want)
				}
			}
		}
	}
}

// TestDoesNotFit checks that a model that is too large is refused by its plan, not by New.
func TestDoesNotFit(t *testing.T) {
	r := mustNew(t, deployment(t, "l4", "llama-3.1-70b", "vllm", 1, 1, 1))
	_, err := r.Memory().Plan(memory.Settings{})
	var no *memory.DoesNotFit
	if !errors.As(err, &no) {
		t.Errorf("70B in 24 GB: %v", err)
	}
	plan, err := mustNew(t, deployment(t, "mi300x", "llama-3.1-70b", "vllm", 1, 1, 1)).Memory().Plan(memory.Settings{})
	if err != nil || plan.KVTokens < 50_000 || plan.KVTokens > 200_000 {
		t.Errorf("70B on a MI300X: %d tokens, %v", plan.KVTokens, err)
	}
}
