package gridspec

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Shard is a part of the points of a spec, for one of several machines. A point belongs to one shard of so many, by what it
// is: its settings, its workload as the spec writes it, and the replicate. So values and axes' values that are added to a
// spec move none of the points that it had, and each of Count shards is one of Count·k split in k: shard 3 of 8 is 3 and 11
// of 16.
type Shard struct {
	// Index is the number of the shard, from 1 to Count.
	Index int
	// Count is the number of shards; 0, with the Index 0, means all points.
	Count int
}

// String is the shard as "3/8".
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Count) }

// All reports whether the shard has every point.
func (s Shard) All() bool { return s.Count <= 1 }

// Check reports a shard that does not exist.
func (s Shard) Check() error {
	if s == (Shard{}) || s.Index >= 1 && s.Index <= s.Count {
		return nil
	}
	return fmt.Errorf("shard %s does not exist; the shards of %d are 1/%d to %d/%d", s, s.Count, s.Count, s.Count, s.Count)
}

// replicatesOf returns the replicates of a candidate that are in the shard.
func (s Shard) replicatesOf(p *candidate, replicates int, into []int) []int {
	into = into[:0]
	for r := range replicates {
		if s.All() || s.has(p, r) {
			into = append(into, r)
		}
	}
	return into
}

// has reports whether a replicate of a candidate is in the shard. The workload counts as it is written, without its name and
// with relative paths, so that machines agree that have the files in different folders, and none is loaded.
func (s Shard) has(p *candidate, replicate int) bool {
	b := make([]byte, 0, 256)
	b = append(b, Point{Config: p.config, Replicate: replicate}.ContentID("")...)
	sum := sha256.Sum256(appendWorkload(b, p.workload))
	return binary.BigEndian.Uint64(sum[:8])%uint64(s.Count) == uint64(s.Index-1)
}
