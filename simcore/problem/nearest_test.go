package problem

import (
	"slices"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"chat", "agentic", "tool-agent", "long-context"}
	for word, want := range map[string]string{
		"chat":        "chat",
		"caht":        "chat",
		"agent":       "agentic",
		"toolagent":   "tool-agent",
		"longcontext": "long-context",
		"":            "",
		"zzzzzzzz":    "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestClosest(t *testing.T) {
	known := []string{"p99_itl_ms", "gpus", "p99_ttft_ms", "mean_ttft_ms"}
	if got := Closest("p98_ttft_ms", known, 2); !slices.Equal(got, []string{"p99_ttft_ms", "p99_itl_ms"}) {
		t.Errorf("closest are %v", got)
	}
	if got := Closest("x", known, 9); len(got) != len(known) {
		t.Errorf("%d of %d words", len(got), len(known))
	}
}
