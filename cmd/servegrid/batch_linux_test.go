package main

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Every thread of a worker is batch work.
func TestRunAsBatch(t *testing.T) {
	t.Cleanup(func() {
		for _, id := range threads(t) {
			_ = unix.SchedSetAttr(id, &unix.SchedAttr{Policy: unix.SCHED_NORMAL}, 0) // it may have ended
		}
	})
	if err := runAsBatch(); err != nil {
		t.Skip("this system does not let a program change how it is scheduled: ", err)
	}
	for _, id := range threads(t) {
		if attr, err := unix.SchedGetAttr(id, 0); err == nil && attr.Policy != unix.SCHED_BATCH {
			t.Errorf("thread %d of %d has the policy %d", id, os.Getpid(), attr.Policy)
		}
	}
}

// What somebody chose for a worker stays: its nice value, and a policy that is not the usual one.
func TestSetBatchKeeps(t *testing.T) {
	for name, tt := range map[string]struct{ given, want unix.SchedAttr }{
		"nice": {unix.SchedAttr{Policy: unix.SCHED_NORMAL, Nice: 7}, unix.SchedAttr{Policy: unix.SCHED_BATCH, Nice: 7}},
		"idle": {unix.SchedAttr{Policy: unix.SCHED_IDLE}, unix.SchedAttr{Policy: unix.SCHED_IDLE}},
	} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread() // and not unlocked: the thread ends with its goroutine
			own := unix.Gettid()
			if err := unix.SchedSetAttr(own, &tt.given, 0); err != nil {
				t.Skip("this system does not let a program change how it is scheduled: ", err)
			}
			if err := setBatch(own); err != nil {
				t.Fatal(err)
			}
			if attr, err := unix.SchedGetAttr(own, 0); err != nil || attr.Policy != tt.want.Policy || attr.Nice != tt.want.Nice {
				t.Errorf("policy %d, nice %d, error %v", attr.Policy, attr.Nice, err)
			}
		})
	}
}

func threads(t *testing.T) (ids []int) {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}
