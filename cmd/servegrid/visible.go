package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Names come from specs, traces and other people's files. What a terminal would obey rather than show must not reach
// it from there, so all text for people goes through one of these functions. Data formats hold names as they are.

// visible writes control characters, line breaks, the marks that turn the direction of text, and bytes that are no
// text as escapes such as \x1b.
func visible(s string) string {
	if strings.IndexFunc(s, obeyed) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch _, size := utf8.DecodeRuneInString(s[i:]); {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case obeyed(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// obeyed reports whether a terminal acts on a character instead of showing it.
func obeyed(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// visibleLines is visible for text of several lines.
func visibleLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = visible(line)
	}
	return strings.Join(lines, "\n")
}

// printText prints lines for people.
func printText(w io.Writer, format string, args ...any) error {
	_, err := io.WriteString(w, visibleLines(fmt.Sprintf(format, args...)))
	return err
}

// maxCellWidth bounds a name or value in a table, in columns of the terminal.
const maxCellWidth = 60

// cellText is a name or value as a table shows it.
func cellText(s string) string { return text.Snip(visible(s), maxCellWidth, "…") }
