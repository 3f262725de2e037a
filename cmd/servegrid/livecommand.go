package main

import (
	"strings"

	"github.com/servegrid/servegrid/simcore/files"
)

// secretFlags are flags of live whose values are told to nobody, or only without what is secret in them.
var secretFlags = map[string]func(string) string{
	"--header":      hideHeader,
	"--url":         files.Shown,
	"--metrics-url": files.Shown,
}

// liveCommand is the command line for what is recorded of a run, without secrets.
func liveCommand(args []string) string {
	words := []string{"servegrid"}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		hide := secretFlags[name]
		switch {
		case hide == nil:
			words = append(words, shellQuote(args[i]))
		case joined:
			words = append(words, shellQuote(name+"="+hide(value)))
		case i+1 < len(args):
			i++
			words = append(words, name, shellQuote(hide(args[i])))
		}
	}
	return strings.Join(words, " ")
}

// hideHeader leaves the name of a header.
func hideHeader(text string) string {
	name, _, _ := strings.Cut(text, ":")
	return name + ": ***"
}
