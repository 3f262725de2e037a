package workload

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// bomb writes a compressed trace whose one row is followed by blank lines of the given size.
func bomb(t *testing.T, name string, size int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var z io.WriteCloser = gzip.NewWriter(f)
	if strings.HasSuffix(name, ".zst") {
		if z, err = zstd.NewWriter(f, zstd.WithEncoderConcurrency(1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(z, `{"timestamp": 0, "input_length": 10, "output_length": 10, "hash_ids": [1]}`+"\n"); err != nil {
		t.Fatal(err)
	}
	blank := bytes.Repeat([]byte(strings.Repeat(" ", 1023)+"\n"), 1024)
	for range size >> 20 {
		if _, err := z.Write(blank); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDecompressionBombsAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("decompresses a gigabyte")
	}
	for _, name := range []string{"bomb.jsonl.gz", "bomb.jsonl.zst"} {
		path := bomb(t, name, expansionFloor+10<<20)
		_, err := Spec{Trace: &TraceSpec{Path: path, Format: FormatMooncake}}.Load(t.Context(), Source{})
		if err == nil || !strings.Contains(err.Error(), "more than 250 times as large") || !strings.Contains(err.Error(), "--max-expansion") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := (Spec{Trace: &TraceSpec{Path: path, Format: FormatMooncake}}).Load(t.Context(), Source{MaxExpansion: 1 << 30}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExpansionIsMeasured(t *testing.T) {
	read := func(size, packed int64, allowed int) error {
		e := newExpansion(io.LimitReader(zeros{}, size), &counted{n: packed}, allowed)
		_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, e, make([]byte, 1<<20))
		return err
	}
	for _, tc := range []struct {
		size, packed int64
		allowed      int
		refused      bool
	}{
		{expansionFloor, 1, 0, false},
		{expansionFloor + 1, 1, 0, true},
		{expansionFloor + 1, expansionFloor / 100, 0, false},
		{expansionFloor + 1, expansionFloor / 100, 50, true},
	} {
		if err := read(tc.size, tc.packed, tc.allowed); (err != nil) != tc.refused {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
