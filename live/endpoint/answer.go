package endpoint

import (
	"net/http"
	"strconv"

	"github.com/servegrid/servegrid/live/endpoint/fault"
)

// wholeAnswer waits until all choices are complete and sends them.
func (e *exchange) wholeAnswer() {
	for left := len(e.choices); left > 0; {
		c, p, ok := e.next()
		if !ok {
			e.breakOff(false)
			return
		}
		c.sent = min(c.sent+p.Tokens, len(c.answer.text))
		if after := e.faults.DropAfter; after != fault.None && c.sent > after {
			e.giveUp()
			panic(http.ErrAbortHandler) // ends the connection, which is what net/http has this for
		}
		var refused *refusal
		if p.Ended {
			left--
			refused = c.failure(&p)
		}
		if after := e.faults.ErrorAfter; after != fault.None && c.sent > after {
			refused = newRefusal(http.StatusInternalServerError, "", madeFault)
		}
		if refused != nil {
			e.giveUp()
			e.refuse(refused)
			return
		}
	}
	e.writeAnswer()
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
	for i := range e.choices {
		c := &e.choices[i]
		if c.index == unsent {
			continue
		}
		if c.index > 0 {
			b = append(b, ',')
		}
		b = c.appendChoice(b)
	}
	return append(e.appendUsage(append(b, ']')), '}', '\n')
}

// appendChoice appends one choice of a complete answer.
func (c *choice) appendChoice(b []byte) []byte {
	tokenizer := c.exchange.server.opt.Tokenizer
	thoughts := min(c.sent, c.answer.thoughts)
	text := tokenizer.AppendText(nil, c.answer.text[thoughts:c.sent])
	b = strconv.AppendInt(append(b, `{"index":`...), int64(c.index), 10)
	if c.exchange.chat {
		b = append(appendEscaped(append(b, `,"message":{"role":"assistant","content":"`...), text), '"')
		if c.answer.thoughts > 0 {
			b = append(append(append(b, `,"`...), c.exchange.server.reasoning...), `":"`...)
			b = append(appendEscaped(b, tokenizer.AppendText(nil, c.answer.text[:thoughts])), '"')
		}
		b = append(b, `},"logprobs":null,"finish_reason":`...)
	} else {
		b = append(appendEscaped(append(b, `,"text":"`...), text), `","logprobs":null,"finish_reason":`...)
	}
	return append(appendReason(b, c.finish(c.sent)), '}')
}
