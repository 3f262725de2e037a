package results

import (
	"slices"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// Status says how a point ended.
type Status string

// The statuses of a row.
const (
	StatusOK      Status = "ok"
	StatusFailed  Status = "failed"
	StatusSkipped Status = "skipped"
	// StatusStopped rows have no figures: the simulation ended early, as soon as a bound of the SLA could no longer hold.
	StatusStopped Status = "stopped"
)

// Source says where the figures of a row come from.
type Source string

// The sources of rows. A row without one is simulated.
const (
	// SourceSimulated rows are those of a simulation in its own time.
	SourceSimulated Source = "simulated"
	// SourceOnline rows are those of a simulated deployment to which requests came in real time.
	SourceOnline Source = "online"
	// SourceLive rows were measured at an endpoint.
	SourceLive Source = "live"
)

// Row is the outcome of one point.
type Row struct {
	// ID is the point's content ID.
	ID string
	// Source says where the figures come from; empty means [SourceSimulated].
	Source Source
	// DeploymentUnknown says that nobody stated what deployment a live row was measured at, so that the settings of its point
	// stand for nothing.
	DeploymentUnknown bool
	// Status says how the point ended; Reason is a stable category when it is not ok, such as "timeout",
	// "panic", "dead_end", "invalid_config" or "sla_lost"; Error is the message.
	Status        Status
	Reason, Error string
	// WallSeconds is how long the simulation or the live run took. It is the only figure that differs between equal runs.
	WallSeconds float64
	// Point is what was simulated. It is as large as many rows, so that they share it with who made it, and nobody changes it. A
	// row that comes from a journal, or from elsewhere, and did not meet its point yet has none.
	Point *gridspec.Point
	// Metrics holds a value for every entry of metrics.Fields, in that order; NaN where the point has none.
	Metrics []float64
	// WorkloadDigest identifies the replayed work.
	WorkloadDigest string
	// Lost is the bound that ended the simulation of a stopped point.
	Lost simcore.Bound
}

// KeepsSLA reports whether the row's figures are within the bounds of its point's SLA; see [SLAConstraints].
func (r *Row) KeepsSLA() bool {
	for _, b := range SLAConstraints(r.Point.Config.SLA) {
		at := slices.IndexFunc(metrics.Fields(), func(f metrics.Field) bool { return f.Name == b.Column })
		if at < 0 || at >= len(r.Metrics) || !compareFloats(b.Operator, r.Metrics[at], b.size()) {
			return false
		}
	}
	return true
}
