package queue

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// A worker counts as there while it is, and not a moment longer when it ends by itself.
func TestPresence(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.connect("a")
	count := func() int {
		there, err := conn.workersThere(t.Context())
		if err != nil {
			t.Error(err)
		}
		return there[versionToken(thisVersion)]
	}
	end, endOther := startWorker(t, s.connect("a")), startWorker(t, s.connect("a"))
	waitFor(t, "two workers", func() bool { return count() == 2 })
	end()
	if n := count(); n != 1 {
		t.Errorf("%d workers are there after one of two has ended", n)
	}
	endOther()
	if n := count(); n != 0 {
		t.Errorf("%d workers are there after both have ended", n)
	}
}

// People are told at the start that no worker is there, unless workers start together with the sweep.
func TestNoWorkersAtTheStart(t *testing.T) {
	t.Parallel()
	for _, together := range []bool{false, true} {
		s := startServer(t)
		var mu sync.Mutex
		var told []string
		go func() {
			time.Sleep(firstLook + firstLook/2)
			startWorker(t, s.connect("a"))
		}()
		testSweep{t: t, conn: s.connect("a"), dir: t.TempDir(), change: func(o *CoordinatorOptions) {
			o.quietFor, o.watchEvery, o.WithWorkers = time.Hour, time.Hour, together
			o.Notice = func(text string) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, text)
			}
		}}.mustRun(testPoints(t, 2))
		mu.Lock()
		if got := strings.Contains(strings.Join(told, "\n"), "2 points wait in the queue and no worker"); got == together {
			t.Errorf("with workers %v, people were told %q", together, told)
		}
		mu.Unlock()
	}
}
