package metrics

// Tiers is what the memory tiers of a deployment did. G1 is the GPUs' own memory, G2 host memory, G3 disks, G4 an object
// store.
type Tiers struct {
	// LookedUpTokens counts the known tokens of admitted requests, HitTokens those of them that each tier had, G1 first.
	// A request that was preempted counts again.
	LookedUpTokens int64
	HitTokens      [4]int64
	// Links says how the links were used, in the order of [TierLinks].
	Links [6]LinkUse
	// Stores says how full G2, G3 and G4 were.
	Stores [3]StoreUse
	// Waits is how long requests waited for what they load, in ms, and WaitCount how often; loads that take no time do
	// not count.
	Waits     Summary
	WaitCount int64
}

// LinkUse is how much a kind of link was used.
type LinkUse struct {
	// Bytes is how many bytes the transfers had that were moved entirely.
	Bytes float64
	// Dropped counts the blocks that were lost since too many were under way to a lower tier.
	Dropped int64
	// BusyRatio is the share of the time in which bytes were moved, a mean over the links of the kind.
	BusyRatio float64
}

// StoreUse is how full a tier was.
type StoreUse struct {
	// MeanBlocks is the mean over time and workers (G2) or nodes (G3), PeakBlocks the most that one of them had.
	MeanBlocks float64
	PeakBlocks int64
	// Evictions counts the blocks that had to go for others, except those that GPU memory had as well.
	Evictions int64
}

// TierLinks lists the kinds of links between tiers.
func TierLinks() []string {
	return []string{"g1_to_g2", "g2_to_g1", "g2_to_g3", "g3_to_g2", "g2_to_g4", "g4_to_g2"}
}

// tierFields lists the figures of memory tiers.
func tierFields() []Field {
	field := func(name, unit, doc string, integer bool, better Direction, get func(*Tiers) float64) Field {
		return Field{Name: name, Unit: unit, Doc: doc, Integer: integer, Better: better, Optional: true,
			get: func(r *Report) (float64, bool) {
				if r.Tiers == nil {
					return 0, false
				}
				return get(r.Tiers), true
			}}
	}
	names := []string{"GPU memory", "host memory", "disks", "the object store"}
	var hits, ratios, links, stores []Field
	for i, name := range names {
		g := "g" + string(rune('1'+i))
		hits = append(hits, field(g+"_hit_tokens", "tokens", "Known tokens of admitted requests that were found in "+name+"; preempted ones count again.", true, Neutral,
			func(t *Tiers) float64 { return float64(t.HitTokens[i]) }))
		ratios = append(ratios, field(g+"_hit_ratio", "ratio", "Share of the known tokens of admitted requests that was found in "+name+".", false, Neutral,
			func(t *Tiers) float64 { return float64(t.HitTokens[i]) / float64(max(1, t.LookedUpTokens)) }))
		if i == 0 {
			continue
		}
		stores = append(stores,
			field("mean_"+g+"_blocks", "blocks", "KV blocks in "+name+", a mean over time and over workers or nodes.", false, Neutral,
				func(t *Tiers) float64 { return t.Stores[i-1].MeanBlocks }),
			field("peak_"+g+"_blocks", "blocks", "Most KV blocks in "+name+" of one worker or node.", true, Neutral,
				func(t *Tiers) float64 { return float64(t.Stores[i-1].PeakBlocks) }),
			field(g+"_evictions", "blocks", "KV blocks that had to leave "+name+" for others, except those that GPU memory had as well.", true, Neutral,
				func(t *Tiers) float64 { return float64(t.Stores[i-1].Evictions) }))
	}
	for i, name := range TierLinks() {
		links = append(links,
			field("bytes_"+name, "bytes", "Bytes on the links from "+linkEnds(name)+", on each GPU of a worker.", true, Neutral,
				func(t *Tiers) float64 { return t.Links[i].Bytes }),
			field("busy_ratio_"+name, "ratio", "Share of the time in which the links from "+linkEnds(name)+" moved bytes.", false, Neutral,
				func(t *Tiers) float64 { return t.Links[i].BusyRatio }))
		if name[1] < name[len(name)-1] {
			links = append(links, field("dropped_"+name, "blocks", "KV blocks that were lost since as many as host memory has were under way on the links from "+linkEnds(name)+".", true, LowerIsBetter,
				func(t *Tiers) float64 { return float64(t.Links[i].Dropped) }))
		}
	}
	fs := append(append(hits, ratios...), field("onboard_waits", "events", "How often requests waited for KV blocks that they load from lower tiers.", true, Neutral,
		func(t *Tiers) float64 { return float64(t.WaitCount) }))
	fs = append(fs, optionalSummary("onboard_wait_ms", "time that requests waited for KV blocks from lower tiers", func(r *Report) *Summary {
		if r.Tiers == nil {
			return nil
		}
		return &r.Tiers.Waits
	})...)
	return append(append(fs, links...), stores...)
}

// linkEnds says in words where a link begins and ends.
func linkEnds(name string) string {
	return "G" + name[1:2] + " to G" + name[len(name)-1:]
}
