package queue

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// A description has what waits, for which version, and who is there.
func TestDescribe(t *testing.T) {
	s := startServer(t)
	conn := s.connect("team-a")
	if d, err := conn.Describe(t.Context()); err != nil || len(d.Sweeps) != 0 || len(d.There) != 0 || len(d.Consumers) != 1 {
		t.Fatalf("an empty namespace: %+v %v", d, err)
	}
	for _, subject := range []string{conn.points(thisVersion, "aaa"), conn.points(thisVersion, "aaa"), conn.points(thisVersion, "bbb"), conn.points("99", "ccc"), conn.parts("bbb")} {
		if _, err := conn.js.Publish(t.Context(), subject, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := conn.js.Stream(t.Context(), conn.pointsStream())
	if err != nil {
		t.Fatal(err)
	}
	other := jetstream.ConsumerConfig{Durable: workersConsumer("99"), AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: conn.pointsOf("99")}
	if _, err := stream.CreateConsumer(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn.bePresent(ctx, "one", func() wire.Presence {
			return wire.Presence{Host: "h", PID: 7, Jobs: 2, Simulator: thisVersion, Points: 5, Seconds: 0.25}
		})
	}()
	defer func() { stop(); <-done }()
	var d Description
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if d, err = conn.Describe(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(d.There) == 1 && d.Workers[thisVersion] == 1 || time.Now().After(end) { // which are read one after the other
			break
		}
	}
	want := []SweepState{{"aaa", thisVersion, 2, 0}, {"bbb", thisVersion, 1, 1}, {"ccc", "99", 1, 0}}
	if len(d.Sweeps) != 3 || d.Sweeps[0] != want[0] || d.Sweeps[1] != want[1] || d.Sweeps[2] != want[2] {
		t.Errorf("sweeps %+v", d.Sweeps)
	}
	if len(d.Consumers) != 2 || d.Consumers[0].Waiting != 3 || d.Consumers[1].Waiting != 1 || d.Consumers[1].Version != "99" {
		t.Errorf("consumers %+v", d.Consumers)
	}
	if len(d.There) != 1 {
		t.Fatalf("workers %+v", d.There)
	}
	if w := d.There[0]; w.Host != "h" || w.PID != 7 || w.Points != 5 || w.Seconds != 0.25 || time.Since(w.Seen) > time.Minute || d.Workers[thisVersion] != 1 {
		t.Errorf("workers %+v %v", d.There, d.Workers)
	}
}
