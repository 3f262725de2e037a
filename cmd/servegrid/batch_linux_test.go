package main

import (
	"os"
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
