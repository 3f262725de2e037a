package endpoint

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/servegrid/servegrid/live/openai"
)

// refusal is an answer that is none.
type refusal struct {
	status int
	body   openai.Error
	// retryAfter says when to try again; 0 says nothing.
	retryAfter time.Duration
}

// errorTypes are what vLLM calls the errors of a status.
var errorTypes = map[int]string{
	http.StatusBadRequest: "BadRequestError", http.StatusUnauthorized: "AuthenticationError", http.StatusForbidden: "PermissionDeniedError",
	http.StatusNotFound: "NotFoundError", http.StatusMethodNotAllowed: "MethodNotAllowedError", http.StatusRequestEntityTooLarge: "RequestTooLargeError",
	http.StatusTooManyRequests: "RateLimitError", http.StatusServiceUnavailable: "ServiceUnavailableError",
}

func newRefusal(status int, param, format string, args ...any) *refusal {
	kind := errorTypes[status]
	if kind == "" {
		kind = "InvalidRequestError"
		if status >= 500 {
			kind = "InternalServerError"
		}
	}
	return &refusal{status: status, body: openai.Error{Message: fmt.Sprintf(format, args...), Type: kind, Param: param, Code: status}}
}

// badRequest refuses what a parameter says.
func badRequest(param, format string, args ...any) *refusal {
	return newRefusal(http.StatusBadRequest, param, format, args...)
}

// overloaded refuses a request that may be sent again.
func overloaded(format string, args ...any) *refusal {
	r := newRefusal(http.StatusServiceUnavailable, "", format, args...)
	r.retryAfter = time.Second
	return r
}

// event is the refusal as it stands in a stream.
func (r *refusal) event() []byte {
	body, _ := json.Marshal(map[string]openai.Error{"error": r.body}) // texts and numbers
	return body
}

// write answers with the refusal.
func (r *refusal) write(w http.ResponseWriter) {
	if r.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((r.retryAfter+time.Second-1)/time.Second)))
	}
	writeJSON(w, r.status, r.event())
}

// writeJSON answers with a body. That the client does not take it is the client's business.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
