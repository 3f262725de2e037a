package realtime

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/servegrid/servegrid/simcore"
)

// submitAt submits a request that must be taken, at a simulated time.
func submitAt(t testing.TB, d *Deployment, r simcore.OnlineRequest, atMs float64) *Stream {
	t.Helper()
	s, err := d.SubmitAt(r, atMs)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// led starts a deployment that is led, whose time is 0 now.
func led(t testing.TB) *Deployment {
	t.Helper()
	d, err := Prepare(config(), Options{Led: true})
	if err != nil {
		t.Fatal(err)
	}
	d.Start(time.Now())
	return d
}

// TestUntil checks that simulated time goes no further than it may, so that what is submitted late, or early, arrives at its time; and
// that what comes too late for that arrives with the last thing that has happened.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, began := led(t), time.Now()
		r := simcore.OnlineRequest{Input: 10, Output: 4}
		first := submitAt(t, d, r, 0)
		time.Sleep(time.Second)
		d.Until(100)
		synctest.Wait()
		if tokens := d.Snapshot().OutputTokens; tokens != 0 {
			t.Errorf("%d tokens were made at 100 ms, and simulated time is before that", tokens)
		}
		d.Until(135)
		if p, err := first.Next(t.Context()); err != nil || p.Tokens != 2 || p.AtMs != 120 {
			t.Errorf("%+v, %v; want the tokens of 100 and 120 ms", p, err)
		}
		wants := map[float64]float64{130: 130, 120: 120, 121: 121, 90: 120, 1400: 1400}
		streams := map[float64]*Stream{0: first}
		for atMs := range wants {
			streams[atMs] = submitAt(t, d, r, atMs)
		}
		d.Until(1e9)
		var readers sync.WaitGroup
		for atMs, s := range streams {
			readers.Go(func() {
				_, last := readAll(t, s)
				if got := last.Record.Life.ArrivalMs; got != wants[atMs] {
					t.Errorf("a request of %v ms arrived at %v, want %v", atMs, got, wants[atMs])
				}
				s.Settled()
			})
		}
		readers.Wait()
		if took := time.Since(began).Milliseconds(); took != 1560 {
			t.Errorf("the last one, which came at 1400 ms and took 160, had ended after %d ms", took)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestSettled checks that what follows from the end of a request may arrive at that very moment and joins the pass that begins then,
// however long its client takes, and that requests which end together are told of one by one.
func TestSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := led(t)
		d.Until(1e9)
		r := simcore.OnlineRequest{Input: 10, Output: 2}
		streams, err := d.Submit(r, r, simcore.OnlineRequest{Input: 10, Output: 40})
		if err != nil {
			t.Fatal(err)
		}
		firsts := make(chan int)
		for i, s := range streams[:2] {
			go func() {
				readAll(t, s)
				firsts <- i
			}()
		}
		first := <-firsts
		time.Sleep(time.Second)
		select {
		case <-firsts:
			t.Error("a second end is told before the first one is settled")
		default:
		}
		follower := submitAt(t, d, r, 120)
		streams[first].Settled()
		streams[<-firsts].Settled()
		_, last := readAll(t, follower)
		if life := last.Record.Life; life.ArrivalMs != 120 || life.AdmittedMs != 120 {
			t.Errorf("two requests ended at 120, and %+v follows", life)
		}
		if err := d.Close(); err != nil { // nothing settles the end of the follower
			t.Error(err)
		}
		for err == nil {
			_, err = streams[2].Next(context.Background())
		}
		if !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

// TestCloseBeforeStart checks that a deployment that was never started ends.
func TestCloseBeforeStart(t *testing.T) {
	d, err := Prepare(config(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
