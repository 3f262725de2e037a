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

// streamAnswer sends the tokens of an answer as they come. The status and the role go with the first token, so that what can
// never be served still gets the status of an error. Tokens that came while the client did not read are sent together: a client
// that is slow holds up nobody and takes no memory.
func (e *exchange) streamAnswer(stream Stream) {
	out, chunks := e.eventWriter(), e.encoder()
	for {
		p, ok := e.next(stream)
		if !ok {
			e.breakOff(out.begun)
			return
		}
		var failed *refusal
		if p.Ended {
			failed = e.failure(&p)
		}
		if failed != nil && !out.begun {
			e.refuse(failed)
			return
		}
		cut := e.appendProgress(out, chunks, &p, failed)
		sent := out.flush()
		if !p.Ended && (!sent || cut != "") {
			e.giveUp(stream)
		}
		if cut == fault.Drop {
			panic(http.ErrAbortHandler) // ends the connection, which is what net/http has this for
		}
		if p.Ended || !sent || cut != "" {
			return
		}
	}
}

// appendProgress appends what has come. It returns the fault that ends the stream, if any.
func (e *exchange) appendProgress(out *eventWriter, chunks *encoder, p *realtime.Progress, failed *refusal) (cut fault.Kind) {
	n, cut := e.cutShort(min(p.Tokens, len(e.answer.text)-e.sent))
	if cut == fault.Drop && n == 0 {
		return cut
	}
	if out.begin() && e.chat {
		out.buf = e.finishChunk(chunks.role(out.buf), 0)
	}
	e.sent += n
	finish := ""
	if p.Ended && failed == nil && cut == "" {
		finish = e.finish(e.sent)
	}
	switch broken := e.faults.MalformedAfter; {
	case broken != fault.None && e.sent > broken:
		out.buf = append(out.buf, "data: {\"id\":\"broken\n\n"...)
		e.faults.MalformedAfter = fault.None
	case n > 0 || finish != "":
		out.buf = e.appendTokens(out.buf, chunks, n, finish)
	}
	if cut == fault.ErrorEvent {
		failed = newRefusal(http.StatusInternalServerError, "", madeFault)
	}
	if failed != nil {
		out.buf = append(append(append(out.buf, "data: "...), failed.event()...), "\n\n"...)
	}
	if p.Ended && cut != fault.Drop || failed != nil {
		out.buf = e.appendEnd(out.buf, chunks, failed != nil)
	}
	return cut
}

// appendTokens appends the latest n of the tokens that were sent, in one chunk, or two where the thoughts end among them.
func (e *exchange) appendTokens(b []byte, chunks *encoder, n int, finish string) []byte {
	from := e.sent - n
	if thought := min(e.sent, e.answer.thoughts); n > 0 && from < thought {
		end := finish
		if thought < e.sent {
			end = ""
		}
		b = e.appendChunk(b, chunks, from, thought, true, end)
		if from = thought; from == e.sent {
			return b
		}
	}
	return e.appendChunk(b, chunks, from, e.sent, false, finish)
}

// appendChunk appends a chunk with some of the tokens of the answer.
func (e *exchange) appendChunk(b []byte, chunks *encoder, from, to int, thoughts bool, finish string) []byte {
	chunks.text = e.server.opt.Tokenizer.AppendText(chunks.text[:0], e.answer.text[from:to])
	return e.finishChunk(chunks.chunk(b, chunks.text, thoughts, finish), to)
}

// cutShort is how many of the tokens that have come are sent before a fault ends the stream, and which one does.
func (e *exchange) cutShort(n int) (int, fault.Kind) {
	for _, end := range []struct {
		kind  fault.Kind
		after int
	}{{fault.Drop, e.faults.DropAfter}, {fault.ErrorEvent, e.faults.ErrorAfter}} {
		if end.after != fault.None && e.sent+n > end.after {
			return max(0, end.after-e.sent), end.kind
		}
	}
	return n, ""
}

// finishChunk appends the usage that was asked for and the end of a chunk.
func (e *exchange) finishChunk(b []byte, output int) []byte {
	if e.options.IncludeUsage && e.options.ContinuousUsageStats {
		b = appendCounts(b, e.answer.input, output)
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
func (o *eventWriter) begin() bool {
	if o.begun {
		return false
	}
	o.begun = true
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	return true
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
