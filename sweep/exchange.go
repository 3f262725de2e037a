package sweep

import (
	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// DecodeRows reads what [EncodeRows] wrote, in the order of the IDs. It returns an error when anything of it is damaged, or
// comes from another version of the simulator.
func DecodeRows(lines []byte) ([]results.Row, error) {
	return decodeRows(lines, simcore.SemanticVersion)
}

// FailedRow is the row of a point that could not be simulated, with a stable reason and what to tell people.
func FailedRow(id, workloadDigest, reason, message string) results.Row {
	return failedRow(results.Row{ID: id, WorkloadDigest: workloadDigest}, reason, message)
}

// PointMemory estimates what the simulation of a point on a workload needs, in bytes. It is what [Run] goes by.
func PointMemory(cfg gridspec.Config, w *workload.Workload) int64 { return pointBytes(cfg, sizeOf(w)) }

// MachineMemory is what a sweep takes on this machine when it is told no limit, in bytes: three quarters of what is free,
// within the limits of the control groups that the process is in.
func MachineMemory() int64 { return machineMemory() }
