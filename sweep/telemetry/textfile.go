package telemetry

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/servegrid/servegrid/results"
)

// textFileInterval is the time between two writes of a metrics file.
const textFileInterval = 10 * time.Second

// TextFile keeps metrics in a file for the textfile collector of node_exporter, which is how jobs on nodes that nobody may
// connect to are watched. It leaves out the metrics of process and Go runtime, which node_exporter has of its own.
type TextFile struct {
	path     string
	gatherer prometheus.Gatherer
	stop     chan struct{}
	done     chan error
	once     sync.Once
	err      error
}

// WriteTextFile writes the file now, and then every ten seconds until Close. Readers never see a part of it.
func WriteTextFile(path string, m *Metrics) (*TextFile, error) {
	t := &TextFile{path: path, gatherer: m.ours, stop: make(chan struct{}), done: make(chan error, 1)}
	if err := t.write(); err != nil {
		return nil, err
	}
	go t.loop()
	return t, nil
}

func (t *TextFile) loop() {
	tick := time.NewTicker(textFileInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = t.write() // the last write says what is wrong
		case <-t.stop:
			t.done <- t.write()
			return
		}
	}
}

// Close writes the file for the last time.
func (t *TextFile) Close() error {
	t.once.Do(func() {
		close(t.stop)
		t.err = <-t.done
	})
	return t.err
}

func (t *TextFile) write() error {
	if err := prometheus.WriteToTextfile(t.path, t.gatherer); err != nil {
		return fmt.Errorf("metrics: %s cannot be written: %w", t.path, results.FileCause(err))
	}
	return nil
}
