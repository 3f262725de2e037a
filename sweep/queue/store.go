package queue

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// objects is the object store of a namespace.
type objects struct {
	c *Connection
}

func (o objects) store(ctx context.Context) (s jetstream.ObjectStore, err error) {
	err = o.c.ask(ctx, func(ctx context.Context) error {
		s, err = o.c.js.ObjectStore(ctx, o.c.filesBucket())
		return err
	})
	return s, serverError("the object store "+o.c.filesBucket(), err)
}

// Has reports whether there is an object of this name, whole. One whose name is a digest must have it.
func (o objects) Has(ctx context.Context, name string) (bool, error) {
	s, err := o.store(ctx)
	if err != nil {
		return false, err
	}
	var info *jetstream.ObjectInfo
	err = o.c.ask(ctx, func(ctx context.Context) (err error) {
		info, err = s.GetInfo(ctx, name)
		return err
	})
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return false, nil
	}
	return err == nil && holds(info, name), serverError("looking for the file "+name, err)
}

// holds reports whether an object has the content that its name says, as far as the server knows.
func holds(info *jetstream.ObjectInfo, name string) bool {
	if !wire.IsSHA256(name) {
		return true
	}
	digest, err := hex.DecodeString(name)
	return err == nil && info.Digest == "SHA-256="+base64.URLEncoding.EncodeToString(digest)
}

// Put stores an object. It is there as a whole or not at all.
func (o objects) Put(ctx context.Context, name string, r io.Reader) error {
	s, err := o.store(ctx)
	if err != nil {
		return err
	}
	ctx, refusal := o.c.untilRefused(ctx)
	_, err = s.Put(ctx, jetstream.ObjectMeta{Name: name}, r)
	if refused := refusal(); err != nil && refused != nil {
		err = refused
	}
	return serverError("storing the file "+name, err)
}

// Get reads an object. The reader ends with an error when it is damaged.
func (o objects) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	s, err := o.store(ctx)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, longestTransfer)
	object, err := s.Get(ctx, name)
	if err != nil {
		stop()
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			return nil, err
		}
		return nil, serverError("reading the file "+name, err)
	}
	return &reading{object, stop}, nil
}

// longestTransfer bounds the time that one file takes.
const longestTransfer = 2 * time.Hour

// reading is an object that is being read.
type reading struct {
	io.ReadCloser
	stop context.CancelFunc
}

// Close gives up what was not read.
func (r *reading) Close() error {
	defer r.stop()
	return r.ReadCloser.Close()
}

// remove deletes an object. One that is not there is no error.
func (o objects) remove(ctx context.Context, name string) error {
	s, err := o.store(ctx)
	if err != nil {
		return err
	}
	err = o.c.ask(ctx, func(ctx context.Context) error { return s.Delete(ctx, name) })
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil
	}
	return serverError("removing the file "+name, err)
}

// producedName is the object of a file that a worker made for a point, and producedBy how those of a sweep begin.
func producedName(sweep, id, kind string) string { return producedBy(sweep) + id + "." + kind }
func producedBy(sweep string) string             { return "made." + sweep + "." }
