package tables

import (
	"cmp"
	"strings"
)

// compareVersions orders releases such as 0.5.6.post2, 0.5.10, 1.3.0rc10 and 1.3.0: numbers by their value, a
// pre-release before its release, a post-release after it. The empty version is before all others.
func compareVersions(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(a), len(b))
	}
	for a != "" || b != "" {
		var x, y versionPart
		x, a = nextPart(a)
		y, b = nextPart(b)
		if c := cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.number, y.number), cmp.Compare(x.word, y.word)); c != 0 {
			return c
		}
	}
	return 0
}

// versionPart is a number or a word of a version.
type versionPart struct {
	rank   int // pre-release word, end, post-release word, number
	number int
	word   string
}

func nextPart(version string) (versionPart, string) {
	version = strings.TrimLeft(version, ".-+_")
	if version == "" {
		return versionPart{rank: 1}, ""
	}
	isDigit := func(r rune) bool { return r >= '0' && r <= '9' }
	if isDigit(rune(version[0])) {
		rest := strings.TrimLeftFunc(version, isDigit)
		number := 0
		for _, r := range version[:len(version)-len(rest)] {
			number = min(number*10+int(r-'0'), 1<<40)
		}
		return versionPart{rank: 3, number: number}, rest
	}
	rest := strings.TrimLeftFunc(version, func(r rune) bool { return !isDigit(r) && !strings.ContainsRune(".-+_", r) })
	word := version[:len(version)-len(rest)]
	rank := 0
	if word == "post" {
		rank = 2
	}
	return versionPart{rank: rank, word: word}, rest
}
