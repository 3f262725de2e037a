package sweep

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
)

// The results file appears with the first finished point, grows while the sweep runs, and is whole whenever it is
// looked at.
func TestResultsFileWhileRunning(t *testing.T) {
	opt := testOptions(t.TempDir())
	var writes atomic.Int64
	opt.WriteResults = func(path string, rows []results.Row) error {
		writes.Add(1)
		return testWrite(path, rows)
	}
	opt.Jobs = 2
	opt.Simulate = func(ctx context.Context, job Job) (*simcore.Report, error) {
		time.Sleep(10 * time.Millisecond)
		return testSimulate(ctx, job)
	}
	done := make(chan Outcome)
	go func() {
		out, err := Run(context.Background(), testPoints(500), opt) // 2.5 s
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	path := filepath.Join(opt.Dir, ResultsFile)
	seen := map[int]bool{}
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(time.Millisecond):
		}
		file, err := readTestFile(path)
		if errors.Is(err, fs.ErrNotExist) && len(seen) == 0 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		seen[file.Rows] = true
	}
	if len(seen) < 3 || !seen[500] || writes.Load() > 5 {
		t.Errorf("%d states seen, %d writes", len(seen), writes.Load())
	}
}

func TestReplaceFileCleansUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	bad := errors.New("bad")
	err := replaceFile(path, func(tmp string) error {
		if err := os.WriteFile(tmp, []byte("half"), 0o666); err != nil {
			return err
		}
		return bad
	})
	if err != bad {
		t.Errorf("err = %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}
