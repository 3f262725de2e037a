package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/servegrid/servegrid/simcore/files"
)

// Files travel apart from the points that name them, once each, under the SHA-256 of what is in them. A folder, or a file
// that is read together with others beside it, travels as a list of files, whose digest is that of the folder. On a worker
// a file lies below the folder of its digest, see [wire.File.Path]; what a list has lies there with the paths of the list.

// Store keeps files under names that are their SHA-256 in hex. An object is there as a whole or not at all.
type Store interface {
	// Has reports whether there is an object of this name.
	Has(ctx context.Context, name string) (bool, error)
	// Put stores what can be read. When reading fails, nothing is stored.
	Put(ctx context.Context, name string, r io.Reader) error
	// Get reads an object. The reader must be closed.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
}

// DamagedError says that a file is not what its digest says.
type DamagedError struct {
	// Name is what is damaged, Problem what shows it.
	Name, Problem string
}

// Error says what is damaged.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("the file %s is damaged: %s", e.Name, e.Problem)
}

// checkedReader reads a file to its end and fails there unless it is what it should be.
type checkedReader struct {
	r      io.Reader
	name   string
	digest string
	left   int64 // bytes that are still to come
	hash   hash.Hash
	// damaged is what was wrong, also when whoever reads has lost it.
	damaged *DamagedError
}

func newCheckedReader(r io.Reader, name, digest string, size int64) *checkedReader {
	return &checkedReader{r: r, name: name, digest: digest, left: size, hash: sha256.New()}
}

// Read returns a *DamagedError in place of the end of another file.
func (c *checkedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.hash.Write(p[:n])
	c.left -= int64(n)
	problem := ""
	switch {
	case c.left < 0:
		problem = "it is longer than it should be"
	case !errors.Is(err, io.EOF):
	case c.left > 0:
		problem = fmt.Sprintf("its last %d bytes are missing", c.left)
	case hex.EncodeToString(c.hash.Sum(nil)) != c.digest:
		problem = "it has other content than its SHA-256 says"
	}
	if problem != "" {
		c.damaged = &DamagedError{c.name, problem}
		return 0, c.damaged
	}
	return n, err
}

// portableName is a name for a file that can be used on every machine. It keeps how names end, since formats are told by it.
func portableName(file string) string {
	const most = 100
	name := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r)) {
			return r
		}
		return '_'
	}, files.Base(file))
	if len(name) > most {
		name = name[len(name)-most:]
	}
	if name[0] == '.' || name[0] == '-' {
		name = "_" + name
	}
	trimmed := strings.TrimRight(name, ".")
	return trimmed + strings.Repeat("_", len(name)-len(trimmed))
}
