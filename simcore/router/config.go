package router

import (
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/problem"
)

// Config says which worker gets a request, and when. Apart from Policy, Seed and PrefixAffinityTokens its keys are the
// reference's router arguments (spec/engine.md §16); all but those three and the queue's belong to policy kv_router.
type Config struct {
	// Policy says how the worker is chosen:
	//   - round_robin: every worker in turn, in id order.
	//   - kv_router: the worker with the least cost, which weighs the prefill tokens that are ahead of the request, less
	//     those in the worker's cache, against the KV blocks of what it decodes.
	//   - least_loaded: the worker with the fewest unfinished requests.
	//   - power_of_two: of two workers drawn at random, the one with fewer unfinished requests.
	//   - session_affinity: the worker of the session's previous turn; a new session goes to the least loaded one.
	//   - prefix_affinity: the worker that a consistent hash of the prompt's leading tokens names.
	Policy string `json:"policy"`
	// Seed decides all that is random: equal costs, draws by temperature and by power_of_two.
	Seed uint64 `json:"seed"`
	// PrefixAffinityTokens is how many leading tokens policy prefix_affinity hashes, rounded up to whole KV blocks.
	PrefixAffinityTokens int `json:"prefix_affinity_tokens"`

	// OverlapScoreCredit is the prefill blocks saved by a block that is in a worker's cache, 0 to 1.
	OverlapScoreCredit float64 `json:"overlap_score_credit"`
	// OverlapScoreCreditDecay lowers that credit as the worker has more prefill tokens ahead than the others; 0 leaves it.
	OverlapScoreCreditDecay float64 `json:"overlap_score_credit_decay"`
	// HostCacheHitWeight is the part of that credit for a block that a worker has in host memory (see tiers), 0 to 1.
	HostCacheHitWeight float64 `json:"host_cache_hit_weight"`
	// DiskCacheHitWeight is the part of it for a block that is only on a worker's disk or in the object store, 0 to 1.
	DiskCacheHitWeight float64 `json:"disk_cache_hit_weight"`
	// PrefillLoadScale multiplies the prefill part of the cost.
	PrefillLoadScale float64 `json:"prefill_load_scale"`
	// OverlapScoreWeight replaces PrefillLoadScale, and sets OverlapScoreCredit to 0 when it is 0; it is the reference's
	// old name of both. Unset (null in a spec) leaves them alone.
	OverlapScoreWeight float64 `json:"overlap_score_weight"`
	// RouterTemperature draws the worker with probabilities that fall exponentially with cost; 0 takes the least cost.
	RouterTemperature float64 `json:"router_temperature"`
	// RouterTrackActiveBlocks counts the KV blocks of unfinished requests as cost of decoding.
	RouterTrackActiveBlocks bool `json:"router_track_active_blocks"`
	// RouterAssumeKVReuse counts blocks that several unfinished requests of a worker have in common once.
	RouterAssumeKVReuse bool `json:"router_assume_kv_reuse"`
	// RouterTrackPrefillTokens counts the prompt tokens that a worker has not computed yet as cost.
	RouterTrackPrefillTokens bool `json:"router_track_prefill_tokens"`
	// RouterPrefillLoadModel is "none", prompts count whole until their first token, or "aic", they count less as time
	// goes by, according to the durations that PrefillTiming predicts.
	RouterPrefillLoadModel string `json:"router_prefill_load_model"`
	// PrefillTiming is what prefill load model "aic" predicts with; left alone, it is the timing of the workers.
	PrefillTiming perfmodel.Config `json:"prefill_timing"`
	// RouterQueueThreshold keeps requests in the router while every worker has more than this many times
	// max_num_batched_tokens prompt tokens to compute; Unset (null in a spec) never does. ai-dynamo 1.2 has 4 where it is left
	// out, which replay --compat dynamo-1.2 gives.
	RouterQueueThreshold float64 `json:"router_queue_threshold"`
	// RouterQueuePolicy says which of the kept requests goes first, among those of equal strict_priority: "fcfs" the one
	// that came first, "lcfs" the one that came last, priority counting as seconds, "wspt" the one with the highest
	// 1 + priority for each uncached prompt token.
	RouterQueuePolicy string `json:"router_queue_policy"`
	// RouterPolicyConfig is the path of a YAML file with classes of requests that have queues of their own.
	RouterPolicyConfig string `json:"router_policy_config"`
	// ModelName selects a profile of that file.
	ModelName string `json:"model_name"`

	// Classes is the content of RouterPolicyConfig as [ParseClasses] reads it, or nil for one class. A router does not read
	// the file.
	Classes *Classes `json:"-"`
}

// The policies.
const (
	PolicyRoundRobin      = "round_robin"
	PolicyKVRouter        = "kv_router"
	PolicyLeastLoaded     = "least_loaded"
	PolicyPowerOfTwo      = "power_of_two"
	PolicySessionAffinity = "session_affinity"
	PolicyPrefixAffinity  = "prefix_affinity"
)

// The queue policies.
const (
	QueueFCFS = "fcfs"
	QueueLCFS = "lcfs"
	QueueWSPT = "wspt"
)

// The prefill load models.
const (
	PrefillLoadNone = "none"
	PrefillLoadAIC  = "aic"
)

// Unset stands for a number that is not given where 0 means something; a spec says null.
const Unset = -1

// Policies lists the accepted values of Config.Policy.
func Policies() []string {
	return []string{PolicyRoundRobin, PolicyKVRouter, PolicyLeastLoaded, PolicyPowerOfTwo, PolicySessionAffinity, PolicyPrefixAffinity}
}

// QueuePolicies lists the accepted values of Config.RouterQueuePolicy.
func QueuePolicies() []string { return []string{QueueFCFS, QueueLCFS, QueueWSPT} }

// PrefillLoadModels lists the accepted values of Config.RouterPrefillLoadModel.
func PrefillLoadModels() []string { return []string{PrefillLoadNone, PrefillLoadAIC} }

// DefaultConfig is round robin, with the reference's router arguments for those who switch to kv_router.
func DefaultConfig() Config {
	return Config{
		Policy:                   PolicyRoundRobin,
		Seed:                     42,
		PrefixAffinityTokens:     512,
		OverlapScoreCredit:       1,
		HostCacheHitWeight:       .75,
		DiskCacheHitWeight:       .25,
		PrefillLoadScale:         1,
		OverlapScoreWeight:       Unset,
		RouterTrackActiveBlocks:  true,
		RouterAssumeKVReuse:      true,
		RouterTrackPrefillTokens: true,
		RouterPrefillLoadModel:   PrefillLoadNone,
		PrefillTiming:            perfmodel.DefaultConfig(),
		RouterQueueThreshold:     16,
		RouterQueuePolicy:        QueueFCFS,
	}
}

// maxAffinityTokens bounds Config.PrefixAffinityTokens.
const maxAffinityTokens = 1 << 28

// Validate returns all problems of the configuration.
func (c Config) Validate() problem.List {
	var l problem.List
	for _, s := range []struct {
		key, value string
		allowed    []string
	}{
		{"policy", c.Policy, Policies()},
		{"router_prefill_load_model", c.RouterPrefillLoadModel, PrefillLoadModels()},
		{"router_queue_policy", c.RouterQueuePolicy, QueuePolicies()},
	} {
		if !slices.Contains(s.allowed, s.value) {
			l.Add(s.key, s.value, "use one of: %s", strings.Join(s.allowed, ", "))
		}
	}
	if c.PrefixAffinityTokens < 1 || c.PrefixAffinityTokens > maxAffinityTokens {
		l.Add("prefix_affinity_tokens", c.PrefixAffinityTokens, "give 1 to %d tokens", maxAffinityTokens)
	}
	if !(c.OverlapScoreCredit >= 0 && c.OverlapScoreCredit <= 1) {
		l.Add("overlap_score_credit", c.OverlapScoreCredit, "give 0 to 1; prefill_load_scale makes prefill weigh more")
	}
	for _, s := range []struct {
		key   string
		value float64
	}{{"host_cache_hit_weight", c.HostCacheHitWeight}, {"disk_cache_hit_weight", c.DiskCacheHitWeight}} {
		if !(s.value >= 0 && s.value <= 1) {
			l.Add(s.key, s.value, "give 0 to 1")
		}
	}
	for _, s := range []struct {
		key      string
		value    float64
		nullable bool
	}{
		{"overlap_score_credit_decay", c.OverlapScoreCreditDecay, false},
		{"prefill_load_scale", c.PrefillLoadScale, false},
		{"overlap_score_weight", c.OverlapScoreWeight, true},
		{"router_temperature", c.RouterTemperature, false},
		{"router_queue_threshold", c.RouterQueueThreshold, true},
	} {
		switch {
		case s.nullable && s.value == Unset:
		case !(s.value >= 0) || math.IsInf(s.value, 0):
			l.Add(s.key, s.value, "give a finite number of 0 or more")
		}
	}
	if c.RouterPrefillLoadModel == PrefillLoadAIC && !c.RouterTrackPrefillTokens {
		l.Add("router_prefill_load_model", c.RouterPrefillLoadModel, "it needs router_track_prefill_tokens")
	}
	if c.RouterPrefillLoadModel == PrefillLoadAIC && c.Policy != PolicyKVRouter {
		l.Add("router_prefill_load_model", c.RouterPrefillLoadModel, "it needs policy %s", PolicyKVRouter)
	}
	return l
}

// PredictsItself reports whether the router predicts the duration of prompts with a timing of its own.
func (c Config) PredictsItself() bool {
	return c.RouterPrefillLoadModel == PrefillLoadAIC && c.PrefillTiming != perfmodel.DefaultConfig()
}

// scaleAndCredit returns what multiplies prefill cost and overlap, after the old name of both.
func (c Config) scaleAndCredit() (scale, credit float64) {
	if c.OverlapScoreWeight == Unset {
		return c.PrefillLoadScale, c.OverlapScoreCredit
	}
	if c.OverlapScoreWeight == 0 {
		return 0, 0
	}
	return c.OverlapScoreWeight, c.OverlapScoreCredit
}
