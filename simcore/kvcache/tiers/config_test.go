package tiers

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBadConfig checks that each bad setting is named, all of them at once.
func TestBadConfig(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"default", func(*Config) {}, nil},
		{"host memory", func(c *Config) { c.NumG2Blocks = 1 }, nil},
		{"everything", func(c *Config) {
			c.NumG2Blocks, c.NumG3Blocks, c.EnableG4Storage, c.NumG4Blocks, c.WorkersPerNode = 1, 2, true, 3, 4
			c.BandwidthG1ToG2, c.LatencyG4ToG2 = 64, 20
		}, nil},
		{"sizes", func(c *Config) { c.NumG2Blocks, c.NumG3Blocks, c.NumG4Blocks = -1, math.MaxInt, -3 },
			[]string{"num_g2_blocks", "num_g3_blocks", "num_g4_blocks", "num_g3_blocks"}},
		{"no host memory", func(c *Config) { c.NumG3Blocks, c.EnableG4Storage = 1, true }, []string{"num_g3_blocks", "enable_g4_storage"}},
		{"no object store", func(c *Config) { c.NumG2Blocks, c.NumG4Blocks = 1, 1 }, []string{"num_g4_blocks"}},
		{"numbers", func(c *Config) {
			c.NumG2Blocks, c.WorkersPerNode, c.OffloadBatchSize = 1, -1, 0
			c.BandwidthG1ToG2, c.BandwidthG4ToG2 = math.NaN(), math.Inf(1)
			c.LatencyG2ToG3, c.LatencyG3ToG2 = -1, math.NaN()
		}, []string{"workers_per_node", "bandwidth_g1_to_g2_gbps", "latency_g2_to_g3_ms", "latency_g3_to_g2_ms", "bandwidth_g4_to_g2_gbps", "offload_batch_size"}},
		{"extremes", func(c *Config) {
			c.NumG2Blocks, c.WorkersPerNode, c.OffloadBatchSize = 1, math.MaxInt, math.MaxInt
			c.BandwidthG1ToG2, c.BandwidthG2ToG1, c.LatencyG1ToG2 = 5e-324, math.MaxFloat64, math.MaxFloat64
		}, []string{"workers_per_node", "bandwidth_g1_to_g2_gbps", "latency_g1_to_g2_ms", "bandwidth_g2_to_g1_gbps", "offload_batch_size"}},
		{"policies", func(c *Config) { c.OffloadPolicy, c.OnboardPolicy = "", "sometimes" }, []string{"offload_policy", "onboard_policy"}},
	} {
		c := DefaultConfig()
		test.change(&c)
		var got []string
		for _, p := range c.Validate() {
			got = append(got, p.Path)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestOffloadOnCompleteKeepsWhatItLoads checks that host memory is not exclusive where blocks are not copied when they leave
// the GPU: the first prompt, which is loaded, is there when others need room.
func TestOffloadOnCompleteKeepsWhatItLoads(t *testing.T) {
	for policy, want := range map[string]int{OffloadOnComplete: 2, OffloadOnEvict: 0} {
		h := newTest(1, func(c *Config) { c.NumG2Blocks, c.OffloadPolicy = 4, policy })
		h.Offload(0, 0, down(0, 2))
		h.Offload(0, 0, down(10, 2))
		h.Find(0, 1, prompt(0, 2), 0, 2)
		h.Load(0, 1, 1, 2)
		h.Offload(0, 2, down(20, 2))
		blocks := 0
		if found := h.Find(0, 3, prompt(0, 2), 0, 2); len(found) > 0 {
			blocks = found[len(found)-1].Blocks
		}
		if blocks != want {
			t.Errorf("%s: %d of the blocks are still there, want %d", policy, blocks, want)
		}
	}
}
