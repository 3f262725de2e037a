package sweep

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain also plays the process that the kill test kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		os.Exit(runChild(dir))
	}
	goleak.VerifyTestMain(m)
}
