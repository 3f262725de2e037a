package endpoint

import (
	"context"

	"github.com/servegrid/servegrid/live/realtime"
	"github.com/servegrid/servegrid/simcore"
)

// Deployment is what serves the requests. It is safe for concurrent use.
type Deployment interface {
	// Submit lets requests arrive now, all of them together or none, and returns a stream for each. The error is
	// [realtime.ErrFull], [realtime.ErrTooMany] or [realtime.ErrClosed].
	Submit(...simcore.OnlineRequest) ([]Stream, error)
	// Snapshot is the state of its workers and what it counted.
	Snapshot() realtime.Snapshot
}

// Stream is a request under way, for one reader.
type Stream interface {
	// Next blocks until something has come since the last call, or ctx is done.
	Next(ctx context.Context) (realtime.Progress, error)
	// Cancel gives the request up. Next still tells its end.
	Cancel()
}

// Simulated is a simulated deployment in real time as one that a server takes.
func Simulated(d *realtime.Deployment) Deployment { return simulated{d} }

type simulated struct{ *realtime.Deployment }

func (s simulated) Submit(requests ...simcore.OnlineRequest) ([]Stream, error) {
	streams, err := s.Deployment.Submit(requests...)
	out := make([]Stream, len(streams))
	for i := range streams {
		out[i] = streams[i]
	}
	return out, err
}
