package main

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeProgram checks that the README shows the program in examples/library, which the build compiles.
func TestReadmeProgram(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("../../examples/library/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(readme), "```go\n")
	shown, _, _ = strings.Cut(shown, "```")
	if shown == "" || !strings.HasSuffix(string(program), shown) {
		t.Errorf("the README's Go program is not that of examples/library:\n%s", shown)
	}
}
