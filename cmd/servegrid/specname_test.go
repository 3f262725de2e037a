package main

import "testing"

// The spec in a file of results may be anything, also what makes YAML readers panic.
func TestSpecName(t *testing.T) {
	for text, want := range map[string]string{
		"name: chat\nworkload: {preset: {name: agentic}}": "chat", "name: 5": "", "workload: {}": "", "": "", "- name": "", "! 0000": "", "name: [": "",
	} {
		if got := specName(text); got != want {
			t.Errorf("%q has the name %q, want %q", text, got, want)
		}
	}
}
