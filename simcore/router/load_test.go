package router

import "testing"

// TestPrefillLoad checks how predicted prompts pass away.
func TestPrefillLoad(t *testing.T) {
	var l prefillLoad
	check := func(now float64, want int64) {
		t.Helper()
		if got := l.at(now); got != want {
			t.Errorf("at %v ms there are %d tokens, want %d", now, got, want)
		}
	}
	l.addPredicted(0, prompt{request: 1, tokens: 100, durationMs: 10})
	l.addPredicted(2, prompt{request: 2, tokens: 50, durationMs: 5})
	check(0, 150)
	check(5, 100)
	check(5.09, 100) // 50.9 tokens are done, rounded down
	check(12, 30)    // the first one takes longer than predicted
	check(20, 0)
	l.removePredicted(12, 1) // the second one starts now
	check(12, 50)
	check(14.5, 25)
	l.removePredicted(20, 2)
	check(20, 0)

	l.addPredicted(100, prompt{request: 3, tokens: 100, durationMs: 10})
	l.addPredicted(102, prompt{request: 4, tokens: 50, durationMs: 5})
	l.addPredicted(103, prompt{request: 5, tokens: 7, durationMs: 60})
	l.removePredicted(108, 4) // its 5 ms were not the first one's
	check(108, 107-30)
	l.removePredicted(109, 5) // nor were these, but the future is nobody's
	check(109, 100)
	check(110, 90)
	l.removePredicted(110, 99) // who is not there changes nothing
	check(110, 90)

	l = prefillLoad{}
	l.addPredicted(0, prompt{request: 1, tokens: 9}) // no time at all
	check(0, 0)
}
