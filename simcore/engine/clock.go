package engine

import "math"

// advance returns t after adding step to it n times, exactly as n additions in turn would: the clock is a double,
// so each addition rounds, and exact ties between workers depend on the last bit.
//
// While t stays between two powers of two its grid is constant, and every addition moves it by the same multiple
// of that grid, unless step lies exactly between two multiples. So most of the n additions are one product.
func advance(t, step float64, n int) float64 {
	for n > 0 {
		next := t + step
		delta := next - t // exact: both are on the grid of next, and they are close
		jump := stableAdditions(t, step, delta, n)
		if jump < 2 {
			t = next
			n--
			continue
		}
		t += delta * float64(jump)
		n -= jump
	}
	return t
}

// stableAdditions returns how many of the next n additions of step surely move t by exactly delta; 0 or 1 mean
// that the caller should add once.
func stableAdditions(t, step, delta float64, n int) int {
	if t < 1 || delta <= 0 || n < 2 {
		return 0
	}
	ceiling := math.Float64frombits((math.Float64bits(t) | (1<<52 - 1))) // the last double of t's binade
	half := math.Float64frombits(math.Float64bits(t)&^(1<<52-1)) * 0x1p-53
	if math.Abs(step-delta) >= half {
		return 0 // a tie rounds to even, so it depends on t
	}
	room := math.Floor((ceiling - t) / delta)
	if room < 2 {
		return 0
	}
	// One less than fits: the quotient may have been rounded up.
	return int(math.Min(float64(n), room-1))
}

// passesUntil returns the least k from 1 to n such that t plus k steps has reached at, or n if none has, and the
// time after those k steps.
func passesUntil(t, step float64, n int, at float64) (int, float64) {
	switch {
	case step <= 0:
		return n, t
	case math.IsInf(at, 1):
		return n, advance(t, step, n)
	}
	k := 1
	// An addition moves the clock by half its grid more than step at most, so that so many surely don't reach at.
	grid := math.Nextafter(at, math.Inf(1)) - at
	if guess := (at-t)/(step+grid/2) - 1; guess > 1 {
		k = int(math.Min(guess, float64(n)))
	}
	end := advance(t, step, k)
	for k < n && end < at {
		end += step
		k++
	}
	return k, end
}
