package tiers

import (
	"slices"

	"github.com/servegrid/servegrid/simcore/metrics"
)

// CountAdmission notes that a request with so many known tokens was admitted, of which GPU memory had some.
func (h *Hierarchy) CountAdmission(known, inDevice int32) {
	h.lookedUpTokens += int64(known)
	h.hitTokens[device] += int64(inDevice)
}

// Report sums up what happened until the given time; nil without tiers.
func (h *Hierarchy) Report(end float64) *metrics.Tiers {
	if h == nil {
		return nil
	}
	out := &metrics.Tiers{LookedUpTokens: h.lookedUpTokens, HitTokens: h.hitTokens, Waits: h.waits.Summary(), WaitCount: h.waited}
	h.advance(end)
	end = h.latest // passes that begin before the end of a simulation count whole
	var links [linkKinds]float64
	for i := range h.links {
		l := &h.links[i]
		l.run(max(l.now, end))
		kind, _ := h.kindOf(int32(i))
		out.Links[kind].Bytes += l.bytes
		out.Links[kind].Dropped += h.ways[i].dropped
		out.Links[kind].BusyRatio += l.busyMs
		links[kind]++
	}
	for kind := range out.Links {
		if end > 0 {
			out.Links[kind].BusyRatio = min(1, out.Links[kind].BusyRatio/links[kind]/end)
		}
	}
	out.Stores[0], out.Stores[1] = useOf(slices.Concat(h.hosts, h.retired), end), useOf(h.disks, end)
	if h.object != nil {
		out.Stores[2] = useOf([]*store{h.object}, end)
	}
	return out
}

func useOf(stores []*store, end float64) metrics.StoreUse {
	var u metrics.StoreUse
	area, life, whole := 0.0, 0.0, true // whole: all were there all the time
	for _, s := range stores {
		area += s.meanBlocks(end) * end
		life += s.lifetime(end)
		whole = whole && s.born == 0 && s.died == 0
		u.MeanBlocks += s.meanBlocks(end) / float64(len(stores))
		u.PeakBlocks = max(u.PeakBlocks, int64(s.peak))
		u.Evictions += s.evictions
	}
	if !whole && life > 0 {
		u.MeanBlocks = area / life
	}
	return u
}
