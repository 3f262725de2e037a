package endpoint

import (
	"net/http"
	"time"

	"github.com/servegrid/servegrid/live/endpoint/fault"
	"github.com/servegrid/servegrid/live/realtime"
)

// madeFault is what the errors say that a server was told to make.
const madeFault = "This error is a fault that the server was told to make."

// done is the event that ends a stream.
const done = "data: [DONE]\n\n"

// streamAnswer sends the tokens of all choices as they come. The status goes with the first token, so that what can never be
// served still gets the status of an error. Tokens that came while the client did not read are sent together: a client that is
// slow holds up nobody and takes no memory.
func (e *exchange) streamAnswer() {
	out, chunks := e.eventWriter(), e.encoder()
	for left := len(e.choices); left > 0; {
		c, p, ok := e.next()
		if !ok {
			e.breakOff(out.begun)
			return
		}
		var failed *refusal
		if p.Ended {
			left--
			failed = c.failure(&p)
		}
		if failed != nil && !out.begun {
			e.giveUp()
			e.refuse(failed)
			return
		}
		cut := c.appendProgress(out, chunks, &p, failed)
		if failed != nil || cut == fault.ErrorEvent || left == 0 && cut == "" {
			out.buf = e.appendEnd(out.buf, chunks, failed != nil || cut != "")
		}
		if sent := out.flush(); !sent || failed != nil || cut != "" {
			e.giveUp()
			left = 0
		}
		if cut == fault.Drop {
			panic(http.ErrAbortHandler) // ends the connection, which is what net/http has this for
		}
	}
}

// appendProgress appends what has come of a choice, and why it failed if it did. It returns the fault that ends the stream, if any.
func (c *choice) appendProgress(out *eventWriter, chunks *encoder, p *realtime.Progress, failed *refusal) (cut fault.Kind) {
	e := c.exchange
	n, cut := c.cutShort(min(p.Tokens, len(c.answer.text)-c.sent))
	if cut == fault.Drop && n == 0 {
		return cut
	}
	out.begin()
	if !c.begun && e.chat {
		out.buf = c.finishChunk(chunks.role(out.buf, c.index), 0)
	}
	c.begun = true
	c.sent += n
	finish := ""
	if p.Ended && failed == nil && cut == "" {
		finish = c.finish(c.sent)
	}
	switch broken := e.faults.MalformedAfter; {
	case broken != fault.None && c.sent > broken:
		out.buf = append(out.buf, "data: {\"id\":\"broken\n\n"...)
		e.faults.MalformedAfter = fault.None
	case n > 0 || finish != "":
		out.buf = c.appendTokens(out.buf, chunks, n, finish)
	}
	if cut == fault.ErrorEvent {
		failed = newRefusal(http.StatusInternalServerError, "", madeFault)
	}
	if failed != nil {
		out.buf = append(append(append(out.buf, "data: "...), failed.event()...), "\n\n"...)
	}
	return cut
}

// appendTokens appends the latest n of the tokens that were sent, in one chunk, or two where the thoughts end among them.
func (c *choice) appendTokens(b []byte, chunks *encoder, n int, finish string) []byte {
	from := c.sent - n
	if thought := min(c.sent, c.answer.thoughts); n > 0 && from < thought {
		end := finish
		if thought < c.sent {
			end = ""
		}
		b = c.appendChunk(b, chunks, from, thought, true, end)
		if from = thought; from == c.sent {
			return b
		}
	}
	return c.appendChunk(b, chunks, from, c.sent, false, finish)
}

// appendChunk appends a chunk with some of the tokens of the answer.
func (c *choice) appendChunk(b []byte, chunks *encoder, from, to int, thoughts bool, finish string) []byte {
	chunks.text = c.exchange.server.opt.Tokenizer.AppendText(chunks.text[:0], c.answer.text[from:to])
	return c.finishChunk(chunks.chunk(b, c.index, chunks.text, thoughts, finish), to)
}

// cutShort is how many of the tokens that have come are sent before a fault ends the stream, and which one does.
func (c *choice) cutShort(n int) (int, fault.Kind) {
	faults := &c.exchange.faults
	for _, end := range []struct {
		kind  fault.Kind
		after int
	}{{fault.Drop, faults.DropAfter}, {fault.ErrorEvent, faults.ErrorAfter}} {
		if end.after != fault.None && c.sent+n > end.after {
			return max(0, end.after-c.sent), end.kind
		}
	}
	return n, ""
}

// finishChunk appends the usage that was asked for, which is that of the choice, and the end of a chunk.
func (c *choice) finishChunk(b []byte, output int) []byte {
	if o := &c.exchange.options; o.IncludeUsage && o.ContinuousUsageStats {
		b = appendCounts(b, c.answer.input, output)
	}
	return append(b, "}\n\n"...)
}

// appendEnd appends what ends a stream.
func (e *exchange) appendEnd(b []byte, chunks *encoder, failed bool) []byte {
	if e.options.IncludeUsage && !failed {
		b = append(e.appendUsage(append(append(b, chunks.head...), ']')), "}\n\n"...)
	}
	if e.faults.NoDone {
		return b
	}
	return append(b, done...)
}

// eventWriter writes events, each at once.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	// until is the deadline of the connection, which is moved when half of its time has gone.
	until time.Time
	begun bool
	buf   []byte
}

func (e *exchange) eventWriter() *eventWriter {
	return &eventWriter{w: e.w, control: http.NewResponseController(e.w), timeout: e.server.opt.WriteTimeout}
}

// begin says, once, that the answer is a stream.
func (o *eventWriter) begin() {
	if o.begun {
		return
	}
	o.begun = true
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
}

// flush sends what is in the buffer. It reports whether the client still takes it.
func (o *eventWriter) flush() bool {
	if len(o.buf) == 0 {
		return true
	}
	defer func() { o.buf = o.buf[:0] }()
	if now := time.Now(); o.until.Sub(now) < o.timeout/2 {
		o.until = now.Add(o.timeout)
		_ = o.control.SetWriteDeadline(o.until) // a recorder of a test has none
	}
	if _, err := o.w.Write(o.buf); err != nil {
		return false
	}
	return o.control.Flush() == nil
}
