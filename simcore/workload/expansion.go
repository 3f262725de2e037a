package workload

import (
	"cmp"
	"fmt"
	"io"
)

// DefaultMaxExpansion is how many times as large as it is a compressed trace may become. Real traces become 5 to 30 times as
// large; a file that becomes a thousand times as large was made to fill a machine.
const DefaultMaxExpansion = 250

// A trace that becomes smaller than expansionFloor is never refused; one that becomes larger than maxExpanded always.
const (
	expansionFloor = 64 << 20
	maxExpanded    = 1 << 40
)

// expansion reads a decompressed trace and ends when it grows beyond all measure.
type expansion struct {
	r       io.Reader
	packed  *counted
	allowed int64
	read    int64
}

func newExpansion(r io.Reader, packed *counted, allowed int) io.Reader {
	return &expansion{r: r, packed: packed, allowed: int64(cmp.Or(allowed, DefaultMaxExpansion))}
}

// Read reads on, or says that the trace grows too much.
func (e *expansion) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.read += int64(n)
	if e.read > maxExpanded {
		return 0, fmt.Errorf("the compressed trace becomes larger than %d GiB", maxExpanded>>30)
	}
	if e.read > expansionFloor && e.read > e.allowed*e.packed.n {
		return 0, fmt.Errorf("the compressed trace becomes more than %d times as large as it is; if it is meant to, decompress it first or raise --max-expansion (SERVEGRID_MAX_EXPANSION)", e.allowed)
	}
	return n, err
}

// counted counts what is read.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
