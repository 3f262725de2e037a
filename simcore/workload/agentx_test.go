package workload

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// recordedTurns is a conversation of turns with given input lengths, whose starts in ms are given or not known.
func recordedTurns(t *testing.T, inputs []int, startsMs []float64) *Workload {
	t.Helper()
	b := NewGraphBuilder("made", 16)
	for i, input := range inputs {
		start := math.NaN()
		if startsMs != nil {
			start = startsMs[i]
		}
		number := b.Add(GraphRequest{Request: Request{ID: fmt.Sprint(i), Session: "s", Input: input, Output: 1, Hashes: []uint64{1}}, Play: "p", RecordedStartMs: start, RecordedEndMs: start})
		if i > 0 {
			b.AddEdge(number, Edge{From: number - 1})
		}
	}
	w, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// played are the requests of a scenario's first play, without what warms the cache up.
func played(s *AgentXScenario) (requests []string) {
	for r, base := range s.Base {
		if play := s.Workload.Graph.Play[r]; int(play) == s.WarmUps {
			requests = append(requests, fmt.Sprint(base))
		}
	}
	return requests
}

// A conversation with a request that is too long ends before it, or is left out.
func TestAgentXOverflow(t *testing.T) {
	for _, test := range []struct {
		name     string
		inputs   []int
		startsMs []float64
		drop     bool
		want     string // "" when nothing is left
	}{
		{"all fits", []int{8, 9, 10}, nil, false, "0 1 2"},
		{"the output counts", []int{8, 16, 10}, []float64{0, 1, 2}, false, "0"},
		{"without times", []int{8, 20, 10}, nil, false, "0"},
		{"dropped", []int{8, 20, 10}, []float64{0, 1, 2}, true, ""},
		{"dropped without times", []int{8, 20, 10}, nil, true, ""},
		{"nothing before it", []int{20, 8, 10}, []float64{0, 1, 2}, false, ""},
	} {
		s, err := AgentX(context.Background(), recordedTurns(t, test.inputs, test.startsMs), AgentXPlan{Users: 1, GapCapMs: math.Inf(1), Salt: SaltPlay, ContextLength: 16, DropLong: test.drop})
		switch {
		case test.want == "":
			if err == nil || !strings.Contains(err.Error(), "none of the 1 plays of made fits a context of 16 tokens") {
				t.Errorf("%s: got %v", test.name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", test.name, err)
		default:
			if got := strings.Join(played(s), " "); got != test.want {
				t.Errorf("%s: plays %s, want %s", test.name, got, test.want)
			}
		}
	}
}

// A share of what has been is one of turns, or of time; the last turn that has been warms the cache up.
func TestAgentXStart(t *testing.T) {
	w := recordedTurns(t, []int{8, 8, 8, 8}, []float64{0, 1000, 2000, 100_000})
	for _, test := range []struct {
		share  float64
		byTurn bool
		want   string
	}{
		{0, true, "0 1 2 3"}, {.5, true, "2 3"}, {1, true, "3"},
		{0, false, "0 1 2 3"}, {.015, false, "2 3"}, {.5, false, "3"}, {1, false, "3"},
	} {
		s, err := AgentX(context.Background(), w, AgentXPlan{Users: 1, GapCapMs: math.Inf(1), Salt: SaltPlay, StartMin: test.share, StartMax: test.share, ByTurn: test.byTurn, PrimerTokens: 1})
		if err != nil {
			t.Fatal(err)
		}
		got := played(s)
		if strings.Join(got, " ") != test.want {
			t.Errorf("%v, by turn %v: plays %v, want %s", test.share, test.byTurn, got, test.want)
		}
		primed := slices.DeleteFunc(slices.Clone(s.Base), func(r int32) bool { return slices.Contains(got, fmt.Sprint(r)) })
		if first := int32(4 - len(got)); first > 0 && !slices.Equal(primed, []int32{first - 1}) || first == 0 && s.WarmUps != 0 {
			t.Errorf("%v, by turn %v: %v warm the cache up for %v", test.share, test.byTurn, primed, got)
		}
	}
}
