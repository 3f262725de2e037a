package capture

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxDecoded bounds what a compressed body becomes, in bytes.
const maxDecoded = 256 << 20

// decoded undoes the Content-Encoding of a body.
func decoded(body []byte, encoding string) ([]byte, error) {
	var r io.Reader
	var err error
	switch encoding {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(bytes.NewReader(body))
	case "deflate":
		r, err = zlib.NewReader(bytes.NewReader(body))
	case "zstd":
		d, failed := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxDecoded))
		if failed == nil {
			defer d.Close()
		}
		r, err = d, failed
	default:
		return nil, fmt.Errorf("content encoding %q is not known", encoding)
	}
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxDecoded+1))
	if err == nil && len(plain) > maxDecoded {
		err = fmt.Errorf("the body becomes larger than %d MiB", maxDecoded>>20)
	}
	return plain, err
}
