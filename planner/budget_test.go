package planner

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/rules"
)

func TestBudget(t *testing.T) {
	const ours, theirs = "", rules.Dynamo12
	for _, c := range []struct {
		name             string
		compat           rules.Compat
		gpus             []int // of a worker of each pool
		minimum, maximum int
		least            int // min_endpoint
		wanted, want     []int
	}{
		{"no budget", theirs, []int{1}, -1, -1, 1, []int{99}, []int{99}},
		{"min_endpoint", theirs, []int{1}, -1, 8, 3, []int{1}, []int{3}},
		{"within", theirs, []int{1}, 2, 4, 1, []int{3}, []int{3}},
		{"above", theirs, []int{1}, -1, 4, 1, []int{6}, []int{4}},
		{"of zero", theirs, []int{1}, -1, 0, 1, []int{2}, []int{0}},
		{"for fewer than min_endpoint", theirs, []int{1}, -1, 2, 3, []int{1}, []int{0}},
		{"below, relaxed by a worker", theirs, []int{1}, 4, 6, 1, []int{3}, []int{3}},
		{"further below", theirs, []int{1}, 4, 6, 1, []int{2}, []int{4}},
		{"below, with no greatest", theirs, []int{1}, 4, -1, 1, []int{3}, []int{4}},
		{"workers count one GPU", theirs, []int{4}, -1, 8, 1, []int{6}, []int{6}},

		{"GPUs count", ours, []int{4}, -1, 9, 1, []int{6}, []int{2}},
		{"for fewer than min_endpoint, which holds", ours, []int{4}, -1, 2, 1, []int{2}, []int{1}},
		{"pinned", ours, []int{1}, 4, 4, 1, []int{3}, []int{4}},
		{"pinned from above", ours, []int{1}, 4, 4, 1, []int{5}, []int{4}},
		{"the greatest wins where both cannot be kept", ours, []int{4}, 6, 7, 1, []int{1}, []int{1}},

		{"pair within", theirs, []int{1, 1}, 2, 8, 1, []int{3, 4}, []int{3, 4}},
		{"pair above, in proportion", theirs, []int{1, 1}, -1, 8, 1, []int{6, 6}, []int{4, 4}},
		{"pair above, the rest to decode", theirs, []int{1, 1}, -1, 8, 1, []int{1, 9}, []int{1, 7}},
		{"pair above, room for the other's least", theirs, []int{1, 1}, -1, 8, 2, []int{20, 2}, []int{6, 2}},
		{"pair above, rounded down", theirs, []int{1, 1}, -1, 5, 1, []int{5, 3}, []int{3, 2}},
		{"no room for a pair", theirs, []int{1, 1}, -1, 1, 1, []int{1, 1}, []int{0, 0}},
		{"no room for min_endpoint of both", theirs, []int{1, 1}, -1, 3, 2, []int{2, 2}, []int{0, 0}},
		{"pair below, relaxed by a worker", theirs, []int{1, 1}, 4, 8, 1, []int{1, 2}, []int{1, 2}},
		{"pair further below, in proportion", theirs, []int{1, 1}, 6, 8, 1, []int{1, 2}, []int{2, 4}},
		{"pair below, rounded up", theirs, []int{1, 1}, 7, -1, 1, []int{1, 2}, []int{3, 4}},
		{"pair of none", theirs, []int{1, 1}, 5, 8, 1, []int{0, 0}, []int{3, 2}},
		{"pair below, which the greatest forbids", theirs, []int{1, 1}, 6, 6, 4, []int{1, 1}, []int{1, 1}},

		{"pair of GPUs above", ours, []int{2, 4}, -1, 16, 1, []int{4, 4}, []int{2, 3}},
		{"no room for a pair, which stays", ours, []int{2, 4}, -1, 4, 1, []int{2, 2}, []int{1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := testSLA()
			config.MinGPUBudget, config.MaxGPUBudget, config.MinEndpoint = c.minimum, c.maximum, c.least
			if got := budgetCore(t, config, c.compat, c.gpus).withinBudget(c.wanted); !slices.Equal(got, c.want) {
				t.Errorf("%v became %v, want %v", c.wanted, got, c.want)
			}
		})
	}
}

func budgetCore(t *testing.T, config Config, compat rules.Compat, gpus []int) *core {
	setups := []poolSetup{{kind: aggregatedPool, limits: testLimits, gpus: gpus[0]}}
	if len(gpus) == 2 {
		setups = []poolSetup{
			{kind: prefillPool, limits: testLimits, gpus: gpus[0]}, {kind: decodePool, limits: testLimits, gpus: gpus[1]},
		}
	}
	return newTestCore(t, config, compat, setups...)
}

// TestBudgetIsKept checks that, by our rules, the greatest budget holds whenever min_endpoint leaves room, and the least one
// wherever the greatest does.
func TestBudgetIsKept(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		gpus := rapid.SliceOfN(rapid.IntRange(1, 8), 1, 2).Draw(r, "gpus")
		config := testSLA()
		config.MinEndpoint = rapid.IntRange(1, 3).Draw(r, "min_endpoint")
		config.MaxGPUBudget = rapid.IntRange(-1, 64).Draw(r, "max_gpu_budget")
		config.MinGPUBudget = rapid.IntRange(-1, 64).Draw(r, "min_gpu_budget")
		if config.MaxGPUBudget >= 0 {
			config.MinGPUBudget = min(config.MinGPUBudget, config.MaxGPUBudget)
		}
		wanted := make(proposal, len(gpus))
		for i := range wanted {
			wanted[i] = rapid.IntRange(config.MinEndpoint, 20).Draw(r, "wanted")
		}
		got := budgetCore(t, config, "", gpus).withinBudget(slices.Clone(wanted))
		total, least, greatest := 0, 0, 0
		for i, n := range got {
			if n < config.MinEndpoint {
				r.Fatalf("%v became %v, below min_endpoint", wanted, got)
			}
			total += n * gpus[i]
			least += config.MinEndpoint * gpus[i]
			greatest = max(greatest, gpus[i])
		}
		if config.MaxGPUBudget >= least && total > config.MaxGPUBudget {
			r.Fatalf("%v became %v: %d GPUs", wanted, got, total)
		}
		room := config.MaxGPUBudget < 0 || config.MaxGPUBudget-config.MinGPUBudget >= 2*greatest
		if room && total < config.MinGPUBudget {
			r.Fatalf("%v became %v: only %d GPUs", wanted, got, total)
		}
	})
}
