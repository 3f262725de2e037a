package capture

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// memberBytes is how many bytes of records wait before they are written at once.
const memberBytes = 1 << 20

// shards are the files of a trace: DIR/NAME.NNNNNN.jsonl.gz, each a row of complete gzip members, so that a file is readable to
// its last member whatever ends the process. It is used by one goroutine.
type shards struct {
	dir, name string
	rollBytes int64
	rollEvery time.Duration

	next     int      // number of the next file
	file     *os.File // nil before the first record and after a file is full
	size     int64    // of the file
	openedAt time.Time
	lines    []byte // that wait
	requests int    // how many of them are requests
	member   bytes.Buffer
	packer   *gzip.Writer
}

// newShards makes the folder and finds the number of the first file.
func newShards(dir, name string, rollBytes int64, rollEvery time.Duration) (*shards, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	s := &shards{dir: dir, name: name, rollBytes: rollBytes, rollEvery: rollEvery}
	s.packer = gzip.NewWriter(&s.member)
	numbered := regexp.MustCompile(`^` + regexp.QuoteMeta(name) + `\.(\d{6})\.jsonl(?:\.gz|\.zst)?$`)
	for _, entry := range entries {
		if m := numbered.FindStringSubmatch(entry.Name()); m != nil {
			n, _ := strconv.Atoi(m[1]) // six digits
			s.next = max(s.next, n+1)
		}
	}
	return s, nil
}

// add lets a line wait.
func (s *shards) add(line []byte, request bool) {
	s.lines = append(append(s.lines, line...), '\n')
	if request {
		s.requests++
	}
}

// full reports whether enough waits to be written.
func (s *shards) full() bool { return len(s.lines) >= memberBytes }

// flush writes what waits as one gzip member, and returns how many bytes that took and how many files were begun for it. After an
// error what waited is lost, and the file ends where it ended before.
func (s *shards) flush() (written, opened int, err error) {
	if s.file != nil && s.rollEvery > 0 && time.Since(s.openedAt) >= s.rollEvery {
		err = s.close()
	}
	if len(s.lines) == 0 {
		return 0, 0, err
	}
	defer func() { s.lines, s.requests = s.lines[:0], 0 }()
	s.member.Reset()
	s.packer.Reset(&s.member)
	_, _ = s.packer.Write(s.lines) // to memory
	_ = s.packer.Close()
	if s.file != nil && s.size > 0 && s.size+int64(s.member.Len()) > s.rollBytes {
		err = errors.Join(err, s.close())
	}
	if s.file == nil {
		if openErr := s.open(); openErr != nil {
			return 0, 0, errors.Join(err, openErr)
		}
		opened = 1
	}
	n, writeErr := s.file.Write(s.member.Bytes())
	if writeErr != nil {
		return 0, opened, errors.Join(err, writeErr, s.file.Truncate(s.size), seekTo(s.file, s.size))
	}
	s.size += int64(n)
	return n, opened, err
}

func seekTo(f *os.File, at int64) error {
	_, err := f.Seek(at, 0)
	return err
}

// open begins the next file that nobody else has.
func (s *shards) open() error {
	for {
		path := filepath.Join(s.dir, fmt.Sprintf("%s.%06d.jsonl.gz", s.name, s.next))
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) && s.next < 999_999 {
			s.next++
			continue
		}
		if err != nil {
			return err
		}
		s.file, s.size, s.openedAt = file, 0, time.Now()
		s.next++
		return nil
	}
}

// close ends the file at hand; the next record begins another one.
func (s *shards) close() error {
	if s.file == nil {
		return nil
	}
	err := errors.Join(s.file.Sync(), s.file.Close())
	s.file = nil
	return err
}
