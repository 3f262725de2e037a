package realtime

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/simcore"
)

// once decides once how many workers there shall be.
type once struct {
	atMs    float64
	workers int
	done    bool
}

func (o *once) NextTickMs() float64 {
	if o.done {
		return math.Inf(1)
	}
	return o.atMs
}

func (o *once) Tick(float64, []simcore.PoolState) []int {
	o.done = true
	return []int{o.workers}
}

// slow decides every 10 ms, and each time a clock goes on by 20 ms.
type slow struct {
	clock *jumping
	ticks int
}

func (s *slow) NextTickMs() float64 { return float64(10 * (s.ticks + 1)) }

func (s *slow) Tick(float64, []simcore.PoolState) []int {
	s.ticks++
	s.clock.pass(20 * time.Millisecond)
	return nil
}

// TestTooSlowForThePace checks that a step ends soon where the machine is behind its time, and ever more so, and that the next one
// comes at once.
func TestTooSlowForThePace(t *testing.T) {
	c := &jumping{now: time.Minute}
	scaler := &slow{clock: c}
	d, err := newDeployment(config(), Options{Scaling: simcore.OnlineOptions{Autoscaler: scaler}}, c)
	if err != nil {
		t.Fatal(err)
	}
	for steps := 1; steps <= 3; steps++ {
		next, _, err := d.step()
		if err != nil || scaler.ticks != steps || next > c.elapsed() {
			t.Fatalf("step %d: %d ticks, the next step at %v and not at once, %v", steps, scaler.ticks, next, err)
		}
	}
}

// TestWorkersComeInTime checks that the loop wakes up for an autoscaler and for the workers that it asks for, without any request,
// and that requests then go to them.
func TestWorkersComeInTime(t *testing.T) {
	cfg := config()
	cfg.Engine.StartupTime = 30
	var kinds []simcore.ScalingKind
	ready := make(chan struct{})
	d := start(t, cfg, Options{Scaling: simcore.OnlineOptions{
		Autoscaler: &once{atMs: 5000, workers: 2},
		ScalingEvents: func(e simcore.ScalingEvent) {
			kinds = append(kinds, e.Kind)
			if e.Kind == simcore.WorkerReady && e.AtMs == 35000 {
				close(ready)
			}
		},
	}}, &jumping{})
	<-ready
	first, second := submit(t, d, simcore.OnlineRequest{Input: 100, Output: 5}), submit(t, d, simcore.OnlineRequest{Input: 100, Output: 5})
	_, a := readAll(t, first)
	_, b := readAll(t, second)
	if a.Seat+b.Seat != 1 || a.Record.Life.Worker == b.Record.Life.Worker || a.Record.Life.ArrivalMs < 35000 {
		t.Errorf("seats %d and %d: %+v, %+v", a.Seat, b.Seat, a.Record.Life, b.Record.Life)
	}
	s := d.Snapshot()
	if diff := cmp.Diff([]simcore.OnlinePool{{Ready: 2}}, s.Pools); diff != "" || len(s.Workers) != 2 {
		t.Errorf("%d workers; pools (-want +got):\n%s", len(s.Workers), diff)
	}
	if diff := cmp.Diff([]simcore.ScalingKind{simcore.WorkerRequested, simcore.WorkerReady}, kinds); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
