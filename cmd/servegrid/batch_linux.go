package main

import (
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// batchSlice is how long a worker asks to keep a core once it has it. Kernels before 6.12 choose by themselves.
const batchSlice = 20 * time.Millisecond

// runAsBatch tells the system that nobody waits for this program at a screen. Where several workers share cores, their threads
// wake up hundreds of times a second; without this each time may push another worker's simulation off its core and out of its
// caches, which took 3 % of the time of eight workers on two cores. See sched(7) on SCHED_BATCH, which needs no privilege; where it
// is not to be had everything works as well, only slower. Nice values stay, and so do other policies, which somebody chose.
func runAsBatch() error {
	done := map[string]bool{}
	// Threads that start later have it from those that start them, but one may start while the others are told.
	for more := true; more; {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		more = false
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil || done[t.Name()] {
				continue
			}
			if err := setBatch(id); err != nil && !errors.Is(err, unix.ESRCH) { // or it has ended
				return err
			}
			done[t.Name()], more = true, true
		}
	}
	return nil
}

func setBatch(thread int) error {
	attr, err := unix.SchedGetAttr(thread, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return err
	}
	attr.Policy, attr.Runtime = unix.SCHED_BATCH, uint64(batchSlice)
	return unix.SchedSetAttr(thread, attr, 0)
}
