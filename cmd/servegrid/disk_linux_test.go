package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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

// remount changes the options of a file system that mountTmpfs made.
func remount(t *testing.T, dir string, flags uintptr, options string) {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT|flags, options); err != nil {
		t.Fatal(err)
	}
}

// refused runs a command line that must be refused with a message that holds all of want, and wantsRoom one that must say so of a
// disk.
func refused(t *testing.T, want []string, args ...string) {
	t.Helper()
	ends(t, exitRefused, want, args...)
}

func wantsRoom(t *testing.T, want []string, args ...string) {
	t.Helper()
	ends(t, exitAway, append(want, "no space left on device"), args...)
}

func ends(t *testing.T, code int, want []string, args ...string) {
	t.Helper()
	got := runCommand(t, args...)
	for _, text := range want {
		if got.code != code || !strings.Contains(got.stderr, text) {
			t.Errorf("servegrid %s: exit code %d, no %q in: %s", strings.Join(args, " "), got.code, text, got.stderr)
		}
	}
}

const manySpec = `
name: many
workload: {synthetic: {input_tokens: 10, output_tokens: 2, requests: 1}}
grid: {deployment.workers: {range: [1, 1000, 1]}}
`

// A full disk ends the sweep with a message that says what is kept; with more room the same command goes on.
func TestFullDisk(t *testing.T) {
	disk := mountTmpfs(t, "size=400k")
	spec, dir := writeSpec(t, manySpec), filepath.Join(disk, "out")
	wantsRoom(t, []string{"finished points are kept: make room and run the same sweep again"}, "sweep", spec, "-o", dir)
	remount(t, disk, 0, "size=64m")
	got := mustRun(t, "sweep", spec, "-o", dir)
	if !strings.Contains(got.stdout, "1000 points: 1000 ok, 0 failed") || !strings.Contains(got.stdout, " reused") {
		t.Errorf("after making room: %s", got.stdout)
	}
	if rows := readResultsFile(t, filepath.Join(dir, "results.parquet")).Rows(); rows != 1000 {
		t.Errorf("%d rows", rows)
	}
}

// A disk that has no room for the report names the file; nothing half-written stays.
func TestNoRoomForReport(t *testing.T) {
	disk := mountTmpfs(t, "size=130k")
	spec, dir := writeSpec(t, strings.Replace(manySpec, "1000", "3", 1)), filepath.Join(disk, "out")
	wantsRoom(t, []string{"report.html"}, "sweep", spec, "-o", dir)
	if files, _ := filepath.Glob(filepath.Join(dir, "*report.html*")); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
	remount(t, disk, 0, "size=64m")
	if got := mustRun(t, "sweep", spec, "-o", dir); !strings.Contains(got.stdout, "0 simulated now, 3 reused") {
		t.Errorf("after making room: %s", got.stdout)
	}
}

// Nothing can be written into a read-only folder, and every command says which file it was about.
func TestReadOnlyFolder(t *testing.T) {
	disk := mountTmpfs(t, "size=1m")
	trace := filepath.Join(disk, "trace.jsonl")
	if err := os.WriteFile(trace, []byte(`{"timestamp": 0, "input_length": 10, "output_length": 3, "hash_ids": [1]}`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	spec := writeSpec(t, strings.Replace(manySpec, "1000", "3", 1))
	done := filepath.Join(t.TempDir(), "out")
	mustRun(t, "sweep", spec, "-q", "-o", done)
	at := func(name string) string { return filepath.Join(disk, name) }
	if err := os.Mkdir(at("empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	remount(t, disk, unix.MS_RDONLY, "")
	refused(t, []string{"output folder " + at("empty"), "read-only file system; choose another one"}, "sweep", spec, "-o", at("empty"))
	refused(t, []string{"output folder " + at("out"), "read-only file system; choose another one"}, "sweep", spec, "-o", at("out"))
	refused(t, []string{"--report-json", "read-only"}, "replay", trace, "--report-json", at("report.json"))
	refused(t, []string{"--report-json", "read-only"}, "replay", trace, "--report-json", at("new/report.json"))
	refused(t, []string{"--report-jsonl", "read-only"}, "replay", trace, "--report-jsonl", at("requests.jsonl"))
	refused(t, []string{at("report.html"), "read-only"}, "report", done, "-o", at("report.html"))
	refused(t, []string{at("all.csv"), "read-only"}, "pareto", done, "-o", at("all.csv"))
	refused(t, []string{at("grid.yaml"), "read-only"}, "spec", "init", at("grid.yaml"))
	mustRun(t, "sweep", spec, "-o", at("empty"), "--dry-run")
}
