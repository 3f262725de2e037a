package workload

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

const twoRows = `{"timestamp":1,"output_length":1,"hash_ids":[1]}
{"timestamp":2,"output_length":2,"hash_ids":[2]}
`

func gzipped(t testing.TB, text string) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func zstdded(t testing.TB, text string) string {
	t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestCompression checks that the content decides how a trace is read, not its name.
func TestCompression(t *testing.T) {
	half := len(twoRows) / 2
	for name, content := range map[string]string{
		"plain.jsonl":               twoRows,
		"plain.jsonl.gz":            twoRows,
		"gzip.jsonl.gz":             gzipped(t, twoRows),
		"gzip.jsonl":                gzipped(t, twoRows),
		"two members.gz":            gzipped(t, twoRows[:half]) + gzipped(t, twoRows[half:]),
		"an empty member between":   gzipped(t, twoRows[:half]) + gzipped(t, "") + gzipped(t, twoRows[half:]),
		"zstd.jsonl.zst":            zstdded(t, twoRows),
		"zstd.jsonl.gz":             zstdded(t, twoRows),
		"two frames.zst":            zstdded(t, twoRows[:half]) + zstdded(t, twoRows[half:]),
		"a skippable frame between": zstdded(t, twoRows[:half]) + "\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + zstdded(t, twoRows[half:]),
	} {
		w, err := loadFiles(Source{}, writeTrace(t, name, content))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if w.Requests() != 2 || w.Output[1] != 2 {
			t.Errorf("%s: %d requests", name, w.Requests())
		}
	}
}

func TestStandardInput(t *testing.T) {
	for name, content := range map[string]string{"plain": twoRows, "gzip": gzipped(t, twoRows), "zstd": zstdded(t, twoRows)} {
		w, err := loadFiles(Source{Stdin: strings.NewReader(content)}, "-")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if w.Requests() != 2 {
			t.Errorf("%s: %d requests", name, w.Requests())
		}
	}
	if _, err := loadFiles(Source{}, "-"); err == nil || !strings.Contains(err.Error(), "needs a standard input") {
		t.Errorf("without standard input: %v", err)
	}
}

func TestUnreadableTraces(t *testing.T) {
	long := strings.Repeat(twoRows, 2000)
	gz, zst := gzipped(t, long), zstdded(t, long)
	flip := func(s string, at int) string {
		b := []byte(s)
		b[at] ^= 0x55
		return string(b)
	}
	for name, test := range map[string]struct{ content, want string }{
		"empty":                  {"", "did not contain any requests"},
		"blank":                  {"\n \r\n\t\n", "did not contain any requests"},
		"empty gzip":             {gzipped(t, ""), "did not contain any requests"},
		"empty zstd":             {zstdded(t, ""), "did not contain any requests"},
		"only a byte order mark": {"\ufeff", "did not contain any requests"},
		"truncated gzip":         {gz[:len(gz)/2], "the compressed stream is cut off; get the whole file"},
		"gzip without its end":   {gz[:len(gz)-5], "the compressed stream is cut off; get the whole file"},
		"gzip header only":       {gz[:5], "starts like gzip but is damaged"},
		"gzip checksum":          {flip(gz, len(gz)-6), "the compressed stream is damaged: its checksum does not match"},
		"gzip length":            {flip(gz, len(gz)-2), "the compressed stream is damaged: its checksum does not match"},
		"corrupt gzip":           {flip(gz, 30), "cannot be read past line"},
		"gzip and garbage":       {gz + "garbage", "cannot be read past line 4000"},
		"truncated zstd":         {zst[:len(zst)-20], "the compressed stream is cut off; get the whole file"},
		"zstd checksum":          {flip(zst, len(zst)-2), "the compressed stream is damaged: its checksum does not match"},
		"zstd and garbage":       {zst + "garbage!", "cannot be read past line"},
		"xz":                     {"\xfd7zXZ\x00\x00\x04", "is a xz file; a trace is plain text, gzip or zstd"},
		"bzip2":                  {"BZh91AY&SY", "is a bzip2 file; a trace is plain text, gzip or zstd"},
		"zip":                    {"PK\x03\x04\x14\x00", "is a zip file; a trace is plain text, gzip or zstd"},
		"Parquet":                {"PAR1\x15\x04\x15", "is a Parquet file; a trace is plain text, gzip or zstd"},
		"binary":                 {"\x00\x01\x02\xff\xfe", `:1: is not a JSON object: column 1 has '\x00' where '{' belongs`},
	} {
		path := writeTrace(t, "trace", test.content)
		_, err := loadFiles(Source{}, path)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s:\n got %v\nwant %s: ... %s", name, err, path, test.want)
		}
	}
	folder := t.TempDir()
	for path, want := range map[string]string{
		folder:             "failed to open trace file " + folder + ": it is a folder; name the file in it",
		folder + "/absent": "failed to open trace file " + folder + "/absent: no such file or directory",
	} {
		if _, err := loadFiles(Source{}, path); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestUnreadablePermission needs a user whom permissions bind.
func TestUnreadablePermission(t *testing.T) {
	path := writeTrace(t, "t.jsonl", twoRows)
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open(path); err == nil {
		f.Close()
		t.Skip("permissions do not bind this user")
	}
	if _, err := loadFiles(Source{}, path); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("got %v", err)
	}
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// hostileZstd is a frame that asks for a window of 2^log bytes and holds one small raw block.
func hostileZstd(log int, text string) string {
	out := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, byte(log-10) << 3}
	header := binary.LittleEndian.AppendUint32(nil, uint32(len(text))<<3|1)
	return string(append(append(out, header[:3]...), text...))
}

// TestHostileWindows checks that a few bytes cannot make the reader reserve a large part of the memory.
func TestHostileWindows(t *testing.T) {
	if w, err := loadFiles(Source{}, writeTrace(t, "t", hostileZstd(20, twoRows))); err != nil || w.Requests() != 2 {
		t.Fatalf("a small window: %v", err)
	}
	for _, log := range []int{29, 30, 33, 38, 41} {
		path := writeTrace(t, "t", hostileZstd(log, twoRows))
		var err error
		if n := allocated(func() { _, err = loadFiles(Source{}, path) }); n > 300<<20 {
			t.Errorf("a window of 2^%d bytes makes the reader allocate %d MiB", log, n>>20)
		}
		if err == nil {
			t.Errorf("a window of 2^%d bytes is accepted", log)
		} else if log < 31 && !strings.Contains(err.Error(), "needs a window above 128 MiB") {
			t.Errorf("a window of 2^%d bytes: %v", log, err)
		}
	}
}

// TestBombs checks that a small file that grows without end is refused, and does not take its size in memory.
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("it decompresses 240 MB")
	}
	for name, test := range map[string]struct{ text, want string }{
		"one line":    {"a", "line 1 is longer than 64 MiB"},
		"blank lines": {strings.Repeat(" ", 99) + "\n", "did not contain any requests"},
		"bad lines":   {"{" + strings.Repeat(" ", 1000) + "\n", "more bad lines"},
	} {
		const size = 80 << 20
		path := writeTrace(t, "bomb", zstdded(t, strings.Repeat(test.text, size/len(test.text))))
		var err error
		n := allocated(func() { _, err = loadFiles(Source{MaxExpansion: 1 << 20}, path) })
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if n > 400<<20 { // all that was ever allocated, so several times the memory in use
			t.Errorf("%s: the reader allocates %d MiB", name, n>>20)
		}
	}
}
