package capture

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestToolCalls(t *testing.T) {
	w := newWorld(t, chat(""), nil)
	post := func(body string) (int, string) {
		answer := httptest.NewRecorder()
		w.proxy.ServeTools(answer, httptest.NewRequest(http.MethodPost, "/tools", strings.NewReader(body)))
		return answer.Code, answer.Body.String()
	}
	const good = `{"agent_context":{"session_id":"s"},"tool":{"tool_call_id":"t","tool_class":"bash","started_at_unix_ms":5,"ended_at_unix_ms":9,"status":"succeeded","arguments":"secretword","claude":{"child_session_id":"kid","execution_mode":"background"}}}`
	if code, text := post(good + "\n" + strings.Replace(good, "{", `{"event_type":"tool_error","event_time_unix_ms":11,`, 1)); code != http.StatusNoContent {
		t.Fatal(code, text)
	}
	for body, want := range map[string]string{
		``:                                     "there is no tool call",
		`{`:                                    "tool call 1",
		good + `{"tool":{}}`:                   "tool call 2: agent_context.session_id is missing",
		`{"agent_context":{"session_id":"s"}}`: "tool.tool_call_id is missing",
		strings.Replace(good, "{", `{"event_type":"request_end",`, 1):                 `event_type is "request_end"`,
		strings.Replace(good, "{", `{"schema":"v9",`, 1):                              `schema is "v9"`,
		strings.Replace(good, `"started_at_unix_ms":5`, `"started_at_unix_ms":-5`, 1): "-5 is no time",
		strings.Replace(good, `"started_at_unix_ms":5`, `"duration_ms":-5`, 1):        "duration_ms is -5",
		`"` + strings.Repeat("x", maxToolBody) + `"`:                                  "too large",
	} {
		if code, text := post(body); code != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%.60s: %d %s", body, code, text)
		}
	}
	if c := w.stop(); c.Tools != 2 || c.Recorded != 0 {
		t.Errorf("%+v", c)
	}
	if code, _ := post(good); code != http.StatusServiceUnavailable {
		t.Errorf("after the end: %d", code)
	}
	events := records(t, w.dir, "c.*")
	if len(events) != 2 || events[0].Type != "tool_end" || events[0].TimeMs != 9 || events[1].Type != "tool_error" || events[1].TimeMs != 11 ||
		events[0].Tool.Claude.ChildSession != "kid" || strings.Contains(trace(t, w.dir, "*"), "secretword") {
		t.Errorf("%+v", events)
	}
}

func FuzzTools(f *testing.F) {
	f.Add(`{"agent_context":{"session_id":"s"},"tool":{"tool_call_id":"t","duration_ms":1}}`)
	f.Fuzz(func(t *testing.T, body string) {
		events, err := readTools(strings.NewReader(body), time.Unix(1, 0))
		if (err == nil) != (len(events) > 0) {
			t.Errorf("%d calls, %v", len(events), err)
		}
	})
}
