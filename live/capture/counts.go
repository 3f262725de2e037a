package capture

import "sync/atomic"

// Counts is what a capture has seen.
type Counts struct {
	// Requests is how many asked for text, Other how many for anything else. Running are under way.
	Requests, Other, Running int64
	// Further prompts are those of requests with several, beside the first of each. They count as requests of their own in what
	// follows.
	Further int64
	// Recorded requests are in the trace; Cut of them ended before the answer was complete.
	Recorded, Cut int64
	// Alone of the recorded requests belong to no session; they are in files of their own.
	Alone int64
	// Failed requests got no answer with text; Unreachable of them no answer from the server at all.
	Failed, Unreachable int64
	// Dropped requests were answered and are not in the trace: for want of memory, because the recorder could not keep up, since
	// they were too large, since nobody could read them, or since the files could not be written.
	DroppedMemory, DroppedQueue, DroppedLarge, DroppedUnread, DroppedFiles int64
	// Tools is how many tool calls are in the trace.
	Tools int64
	// Bytes and Files are what the trace takes.
	Bytes, Files int64
}

// Dropped is how many requests the trace lacks.
func (c Counts) Dropped() int64 {
	return c.DroppedMemory + c.DroppedQueue + c.DroppedLarge + c.DroppedUnread + c.DroppedFiles
}

// counters are [Counts] that change.
type counters struct {
	requests, other, running, further, recorded, cut, alone, failed, unreachable atomic.Int64
	droppedMemory, droppedQueue, droppedLarge, droppedUnread, droppedFile        atomic.Int64
	tools, bytes, files                                                          atomic.Int64
}

func (c *counters) read() Counts {
	return Counts{
		Requests: c.requests.Load(), Other: c.other.Load(), Running: c.running.Load(), Further: c.further.Load(),
		Recorded: c.recorded.Load(), Cut: c.cut.Load(), Alone: c.alone.Load(),
		Failed: c.failed.Load(), Unreachable: c.unreachable.Load(),
		DroppedMemory: c.droppedMemory.Load(), DroppedQueue: c.droppedQueue.Load(), DroppedLarge: c.droppedLarge.Load(),
		DroppedUnread: c.droppedUnread.Load(), DroppedFiles: c.droppedFile.Load(),
		Tools: c.tools.Load(), Bytes: c.bytes.Load(), Files: c.files.Load(),
	}
}

// budget bounds the memory that copies take.
type budget struct {
	limit int64
	used  atomic.Int64
}

// take reserves memory; false means that there is none left.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) giveBack(n int64) { b.used.Add(-n) }
