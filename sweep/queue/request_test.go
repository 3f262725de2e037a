package queue

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// publish publishes n points in a namespace.
func publish(t *testing.T, conn *Connection, n int) {
	t.Helper()
	for range n {
		if _, err := conn.js.PublishAsync(conn.points(thisVersion, "token"), []byte("point")); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-conn.js.PublishAsyncComplete():
	case <-time.After(20 * time.Second):
		t.Fatal("the points cannot be published")
	}
}

// What ends a request is told.
func TestRequestEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		points int
		lasts  time.Duration
		do     func(*testing.T, *testServer, *Connection, *request)
		want   int
		err    error
	}{
		{"all came", 5, time.Minute, nil, 3, nil},
		{"its time is over", 2, 300 * time.Millisecond, nil, 2, nil},
		{"ended", 2, time.Minute, func(_ *testing.T, _ *testServer, _ *Connection, r *request) { r.end(); r.end() }, 2, nil},
		{"ended and stopped", 0, time.Minute, func(_ *testing.T, _ *testServer, _ *Connection, r *request) { r.end(); r.stop(); r.stop() }, 0, nil},
		{"its consumer is removed", 1, time.Minute, func(t *testing.T, _ *testServer, c *Connection, _ *request) {
			if err := c.js.DeleteConsumer(t.Context(), c.pointsStream(), workersConsumer(thisVersion)); err != nil {
				t.Error(err)
			}
		}, 1, jetstream.ErrConsumerDeleted},
		{"the server goes away", 1, time.Minute, func(_ *testing.T, s *testServer, _ *Connection, _ *request) { s.stop() }, 1, errAny},
		{"the connection is closed", 1, time.Minute, func(_ *testing.T, _ *testServer, c *Connection, _ *request) { c.nc.Close() }, 1, errAny},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			conn := s.connectFor("a", Limits{AckWait: time.Hour})
			publish(t, conn, tt.points)
			r, err := conn.request(conn.pointsStream(), workersConsumer(thisVersion), 3, tt.lasts)
			if err != nil {
				t.Fatal(err)
			}
			for range tt.want {
				m := <-r.messages
				if meta, err := m.Metadata(); string(m.Data) != "point" || err != nil || meta.NumDelivered != 1 {
					t.Errorf("message %q, error %v", m.Data, err)
				}
			}
			if tt.do != nil {
				tt.do(t, s, conn, r)
			}
			for range r.messages {
				t.Error("a message too many")
			}
			if !errors.Is(r.err, tt.err) && (tt.err != errAny || r.err == nil) {
				t.Errorf("error %v", r.err)
			}
		})
	}
	t.Run("nobody answers", func(t *testing.T) {
		t.Parallel()
		conn := startServer(t).connect("a")
		r, err := conn.request(conn.pointsStream(), "nobody", 1, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for range r.messages {
		}
		if !errors.Is(r.err, nats.ErrNoResponders) || !gone(r.err) {
			t.Errorf("error %v", r.err)
		}
	})
}

// errAny is any error.
var errAny = errors.New("any")

// A request that is ended in the middle brings all that the server has sent: nothing has to be waited for that was lost on its way.
func TestRequestLosesNothing(t *testing.T) {
	t.Parallel()
	conn := startServer(t).connectFor("a", Limits{AckWait: time.Hour})
	const requests, each = 20, 300
	publish(t, conn, requests*each)
	received := map[uint64]bool{}
	for i := 0; len(received) < requests*each; i++ {
		r, err := conn.request(conn.pointsStream(), workersConsumer(thisVersion), each, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for m := range r.messages {
			n++
			meta, err := m.Metadata()
			if err != nil || received[meta.Sequence.Stream] {
				t.Fatalf("message %+v came twice, error %v", meta, err)
			}
			received[meta.Sequence.Stream] = true
			if n == 1+5*i && i < requests || len(received) == requests*each {
				r.end()
			}
		}
		if r.err != nil || n == 0 {
			t.Fatalf("%d of %d messages came in %d requests, error %v", len(received), requests*each, i+1, r.err)
		}
	}
}

// Nothing is lost either while people are still being told that the connection was lost that is back already.
func TestRequestAfterLoss(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connectFor("a", Limits{AckWait: time.Hour})
	const points = 2000
	publish(t, conn, points)
	slow := s.connectNotified("a", func(string) { time.Sleep(300 * time.Millisecond) })
	if err := slow.nc.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	received := 0
	for end := time.Now().Add(15 * time.Second); received < points && time.Now().Before(end); {
		r, err := slow.request(conn.pointsStream(), workersConsumer(thisVersion), 10, 10*time.Second)
		if err != nil {
			pause(t.Context(), time.Millisecond)
			continue
		}
		for m := range r.messages {
			received++
			if err := m.Ack(); err != nil {
				t.Error(err)
			}
			if received == points {
				r.end()
			}
		}
	}
	if received < points {
		t.Errorf("%d of %d messages came", received, points)
	}
}
