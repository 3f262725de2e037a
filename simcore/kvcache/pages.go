package kvcache

import "github.com/servegrid/servegrid/simcore/workload"

// This file is for simulations in which sequence ids are used again: what is remembered of which of them. Pages are those of
// [workload.BlockHolder].

// MarkPages sets a bit for each page of ids of which any is resident, or has changed since TakeChanges.
func (c *Cache) MarkPages(pages []uint64) {
	markEntries(pages, c.directory)
	markChanges(pages, c.changes)
}

// GrowIDs makes room for all ids below the given one.
func (c *Cache) GrowIDs(ids uint32) { c.directory = grownDirectory(c.directory, ids) }

// MarkPages sets a bit for each page of ids of which any is resident, or has changed and was not told on yet.
func (r *Radix) MarkPages(pages []uint64) {
	markEntries(pages, r.directory)
	markChanges(pages, r.cached)
	markChanges(pages, r.evicted)
	if r.log == nil {
		return
	}
	for _, c := range r.log.changes {
		markRun(pages, c.start, uint32(c.length))
	}
}

// GrowIDs makes room for all ids below the given one.
func (r *Radix) GrowIDs(ids uint32) { r.directory = grownDirectory(r.directory, ids) }

// MarkPages sets a bit for each page of ids of which any worker holds one.
func (x *Index) MarkPages(pages []uint64) { markEntries(pages, x.directory) }

// GrowIDs makes room for all ids below the given one.
func (x *Index) GrowIDs(ids uint32) {
	x.directory = grownDirectory(x.directory, ids)
	x.ids = ids
}

func markEntries(pages []uint64, directory []int32) {
	for page, slot := range directory {
		if slot != 0 {
			workload.MarkPage(pages, uint32(page))
		}
	}
}

func markChanges(pages []uint64, changes []Change) {
	for _, c := range changes {
		markRun(pages, c.Start, c.Len)
	}
}

func markRun(pages []uint64, start, length uint32) {
	for page := start >> pageBits; page <= (start+length-1)>>pageBits; page++ {
		workload.MarkPage(pages, page)
	}
}

func grownDirectory(directory []int32, ids uint32) []int32 {
	if missing := int(ids>>pageBits) + 1 - len(directory); missing > 0 {
		return append(directory, make([]int32, missing)...)
	}
	return directory
}

// sameRequest reports whether two sequences are of one request. Where ids are used again, another one may have the same private
// ones while the known blocks of the first one are still cached.
func (s Sequence) sameRequest(o Sequence) bool {
	if s.Private != o.Private || len(s.Segments) != len(o.Segments) {
		return false
	}
	return len(s.Segments) == 0 || &s.Segments[0] == &o.Segments[0]
}
