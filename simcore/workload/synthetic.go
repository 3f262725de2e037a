package workload

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/servegrid/servegrid/simcore/problem"
)

// Synthetic prefix ids live far above the counter that names private blocks.
const syntheticPrefix = uint64(0xD00D) << 48

// sessions reports whether the spec asks for sessions or shared prefixes, rather than independent requests.
func (s SyntheticSpec) sessions() bool {
	return s.TurnsPerSession > 1 || s.SharedPrefixRatio > 0 || s.PrefixGroups > 0 || s.InterTurnDelayMs > 0
}

func (s SyntheticSpec) validate() problem.List {
	var l problem.List
	for _, n := range []struct {
		key   string
		value int
	}{{"input_tokens", s.InputTokens}, {"output_tokens", s.OutputTokens}} {
		if n.value < 1 || n.value > MaxTokens {
			l.Add(n.key, n.value, "give 1 to %d tokens", MaxTokens)
		}
	}
	if s.Requests < 1 || s.Requests > maxRequests {
		l.Add("requests", s.Requests, "give 1 to %d requests", maxRequests)
	}
	if s.TurnsPerSession < 1 || s.TurnsPerSession > maxRequests || s.Requests > 0 && s.Requests <= maxRequests && s.TurnsPerSession > maxRequests/s.Requests {
		l.Add("turns_per_session", s.TurnsPerSession, "give 1 or more, so that there are at most %d requests", maxRequests)
	}
	if !(s.ArrivalIntervalMs >= 0) || s.ArrivalIntervalMs > maxTimeMs {
		l.Add("arrival_interval_ms", s.ArrivalIntervalMs, "give an interval of 0 ms or more")
	}
	if !(s.InterTurnDelayMs >= 0) || s.InterTurnDelayMs > maxTimeMs {
		l.Add("inter_turn_delay_ms", s.InterTurnDelayMs, "give a delay of 0 ms or more")
	}
	if !(s.SharedPrefixRatio >= 0 && s.SharedPrefixRatio <= 1) {
		l.Add("shared_prefix_ratio", s.SharedPrefixRatio, "give a ratio from 0 to 1")
	}
	if s.PrefixGroups < 0 {
		l.Add("prefix_groups", s.PrefixGroups, "give 0 or more groups")
	}
	return l
}

// checkEvery is how many requests are made or read between two looks at the context.
const checkEvery = 4096

// maxRequests bounds generated workloads; request numbers are 32 bits wide.
const maxRequests = 1 << 27

func (s SyntheticSpec) generate(ctx context.Context, src Source) (*Workload, error) {
	if s.sessions() {
		return s.generateSessions(ctx, src)
	}
	b := NewBuilder("synthetic", 0)
	b.Grow(s.Requests)
	for i := range s.Requests {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		b.Add(Request{ArrivalMs: float64(i) * s.ArrivalIntervalMs, Input: s.InputTokens, Output: s.OutputTokens})
	}
	return b.Build()
}

// generateSessions makes sessions whose turns are fresh prompts that share a leading part with their group. The
// trace block is the engine's KV block.
func (s SyntheticSpec) generateSessions(ctx context.Context, src Source) (*Workload, error) {
	size := src.EngineBlockSize
	blocks := (s.InputTokens + size - 1) / size
	shared := 0
	if s.PrefixGroups > 0 {
		shared = min(blocks, int(math.Round(float64(blocks)*s.SharedPrefixRatio)))
	}
	random := rand.New(rand.NewPCG(s.Seed, 0))
	b := NewBuilder("synthetic", size)
	next, start := uint64(1), 0.0
	ids := make([]uint64, blocks)
	for session := range s.Requests {
		group := uint64(0)
		if shared > 0 && !src.Rules.OnePrefixGroup {
			group = uint64(random.IntN(s.PrefixGroups))
		}
		for turn := range s.TurnsPerSession {
			if b.Requests()%checkEvery == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			for i := range ids {
				if i < shared {
					ids[i] = syntheticPrefix | group<<32 | uint64(i)
				} else {
					ids[i] = next
					next++
				}
			}
			src.cutHashes(ids)
			r := Request{Input: s.InputTokens, Output: s.OutputTokens, Hashes: ids, ArrivalMs: math.NaN()}
			if turn == 0 {
				r.ArrivalMs = start
			} else {
				r.DelayMs = s.InterTurnDelayMs
			}
			b.addTurn(r, int32(session), turn > 0)
		}
		if s.ArrivalIntervalMs > 0 {
			// The reference goes through a rate; its rounding is part of the arrival times.
			start += 1000 / (1000 / s.ArrivalIntervalMs)
		}
	}
	return b.Build()
}
