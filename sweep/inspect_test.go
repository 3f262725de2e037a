package sweep

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/servegrid/servegrid/results"
)

func TestInspect(t *testing.T) {
	dir := t.TempDir()
	if _, err := Inspect(dir, 1<<20); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without a journal: %v", err)
	}
	rows := []results.Row{
		{ID: "a", Status: results.StatusOK, Metrics: noMetrics()},
		{ID: "b", Status: results.StatusFailed, Reason: "timeout"},
		{ID: "c", Status: results.StatusFailed, Reason: "timeout"},
		{ID: "c", Status: results.StatusOK, Metrics: noMetrics()}, // the later one counts
	}
	lines, err := EncodeRows(rows)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, JournalFile)
	torn := append(lines[:len(lines):len(lines)], `{"id":"d","sta`...)
	if err := os.WriteFile(path, torn, 0o666); err != nil {
		t.Fatal(err)
	}
	got, err := Inspect(dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Read || got.Results != 3 || got.Failures["timeout"] != 1 || got.Torn != 14 || got.Damaged != 0 || got.Running || got.OtherVersions != 0 {
		t.Errorf("%+v", got)
	}
	if got, err = Inspect(dir, 10); err != nil || got.Read || got.Size != int64(len(torn)) || got.Results != 0 {
		t.Errorf("a journal that is too long: %+v %v", got, err)
	}

	f, err := acquireLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err = Inspect(dir, 1<<20); err != nil || !got.Running || got.PID != os.Getpid() {
		t.Errorf("%+v %v", got, err)
	}
}

// Who asks whether a folder is in use does not keep a sweep out of it.
func TestInspectIsNotInTheWay(t *testing.T) {
	dir := t.TempDir()
	lines, err := EncodeRows(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, JournalFile), lines, 0o666); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
				if _, err := Inspect(dir, 1<<20); err != nil {
					stopped <- err
					return
				}
			}
		}
	}()
	for range 200 {
		f, err := acquireLock(dir)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
