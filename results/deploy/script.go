package deploy

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// script is a shell script that starts a server; options names its file of options, if any.
func (d *deployment) script(w worker, what, options string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "#!/usr/bin/env bash\n# %s, part of %s\n", strings.ToUpper(what[:1])+what[1:], oneLine(d.Name))
	if w.Workers > 1 || w.role != "" {
		b.WriteString("# Start one on the GPUs of each worker, with a router in front of all; " + GraphFile + " does both.\n")
	}
	b.WriteString("# Further arguments are passed on, such as --port. Each setting of servegrid stands behind what it became.\nset -euo pipefail\n")
	for _, v := range w.env {
		fmt.Fprintf(&b, "export %s=%s # %s\n", v.name, shellWord(v.value), v.from)
	}
	first := argument{name: d.backend.model, value: w.model, from: "timing.model"}
	if first.name == "" {
		first = argument{name: w.model, from: "timing.model"}
	}
	if options != "" {
		b.WriteString("cd \"$(dirname \"$0\")\"\n")
	}
	b.WriteString("args=(\n")
	for _, a := range append([]argument{first}, w.args...) {
		line := "  " + shellWord(a.name)
		if a.value != "" {
			line += " " + shellWord(a.value)
		}
		fmt.Fprintf(&b, "%s # %s\n", line, a.from)
	}
	if options != "" {
		fmt.Fprintf(&b, "  --extra_llm_api_options %s\n", shellWord(options))
	}
	fmt.Fprintf(&b, ")\nexec %s \"${args[@]}\" \"$@\"\n", strings.Join(d.backend.command, " "))
	return b.Bytes()
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./=:,+@%-]+$`)

// shellWord quotes a word for a POSIX shell when it needs to be.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// oneLine is text without what would end a comment.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
