package capture

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func newShardsT(t *testing.T, dir string, rollBytes int64, rollEvery time.Duration) *shards {
	t.Helper()
	s, err := newShards(dir, "x", rollBytes, rollEvery)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() })
	return s
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// flush adds a line and writes it.
func flush(t *testing.T, s *shards, line string) {
	t.Helper()
	s.add([]byte(line), true)
	if _, _, err := s.flush(); err != nil {
		t.Fatal(err)
	}
}

func TestFilesRollBySize(t *testing.T) {
	dir := t.TempDir()
	s := newShardsT(t, dir, 100, 0)
	for i := range 5 {
		flush(t, s, fmt.Sprintf("line %d %s", i, strings.Repeat("x", 10*i)))
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); got != "x.000000.jsonl.gz x.000001.jsonl.gz x.000002.jsonl.gz" {
		t.Errorf("files are %s", got)
	}
	for _, e := range strings.Fields(names(t, dir)) {
		if info, err := os.Stat(filepath.Join(dir, e)); err != nil || info.Size() > 100 {
			t.Errorf("%s is larger than allowed", e)
		}
	}
	if lines := strings.Count(trace(t, dir, "*"), "\n"); lines != 5 {
		t.Errorf("%d lines", lines)
	}
	// Another capture goes on behind the last file, whatever ended the one before.
	again := newShardsT(t, dir, 100, 0)
	flush(t, again, "more")
	if got := names(t, dir); !strings.HasSuffix(got, "x.000003.jsonl.gz") {
		t.Errorf("files are %s", got)
	}
}

func TestFilesRollByTime(t *testing.T) {
	dir := t.TempDir()
	s := newShardsT(t, dir, 1<<20, time.Millisecond)
	flush(t, s, "a")
	time.Sleep(5 * time.Millisecond)
	flush(t, s, "b")
	if got := names(t, dir); got != "x.000000.jsonl.gz x.000001.jsonl.gz" {
		t.Errorf("files are %s", got)
	}
}

func TestNoFileWithoutRecords(t *testing.T) {
	dir := t.TempDir()
	s := newShardsT(t, dir, 100, 0)
	if _, _, err := s.flush(); err != nil || names(t, dir) != "" {
		t.Errorf("files are %q, %v", names(t, dir), err)
	}
}

func TestAFileThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	s := newShardsT(t, dir, 1<<20, 0)
	flush(t, s, "good")
	_ = s.file.Close()
	s.add([]byte("lost"), true)
	if _, _, err := s.flush(); !errors.Is(err, os.ErrClosed) || len(s.lines) > 0 || s.requests > 0 {
		t.Errorf("%v, %d bytes wait", err, len(s.lines))
	}
	if got := trace(t, dir, "*"); got != "good\n" {
		t.Errorf("the trace is %q", got)
	}
}

// TestKilled kills a process that writes a trace: all that it had flushed is there, in whole gzip members.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("CAPTURE_TEST_DIR"); dir != "" {
		writeForEver(dir)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(self, "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "CAPTURE_TEST_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	flushed := 0
	for scan := bufio.NewScanner(out); flushed < 50 && scan.Scan(); {
		if _, err := fmt.Sscanf(scan.Text(), "flushed %d", &flushed); err != nil {
			t.Fatal(scan.Text())
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	packed, err := os.ReadFile(filepath.Join(dir, "x.000000.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	lines, whole := wholeMembers(packed)
	if lines < flushed || whole != len(packed) {
		t.Errorf("%d lines in %d of %d bytes are whole, and %d were flushed", lines, whole, len(packed), flushed)
	}
}

// writeForEver writes a line a member and says so.
func writeForEver(dir string) {
	s, err := newShards(dir, "x", 1<<30, 0)
	for i := 1; err == nil; i++ {
		s.add([]byte("line"), true)
		if _, _, err = s.flush(); err == nil {
			_, err = fmt.Printf("flushed %d\n", i)
		}
	}
}

// wholeMembers counts the lines of gzip members that are complete, and the bytes that these take.
func wholeMembers(packed []byte) (lines, whole int) {
	r := bytes.NewReader(packed)
	z, err := gzip.NewReader(r)
	for ; err == nil; err = z.Reset(r) {
		z.Multistream(false)
		plain, err := io.ReadAll(z)
		if err != nil {
			break
		}
		lines += bytes.Count(plain, []byte("\n"))
		whole = len(packed) - r.Len()
	}
	return lines, whole
}
