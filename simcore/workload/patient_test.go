package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Waiting for the next bytes of a pipe ends with the context, wherever it waits.
func TestPipesEndWithTheContext(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("named pipes are made another way on Windows")
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	stdin, writer := io.Pipe()
	defer writer.Close()
	go func() { _, _ = io.WriteString(writer, `{"hash_ids":[1],"output_length":1}`+"\n") }()
	for _, path := range []string{"-", fifo} {
		t.Run(path, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			trace := DefaultTraceSpec()
			trace.Format = FormatMooncake
			trace.Path = path
			if _, err := (Spec{Trace: &trace}).Load(ctx, Source{Stdin: stdin}); !errors.Is(err, context.Canceled) {
				t.Errorf("err = %v", err)
			}
		})
	}
	// Frees the goroutine that waits for the pipe to be opened.
	if f, err := os.OpenFile(fifo, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
		f.Close()
	}
}

func TestPipe(t *testing.T) {
	trace := DefaultTraceSpec()
	trace.Format = FormatMooncake
	trace.Path = "-"
	var rows strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&rows, `{"timestamp":%d,"input_length":600,"hash_ids":[1,%d],"output_length":1}`+"\n", i, i+2)
	}
	w, err := Spec{Trace: &trace}.Load(t.Context(), Source{Stdin: strings.NewReader(rows.String())})
	if err != nil || w.Requests() != 5000 {
		t.Fatalf("%v, %v", w, err)
	}
}

func TestStdinTwice(t *testing.T) {
	trace := DefaultTraceSpec()
	trace.Format = FormatMooncake
	trace.Paths = []string{"-", "-"}
	if err := (Spec{Trace: &trace}).Validate().Err(); err == nil || !strings.Contains(err.Error(), "once") {
		t.Errorf("err = %v", err)
	}
}

// Garbage without end is given up.
func TestEndlessGarbage(t *testing.T) {
	trace := DefaultTraceSpec()
	trace.Format = FormatMooncake
	trace.Path = "-"
	_, err := Spec{Trace: &trace}.Load(t.Context(), Source{Stdin: endless{}})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("and %d more bad lines", maxBadLines)) {
		t.Errorf("err = %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "garbage\n"[i%8]
	}
	return len(p) &^ 7, nil
}
