package sweep

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/servegrid/servegrid/results"
)

// mountTmpfs mounts a small file system, or skips the test where that is not allowed.
func mountTmpfs(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestFullDisk(t *testing.T) {
	dir := mountTmpfs(t, "size=256k")
	opt := testOptions(filepath.Join(dir, "out"))
	points := testPoints(2000)
	out, err := Run(t.Context(), points, opt)
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "finished points are kept: make room") {
		t.Fatalf("err = %v", err)
	}
	kept := len(out.Rows)
	if j := mustReadJournal(t, opt.Dir); len(j.results) != kept || kept == 0 || kept == len(points) {
		t.Errorf("%d points in the journal, %d rows", len(j.results), kept)
	}
	if out.Interrupted {
		t.Error("a full disk is no interruption")
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	rest := mustRun(t, points, opt)
	if want := (Counts{Total: 2000, OK: 2000, Simulated: 2000 - kept, Reused: kept}); rest.Counts != want {
		t.Errorf("after making room: %+v, want %+v", rest.Counts, want)
	}
}

// A disk that has no room for the results file leaves the old one, and the journal.
func TestNoRoomForResults(t *testing.T) {
	dir := mountTmpfs(t, "size=256k")
	opt := testOptions(filepath.Join(dir, "out"))
	first := mustRun(t, testPoints(5), opt)
	opt.WriteResults = func(path string, rows []results.Row) error {
		if len(rows) < 10 {
			return unix.ENOSPC // really filling the disk now would take the journal's room, which is another test
		}
		return os.WriteFile(path, make([]byte, 1<<20), 0o666)
	}
	out, err := Run(t.Context(), testPoints(10), opt)
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "results.parquet cannot be written") || out.ResultsWritten {
		t.Errorf("err = %v", err)
	}
	if out.Counts.OK != 10 {
		t.Errorf("counts %+v", out.Counts)
	}
	file, err := readTestFile(filepath.Join(opt.Dir, ResultsFile))
	if err != nil || file.Rows != len(first.Rows) {
		t.Errorf("the old results file: %d rows, %v", file.Rows, err)
	}
	if _, err := os.Stat(filepath.Join(opt.Dir, ResultsFile+tmpSuffix)); err == nil {
		t.Error("the unfinished file takes up room")
	}
}

func TestReadOnlyFileSystem(t *testing.T) {
	dir := mountTmpfs(t, "size=64k")
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "out")} {
		if _, err := Run(t.Context(), testPoints(1), testOptions(path)); !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), "choose another one") {
			t.Errorf("err = %v", err)
		}
	}
}
