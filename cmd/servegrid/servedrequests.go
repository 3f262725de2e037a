package main

import (
	"bufio"
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/servegrid/servegrid/live/endpoint"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/requests"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// servedRequests collects what became of the requests that a server got. They wait in a file beside the one that they go to, so
// that a server that runs for long does not grow.
type servedRequests struct {
	path string
	warn func(error) // hears of the first error

	mu    sync.Mutex
	spool *os.File
	out   *bufio.Writer
	enc   *gob.Encoder
	count int
	err   error
}

// newServedRequests makes the folder of a path and the file beside it.
func newServedRequests(path string, warn func(error)) (*servedRequests, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	spool, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return nil, err
	}
	s := &servedRequests{path: path, warn: warn, spool: spool, out: bufio.NewWriterSize(spool, 64<<10)}
	s.enc = gob.NewEncoder(s.out)
	return s, nil
}

// close removes the file beside. It may be called twice.
func (s *servedRequests) close() {
	_ = s.spool.Close()
	_ = os.Remove(s.spool.Name())
}

func (s *servedRequests) add(r endpoint.Served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	if s.err = s.enc.Encode(&r); s.err != nil {
		s.warn(fmt.Errorf("no more requests are kept: %w", s.err))
		return
	}
	s.count++
}

// write writes them as a Parquet file, one row a request, session by session.
func (s *servedRequests) write() error {
	list, readErr := s.read()
	records, w, err := numbered(list)
	if err != nil {
		return errors.Join(readErr, err)
	}
	s.close() // which makes room on the disk
	t := requests.Table("", records, w, versions())
	return errors.Join(readErr, results.WriteFile(s.path, func(out io.Writer) error { return results.WriteParquet(out, t) }))
}

// read returns what was added, as much of it as could be kept.
func (s *servedRequests) read() ([]endpoint.Served, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	flushErr := s.out.Flush()
	if _, err := s.spool.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(s.err, err)
	}
	list := make([]endpoint.Served, 0, s.count)
	for in := gob.NewDecoder(bufio.NewReader(s.spool)); len(list) < s.count; {
		var r endpoint.Served
		if err := in.Decode(&r); err != nil {
			return list, errors.Join(s.err, flushErr, fmt.Errorf("%d of %d requests are lost: %w", s.count-len(list), s.count, err))
		}
		list = append(list, r)
	}
	return list, s.err
}

// numbered numbers the requests as those of a workload are, in the order in which they came.
func numbered(list []endpoint.Served) ([]simcore.RequestRecord, *workload.Workload, error) {
	if len(list) == 0 {
		return nil, &workload.Workload{SessionStart: []int32{0}}, nil
	}
	slices.SortFunc(list, func(a, b endpoint.Served) int {
		return cmp.Or(cmp.Compare(a.Record.Life.ArrivalMs, b.Record.Life.ArrivalMs), cmp.Compare(a.ID, b.ID))
	})
	build := workload.NewBuilder("served requests", 1)
	build.Grow(len(list))
	records := make([]simcore.RequestRecord, len(list))
	sessions, turns := map[string]int{}, []int{}
	for i := range list {
		r := &list[i]
		session, known := sessions[r.Session]
		if !known || r.Session == "" {
			session = len(turns)
			sessions[r.Session] = session
			turns = append(turns, 0)
		}
		life := &r.Record.Life
		build.Add(workload.Request{Session: r.Session, ID: r.ID, Input: int(life.Input), Output: int(life.Output), ArrivalMs: life.ArrivalMs})
		records[i] = r.Record
		records[i].Session, records[i].Turn, records[i].Play = session, turns[session], -1
		turns[session]++
	}
	w, err := build.Build()
	if err != nil {
		return nil, nil, err
	}
	for i := range records {
		r := &records[i]
		r.Request = int(w.SessionStart[r.Session]) + r.Turn
	}
	slices.SortFunc(records, func(a, b simcore.RequestRecord) int { return cmp.Compare(a.Request, b.Request) })
	return records, w, nil
}
