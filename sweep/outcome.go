package sweep

import (
	"math"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// The reasons of failed rows that the sweep itself gives. An error of the simulator with a method
// `Reason() string` brings its own, such as "dead_end".
const (
	// ReasonTimeout: the point did not finish within Options.Timeout.
	ReasonTimeout = "timeout"
	// ReasonPanic: the simulation panicked.
	ReasonPanic = "panic"
	// ReasonInvalidConfig: the simulator refused the configuration.
	ReasonInvalidConfig = "invalid_config"
	// ReasonWorkload: the workload could not be loaded.
	ReasonWorkload = "workload"
	// ReasonLost, of a stopped point: a bound of the SLA could no longer hold.
	ReasonLost = simcore.ReasonLost
	// ReasonSimulation: the simulation ended with an error that has no reason of its own.
	ReasonSimulation = "simulation"
	// ReasonWorkerLost: the workers that had the point were lost, more often than a point is tried again.
	ReasonWorkerLost = "worker_lost"
	// ReasonOtherVersion: a worker of another simulator version had the point.
	ReasonOtherVersion = "other_version"
	// ReasonEnvironment: the workers that had the point could not simulate it for want of something, such as a file or room on
	// a disk, more often than a point is tried again.
	ReasonEnvironment = "environment"
	// ReasonRefused: a worker refused the point, since what it received is damaged or is not the point that it is said to be.
	ReasonRefused = "refused"
	// ReasonNotPortable: the point cannot be sent to a worker, for its size or for what it needs.
	ReasonNotPortable = "not_portable"
)

// Outcome is what a sweep leaves.
type Outcome struct {
	// Rows holds the finished points in the order of the expansion. After an interruption some are missing.
	Rows []results.Row
	// Counts sums up the rows.
	Counts Counts
	// Interrupted is set when the context was cancelled before every point was finished. The same call again
	// runs what is left.
	Interrupted bool
	// ResultsWritten is set when the results file holds Rows. It is not after an interruption that came before
	// every workload was loaded: which older results still count is not known by then, so the file stays.
	ResultsWritten bool
	// Conflicts lists the IDs of points for which an executor delivered two results with different figures: its machines do
	// not agree. The first one counts.
	Conflicts []string
	// Journal says what was found in the folder.
	Journal JournalState
}

// Counts sums up the points of a sweep.
type Counts struct {
	// Total is the number of points; OK, Failed, Skipped, Stopped and Left add up to it.
	Total, OK, Failed, Skipped, Stopped, Left int
	// Simulated counts the points that this call simulated, and Reused those whose row came from the journal.
	Simulated, Reused int
	// Shortened counts the points on a part of the workload, by which a search ranks its candidates. They are in Simulated
	// and Reused and not in Total.
	Shortened int
	// KeptFailed counts the reused rows that are failures. RetryFailed runs them again.
	KeptFailed int
}

// JournalState says what a folder's journal held when the sweep opened it.
type JournalState struct {
	// Path is the journal's file.
	Path string
	// Points is the number of points that had a result.
	Points int
	// OtherVersions counts those of them that cannot be reused because they come from another semantic version
	// of the simulator, or lack a metric of this one; Versions names the semantic versions.
	OtherVersions int
	Versions      []string
	// Unused counts the results that could be reused but belong to none of the sweep's points. They stay in the
	// journal and are not in Outcome.Rows. It is known once the sweep is not interrupted.
	Unused int
	// Damaged counts lines that were unreadable and were left out. A line that was cut off by a crash is normal:
	// it was never reported as finished.
	Damaged int
	// SetAside lists the files that Options.Fresh renamed.
	SetAside []string
}

func countRows(rows []results.Row, total int) Counts {
	c := Counts{Total: total, Left: total - len(rows)}
	for i := range rows {
		switch rows[i].Status {
		case results.StatusOK:
			c.OK++
		case results.StatusFailed:
			c.Failed++
		case results.StatusSkipped:
			c.Skipped++
		case results.StatusStopped:
			c.Stopped++
		}
	}
	return c
}

// metricNames lists the metrics of this program in the order of a row.
func metricNames() []string {
	fields := metrics.Fields()
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return names
}

// noMetrics is the metrics of a row that has none.
func noMetrics() []float64 {
	m := make([]float64, len(metrics.Fields()))
	for i := range m {
		m[i] = math.NaN()
	}
	return m
}
