package workload

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/servegrid/servegrid/simcore/files"
)

// maxLine bounds one line of a trace, so that a file without line breaks can't take all memory.
const maxLine = 64 << 20

// maxWindow bounds the memory that a zstd stream may ask for; it is the limit of the zstd program too.
const maxWindow = 128 << 20

// foreign lists compressed formats that users may hand in by mistake, by their first bytes.
var foreign = []struct {
	magic []byte
	name  string
}{
	{[]byte("\xfd7zXZ\x00"), "xz"},
	{[]byte("BZh"), "bzip2"},
	{[]byte("PK\x03\x04"), "zip"},
	{[]byte("PAR1"), "Parquet"},
}

// stat says what the path of a trace names.
func (s Source) stat(ctx context.Context, path string) (files.Info, error) {
	return files.Or(s.Files).Stat(ctx, path)
}

// openTrace opens a trace file, or the standard input for "-", and decompresses gzip and zstd by content.
// Waiting for a pipe ends with the context.
func (s Source) openTrace(ctx context.Context, path string) (io.ReadCloser, error) {
	var file io.ReadCloser
	if path == "-" {
		if s.Stdin == nil {
			return nil, errNoStdin
		}
		file = newPatientReader(ctx, func() (io.ReadCloser, error) { return io.NopCloser(s.Stdin), nil })
	} else {
		info, err := s.stat(ctx, path)
		open := func() (io.ReadCloser, error) { return files.Or(s.Files).Open(ctx, path) }
		switch {
		case err == nil && info.Folder:
			return nil, fmt.Errorf("failed to open trace file %s: it is a folder; name the file in it", files.Shown(path))
		case err == nil && !info.Regular:
			file = newPatientReader(ctx, open)
		default:
			if err == nil {
				file, err = open()
			}
			if err != nil {
				return nil, fmt.Errorf("failed to open trace file %s: %w", files.Shown(path), files.Cause(err))
			}
		}
	}
	r, err := decompress(file, s.MaxExpansion)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("trace file %s: %w", files.Shown(path), err)
	}
	return r, nil
}

// decompressed closes both the decoder and the file under it.
type decompressed struct {
	io.Reader
	close func()
	file  io.Closer
}

func (d decompressed) Close() error {
	if d.close != nil {
		d.close()
	}
	return d.file.Close()
}

func decompress(file io.ReadCloser, maxExpansion int) (io.ReadCloser, error) {
	packed := &counted{r: file}
	buffered := bufio.NewReaderSize(packed, 1<<16)
	head, err := buffered.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, &readError{0, fmt.Errorf("it starts like gzip but is damaged: %w", err)}
		}
		return decompressed{newExpansion(z, packed, maxExpansion), func() { z.Close() }, file}, nil
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, &readError{0, fmt.Errorf("it starts like zstd but is damaged: %w", err)}
		}
		return decompressed{newExpansion(z, packed, maxExpansion), z.Close, file}, nil
	}
	for _, f := range foreign {
		if bytes.HasPrefix(head, f.magic) {
			return nil, fmt.Errorf("is a %s file; a trace is plain text, gzip or zstd", f.name)
		}
	}
	return decompressed{buffered, nil, file}, nil
}

// lines reads a stream line by line without copying the lines that fit its buffer.
type lines struct {
	r      *bufio.Reader
	long   []byte
	number int // of the line last read, from 1
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 1<<18)} }

// next returns the next line without its end, valid until the following call, or io.EOF.
func (l *lines) next() ([]byte, error) {
	l.long = l.long[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if l.long = append(l.long, part...); len(l.long) > maxLine {
				l.number++
				return nil, &readError{l.number - 1, fmt.Errorf("line %d is longer than %d MiB; is this a trace?", l.number, maxLine>>20)}
			}
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, &readError{l.number, describeRead(err)}
		case err != nil && len(part) == 0 && len(l.long) == 0:
			return nil, io.EOF
		}
		l.number++
		if len(l.long) > 0 {
			l.long = append(l.long, part...)
			part = l.long
		}
		return bytes.TrimRight(part, "\r\n"), nil
	}
}

// readError says after which line a stream can't be read any further.
type readError struct {
	line int
	err  error
}

func (e *readError) Error() string {
	return fmt.Sprintf("cannot be read past line %d: %v", e.line, e.err)
}

func (e *readError) Unwrap() error { return e.err }

// describeRead says in the user's terms why a compressed stream ended early.
func describeRead(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the compressed stream is cut off; get the whole file")
	case errors.Is(err, gzip.ErrHeader):
		return errors.New("bytes that are not gzip follow the compressed stream")
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, zstd.ErrCRCMismatch):
		return errors.New("the compressed stream is damaged: its checksum does not match")
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return fmt.Errorf("the zstd stream needs a window above %d MiB; compress it again without --long", maxWindow>>20)
	}
	return err
}
