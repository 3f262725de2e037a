package openai

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// EndpointType says which of its two questions a server is asked.
type EndpointType string

// The endpoint types.
const (
	// Chat is /v1/chat/completions, Completions is /v1/completions.
	Chat        EndpointType = "chat"
	Completions EndpointType = "completions"
)

// How several URLs share the requests.
const (
	// BalanceRoundRobin takes the URLs in turn; BalanceSession does so for sessions, which stay where they are.
	BalanceRoundRobin = "round_robin"
	BalanceSession    = "session"
)

// The fields that bound the answer: the newer name and the older one.
const (
	MaxCompletionTokens = "max_completion_tokens"
	MaxTokens           = "max_tokens"
)

// TargetOptions say what a target asks, and of whom. URLs and Model are needed.
type TargetOptions struct {
	// URLs are the servers, without the path of the endpoint; Balance says how they share the requests, "" being
	// [BalanceRoundRobin].
	URLs    []*url.URL
	Balance string
	// Model is the name of the model, and Type the endpoint, "" being [Chat].
	Model string
	Type  EndpointType
	// LimitField is the field with the length of the answer, "" being [MaxCompletionTokens]. IgnoreEOS and MinTokens ask for
	// exactly that length, as vLLM, SGLang and TensorRT-LLM understand it.
	LimitField           string
	IgnoreEOS, MinTokens bool
	// Extra are further fields of each request. They take the place of those of the same name.
	Extra map[string]json.RawMessage
	// Header is sent along, over the headers that name the request and its session. APIKey is the bearer key; "" is none.
	Header http.Header
	APIKey string
	// TLS is nil for the system's certificates.
	TLS *tls.Config
	// ConnectTimeout bounds how long it takes to connect, FirstTimeout the time until the first event of the answer, and
	// IdleTimeout that between two; 0 is [DefaultTimeouts].
	ConnectTimeout, FirstTimeout, IdleTimeout time.Duration
	// MaxEventBytes bounds an event, and MaxAnswerBytes an answer; 0 means 4 MiB and 256 MiB.
	MaxEventBytes  int
	MaxAnswerBytes int64
}

// DefaultTimeouts are for connecting, for the first event, which a server that is busy may let wait for long, and between two.
func DefaultTimeouts() (connect, first, idle time.Duration) {
	return 10 * time.Second, 30 * time.Minute, 5 * time.Minute
}

// reserved are the fields that extra ones cannot replace, since measuring depends on them.
var reserved = []string{"messages", "prompt", "stream", "model"}

// Check returns everything that is wrong with the options.
func (o TargetOptions) Check() error { return o.fill() }

// fill fills in what is left out, and returns everything that is wrong.
func (o *TargetOptions) fill() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(o.URLs) == 0 {
		bad("there is no URL of a server")
	}
	if o.Balance == "" {
		o.Balance = BalanceRoundRobin
	}
	if o.Balance != BalanceRoundRobin && o.Balance != BalanceSession {
		bad("the balance %q is not known; use %s or %s", o.Balance, BalanceRoundRobin, BalanceSession)
	}
	if o.Type == "" {
		o.Type = Chat
	}
	if o.Type != Chat && o.Type != Completions {
		bad("the endpoint type %q is not known; use %s or %s", o.Type, Chat, Completions)
	}
	if o.LimitField == "" {
		o.LimitField = MaxCompletionTokens
		if o.Type == Completions {
			o.LimitField = MaxTokens // the newer name is known to chats only
		}
	}
	if o.LimitField != MaxCompletionTokens && o.LimitField != MaxTokens {
		bad("the field %q does not bound answers; use %s or %s", o.LimitField, MaxCompletionTokens, MaxTokens)
	}
	for name := range o.Extra {
		if slices.Contains(reserved, name) {
			bad("the extra input %q would replace what is measured; leave it out", name)
		}
	}
	connect, first, idle := DefaultTimeouts()
	for _, t := range []struct {
		value *time.Duration
		def   time.Duration
	}{{&o.ConnectTimeout, connect}, {&o.FirstTimeout, first}, {&o.IdleTimeout, idle}} {
		if *t.value == 0 {
			*t.value = t.def
		}
		if *t.value < 0 {
			bad("a timeout is %s; give more than 0", *t.value)
		}
	}
	if o.MaxEventBytes == 0 {
		o.MaxEventBytes = 4 << 20
	}
	if o.MaxAnswerBytes == 0 {
		o.MaxAnswerBytes = 256 << 20
	}
	return errors.Join(errs...)
}

// endpoint is the URL of one of the server's paths, such as /v1/models. Servers are often named with the /v1.
func endpoint(server *url.URL, path string) *url.URL {
	u := *server
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1") + path
	return &u
}
