package sweep

import (
	"errors"
	"strings"
	"sync"
	"testing"
)

// replicas takes in what a sweep replicates.
type replicas struct {
	mu   sync.Mutex
	ids  map[string]bool
	fail error
}

func (r *replicas) take(lines []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return r.fail
	}
	rows, err := decodeRows(lines, "test")
	for _, row := range rows {
		r.ids[row.ID] = true
	}
	return err
}

// finishedLater fails when a point counts as finished before it was replicated.
type finishedLater struct {
	NopObserver
	t *testing.T
	r *replicas
}

func (o finishedLater) PointFinished(f Finished) {
	o.r.mu.Lock()
	defer o.r.mu.Unlock()
	if f.Simulated && !o.r.ids[f.Row.ID] {
		o.t.Errorf("point %s counts as finished and was not replicated", f.Row.ID)
	}
}

func TestPointsAreReplicatedBeforeTheyCount(t *testing.T) {
	r := &replicas{ids: map[string]bool{}}
	opt := testOptions(t.TempDir())
	opt.semanticVersion, opt.Replicate, opt.Observer = "test", r.take, finishedLater{t: t, r: r}
	out, err := Run(t.Context(), testPoints(20), opt)
	if err != nil || out.Counts.OK != 20 || len(r.ids) != 20 {
		t.Errorf("%+v, %d replicated, %v", out.Counts, len(r.ids), err)
	}
}

func TestFailedReplicationStopsTheSweep(t *testing.T) {
	r := &replicas{ids: map[string]bool{}, fail: errors.New("no bucket")}
	opt := testOptions(t.TempDir())
	opt.semanticVersion, opt.Replicate = "test", r.take
	out, err := Run(t.Context(), testPoints(20), opt)
	if err == nil || !strings.Contains(err.Error(), "the sweep stopped: no bucket") || out.Counts.OK != 0 {
		t.Errorf("%+v, %v", out.Counts, err)
	}
	// What was simulated is on the disk, and is not simulated again.
	r.fail = nil
	out, err = Run(t.Context(), testPoints(20), opt)
	if err != nil || out.Counts.OK != 20 || out.Counts.Reused == 0 || out.Counts.Simulated+out.Counts.Reused != 20 {
		t.Errorf("%+v, %v", out.Counts, err)
	}
}
