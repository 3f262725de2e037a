package queue

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// TokenFile holds a sweep's name in the queue, in its output folder.
const TokenFile = ".queue"

// sweepToken is the name of a folder's sweep in the queue; it is made the first time.
func sweepToken(dir string) (string, error) {
	name, err := readToken(dir)
	if err != nil || name != "" {
		return name, err
	}
	name = randomToken()
	path := filepath.Join(dir, TokenFile)
	if err := os.WriteFile(path, []byte(name+"\n"), 0o666); err != nil {
		return "", fmt.Errorf("queue: the sweep's name cannot be kept: %w", err)
	}
	return name, nil
}

// readToken returns an empty name when there is none, or none that was written whole.
func readToken(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, TokenFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("queue: the sweep's name cannot be read: %w", err)
	}
	name := strings.TrimSpace(string(text))
	if wire.CheckToken("sweep", name) != nil {
		return "", nil
	}
	return name, nil
}

func removeToken(dir string) error {
	if err := os.Remove(filepath.Join(dir, TokenFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("queue: the sweep's earlier name cannot be removed: %w", err)
	}
	return nil
}
