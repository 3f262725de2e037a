package endpoint

import (
	"net/http"
	"strconv"

	"github.com/servegrid/servegrid/live/endpoint/fault"
)

// wholeAnswer waits until an answer is complete and sends it.
func (e *exchange) wholeAnswer(stream Stream) {
	for {
		p, ok := e.next(stream)
		if !ok {
			e.breakOff(false)
			return
		}
		e.sent = min(e.sent+p.Tokens, len(e.answer.text))
		if after := e.faults.DropAfter; after != fault.None && e.sent > after {
			if !p.Ended {
				e.giveUp(stream)
			}
			panic(http.ErrAbortHandler) // ends the connection, which is what net/http has this for
		}
		if after := e.faults.ErrorAfter; after != fault.None && e.sent > after {
			if !p.Ended {
				e.giveUp(stream)
			}
			e.refuse(newRefusal(http.StatusInternalServerError, "", madeFault))
			return
		}
		if !p.Ended {
			continue
		}
		if refused := e.failure(&p); refused != nil {
			e.refuse(refused)
			return
		}
		e.writeAnswer()
		return
	}
}

func (e *exchange) writeAnswer() {
	body := e.appendAnswer(nil)
	if e.faults.MalformedAfter != fault.None {
		body = body[:len(body)/2]
	}
	e.server.allowWrite(e.w)
	e.w.Header().Set("Content-Type", "application/json")
	e.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = e.w.Write(body) // that the client does not take it is the client's business
}

// appendAnswer appends a complete answer.
func (e *exchange) appendAnswer(b []byte) []byte {
	object := "text_completion"
	if e.chat {
		object = "chat.completion"
	}
	b = e.appendCommon(b, object)
	thoughts := min(e.sent, e.answer.thoughts)
	text := e.server.opt.Tokenizer.AppendText(nil, e.answer.text[thoughts:e.sent])
	if e.chat {
		b = append(appendEscaped(append(b, `{"index":0,"message":{"role":"assistant","content":"`...), text), '"')
		if e.answer.thoughts > 0 {
			b = append(append(append(b, `,"`...), e.server.reasoning...), `":"`...)
			b = append(appendEscaped(b, e.server.opt.Tokenizer.AppendText(nil, e.answer.text[:thoughts])), '"')
		}
		b = append(b, `},"logprobs":null,"finish_reason":`...)
	} else {
		b = append(appendEscaped(append(b, `{"index":0,"text":"`...), text), `","logprobs":null,"finish_reason":`...)
	}
	b = append(appendReason(b, e.finish(e.sent)), `}]`...)
	return append(e.appendUsage(b), '}', '\n')
}
