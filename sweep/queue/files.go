package queue

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/servegrid/servegrid/simcore/files"
)

// Files travel apart from the points that name them, once each, under the SHA-256 of what is in them. A folder, or a file
// that is read together with others beside it, travels as a list of files, whose digest is that of the folder. On a worker
// a file lies below the folder of its digest, see [File.Path]; what a list has lies there with the paths of the list.

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

// The bounds of a list of files.
const (
	listFormat     = 1
	maxListedFiles = 1 << 16
	maxListBytes   = 32 << 20
	maxListedPath  = 1024 // bytes
)

// fileList is what a folder holds, in the order of the paths.
type fileList struct {
	Format int          `json:"format"`
	Files  []listedFile `json:"files"`
}

type listedFile struct {
	// Path has slashes and starts with the name of the folder.
	Path   string `json:"path"`
	Digest string `json:"sha256"`
	Size   int64  `json:"size"`
}

// encode writes the list and returns its digest.
func (l *fileList) encode() (data []byte, digest string, err error) {
	l.Format = listFormat
	slices.SortFunc(l.Files, func(a, b listedFile) int { return strings.Compare(a.Path, b.Path) })
	if err := l.check(); err != nil {
		return nil, "", err
	}
	if data, err = json.Marshal(l); err != nil {
		return nil, "", err
	}
	if len(data) > maxListBytes {
		return nil, "", fmt.Errorf("the list of its files takes %d bytes, more than the %d that are allowed", len(data), maxListBytes)
	}
	sum := sha256.Sum256(data)
	return data, hex.EncodeToString(sum[:]), nil
}

// decodeList reads a list of any origin.
func decodeList(data []byte) (*fileList, error) {
	if len(data) > maxListBytes {
		return nil, fmt.Errorf("a list of %d bytes is longer than the %d that are allowed", len(data), maxListBytes)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	l := new(fileList)
	if err := d.Decode(l); err != nil {
		return nil, fmt.Errorf("a list of files that cannot be read: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("a list of files with something behind its end")
	}
	return l, l.check()
}

// check returns what is wrong with a list, up to a number of problems that people can read.
func (l *fileList) check() error {
	const most = 20
	var errs []error
	if l.Format != listFormat {
		errs = append(errs, fmt.Errorf("format %d is not known; this program knows %d", l.Format, listFormat))
	}
	if n := len(l.Files); n == 0 || n > maxListedFiles {
		errs = append(errs, fmt.Errorf("it has %d files; it may have 1 to %d", n, maxListedFiles))
	}
	total, before := int64(0), ""
	for i, f := range l.Files {
		if i == maxListedFiles || len(errs) >= most {
			break
		}
		switch {
		case !portablePath(f.Path):
			errs = append(errs, fmt.Errorf("the path %.200q cannot be used on every machine", f.Path))
		case i > 0 && f.Path <= before:
			errs = append(errs, fmt.Errorf("the path %.200q is there twice or out of order", f.Path))
		case l.isFolder(f.Path):
			errs = append(errs, fmt.Errorf("%.200q is a file and a folder", f.Path))
		}
		if !sha256Text.MatchString(f.Digest) {
			errs = append(errs, fmt.Errorf("%.200q has the SHA-256 %.80q, which is none", f.Path, f.Digest))
		}
		if f.Size < 0 || f.Size > maxFileSize-total {
			errs = append(errs, fmt.Errorf("up to %.200q it has more than %d bytes", f.Path, int64(maxFileSize)))
			break
		}
		total, before = total+f.Size, f.Path
	}
	return errors.Join(errs...)
}

// isFolder reports whether another file of the list lies below a path. The list is in order.
func (l *fileList) isFolder(file string) bool {
	at, _ := slices.BinarySearchFunc(l.Files, file+"/", func(f listedFile, s string) int { return strings.Compare(f.Path, s) })
	return at < len(l.Files) && strings.HasPrefix(l.Files[at].Path, file+"/")
}

// size is the sum of the files, in bytes.
func (l *fileList) size() int64 {
	total := int64(0)
	for _, f := range l.Files {
		total += f.Size
	}
	return total
}

// has reports whether a name is one of the files, or a folder of them.
func (l *fileList) has(name string) bool {
	_, isFile := slices.BinarySearchFunc(l.Files, name, func(f listedFile, s string) int { return strings.Compare(f.Path, s) })
	return isFile || l.isFolder(name)
}

// portablePath reports whether a path stays below its folder and can be made on every machine. Its first part is a name as
// files have it, so that it is neither hidden nor in the way of what a cache keeps beside it.
func portablePath(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	if len(p) > maxListedPath || !fs.ValidPath(p) || !utf8.ValidString(p) || !nameText.MatchString(first) {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if len(part) > 255 || strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") {
			return false
		}
	}
	return !strings.ContainsFunc(p, func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune(`\:*?"<>|`, r) })
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
