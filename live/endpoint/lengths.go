package endpoint

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Lengths says how many tokens answers have: evenly spread from Min to Max.
type Lengths struct{ Min, Max int }

// DefaultLengths are those of answers where nothing is said.
func DefaultLengths() Lengths { return Lengths{256, 256} }

// maxLength bounds lengths far above what a context holds.
const maxLength = 1 << 30

// ParseLengths reads a number of tokens, or a range such as 64-1024.
func ParseLengths(text string) (Lengths, error) {
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		high = low
	}
	least, err := strconv.Atoi(low)
	most, err2 := strconv.Atoi(high)
	if err != nil || err2 != nil || least < 1 || most < least || most > maxLength {
		return Lengths{}, fmt.Errorf("%q is not allowed; give a number of tokens from 1, such as 256, or a range such as 64-1024", text)
	}
	return Lengths{least, most}, nil
}

// String is what [ParseLengths] reads.
func (l Lengths) String() string {
	if l.Min == l.Max {
		return strconv.Itoa(l.Min)
	}
	return fmt.Sprintf("%d-%d", l.Min, l.Max)
}

// draw returns the length that a seed gives.
func (l Lengths) draw(seed uint64) int {
	return l.Min + rand.New(rand.NewPCG(seed, 0)).IntN(l.Max-l.Min+1)
}
