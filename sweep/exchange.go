package sweep

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// EncodeRows writes rows as lines of a journal, with its header, which says whose metrics they are.
func EncodeRows(rows []results.Row) ([]byte, error) {
	_, line := partHeader()
	buf := slices.Clone(line)
	for i := range rows {
		var err error
		if buf, err = appendRecord(buf, &rows[i]); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// DecodeRows reads what [EncodeRows] wrote, in the order of the IDs. It returns an error when anything of it is damaged, or
// comes from another version of the simulator.
func DecodeRows(lines []byte) ([]results.Row, error) {
	return decodeRows(lines, simcore.SemanticVersion)
}

// decodeRows reads what [EncodeRows] wrote. Rows of another simulator are an error; so is a damaged line, since nothing may
// be cut off on the way.
func decodeRows(lines []byte, semanticVersion string) ([]results.Row, error) {
	j, err := readJournal(bytes.NewReader(lines), metricNames())
	if err != nil {
		return nil, err
	}
	if j.size == 0 || j.damaged > 0 || j.size != int64(len(lines)) {
		return nil, fmt.Errorf("finished points are damaged: %d of %d bytes can be read", j.size, len(lines))
	}
	rows := make([]results.Row, 0, len(j.results))
	for _, id := range slices.Sorted(maps.Keys(j.results)) {
		s := j.results[id]
		if !s.usable(semanticVersion) {
			return nil, fmt.Errorf("finished points come from version %q of the simulator; this one is %q", s.simulator, semanticVersion)
		}
		rows = append(rows, s.row(nil))
	}
	return rows, nil
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
