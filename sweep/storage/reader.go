package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Reader opens an object for reading from its beginning. A connection that breaks is made again from where it broke, as long
// as the object is the same.
func (s *Store) Reader(ctx context.Context, key string) (io.ReadCloser, error) {
	r := &resumingReader{ctx: ctx, store: s, at: s.at.Join(key)}
	err := s.retry(ctx, func() error { return r.connect() })
	if err != nil {
		return nil, explain("read", r.at, err)
	}
	return r, nil
}

// resumingReader reads an object over as many connections as it takes.
type resumingReader struct {
	ctx    context.Context
	store  *Store
	at     Location
	offset int64
	first  *attributes
	body   io.ReadCloser
}

var errChanged = errors.New("the object was replaced while it was read; read it again")

func (r *resumingReader) connect() error {
	body, a, err := r.store.objects.read(r.ctx, r.at.Key, r.offset)
	if err != nil {
		return err
	}
	if r.first == nil {
		r.first = &a
	} else if a.size != r.first.size || !a.modified.Equal(r.first.modified) {
		return &Error{Doing: "read", Where: r.at.String(), text: errors.Join(errChanged, body.Close()).Error()}
	}
	r.body = body
	return nil
}

// Read reads on. It fails when the object is no longer the same, or cannot be read after several tries.
func (r *resumingReader) Read(p []byte) (int, error) {
	for {
		n, err := r.readSome(p)
		r.offset += int64(n)
		switch {
		case n > 0 || len(p) == 0:
			return n, nil
		case err != nil && r.offset == r.first.size:
			return 0, io.EOF
		case err == nil:
			continue
		case r.ctx.Err() != nil:
			return 0, context.Cause(r.ctx)
		}
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("the connection broke after %d of %d bytes", r.offset, r.first.size)
		}
		if err := r.reconnect(err); err != nil {
			return 0, explain("read", r.at, err)
		}
	}
}

func (r *resumingReader) readSome(p []byte) (int, error) {
	if r.body == nil {
		return 0, io.ErrUnexpectedEOF
	}
	return r.body.Read(p)
}

// reconnect goes on where a connection broke; why says what happened to it. Once tries are used up without a byte in between,
// reading ends.
func (r *resumingReader) reconnect(why error) error {
	if r.body != nil {
		_ = r.body.Close() // it is broken
		r.body = nil
	}
	err := r.store.retry(r.ctx, func() error {
		if err := r.connect(); err != nil {
			return err
		}
		// A connection that breaks again before its first byte counts as a try.
		var first [1]byte
		n, err := io.ReadFull(r.body, first[:])
		if n == 0 {
			err = errors.Join(err, r.body.Close())
			r.body = nil
			return err
		}
		r.body = prefixed{io.MultiReader(&oneByte{b: first[0]}, r.body), r.body}
		return nil
	})
	if err != nil {
		return errors.Join(err, why)
	}
	return nil
}

// prefixed reads a byte that was taken already, and then the rest.
type prefixed struct {
	io.Reader
	io.Closer
}

type oneByte struct {
	b    byte
	done bool
}

func (o *oneByte) Read(p []byte) (int, error) {
	if o.done || len(p) == 0 {
		return 0, io.EOF
	}
	p[0], o.done = o.b, true
	return 1, nil
}

// Close gives the connection back.
func (r *resumingReader) Close() error {
	if r.body == nil {
		return nil
	}
	return r.body.Close()
}
