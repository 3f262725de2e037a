package workload

import "slices"

// hashNames gives hash ids small names in order of their first appearance. Prompts mostly go on as they did when their
// blocks were new, so that a list of hash ids becomes few runs of names.
type hashNames struct {
	dense  []uint32          // name plus one, or 0, of the hash ids below its length
	sparse map[uint64]uint32 // names of the others
	hashes []uint64          // by name
}

// denseHashes bounds the hash ids that are found in an array; it takes 16 MB if all occur.
const denseHashes = 1 << 22

// of returns the name of a hash id.
func (n *hashNames) of(hash uint64) uint32 {
	if hash >= denseHashes {
		return n.sparseOf(hash)
	}
	if hash >= uint64(len(n.dense)) {
		n.dense = append(n.dense, make([]uint32, max(hash+1-uint64(len(n.dense)), uint64(len(n.dense)), 1024))...)
	}
	if n.dense[hash] == 0 {
		n.dense[hash] = n.add(hash) + 1
	}
	return n.dense[hash] - 1
}

func (n *hashNames) sparseOf(hash uint64) uint32 {
	name, ok := n.sparse[hash]
	if !ok {
		if n.sparse == nil {
			n.sparse = map[uint64]uint32{}
		}
		name = n.add(hash)
		n.sparse[hash] = name
	}
	return name
}

func (n *hashNames) add(hash uint64) uint32 {
	if len(n.hashes) == cap(n.hashes) {
		n.hashes = slices.Grow(n.hashes, max(1024, len(n.hashes))) // twice as much: most traces bring new ids to their end
	}
	n.hashes = append(n.hashes, hash)
	return uint32(len(n.hashes) - 1)
}

// appendRuns appends a list of hash ids as runs of names.
func (n *hashNames) appendRuns(runs []Segment, hashes []uint64) []Segment {
	start, next := len(runs), uint32(0)
	for _, hash := range hashes {
		// A block has mostly the successor that it had before.
		if int(next) >= len(n.hashes) || n.hashes[next] != hash {
			next = n.of(hash)
		}
		runs = appendID(runs, start, next)
		next++
	}
	return runs
}

// commonBlocks is the number of leading blocks that two lists of runs share.
func commonBlocks(a, b []Segment) int {
	n, skipA, skipB := 0, uint32(0), uint32(0)
	for len(a) > 0 && len(b) > 0 && a[0].Start+skipA == b[0].Start+skipB {
		step := min(a[0].Len-skipA, b[0].Len-skipB)
		n += int(step)
		if skipA += step; skipA == a[0].Len {
			a, skipA = a[1:], 0
		}
		if skipB += step; skipB == b[0].Len {
			b, skipB = b[1:], 0
		}
	}
	return n
}

// runBlocks is the number of blocks in some runs.
func runBlocks(runs []Segment) int {
	n := 0
	for _, run := range runs {
		n += int(run.Len)
	}
	return n
}
