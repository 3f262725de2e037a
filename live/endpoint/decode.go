package endpoint

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/servegrid/servegrid/live/openai"
)

// buffers are those of bodies, which are not needed any more once a request has its tokens.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxKept is how large a buffer may be to be used again.
const maxKept = 1 << 20

// readBody reads the body of a request into a buffer, which it grows. Once it is there the client may be silent for as long as it
// likes.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, buf *[]byte) *refusal {
	if r.ContentLength > s.opt.MaxBodyBytes {
		return s.tooLarge()
	}
	body := http.MaxBytesReader(w, r.Body, s.opt.MaxBodyBytes)
	data := (*buf)[:0]
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		*buf = data
		var large *http.MaxBytesError
		switch {
		case err == io.EOF:
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a recorder of a test has none
			return nil
		case errors.As(err, &large):
			return s.tooLarge()
		case errors.Is(err, os.ErrDeadlineExceeded):
			return newRefusal(http.StatusRequestTimeout, "", "The body of the request did not come within %s.", s.opt.ReadTimeout)
		case err != nil:
			return badRequest("", "The body of the request could not be read.")
		}
	}
}

func (s *Server) tooLarge() *refusal {
	return newRefusal(http.StatusRequestEntityTooLarge, "", "The body of the request is larger than %d bytes.", s.opt.MaxBodyBytes)
}

// decode reads the body of a chat completion or of a completion, and checks all of it that does not depend on the tokens.
func decode(body []byte, chat bool) (*asked, *refusal) {
	r := &asked{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, unreadable(err)
	}
	if chat && len(r.Messages) == 0 {
		return nil, badRequest("messages", "messages must be a list of one or more messages.")
	}
	if chat {
		r.Prompt = nil
	} else {
		r.Messages, r.Tools = nil, nil
	}
	if refused := r.unsupported(); refused != nil {
		return nil, refused
	}
	if refused := r.count(chat); refused != nil {
		return nil, refused
	}
	for _, p := range []struct {
		name  string
		value *int
	}{{"max_completion_tokens", r.MaxCompletionTokens}, {"max_tokens", r.MaxTokens}} {
		if p.value != nil && (*p.value < 1 || *p.value > maxLength) {
			return nil, badRequest(p.name, "%s must be at least 1 and at most %d, got %d.", p.name, maxLength, *p.value)
		}
	}
	if r.MinTokens < 0 || r.MinTokens > maxLength {
		return nil, badRequest("min_tokens", "min_tokens must be at least 0 and at most %d, got %d.", maxLength, r.MinTokens)
	}
	if most := maxTokens(&r.Request); most != nil && r.MinTokens > *most {
		return nil, badRequest("min_tokens", "min_tokens must be less than or equal to max_tokens=%d, got %d.", *most, r.MinTokens)
	}
	return r, nil
}

// unreadable says why a body is no request.
func unreadable(err error) *refusal {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		if kind.Field == "" {
			return badRequest("", "The body of the request must be a JSON object, not %s.", kind.Value)
		}
		field := strings.TrimPrefix(kind.Field, "Request.") // which asked embeds
		return badRequest(field, "%s is of the wrong type: %s.", field, kind.Value)
	}
	return badRequest("", "The body of the request is not valid JSON: %v.", err)
}

// maxTokens is the bound on the output that a request gives, or nil.
func maxTokens(r *openai.Request) *int {
	if r.MaxCompletionTokens != nil {
		return r.MaxCompletionTokens
	}
	return r.MaxTokens
}
