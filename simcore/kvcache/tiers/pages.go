package tiers

import "github.com/servegrid/servegrid/simcore/workload"

// MarkPages sets a bit for each page of ids of which any block is in a tier, or on its way to one. See
// [workload.BlockHolder].
func (h *Hierarchy) MarkPages(pages []uint64) {
	for _, s := range h.stores() {
		for page, slot := range s.directory {
			if slot != 0 {
				workload.MarkPage(pages, uint32(page))
			}
		}
	}
}

// GrowIDs makes room for all ids below the given one.
func (h *Hierarchy) GrowIDs(ids uint32) {
	h.ids = ids
	for _, s := range h.stores() {
		if missing := int(ids>>pageBits) + 1 - len(s.directory); missing > 0 {
			s.directory = append(s.directory, make([]int32, missing)...)
		}
	}
}

// stores lists the stores of all tiers.
func (h *Hierarchy) stores() []*store {
	all := append(append([]*store(nil), h.hosts...), h.disks...)
	if h.object != nil {
		all = append(all, h.object)
	}
	return all
}
