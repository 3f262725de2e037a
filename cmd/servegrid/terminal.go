package main

import (
	"os"

	"golang.org/x/term"
)

// stderrWidth returns the width of the terminal behind the standard error, if it is one.
func stderrWidth() (int, bool) {
	fd := int(os.Stderr.Fd())
	if !term.IsTerminal(fd) {
		return 0, false
	}
	width, _, err := term.GetSize(fd)
	return width, err == nil
}
