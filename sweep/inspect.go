package sweep

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/sweep/filelock"
)

// FolderState is what an output folder says about itself, without its spec.
type FolderState struct {
	// Running says that a sweep has the folder; PID is its process, 0 when that is not known.
	Running bool
	PID     int
	// Sweep is the name of the sweep and Simulator the semantic version that went on with the journal last.
	Sweep, Simulator string
	// Size is the length of the journal in bytes and Written when it was last written to; zero when there is none.
	Size    int64
	Written time.Time
	// Read says that the journal was read. It is not when it is longer than the limit; the figures below are missing then.
	Read bool
	// Results counts the points that have a result, Failures those of them that failed, by reason.
	Results  int
	Failures map[string]int
	// OtherVersions counts the results that this program would not use again: they are of another version of the simulator.
	OtherVersions int
	// Damaged counts unreadable lines. Torn is the number of bytes at the end that are no whole line: a commit that is on
	// its way, or was cut off by a crash.
	Damaged int
	Torn    int64
}

// Inspect looks at an output folder and changes nothing, also while a sweep writes to it. Limit bounds the journals that
// are read, in bytes. The error is [fs.ErrNotExist] when the folder has no journal.
func Inspect(dir string, limit int64) (FolderState, error) {
	path := filepath.Join(dir, JournalFile)
	f, err := os.Open(path)
	if err != nil {
		return FolderState{}, fmt.Errorf("%s: %w", path, results.FileCause(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return FolderState{}, fmt.Errorf("%s: %w", path, results.FileCause(err))
	}
	state := FolderState{Size: info.Size(), Written: info.ModTime()}
	if state.Running, state.PID, err = inUse(dir); err != nil {
		return FolderState{}, err
	}
	size := info.Size() // what comes later is of no interest
	if size > limit {
		size = min(size, maxLine)
	} else {
		state.Read = true
	}
	j, err := readJournal(io.LimitReader(f, size), metricNames())
	if err != nil {
		return FolderState{}, fmt.Errorf("%s: %w", path, err)
	}
	state.Sweep, state.Simulator = j.last.Sweep, j.last.Simulator
	if !state.Read {
		return state, nil
	}
	state.Results, state.Damaged, state.Torn = len(j.results), j.damaged, size-j.size
	state.Failures = map[string]int{}
	for _, r := range j.results {
		if !r.usable(simcore.SemanticVersion) {
			state.OtherVersions++
		}
		if r.Status == results.StatusFailed {
			state.Failures[r.Reason]++
		}
	}
	return state, nil
}

// inUse reports whether a sweep has a folder, and which process that is.
func inUse(dir string) (running bool, pid int, err error) {
	f, err := os.Open(filepath.Join(dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, 0, nil
	}
	if err == nil {
		defer f.Close()
		running, err = filelock.Held(f)
	}
	if err != nil {
		return false, 0, fmt.Errorf("%s: %w", filepath.Join(dir, lockFile), results.FileCause(err))
	}
	text := make([]byte, 32)
	n, _ := f.ReadAt(text, 0)
	if end := slices.Index(text[:n], '\n'); end > 0 {
		pid, _ = strconv.Atoi(string(text[:end]))
	}
	return running, pid, nil
}
