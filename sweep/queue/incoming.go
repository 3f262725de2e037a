package queue

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/servegrid/servegrid/sweep/filelock"
)

// incoming is the folder of a process, below that of a cache, for what is not whole yet. The system gives its lock back when the
// process ends in whatever way, so that the next one can tell what is left of it.
type incoming struct {
	root *os.Root
	name string
	lock *os.File
}

const (
	// incomingPrefix begins the names of these folders.
	incomingPrefix = "incoming-"
	incomingLock   = "lock"
	// staleAfter is when a folder belongs to nobody any more whose lock cannot be tried.
	staleAfter = 24 * time.Hour
)

// openIncoming removes what others left behind and makes a folder for this process.
func openIncoming(root *os.Root) (*incoming, error) {
	removeLeft(root)
	for {
		i := &incoming{root: root, name: incomingPrefix + randomToken()}
		if err := root.Mkdir(i.name, 0o700); err != nil {
			return nil, err
		}
		lock, err := root.OpenFile(i.name+"/"+incomingLock, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			continue // somebody took it for a folder that was left
		}
		if err != nil {
			return nil, err
		}
		i.lock = lock
		if taken, err := filelock.Try(lock); (taken || err != nil) && i.isThere() {
			return i, nil // without a lock where the file system has none
		}
		_ = lock.Close() // nothing was written
	}
}

// isThere reports whether the lock is still that of the folder.
func (i *incoming) isThere() bool {
	own, err := i.lock.Stat()
	there, otherErr := i.root.Stat(i.name + "/" + incomingLock)
	return err == nil && otherErr == nil && os.SameFile(own, there)
}

// path is a new name in the folder, which may have been emptied with the rest of the cache.
func (i *incoming) path() string {
	_ = i.root.MkdirAll(i.name, 0o700) // whoever writes there says what is wrong
	return i.name + "/" + randomToken()
}

// create makes a new file in the folder of a cache's folder.
func (i *incoming) create(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, filepath.FromSlash(i.path())), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

// close removes the folder.
func (i *incoming) close() error { return removeFolder(i.root, i.name, i.lock) }

// removeFolder removes the folder of a process with everything in it, as long as its lock is held.
func removeFolder(root *os.Root, name string, lock *os.File) error {
	err := root.RemoveAll(name)
	if closed := lock.Close(); err != nil {
		return errors.Join(closed, root.RemoveAll(name)) // where a file that is open cannot be removed
	}
	return nil
}

// removeLeft removes the folders of processes that are gone. What cannot be removed is left to the next one.
func removeLeft(root *os.Root) {
	entries, _ := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), incomingPrefix) {
			continue
		}
		lock, err := root.OpenFile(e.Name()+"/"+incomingLock, os.O_RDWR, 0)
		if err == nil {
			taken, tryErr := filelock.Try(lock)
			if taken {
				_ = removeFolder(root, e.Name(), lock)
				continue
			}
			err = errors.Join(tryErr, lock.Close())
			if err == nil {
				continue // somebody's
			}
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > staleAfter {
			_ = root.RemoveAll(e.Name())
		}
	}
}

// cacheError says that the folder of a cache cannot be used.
func cacheError(err error) error { return fmt.Errorf("the cache of files: %w", err) }
