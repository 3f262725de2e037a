package sweep

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/sweep/filelock"
)

// acquireLock keeps other sweeps out of the folder until the returned file is closed. The file stays: removing it
// would let a third sweep lock a new file while a second one still waits for the old.
func acquireLock(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("output folder %s cannot be written: %w; choose another one", dir, results.FileCause(err))
	}
	taken, err := tryLock(f)
	switch {
	case err != nil:
		err = fmt.Errorf("output folder %s cannot be locked: %w; choose a folder on another file system", dir, results.FileCause(err))
	case !taken:
		err = &EnvironmentError{fmt.Errorf("output folder %s is in use by another sweep%s; wait until it ends, or choose another folder", dir, owner(f))}
	default:
		if err = writeOwner(f); err == nil {
			return f, nil
		}
		err = fmt.Errorf("output folder %s cannot be written: %w; choose another one", dir, results.FileCause(err))
	}
	f.Close()
	return nil, err
}

// Somebody who asks whether a folder is in use, as [Inspect] does, holds its lock for some microseconds.
const (
	lockTries    = 4
	lockInterval = 20 * time.Millisecond
)

// tryLock takes the lock unless another sweep has it.
func tryLock(f *os.File) (taken bool, err error) {
	for try := 1; ; try++ {
		if taken, err = filelock.Try(f); taken || err != nil || try == lockTries {
			return taken, err
		}
		time.Sleep(lockInterval)
	}
}

func writeOwner(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// owner names the process that holds the lock, when it has already said so.
func owner(f *os.File) string {
	text := make([]byte, 32)
	n, _ := f.ReadAt(text, 0)
	if pid := strings.TrimSpace(string(text[:n])); pid != "" {
		return " (process " + pid + ")"
	}
	return ""
}
