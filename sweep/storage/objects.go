package storage

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"
)

// objects is what this package needs of a bucket.
type objects interface {
	attributes(ctx context.Context, key string) (attributes, error)
	// read reads an object from an offset to its end.
	read(ctx context.Context, key string, offset int64) (io.ReadCloser, attributes, error)
	// write writes an object of a size as a whole: it is there once write returns nil, and not at all before.
	write(ctx context.Context, key string, content io.Reader, size int64, a attributes) error
	// list lists what begins with a prefix; folders are listed instead of what is in them when they count.
	list(ctx context.Context, prefix string, folders bool, each func(Object) error) error
	remove(ctx context.Context, key string) error
}

// attributes describe an object.
type attributes struct {
	size     int64
	modified time.Time
	// version changes with the content; it may be empty.
	version string
	md5     []byte
	// sha256 is what the writer noted, in hex; it may be empty.
	sha256 string
}

// shaKey is the name under which the checksum is noted with an object.
const shaKey = "sha256"

// driven is a bucket of a driver.
type driven struct{ *blob.Bucket }

func (d driven) attributes(ctx context.Context, key string) (attributes, error) {
	a, err := d.Attributes(ctx, key)
	if err != nil {
		return attributes{}, err
	}
	return attributes{size: a.Size, modified: a.ModTime, version: a.ETag, md5: a.MD5, sha256: a.Metadata[shaKey]}, nil
}

func (d driven) read(ctx context.Context, key string, offset int64) (io.ReadCloser, attributes, error) {
	r, err := d.NewRangeReader(ctx, key, offset, -1, nil)
	if err != nil {
		return nil, attributes{}, err
	}
	return r, attributes{size: r.Size(), modified: r.ModTime()}, nil
}

// singlePart is the largest upload for which storage checks an MD5 sum of the whole.
const singlePart = 4 << 20

func (d driven) write(ctx context.Context, key string, content io.Reader, size int64, a attributes) error {
	opt := &blob.WriterOptions{ContentType: "application/octet-stream", Metadata: map[string]string{shaKey: a.sha256}}
	if size <= singlePart {
		opt.ContentMD5 = a.md5
	}
	return d.Upload(ctx, key, content, opt)
}

func (d driven) list(ctx context.Context, prefix string, folders bool, each func(Object) error) error {
	opt := &blob.ListOptions{Prefix: prefix}
	if folders {
		opt.Delimiter = "/"
	}
	for found := d.List(opt); ; {
		o, err := found.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if isPartial(o.Key) {
			continue
		}
		if err := each(Object{Key: strings.TrimSuffix(o.Key, "/"), Folder: o.IsDir, Size: o.Size, Modified: o.ModTime}); err != nil {
			return err
		}
	}
}

func (d driven) remove(ctx context.Context, key string) error { return d.Delete(ctx, key) }

// isPartial reports whether a key is that of a file that is being written beside its place, in a folder of this machine.
func isPartial(key string) bool {
	name, found := strings.CutSuffix(key, ".tmp")
	if !found {
		return false
	}
	stamp := name[strings.LastIndexByte(name, '.')+1:]
	return len(stamp) == 16 && strings.Trim(stamp, "0123456789abcdef") == ""
}

// memory holds the buckets of mem:// URLs, which live as long as the process.
var memory sync.Map

// openObjects opens the bucket of a location.
func openObjects(ctx context.Context, l Location) (objects, error) {
	switch l.Scheme {
	case "file":
		b, err := fileblob.OpenBucket("/", &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
		if err != nil {
			return nil, err
		}
		return driven{b}, nil
	case "mem":
		b, _ := memory.LoadOrStore(l.Bucket, driven{memblob.OpenBucket(nil)})
		return b.(objects), nil
	}
	b, err := openCloud(ctx, l)
	if err != nil {
		return nil, err
	}
	return driven{b}, nil
}

func md5Of(data []byte) []byte {
	sum := md5.Sum(data)
	return sum[:]
}

// tooLarge refuses an object above a bound.
func tooLarge(l Location, size, limit int64) error {
	return &Error{Doing: "read", Where: l.String(), text: fmt.Sprintf("it has %d bytes, more than the %d that are allowed", size, limit)}
}
