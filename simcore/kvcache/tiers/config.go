package tiers

import (
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/problem"
)

// Config says which memory tiers lie below the GPUs' own, and how fast they are. The keys that the reference has carry
// its names. The zero value has no lower tier.
type Config struct {
	// NumG2Blocks is the size of a worker's host memory for KV blocks; 0 means that there are no lower tiers at all.
	NumG2Blocks int `json:"num_g2_blocks"`
	// NumG3Blocks is the size of a node's disk for KV blocks; 0 means that there is no disk.
	NumG3Blocks int `json:"num_g3_blocks"`
	// EnableG4Storage adds an object store that the whole deployment shares.
	EnableG4Storage bool `json:"enable_g4_storage"`
	// NumG4Blocks is the size of the object store; 0 (null in a spec) means no limit.
	NumG4Blocks int `json:"num_g4_blocks"`
	// WorkersPerNode is how many workers share a node's disk and its connection to the object store; 0 (null in a spec)
	// means that all workers are on one node.
	WorkersPerNode int `json:"workers_per_node"`

	// BandwidthG1ToG2 is the bandwidth of a worker's link from GPU to host memory, in GB/s (1e9 bytes a second) for each
	// GPU, as kv_bytes_per_token is; 0 (null in a spec) means that bytes take no time.
	BandwidthG1ToG2 float64 `json:"bandwidth_g1_to_g2_gbps"`
	// BandwidthG2ToG1 is that of the way back.
	BandwidthG2ToG1 float64 `json:"bandwidth_g2_to_g1_gbps"`
	// BandwidthG2ToG3 is the bandwidth at which a node writes to its disk, in GB/s; 0 (null in a spec) means no time.
	BandwidthG2ToG3 float64 `json:"bandwidth_g2_to_g3_gbps"`
	// BandwidthG3ToG2 is that of reads.
	BandwidthG3ToG2 float64 `json:"bandwidth_g3_to_g2_gbps"`
	// BandwidthG2ToG4 is the bandwidth from a node to the object store, in GB/s; 0 (null in a spec) means no time.
	BandwidthG2ToG4 float64 `json:"bandwidth_g2_to_g4_gbps"`
	// BandwidthG4ToG2 is that of the way back.
	BandwidthG4ToG2 float64 `json:"bandwidth_g4_to_g2_gbps"`

	// LatencyG1ToG2 is what a transfer takes beside its bytes, in ms; so are those of the other links.
	LatencyG1ToG2 float64 `json:"latency_g1_to_g2_ms"`
	// LatencyG2ToG1 is that of loads from host memory, in ms.
	LatencyG2ToG1 float64 `json:"latency_g2_to_g1_ms"`
	// LatencyG2ToG3 is that of writes to disk, in ms.
	LatencyG2ToG3 float64 `json:"latency_g2_to_g3_ms"`
	// LatencyG3ToG2 is that of reads from disk, in ms.
	LatencyG3ToG2 float64 `json:"latency_g3_to_g2_ms"`
	// LatencyG2ToG4 is that of writes to the object store, in ms.
	LatencyG2ToG4 float64 `json:"latency_g2_to_g4_ms"`
	// LatencyG4ToG2 is that of reads from the object store, in ms.
	LatencyG4ToG2 float64 `json:"latency_g4_to_g2_ms"`

	// OffloadPolicy says when KV blocks are copied to host memory: "on_evict", when they leave the GPU, or "on_complete",
	// when a request that holds them is finished.
	OffloadPolicy string `json:"offload_policy"`
	// OffloadBatchSize is how many blocks one copy to a lower tier moves at most; each copy pays the link's latency.
	OffloadBatchSize int `json:"offload_batch_size"`
	// OnboardPolicy says whether a request loads what lower tiers have of its prompt: "cheaper", if the predicted transfer
	// is shorter than the predicted prefill, "always" or "never".
	OnboardPolicy string `json:"onboard_policy"`
	// DecodeOffload lets the decode workers of a disaggregated deployment have lower tiers too. What a preempted request
	// had is then loaded again instead of computed.
	DecodeOffload bool `json:"decode_offload"`
}

// The offload policies.
const (
	OffloadOnEvict    = "on_evict"
	OffloadOnComplete = "on_complete"
)

// The onboard policies.
const (
	OnboardCheaper = "cheaper"
	OnboardAlways  = "always"
	OnboardNever   = "never"
)

// OffloadPolicies lists the accepted values of Config.OffloadPolicy.
func OffloadPolicies() []string { return []string{OffloadOnEvict, OffloadOnComplete} }

// OnboardPolicies lists the accepted values of Config.OnboardPolicy.
func OnboardPolicies() []string { return []string{OnboardCheaper, OnboardAlways, OnboardNever} }

// DefaultConfig has no lower tier; host memory is added by giving its size.
func DefaultConfig() Config {
	return Config{OffloadPolicy: OffloadOnEvict, OffloadBatchSize: 16, OnboardPolicy: OnboardCheaper}
}

// maxBlocks bounds the size of a tier, and so what it can make the simulator allocate. The other bounds keep times finite and
// apart from each other: bandwidths in GB/s, latencies in ms, and workers on a node.
const (
	maxBlocks      = 1 << 30
	leastBandwidth = 1e-6
	mostBandwidth  = 1e9
	maxLatencyMs   = 1e9
	maxWorkers     = 1 << 20
)

// Enabled reports whether there is any lower tier.
func (c Config) Enabled() bool { return c.NumG2Blocks > 0 }

// NeedsBytes reports whether the size of a KV block matters.
func (c Config) NeedsBytes() bool {
	return c.Enabled() && slices.ContainsFunc(c.links(), func(l linkConfig) bool { return l.bandwidth > 0 })
}

// linkConfig is how fast a kind of link is.
type linkConfig struct {
	name                 string
	bandwidth, latencyMs float64
}

// links lists the kinds of links in their order.
func (c Config) links() []linkConfig {
	return []linkConfig{
		{"g1_to_g2", c.BandwidthG1ToG2, c.LatencyG1ToG2},
		{"g2_to_g1", c.BandwidthG2ToG1, c.LatencyG2ToG1},
		{"g2_to_g3", c.BandwidthG2ToG3, c.LatencyG2ToG3},
		{"g3_to_g2", c.BandwidthG3ToG2, c.LatencyG3ToG2},
		{"g2_to_g4", c.BandwidthG2ToG4, c.LatencyG2ToG4},
		{"g4_to_g2", c.BandwidthG4ToG2, c.LatencyG4ToG2},
	}
}

// Validate returns all problems of the configuration.
func (c Config) Validate() problem.List {
	var l problem.List
	for _, s := range []struct {
		key   string
		value int
	}{{"num_g2_blocks", c.NumG2Blocks}, {"num_g3_blocks", c.NumG3Blocks}, {"num_g4_blocks", c.NumG4Blocks}} {
		if s.value < 0 || s.value > maxBlocks {
			l.Add(s.key, s.value, "give a number of blocks up to %d", maxBlocks)
		}
	}
	const needsHost = "the lower tiers are filled from host memory; give tiers.num_g2_blocks"
	if c.NumG3Blocks > 0 && !c.Enabled() {
		l.Add("num_g3_blocks", c.NumG3Blocks, needsHost)
	}
	if c.EnableG4Storage && !c.Enabled() {
		l.Add("enable_g4_storage", c.EnableG4Storage, needsHost)
	}
	if c.NumG4Blocks > 0 && !c.EnableG4Storage {
		l.Add("num_g4_blocks", c.NumG4Blocks, "there is no object store; give tiers.enable_g4_storage")
	}
	if c.WorkersPerNode < 0 || c.WorkersPerNode > maxWorkers {
		l.Add("workers_per_node", c.WorkersPerNode, "give 1 to %d workers, or null for all on one node", maxWorkers)
	}
	for _, k := range c.links() {
		if k.bandwidth != 0 && !(k.bandwidth >= leastBandwidth && k.bandwidth <= mostBandwidth) {
			l.Add("bandwidth_"+k.name+"_gbps", k.bandwidth, "give %v to %v GB/s, or null for transfers whose bytes take no time", leastBandwidth, mostBandwidth)
		}
		if !(k.latencyMs >= 0 && k.latencyMs <= maxLatencyMs) {
			l.Add("latency_"+k.name+"_ms", k.latencyMs, "give 0 to %v ms", maxLatencyMs)
		}
	}
	if !slices.Contains(OffloadPolicies(), c.OffloadPolicy) {
		l.Add("offload_policy", c.OffloadPolicy, "use one of: %s", strings.Join(OffloadPolicies(), ", "))
	}
	if !slices.Contains(OnboardPolicies(), c.OnboardPolicy) {
		l.Add("onboard_policy", c.OnboardPolicy, "use one of: %s", strings.Join(OnboardPolicies(), ", "))
	}
	if c.OffloadBatchSize < 1 || c.OffloadBatchSize > maxBlocks {
		l.Add("offload_batch_size", c.OffloadBatchSize, "give 1 to %d blocks", maxBlocks)
	}
	return l
}
