package router

import (
	"math"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	if l := DefaultConfig().Validate(); len(l) > 0 {
		t.Errorf("the default is refused: %v", l)
	}
	for _, test := range []struct {
		want   string
		change func(*Config)
	}{
		{"policy: kv is not allowed", func(c *Config) { c.Policy = "kv" }},
		{"prefix_affinity_tokens: 0", func(c *Config) { c.PrefixAffinityTokens = 0 }},
		{"overlap_score_credit: 1.5", func(c *Config) { c.OverlapScoreCredit = 1.5 }},
		{"overlap_score_credit: NaN", func(c *Config) { c.OverlapScoreCredit = math.NaN() }},
		{"overlap_score_credit_decay: -1", func(c *Config) { c.OverlapScoreCreditDecay = Unset }},
		{"prefill_load_scale: +Inf", func(c *Config) { c.PrefillLoadScale = math.Inf(1) }},
		{"overlap_score_weight: -0.5", func(c *Config) { c.OverlapScoreWeight = -.5 }},
		{"", func(c *Config) { c.OverlapScoreWeight = 0 }},
		{"router_temperature: -2", func(c *Config) { c.RouterTemperature = -2 }},
		{"router_queue_threshold: -2", func(c *Config) { c.RouterQueueThreshold = -2 }},
		{"", func(c *Config) { c.RouterQueueThreshold = Unset }},
		{"router_queue_policy: lifo", func(c *Config) { c.RouterQueuePolicy = "lifo" }},
		{"router_prefill_load_model: roofline", func(c *Config) { c.RouterPrefillLoadModel = "roofline" }},
		{"it needs policy kv_router", func(c *Config) { c.RouterPrefillLoadModel = PrefillLoadAIC }},
		{"it needs router_track_prefill_tokens", func(c *Config) {
			c.Policy, c.RouterPrefillLoadModel, c.RouterTrackPrefillTokens = PolicyKVRouter, PrefillLoadAIC, false
		}},
	} {
		c := DefaultConfig()
		test.change(&c)
		l := c.Validate()
		switch {
		case test.want == "" && len(l) > 0:
			t.Errorf("refused: %v", l)
		case test.want != "" && (len(l) != 1 || !strings.Contains(l.Error(), test.want)):
			t.Errorf("problems %q, want one with %q", l.Error(), test.want)
		}
	}
}

// TestOverlapScoreWeight checks the reference's old name of two settings.
func TestOverlapScoreWeight(t *testing.T) {
	c := DefaultConfig()
	c.PrefillLoadScale, c.OverlapScoreCredit = 3, .5
	for weight, want := range map[float64][2]float64{Unset: {3, .5}, 0: {0, 0}, 2: {2, .5}} {
		c.OverlapScoreWeight = weight
		if scale, credit := c.scaleAndCredit(); scale != want[0] || credit != want[1] {
			t.Errorf("weight %v: scale %v and credit %v, want %v", weight, scale, credit, want)
		}
	}
}
