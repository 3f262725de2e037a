package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/servegrid/servegrid/simcore/workload"
	"github.com/servegrid/servegrid/simcore/workload/tracetools"
)

// TestInterruptedConversion checks that an interrupt ends the writing and leaves nothing behind.
func TestInterruptedConversion(t *testing.T) {
	chat, err := workload.PresetSpec{Name: workload.PresetChat, Requests: 100}.Generate()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, format := range tracetools.Formats() {
		dir := t.TempDir()
		out := traceOutput{target: tracetools.Target{Format: format}, path: filepath.Join(dir, "out")}
		if err := out.write(ctx, &state{}, chat); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", format, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s leaves %v, %v", format, left, err)
		}
	}
}
