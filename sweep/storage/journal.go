package storage

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
)

// The journal of a sweep at a URL is in parts: objects journal/SESSION-NUMBER.jsonl, each a journal of its own, which in the
// order of their names make up the whole. A session is the number of the run of the sweep and random digits, so that two
// sessions never write the same part.
const journalFolder = "journal"

var partName = regexp.MustCompile(`^journal/(\d{6})-[0-9a-f]{8}-\d{6}\.jsonl$`)

// maxPart bounds a part that is read into memory.
const maxPart = 8 << 20

// parts lists the parts of the journal in order, and the number of the last session.
func (s *Store) parts(ctx context.Context) (found []Object, session int, err error) {
	all, err := s.List(ctx, journalFolder, true)
	for _, o := range all {
		if name := partName.FindStringSubmatch(o.Key); name != nil {
			n, _ := strconv.Atoi(name[1])
			session = max(session, n)
			found = append(found, o)
		}
	}
	return found, session, err
}

// errMoved says that a part was put together with others between listing and reading it.
var errMoved = errors.New("the journal is being put together by another sweep; run it again")

// assemble writes the parts of the journal, one after another. A part that is gone by now is in another one.
func (s *Store) assemble(ctx context.Context, found []Object, to io.Writer) error {
	const window = 64
	for len(found) > 0 {
		if found[0].Size > maxPart {
			if err := s.stream(ctx, found[0].Key, to); err != nil {
				return moved(err)
			}
			found = found[1:]
			continue
		}
		n := 0
		for n < len(found) && n < window && found[n].Size <= maxPart {
			n++
		}
		texts := make([][]byte, n)
		if err := each(ctx, n, func(ctx context.Context, i int) (err error) {
			texts[i], err = s.Get(ctx, found[i].Key, maxPart)
			return err
		}); err != nil {
			return moved(err)
		}
		for _, text := range texts {
			if _, err := to.Write(text); err != nil {
				return err
			}
		}
		found = found[n:]
	}
	return nil
}

func moved(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errMoved
	}
	return err
}

func (s *Store) stream(ctx context.Context, key string, to io.Writer) error {
	r, err := s.Reader(ctx, key)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(to, r)
	return err
}

// pullJournal writes the journal as one file, and returns its parts and the number of the last session.
func (s *Store) pullJournal(ctx context.Context, file string) (found []Object, session int, err error) {
	for range 5 { // others may be putting parts together
		if found, session, err = s.parts(ctx); err != nil {
			return nil, 0, err
		}
		if err = writeFile(file, func(w io.Writer) error { return s.assemble(ctx, found, w) }); !errors.Is(err, errMoved) {
			break
		}
	}
	return found, session, err
}

// writeFile writes a file beside its place and puts it there as a whole.
func writeFile(file string, write func(io.Writer) error) error {
	tmp := file + ".tmp"
	f, err := os.Create(tmp)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(f, 1<<20)
	err = write(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return os.Rename(tmp, file)
}

// lineSet holds the lines of a journal by their hash. That two lines have the same one is so unlikely that at worst a point is
// simulated again.
type lineSet struct {
	seed maphash.Seed
	has  map[uint64]struct{}
}

// onlyIn writes the lines of a journal that another one lacks, each after the header that it stands under. It returns how
// many there were.
func onlyIn(own, other string, to io.Writer) (lines int, err error) {
	set := lineSet{maphash.MakeSeed(), map[uint64]struct{}{}}
	if err := eachLine(other, func(line []byte) error {
		set.has[maphash.Bytes(set.seed, line)] = struct{}{}
		return nil
	}); err != nil {
		return 0, err
	}
	var header, written []byte
	err = eachLine(own, func(line []byte) error {
		if isHeader(line) {
			header = bytes.Clone(line)
			return nil
		}
		if _, known := set.has[maphash.Bytes(set.seed, line)]; known {
			return nil
		}
		if !bytes.Equal(header, written) {
			written = header
			if _, err := to.Write(header); err != nil {
				return err
			}
		}
		lines++
		_, err := to.Write(line)
		return err
	})
	return lines, err
}

// isHeader reports whether a line says what the lines after it hold; see the journal of package sweep.
func isHeader(line []byte) bool { return bytes.HasPrefix(line, []byte(`{"journal":`)) }

// eachLine calls do for every whole line of a file, with its end. What a crash cut off is no line. A file that does not exist has
// none.
func eachLine(file string, do func(line []byte) error) error {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := do(line); err != nil {
			return err
		}
	}
}

func partKey(session string, number int) string {
	return path.Join(journalFolder, fmt.Sprintf("%s-%06d.jsonl", session, number))
}
