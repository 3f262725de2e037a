package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// Description is what a namespace holds, in full.
type Description struct {
	// State has the streams, and the consumers of all versions.
	State
	// Sweeps are those that have messages in the namespace.
	Sweeps []SweepState
	// There are the workers that are there, at most [MaxDescribed] of them; State.Workers counts all.
	There []WorkerState
}

// SweepState is what a namespace holds of a sweep.
type SweepState struct {
	// Sweep is the token of the sweep, as the file .queue of its folder has it, and Version its simulator version.
	Sweep, Version string
	// Points counts the points that wait or that a worker has; Parts the messages with finished points that the coordinator
	// has not taken.
	Points, Parts int64
}

// WorkerState is what a worker says about itself.
type WorkerState struct {
	// Host, PID and Jobs say where it runs and how many points at a time.
	Host string
	PID  int
	Jobs int
	// Simulator is its simulator version.
	Simulator string
	// Started is when it started, and Seen when it last said so.
	Started, Seen time.Time
	// Points counts the points that it simulated, and Seconds is what one took lately; 0 when it did not say.
	Points  int
	Seconds float64
}

// MaxDescribed bounds the workers that a description has one by one.
const MaxDescribed = 500

// Describe asks the server for all that there is. It changes nothing.
func (c *Connection) Describe(ctx context.Context) (Description, error) {
	state, err := c.Seen(ctx)
	if err != nil {
		return Description{}, err
	}
	d := Description{State: state}
	if d.Consumers, err = c.consumers(ctx); err != nil {
		return Description{}, err
	}
	if d.Sweeps, err = c.sweeps(ctx); err != nil {
		return Description{}, err
	}
	d.There, err = c.there(ctx)
	return d, err
}

// consumers are those of the workers of all versions, in order.
func (c *Connection) consumers(ctx context.Context) ([]ConsumerState, error) {
	var out []ConsumerState
	err := c.ask(ctx, func(ctx context.Context) error {
		stream, err := c.js.Stream(ctx, c.pointsStream())
		if err != nil {
			return err
		}
		out = nil
		list := stream.ListConsumers(ctx)
		for info := range list.Info() {
			version, ok := strings.CutPrefix(info.Name, workersConsumer(""))
			if !ok {
				continue
			}
			out = append(out, ConsumerState{
				Version: version, Waiting: int64(info.NumPending), InProgress: int64(info.NumAckPending), Redelivered: int64(info.NumRedelivered),
			})
		}
		return list.Err()
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, serverError("the consumers of "+c.pointsStream(), err)
	}
	slices.SortFunc(out, func(a, b ConsumerState) int { return cmp.Compare(a.Version, b.Version) })
	return out, nil
}

// sweeps counts the messages of each sweep.
func (c *Connection) sweeps(ctx context.Context) ([]SweepState, error) {
	byToken := map[string]*SweepState{}
	of := func(token string) *SweepState {
		if byToken[token] == nil {
			byToken[token] = &SweepState{Sweep: token}
		}
		return byToken[token]
	}
	points, err := c.subjects(ctx, c.pointsStream(), c.allPoints())
	if err != nil {
		return nil, err
	}
	parts, err := c.subjects(ctx, c.partsStream(), c.allParts())
	if err != nil {
		return nil, err
	}
	for subject, n := range points {
		rest := strings.TrimPrefix(subject, strings.TrimSuffix(c.allPoints(), ">"))
		version, token, ok := strings.Cut(rest, ".")
		if !ok {
			continue
		}
		s := of(token)
		s.Version = version
		s.Points += int64(n)
	}
	for subject, n := range parts {
		of(strings.TrimPrefix(subject, strings.TrimSuffix(c.allParts(), "*"))).Parts += int64(n)
	}
	out := make([]SweepState, 0, len(byToken))
	for _, s := range byToken {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b SweepState) int { return cmp.Compare(a.Sweep, b.Sweep) })
	return out, nil
}

// subjects counts the messages of a stream by subject. A stream that is not there has none.
func (c *Connection) subjects(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	info, err := c.streamInfo(ctx, stream, filter)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, serverError("stream "+stream, err)
	}
	return info.State.Subjects, nil
}

// there are the workers' words about themselves, in order of version, host and process.
func (c *Connection) there(ctx context.Context) ([]WorkerState, error) {
	keys, err := c.subjects(ctx, c.workersStream(), "$KV."+c.workersBucket()+".>")
	if err != nil {
		return nil, err
	}
	var out []WorkerState
	err = c.ask(ctx, func(ctx context.Context) error {
		out = nil
		if len(keys) == 0 {
			return nil
		}
		stream, err := c.js.Stream(ctx, c.workersStream())
		if err != nil {
			return err
		}
		for key := range keys {
			message, err := stream.GetLastMsgForSubject(ctx, key)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue // it left
			}
			if err != nil {
				return err
			}
			if w, ok := decodePresence(message.Data, message.Time); ok {
				out = append(out, w)
			}
			if len(out) == MaxDescribed {
				break
			}
		}
		return nil
	})
	if err != nil {
		return nil, serverError("the bucket "+c.workersBucket(), err)
	}
	slices.SortFunc(out, func(a, b WorkerState) int {
		return cmp.Or(cmp.Compare(a.Simulator, b.Simulator), cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID))
	})
	return out, nil
}

// decodePresence reads what a worker says about itself.
func decodePresence(text []byte, seen time.Time) (WorkerState, bool) {
	p, ok := wire.DecodePresence(text)
	if !ok {
		return WorkerState{}, false
	}
	return WorkerState{
		Host: p.Host, PID: p.PID, Jobs: p.Jobs, Simulator: p.Simulator, Started: p.Started, Seen: seen,
		Points: p.Points, Seconds: p.Seconds,
	}, true
}
