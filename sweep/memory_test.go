package sweep

import (
	"math"
	"testing"
	"testing/fstest"

	"github.com/servegrid/servegrid/gridspec"
)

func TestAvailableMemory(t *testing.T) {
	const meminfo = "MemTotal:       16000000 kB\nMemFree:  100 kB\nMemAvailable:    8000000 kB\n"
	tests := []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing known", nil, 0},
		{"machine", map[string]string{"proc/meminfo": meminfo}, 8000000 << 10},
		{"version 2", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/user/app\n", "sys/fs/cgroup/user/app/memory.max": "2000000\n",
		}, 2000000},
		{"version 2, limit above", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/user/app\n",
			"sys/fs/cgroup/user/app/memory.max": "max\n", "sys/fs/cgroup/user/memory.max": "3000000\n",
		}, 3000000},
		{"version 2, container", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/../../x\n", "sys/fs/cgroup/memory.max": "4000000\n",
		}, 4000000},
		{"version 1", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:hugetlb,memory:/job\n0::/\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "5000000\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 5000000},
		{"limit above the machine", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "9000000000000\n",
		}, 8000000 << 10},
		{"nonsense", map[string]string{
			"proc/meminfo": "MemAvailable: lots\n", "proc/self/cgroup": "hello\n0::/\n", "sys/fs/cgroup/memory.max": "-7\n",
		}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := fstest.MapFS{}
			for name, text := range tt.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := availableMemory(root); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestPointBytes(t *testing.T) {
	cfg := gridspec.DefaultConfig()
	cfg.Engine.NumGPUBlocks, cfg.Engine.BlockSize = 1000, 64
	s := size{requests: 100, tokens: 6_400_000} // 100,100 blocks
	at := func(workers int) int64 {
		cfg.Deployment.Workers = workers
		return pointBytes(cfg, s)
	}
	// With few workers the pool bounds what is resident, with many the workload does.
	const worker = 16<<10 + 100_100/8
	for _, tt := range []struct {
		workers int
		want    int64
	}{{2, worker + 64*1000}, {402, worker}} {
		got := at(tt.workers) - at(tt.workers-1)
		if got < tt.want || got > tt.want+1 { // rounded down twice
			t.Errorf("worker %d takes %d bytes, want %d", tt.workers, got, tt.want)
		}
	}
	cfg.Deployment.Workers = 2
	none := pointBytes(cfg, s)
	cfg.Tiers.NumG2Blocks, cfg.Tiers.EnableG4Storage = 3000, true
	if got, want := pointBytes(cfg, s)-none, int64(64*(2*3000+100_100)+2*2*100_100/8); got < want-1 || got > want+1 {
		t.Errorf("memory tiers take %d bytes, want %d", got, want)
	}
	if got := pointBytes(cfg, size{requests: math.MaxInt64, tokens: math.MaxInt64}); got <= 0 {
		t.Errorf("huge workload: %d bytes", got)
	}
}
