package sizing

import (
	"bytes"
	"fmt"
	"time"
)

// HelmValues writes the figures as values of the Helm chart in deploy/helm/servegrid. Comments says what they are for; each of
// its lines becomes a comment.
func (c Cluster) HelmValues(comments ...string) []byte {
	var out bytes.Buffer
	for _, line := range comments {
		fmt.Fprintf(&out, "# %s\n", line)
	}
	fmt.Fprintf(&out, "simulation:\n  jobs: %d\n", c.Jobs)
	writeResources(&out, c.CPU, c.MemoryBytes)
	fmt.Fprintf(&out, "workers:\n  replicas: %d\n  autoscaling:\n    maxReplicas: %d\n    pointsPerWorker: %d\n", c.Workers, c.Workers, c.WaitingPerWorker)
	fmt.Fprintf(&out, "coordinator:\n  activeDeadlineSeconds: %d\n", wholeSeconds(c.Deadline))
	writeResources(&out, c.CoordinatorCPU, c.CoordinatorBytes)
	if c.Shards > 0 {
		fmt.Fprintf(&out, "shards:\n  count: %d\n  parallelism: %d\n  activeDeadlineSeconds: %d\n", c.Shards, c.Parallelism(), wholeSeconds(c.ShardsDeadline))
	}
	fmt.Fprintf(&out, "results:\n  size: %s\n", Quantity(c.ResultBytes))
	fmt.Fprintf(&out, "nats:\n  storage:\n    size: %s\n", Quantity(c.QueueBytes))
	return out.Bytes()
}

// writeResources writes what the containers of a section ask for. Memory is a limit as well, since a machine has only so much;
// the cores are not, since a limit would stop a worker while cores are idle.
func writeResources(out *bytes.Buffer, cpu int, memory int64) {
	fmt.Fprintf(out, "  resources:\n    requests: {cpu: %q, memory: %s}\n    limits: {memory: %s}\n", fmt.Sprint(cpu), Quantity(memory), Quantity(memory))
	fmt.Fprintf(out, "  goMemoryLimit: %dMiB\n", memory/100*90>>20)
}

func wholeSeconds(d time.Duration) int64 { return int64(d / time.Second) }

// Quantity is a number of bytes as Kubernetes writes it, in GiB when it is a whole number of them, in MiB otherwise, rounded up.
func Quantity(bytes int64) string {
	if bytes > 0 && bytes%(1<<30) == 0 {
		return fmt.Sprintf("%dGi", bytes>>30)
	}
	return fmt.Sprintf("%dMi", (bytes+1<<20-1)>>20)
}
