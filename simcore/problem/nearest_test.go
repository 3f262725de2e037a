package problem

import "testing"

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
