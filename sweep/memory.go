package sweep

import (
	"bufio"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// What one running point and one loaded workload are taken to need, in bytes. The figures are on the
// high side, so that a sweep that fits by this estimate fits in memory.
const (
	pointBaseBytes      = 8 << 20 // stacks, event queue, chunks of samples
	pointRequestBytes   = 512     // a request's state and its latency samples
	pointBlockBytes     = 64      // a resident KV block and its place in the prefix index
	pointWorkerBytes    = 16 << 10
	tierBlockBytes      = 64      // a KV block in a lower memory tier, in lists that double in size
	pagesPerBlock       = 1.0 / 8 // a worker's page directory: one pointer for 64 sequence ids
	workloadBaseBytes   = 1 << 20
	workloadEntryBytes  = 128 // lengths, times, offsets, names of one request
	workloadHashBytes   = 8
	workloadLookupBytes = 16 // a prompt's or a hash's place in the table of sequence ids, for each block size
)

// pointBytes estimates the memory of one running point:
//
//	8 MiB + 512 B x requests + 64 B x resident blocks + workers x (16 KiB + blocks / 8 B) + lower memory tiers
//
// A request is on one worker of a pool only, so the resident blocks are bounded by the blocks of all requests as well as by
// workers x the size of the KV pool.
func pointBytes(cfg gridspec.Config, s size) int64 {
	bytes := float64(pointBaseBytes)
	if cfg.AgentX.Enabled() {
		s = s.played(cfg.AgentXPlays())
		bytes += float64(s.bytes(1)) // each point has conversations of its own
	}
	for _, pool := range cfg.Stages() {
		blocks := s.blocks(pool.Engine.BlockSize)
		workers := float64(max(mostWorkers(cfg, pool), 1))
		resident := min(blocks, workers*float64(max(pool.Engine.NumGPUBlocks, 0)))
		bytes += pointRequestBytes*float64(s.requests) + pointBlockBytes*resident + workers*(pointWorkerBytes+pagesPerBlock*blocks)
	}
	return toBytes(bytes + tierBytes(cfg, s))
}

// mostWorkers is how many workers a pool may come to have.
func mostWorkers(cfg gridspec.Config, pool simcore.Pool) int {
	if !cfg.Planned() {
		return pool.Workers
	}
	return max(pool.Workers, cfg.Planner.MaxGPUBudget/max(pool.GPUsPerWorker(), 1))
}

// tierBytes estimates the memory of the tiers below the GPUs' memory. Each of them has a block of a request once at most.
func tierBytes(cfg gridspec.Config, s size) float64 {
	if !cfg.Tiers.Enabled() {
		return 0
	}
	pool := cfg.Stages()[0]
	workers, blocks := float64(max(pool.Workers, 1)), s.blocks(pool.Engine.BlockSize)
	if cfg.Tiers.DecodeOffload && len(cfg.Stages()) > 1 {
		workers += float64(max(cfg.Stages()[1].Workers, 1))
	}
	kept := min(blocks, workers*float64(cfg.Tiers.NumG2Blocks)) + min(blocks, workers*float64(cfg.Tiers.NumG3Blocks))
	if cfg.Tiers.EnableG4Storage {
		kept += blocks
	}
	return tierBlockBytes*kept + 2*workers*pagesPerBlock*blocks
}

// size is what the memory of a workload and its simulations depends on.
type size struct {
	requests, hashes, tokens, plays int64
}

func sizeOf(w *workload.Workload) size {
	s := size{requests: int64(w.Requests())}
	for i := range w.Input {
		s.tokens += int64(w.Input[i]) + int64(w.Output[i])
	}
	s.hashes = int64(w.HashEntries())
	if w.Graph != nil {
		s.plays = int64(w.Graph.Plays())
	}
	return s
}

// played is the size of so many plays instead of the workload's own.
func (s size) played(plays int) size {
	times := float64(plays) / float64(max(s.plays, 1))
	scaled := func(n int64) int64 { return toBytes(float64(n) * times) }
	return size{scaled(s.requests), scaled(s.hashes), scaled(s.tokens), int64(plays)}
}

// blocks bounds the KV blocks of all requests; each ends in a partial block.
func (s size) blocks(blockSize int) float64 {
	return float64(s.tokens)/float64(max(blockSize, 1)) + float64(s.requests)
}

// bytes estimates the memory of a loaded workload that is simulated with this many KV block sizes.
func (s size) bytes(blockSizes int) int64 {
	return toBytes(workloadBaseBytes + workloadEntryBytes*float64(s.requests) + workloadHashBytes*float64(s.hashes) +
		float64(blockSizes)*workloadLookupBytes*(float64(s.requests)+float64(s.hashes)))
}

func toBytes(b float64) int64 {
	if !(b < math.MaxInt64/4) {
		return math.MaxInt64 / 4
	}
	return int64(b)
}

// machineMemory is three quarters of the memory that this process may take; the rest is for the results, the
// garbage collector's head room and the rest of the machine. Where it cannot be told, there is no limit.
func machineMemory() int64 {
	if limit := availableMemory(os.DirFS("/")); limit > 0 {
		return max(limit/4*3, 1)
	}
	return math.MaxInt64
}

// availableMemory is the least of the free memory and the limits of the control groups (version 2 and 1) that
// the process is in; 0 when none can be read.
func availableMemory(root fs.FS) int64 {
	limit := int64(math.MaxInt64)
	if kib, ok := meminfo(root, "MemAvailable"); ok {
		limit = min(limit, kib<<10)
	}
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		// A line is hierarchy:controllers:path; version 2 has hierarchy 0 and no controllers.
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			limit = min(limit, groupLimit(root, "sys/fs/cgroup", parts[2], "memory.max"))
		case strings.Contains(","+parts[1]+",", ",memory,"):
			limit = min(limit, groupLimit(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
		}
	}
	if limit == math.MaxInt64 {
		return 0
	}
	return limit
}

// groupLimit is the least limit of a group and all groups above it. Inside a container the group's own folder may
// not exist; its limit is then the one at the mount point.
func groupLimit(root fs.FS, mount, group, file string) int64 {
	limit := int64(math.MaxInt64)
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		if text, err := fs.ReadFile(root, path.Join(mount, group, file)); err == nil {
			// The word "max" stands for no limit and does not parse.
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
				limit = min(limit, n)
			}
		}
		if group == "/" {
			return limit
		}
	}
}

func meminfo(root fs.FS, key string) (kib int64, ok bool) {
	f, err := root.Open("proc/meminfo")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		name, value, _ := strings.Cut(sc.Text(), ":")
		if name == key {
			kib, err = strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib, err == nil
		}
	}
	return 0, false
}
