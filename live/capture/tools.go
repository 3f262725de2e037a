package capture

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Tool is a call of a tool as the harness of an agent tells of it. It has no arguments and no output, which are text.
type Tool struct {
	ID           string   `json:"tool_call_id"`
	Class        string   `json:"tool_class,omitempty"`
	StartedMs    *int64   `json:"started_at_unix_ms,omitempty"`
	EndedMs      *int64   `json:"ended_at_unix_ms,omitempty"`
	DurationMs   *float64 `json:"duration_ms,omitempty"`
	Status       string   `json:"status,omitempty"`
	OutputBytes  *int64   `json:"output_bytes,omitempty"`
	OutputTokens *int64   `json:"output_tokens,omitempty"`
	ErrorType    string   `json:"error_type,omitempty"`
	Claude       *Claude  `json:"claude,omitempty"`
}

// Claude says which requests and sessions a call that spawns a session links.
type Claude struct {
	SourceRequest   string `json:"source_request_id,omitempty"`
	ConsumerRequest string `json:"consumer_request_id,omitempty"`
	ChildSession    string `json:"child_session_id,omitempty"`
	Mode            string `json:"execution_mode,omitempty"`
}

// maxToolBody bounds what the harness sends at once, in bytes.
const maxToolBody = 1 << 20

// ServeTools takes tool calls: POST of one or several JSON objects {"agent_context": {"session_id": …}, "tool": {…}} as in the
// trace, with "event_type" tool_end, which is the default, or tool_error. Only the fields of [Tool] are kept.
func (p *Proxy) ServeTools(w http.ResponseWriter, r *http.Request) {
	events, err := readTools(http.MaxBytesReader(w, r.Body, maxToolBody), time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, e := range events {
		if !p.recorder.addEvent(r.Context(), e) {
			http.Error(w, "the capture has ended", http.StatusServiceUnavailable)
			return
		}
	}
	p.counts.tools.Add(int64(len(events)))
	w.WriteHeader(http.StatusNoContent)
}

// readTools reads tool calls and checks them.
func readTools(r io.Reader, now time.Time) ([]*event, error) {
	var events []*event
	in := json.NewDecoder(r)
	for {
		e := &event{}
		err := in.Decode(e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = e.checkTool()
		}
		if err != nil {
			return nil, fmt.Errorf("tool call %d: %w", len(events)+1, err)
		}
		if e.TimeMs == 0 {
			if e.TimeMs = now.UnixMilli(); e.Tool.EndedMs != nil {
				e.TimeMs = *e.Tool.EndedMs
			}
		}
		events = append(events, &event{Schema: schema, Type: e.Type, TimeMs: e.TimeMs, Source: "harness", Context: e.Context, Tool: e.Tool})
	}
	if len(events) == 0 {
		return nil, errors.New("there is no tool call")
	}
	return events, nil
}

// checkTool says what is missing of a tool call.
func (e *event) checkTool() error {
	if e.Type == "" {
		e.Type = "tool_end"
	}
	switch {
	case e.Schema != "" && e.Schema != schema:
		return fmt.Errorf("schema is %q; only %s is known", e.Schema, schema)
	case e.Type != "tool_end" && e.Type != "tool_error":
		return fmt.Errorf("event_type is %q; use tool_end or tool_error", e.Type)
	case e.Context == nil || e.Context.Session == "":
		return errors.New("agent_context.session_id is missing")
	case e.Tool == nil || e.Tool.ID == "":
		return errors.New("tool.tool_call_id is missing")
	}
	for _, ms := range []*int64{&e.TimeMs, e.Tool.StartedMs, e.Tool.EndedMs} {
		if ms != nil && (*ms < 0 || *ms > 1e15) {
			return fmt.Errorf("%d is no time in ms since 1970", *ms)
		}
	}
	if d := e.Tool.DurationMs; d != nil && !(*d >= 0 && *d <= 1e15) {
		return fmt.Errorf("duration_ms is %g; it must be from 0 to 1e15", *d)
	}
	return nil
}
