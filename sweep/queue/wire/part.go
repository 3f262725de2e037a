package wire

import (
	"fmt"
	"time"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep"
)

// ReadPart returns the rows of a part that a worker may have sent, and what is wrong with the rest.
func ReadPart(data []byte) ([]results.Row, error) {
	all, err := sweep.DecodeRows(data)
	if err != nil {
		return nil, err
	}
	rows, wrong := plausible(all)
	switch n := len(wrong); n {
	case 0:
		return rows, nil
	case 1:
		return rows, wrong[0]
	default:
		return rows, fmt.Errorf("%w, and %d more", wrong[0], n-1)
	}
}

// The bounds of rows as workers send them.
const (
	maxReason    = 64
	mostWallTime = 365 * 24 * time.Hour
)

// plausible splits rows into those that a worker may have sent and what is wrong with the others, since anybody in the namespace may
// publish some.
func plausible(rows []results.Row) (good []results.Row, wrong []error) {
	for i := range rows {
		if err := implausible(&rows[i]); err != nil {
			wrong = append(wrong, err)
		} else {
			good = append(good, rows[i])
		}
	}
	return good, wrong
}

func implausible(r *results.Row) error {
	switch seconds := r.WallSeconds; {
	case !idText.MatchString(r.ID):
		return fmt.Errorf("%.80q is not the content ID of a point", r.ID)
	case r.WorkloadDigest != "" && !digestText.MatchString(r.WorkloadDigest):
		return fmt.Errorf("point %s: %.80q is not the digest of a workload", r.ID, r.WorkloadDigest)
	case !(seconds >= 0 && seconds <= mostWallTime.Seconds()):
		return fmt.Errorf("point %s: a simulation of %g seconds is not possible", r.ID, seconds)
	case (r.Status == results.StatusOK) != (r.Reason == ""), len(r.Reason) > maxReason, len(r.Error) > 2*MaxErrorText:
		return fmt.Errorf("point %s: status %q does not go with the reason %.80q", r.ID, r.Status, r.Reason)
	}
	return nil
}
