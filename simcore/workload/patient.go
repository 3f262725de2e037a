package workload

import (
	"context"
	"io"
)

// patientReader reads a pipe, whose next bytes may never come, until the context ends. A read that is under way
// then is left behind: nothing can call it back.
type patientReader struct {
	ctx    context.Context
	blocks chan pipeBlock
	closed chan struct{}
	rest   []byte
	err    error
}

type pipeBlock struct {
	data []byte
	err  error
}

// newPatientReader opens and reads on a goroutine of its own, since opening a pipe waits as well.
func newPatientReader(ctx context.Context, open func() (io.ReadCloser, error)) *patientReader {
	r := &patientReader{ctx: ctx, blocks: make(chan pipeBlock), closed: make(chan struct{})}
	go r.pump(open)
	return r
}

func (r *patientReader) pump(open func() (io.ReadCloser, error)) {
	file, err := open()
	if err != nil {
		r.send(pipeBlock{err: err})
		return
	}
	defer file.Close()
	for {
		data := make([]byte, 1<<16)
		n, err := file.Read(data)
		if !r.send(pipeBlock{data[:n], err}) || err != nil {
			return
		}
	}
}

func (r *patientReader) send(b pipeBlock) bool {
	select {
	case r.blocks <- b:
		return true
	case <-r.ctx.Done():
	case <-r.closed:
	}
	return false
}

// Read returns the context's error once it has ended.
func (r *patientReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		select {
		case b := <-r.blocks:
			r.rest, r.err = b.data, b.err
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close lets the goroutine end with its next read.
func (r *patientReader) Close() error {
	close(r.closed)
	return nil
}
