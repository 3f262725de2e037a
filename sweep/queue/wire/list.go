package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The bounds of a list of files.
const (
	// MaxListedFiles is how many files a list may have, MaxListBytes how long it may be.
	MaxListedFiles = 1 << 16
	MaxListBytes   = 32 << 20

	listFormat    = 1
	maxListedPath = 1024 // bytes
)

// FileList is what a folder holds.
type FileList struct {
	// Format is the version of the encoding.
	Format int `json:"format"`
	// Files are in the order of their paths.
	Files []ListedFile `json:"files"`
}

// ListedFile is a file of a list.
type ListedFile struct {
	// Path has slashes and starts with the name of the folder.
	Path string `json:"path"`
	// Digest is the SHA-256 of its content in hex.
	Digest string `json:"sha256"`
	// Size is how long it is, in bytes.
	Size int64 `json:"size"`
}

// Encode puts the list in order and writes it. The digest is the SHA-256 of what is written, in hex.
func (l *FileList) Encode() (data []byte, digest string, err error) {
	l.Format = listFormat
	slices.SortFunc(l.Files, func(a, b ListedFile) int { return strings.Compare(a.Path, b.Path) })
	if err := l.check(); err != nil {
		return nil, "", err
	}
	if data, err = json.Marshal(l); err != nil {
		return nil, "", err
	}
	if len(data) > MaxListBytes {
		return nil, "", fmt.Errorf("the list of its files takes %d bytes, more than the %d that are allowed", len(data), MaxListBytes)
	}
	sum := sha256.Sum256(data)
	return data, hex.EncodeToString(sum[:]), nil
}

// DecodeList reads a list of any origin. The error lists what is wrong with it.
func DecodeList(data []byte) (*FileList, error) {
	l := new(FileList)
	if err := decode(data, MaxListBytes, "a list of files", l); err != nil {
		return nil, err
	}
	return l, l.check()
}

// check returns what is wrong with a list, up to a number of problems that people can read.
func (l *FileList) check() error {
	const most = 20
	var errs []error
	if l.Format != listFormat {
		errs = append(errs, fmt.Errorf("format %d is not known; this program knows %d", l.Format, listFormat))
	}
	if n := len(l.Files); n == 0 || n > MaxListedFiles {
		errs = append(errs, fmt.Errorf("it has %d files; it may have 1 to %d", n, MaxListedFiles))
	}
	total, before := int64(0), ""
	for i, f := range l.Files {
		if i == MaxListedFiles || len(errs) >= most {
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
func (l *FileList) isFolder(file string) bool {
	at, _ := slices.BinarySearchFunc(l.Files, file+"/", func(f ListedFile, s string) int { return strings.Compare(f.Path, s) })
	return at < len(l.Files) && strings.HasPrefix(l.Files[at].Path, file+"/")
}

// Size is the sum of the files, in bytes.
func (l *FileList) Size() int64 {
	total := int64(0)
	for _, f := range l.Files {
		total += f.Size
	}
	return total
}

// Has reports whether a name is one of the files, or a folder of them.
func (l *FileList) Has(name string) bool {
	_, isFile := slices.BinarySearchFunc(l.Files, name, func(f ListedFile, s string) int { return strings.Compare(f.Path, s) })
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
