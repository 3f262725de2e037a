package tiers

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// job is a transfer as the brute force knows it.
type job struct {
	startMs, bytes, endMs float64
	number                int
}

// share lets jobs share a bandwidth: from event to event, each of n jobs under way gets 1/n of what is moved.
func shareBandwidth(jobs []job, rate float64) {
	left := make([]float64, len(jobs))
	now, next := 0.0, 0
	active := map[int]bool{}
	for next < len(jobs) || len(active) > 0 {
		step := math.Inf(1)
		if next < len(jobs) {
			step = jobs[next].startMs - now
		}
		for i := range active {
			step = min(step, left[i]*float64(len(active))/rate)
		}
		n := float64(len(active))
		now += step
		for i := range jobs {
			if !active[i] {
				continue
			}
			if left[i] -= step * rate / n; left[i] <= 1e-9*jobs[i].bytes {
				jobs[i].endMs = now
				delete(active, i)
			}
		}
		for next < len(jobs) && jobs[next].startMs <= now {
			left[next] = jobs[next].bytes
			active[next] = true
			next++
		}
	}
}

// TestLinkSharesBandwidth compares a link with the brute force.
func TestLinkSharesBandwidth(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rate := rapid.SampledFrom([]float64{1, 3, 64e6}).Draw(rt, "rate")
		latency := rapid.SampledFrom([]float64{0, .5, 20}).Draw(rt, "latency")
		n := rapid.IntRange(1, 40).Draw(rt, "jobs")
		jobs := make([]job, n)
		at := 0.0
		for i := range jobs {
			at += rapid.SampledFrom([]float64{0, 0, .25, 1, 7.5, 300}).Draw(rt, "pause")
			jobs[i] = job{startMs: at, bytes: rate * rapid.SampledFrom([]float64{.01, 1, 1, 2.5, 40}).Draw(rt, "size"), number: i}
		}
		shareBandwidth(jobs, rate)

		l := link{rate: rate, latencyMs: latency}
		var got []arrival
		collect := func(until float64) {
			for l.next() <= until {
				before := l.next()
				a, ok := l.take(before)
				if ok {
					got = append(got, a)
				} else if !(l.next() > before) {
					rt.Fatalf("nothing arrives at %v, and the next arrival is at %v", before, l.next())
				}
			}
		}
		for i, j := range jobs {
			collect(j.startMs)
			if rapid.Bool().Draw(rt, "look between") {
				l.run(j.startMs) // changes nothing
			}
			l.start(j.startMs, j.bytes, int32(i))
		}
		collect(math.MaxFloat64)
		if len(got) != n {
			rt.Fatalf("%d of %d arrived", len(got), n)
		}
		for i, a := range got {
			if i > 0 && a.at < got[i-1].at {
				rt.Fatalf("arrivals at %v, then %v", got[i-1].at, a.at)
			}
			if want := jobs[a.transfer].endMs + latency; math.Abs(a.at-want) > 1e-9*(1+want) {
				rt.Fatalf("transfer %d arrives at %v, want %v", a.transfer, a.at, want)
			}
		}
		sum := 0.0
		for _, j := range jobs {
			sum += j.bytes
		}
		if math.Abs(l.bytes-sum) > 1e-9*sum || math.Abs(l.busyMs*rate-sum) > 1e-6*sum {
			rt.Fatalf("%v bytes in %v busy ms, want %v", l.bytes, l.busyMs, sum)
		}
	})
}

// TestEqualTransfersEndInOrderOfStart checks that ties are broken by the start.
func TestEqualTransfersEndInOrderOfStart(t *testing.T) {
	l := link{rate: 10}
	for i := range int32(9) {
		l.start(1, 30, i)
	}
	var got []int32
	for range 9 {
		a, ok := l.take(28)
		if !ok || a.at != 28 {
			t.Fatalf("arrival at %v, %v; nine transfers of 3 ms each end together at 28 ms", a.at, ok)
		}
		got = append(got, a.transfer)
	}
	if !slices.IsSortedFunc(got, cmp.Compare[int32]) {
		t.Errorf("order %v", got)
	}
}

// TestLinkWithoutBandwidth checks that bytes take no time where there is no bandwidth, and that latency still does.
func TestLinkWithoutBandwidth(t *testing.T) {
	l := link{latencyMs: 2}
	l.start(5, 1e12, 1)
	if l.next() != 7 || l.predict(1e12) != 2 {
		t.Errorf("arrives at %v, predicted after %v", l.next(), l.predict(1e12))
	}
}

// BenchmarkLink is one transfer among so many.
func BenchmarkLink(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(map[int]string{1: "alone", 100: "of100", 10_000: "of10000"}[n], func(b *testing.B) {
			l := link{rate: 1e6}
			for i := range n {
				l.start(0, 1e6+float64(i), 0)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				at := l.next()
				l.take(at)
				l.start(at, 1e6+float64(i%7), 0)
			}
		})
	}
}
