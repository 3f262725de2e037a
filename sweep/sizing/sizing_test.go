package sizing

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/sweep"
)

// study is what a sweep of 100,000 points of 2 s each costs.
func study() sweep.Cost {
	return sweep.Cost{
		Points: 100_000, Workloads: 2, Probes: 16, Load: 4 * time.Second, PointMean: 2 * time.Second, PointMax: 20 * time.Second,
		WorkloadBytes: 200 << 20, PointBytes: 50 << 20, RowBytes: 2000,
	}
}

// The figures, by hand: 300,000 s of work with the slack, 3,600 s less 120 s to start, 6 s to load and 30 s for the longest
// point, so 87.1 slots and 22 workers of 4.
func TestFor(t *testing.T) {
	got, err := For(study(), Wish{Within: time.Hour, Jobs: 4})
	if err != nil {
		t.Fatal(err)
	}
	want := Cluster{
		Workers: 22, Jobs: 4, CPU: 4, WaitingPerWorker: 8,
		MemoryBytes:    704 << 20,                          // (128 + 200 + 4 x 50) MiB x 4/3
		CoordinatorCPU: 1, CoordinatorBytes: 55 * 64 << 20, // (128 MiB + 200 MiB + 100,000 x 2,000 x 12) x 4/3
		Shards:      88,
		Expected:    156*time.Second + 300_000*time.Second/88,
		Deadline:    10_695 * time.Second,         // 3 x 3,565.09 s
		ResultBytes: 1 << 30, QueueBytes: 3 << 30, // (1.58 GiB + 2 x 2 x 200 MiB) / 0.9
	}
	points := 100_000.0 / 88
	want.ShardsDeadline = got.ShardsDeadline
	if each := got.ShardsDeadline.Seconds() / 3 / 4; each < 156+3*points/4 || each > 156+3*points*1.1/4 {
		t.Errorf("a shard may take %g s", each)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestForRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		cost sweep.Cost
		wish Wish
		want string
	}{
		"no time":          {study(), Wish{Jobs: 4}, "0s is not a duration"},
		"no jobs":          {study(), Wish{Within: time.Hour}, "0 points at a time"},
		"negative workers": {study(), Wish{Within: time.Hour, Jobs: 1, MaxWorkers: -1}, "at most -1 workers"},
		"too soon":         {study(), Wish{Within: 2 * time.Minute, Jobs: 4}, "no number of workers finishes within 2m0s: to start takes 2m0s, to load the workload 4s and the longest point 20s, with a slack of 1.5; allow more than 2m36s"},
		"too few":          {study(), Wish{Within: time.Hour, Jobs: 4, MaxWorkers: 10}, "22 workers of 4 points at a time would be needed to finish within 1h0m0s, and 10 are allowed; these take 2h7m36s"},
		"nothing probed":   {sweep.Cost{Points: 3}, Wish{Within: time.Hour, Jobs: 4}, "nothing to estimate from"},
	} {
		if _, err := For(c.cost, c.wish); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// What is asked for finishes in time, and is never nonsense, whatever the cost says.
func TestForKeepsItsPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		durations := rapid.Int64Range(0, int64(30*24*time.Hour))
		cost := sweep.Cost{
			Points: rapid.IntRange(1, 100_000_000).Draw(t, "points"), Workloads: rapid.IntRange(0, 1000).Draw(t, "workloads"), Probes: 1,
			Load: time.Duration(durations.Draw(t, "load")), PointMean: time.Duration(durations.Draw(t, "mean")),
			WorkloadBytes: rapid.Int64Min(0).Draw(t, "workload"), PointBytes: rapid.Int64Min(0).Draw(t, "point"),
			RowBytes: rapid.Int64Min(0).Draw(t, "row"),
		}
		cost.PointMax = cost.PointMean + time.Duration(durations.Draw(t, "longer"))
		wish := Wish{Within: time.Duration(durations.Draw(t, "within")), Jobs: rapid.IntRange(1, 256).Draw(t, "jobs")}
		c, err := For(cost, wish)
		if err != nil {
			return
		}
		if c.Expected > wish.Within+time.Millisecond {
			t.Fatalf("it takes %s, more than %s", c.Expected, wish.Within)
		}
		if c.Workers < 1 || c.Workers > MostWorkers || c.Shards < 1 || c.Shards > MostShards || c.Deadline < c.Expected || c.ShardsDeadline < c.Expected/2 {
			t.Fatalf("%+v", c)
		}
		if c.MemoryBytes < processBytes || c.CoordinatorBytes < processBytes || c.ResultBytes < 1 || c.QueueBytes < queueReserve {
			t.Fatalf("%+v", c)
		}
	})
}

func TestHelmValues(t *testing.T) {
	c := Cluster{
		Workers: 22, Jobs: 4, CPU: 4, MemoryBytes: 704 << 20, CoordinatorCPU: 1, CoordinatorBytes: 4 << 30, Shards: 88, WaitingPerWorker: 8,
		Deadline: time.Hour, ShardsDeadline: 2 * time.Hour, ResultBytes: 3 << 30, QueueBytes: 5 << 30,
	}
	want := `# why
simulation:
  jobs: 4
  resources:
    requests: {cpu: "4", memory: 704Mi}
    limits: {memory: 704Mi}
  goMemoryLimit: 633MiB
workers:
  replicas: 22
  autoscaling:
    maxReplicas: 22
    pointsPerWorker: 8
coordinator:
  activeDeadlineSeconds: 3600
  resources:
    requests: {cpu: "1", memory: 4Gi}
    limits: {memory: 4Gi}
  goMemoryLimit: 3686MiB
shards:
  count: 88
  parallelism: 22
  activeDeadlineSeconds: 7200
results:
  size: 3Gi
nats:
  storage:
    size: 5Gi
`
	if diff := cmp.Diff(want, string(c.HelmValues("why"))); diff != "" {
		t.Error(diff)
	}
	c.Shards = 0
	if values := string(c.HelmValues()); strings.Contains(values, "shards") {
		t.Errorf("a search has no shards: %s", values)
	}
}

func TestQuantity(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0Mi", 1: "1Mi", 1 << 20: "1Mi", 1<<20 + 1: "2Mi", 1 << 30: "1Gi", 1<<30 + 1: "1025Mi"} {
		if got := Quantity(bytes); got != want {
			t.Errorf("%d bytes: %s, want %s", bytes, got, want)
		}
	}
}
