package results

import (
	"math"
	"strconv"
	"strings"
)

// FormatNumber writes a number for people: a whole one in full, any other rounded to some significant digits but never
// in its whole part, with a comma between thousands. An exponent stands only beside what is very large or small.
func FormatNumber(v float64, digits int) string {
	size := math.Abs(v)
	if v != 0 && !(size >= 1e-6 && size < 1e15) {
		return strconv.FormatFloat(v, 'g', digits, 64)
	}
	places := 0
	if v != math.Trunc(v) {
		places = max(0, digits-1-int(math.Floor(math.Log10(size))))
	}
	text := strconv.FormatFloat(v, 'f', places, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return WithSeparators(text)
}

// WithSeparators puts a comma between thousands of a plain number.
func WithSeparators(number string) string {
	whole, rest, _ := strings.Cut(number, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	return whole
}
