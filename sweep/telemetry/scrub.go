package telemetry

import (
	"regexp"
	"strings"
	"unicode"
)

// What must not leave the process in texts of others, such as errors: the user and password of a URL, its query, which
// signs requests with some stores, and what is named a secret.
var (
	userInfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s@"']+@`)
	urlQuery = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s?"']*)\?[^\s"']*`)
	secret   = regexp.MustCompile(`(?i)((?:password|passwd|secret|token|credential|authorization|signature|api[_-]?key|access[_-]?key)(?:[_-][A-Za-z0-9_-]*)?["']?\s*[=:]\s*)(?:(?:Bearer|Basic)\s+)?("[^"]*"|'[^']*'|[^\s,;&"']+)`)
)

// Scrub removes credentials from a text.
func Scrub(text string) string {
	if !strings.ContainsAny(text, ":=") {
		return text
	}
	text = userInfo.ReplaceAllString(text, "${1}…@")
	text = urlQuery.ReplaceAllString(text, "${1}?…")
	return secret.ReplaceAllString(text, "${1}…")
}

// printable leaves out what is no text, and bounds its length.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if runes := []rune(text); len(runes) > 128 {
		text = string(runes[:128])
	}
	return text
}
