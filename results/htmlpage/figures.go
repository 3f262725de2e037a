package htmlpage

import (
	"strconv"
	"strings"
)

// Tile is a key figure; the template "tiles" shows a list of them.
type Tile struct{ Label, Figure, Unit, Note string }

// Table is a table of figures; the template "tables" shows a list of them.
type Table struct {
	Title, Note string
	Head        []string
	Rows        [][]string
}

// Whole shows a whole number with commas between thousands.
func Whole(n int) string { return separated(strconv.Itoa(n)) }

// Number shows a figure with three digits, or all of a whole part that has more.
func Number(v float64) string {
	if v >= 1000 || v <= -1000 {
		return separated(strconv.FormatFloat(v, 'f', 0, 64))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// separated puts commas between thousands.
func separated(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}
