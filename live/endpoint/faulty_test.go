package endpoint

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/servegrid/servegrid/live/endpoint/fault"
)

func TestFaults(t *testing.T) {
	const request = `{"prompt":"abc","max_tokens":40,"stream":true,"stream_options":{"include_usage":true}}`
	long := strings.Replace(request, "40", "1500", 1) // goes on however late a test is
	with := func(t *testing.T, rules ...string) *world {
		var parsed []fault.Rule
		for _, text := range rules {
			r, err := fault.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, r)
		}
		return newWorld(t, newFake(time.Millisecond, time.Millisecond), func(o *Options) { o.Faults = fault.NewInjector(parsed, 1) })
	}
	t.Run("status", func(t *testing.T) {
		w := with(t, "status=429,retry_after=2s,every=2")
		for i, want := range []int{200, 429, 200, 429} {
			resp := w.post("/v1/completions", request)
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != want || want == 429 && resp.Header.Get("Retry-After") != "2" {
				t.Errorf("request %d: %d, %v", i, resp.StatusCode, err)
			}
		}
	})
	t.Run("drop", func(t *testing.T) {
		w := with(t, "drop,after_tokens=10")
		chunks, done, broken := events(t, w.post("/v1/completions", long))
		if len(text(chunks)) != 10 || done || broken == nil {
			t.Errorf("%q, done %v, %v", text(chunks), done, broken)
		}
		if w.fake.cancelled.Load() == 0 {
			t.Error("the request goes on")
		}
	})
	t.Run("drop at once", func(t *testing.T) {
		w := with(t, "drop")
		for _, body := range []string{request, `{"prompt":"abc"}`} {
			resp, err := w.client.Post(w.url+"/v1/completions", "application/json", strings.NewReader(body))
			if err == nil {
				t.Errorf("status %d", resp.StatusCode)
				_ = resp.Body.Close()
			}
		}
	})
	t.Run("malformed", func(t *testing.T) {
		chunks, done, broken := events(t, with(t, "malformed_sse,after_tokens=5").post("/v1/completions", long))
		if n := len(text(chunks)); broken == nil || !done || n < 5 || n >= 1500 { // a late chunk has many tokens
			t.Errorf("%q, done %v, %v", text(chunks), done, broken)
		}
		resp := with(t, "malformed_sse").post("/v1/completions", `{"prompt":"abc"}`)
		if data, _ := io.ReadAll(resp.Body); json.Valid(data) {
			t.Errorf("%s", data)
		}
	})
	t.Run("error event", func(t *testing.T) {
		chunks, done, _ := events(t, with(t, "error_event,after_tokens=5").post("/v1/completions", request))
		if last := chunks[len(chunks)-1]; last.Error == nil || len(text(chunks)) != 5 || !done {
			t.Errorf("%q, %+v, done %v", text(chunks), last, done)
		}
	})
	t.Run("no done", func(t *testing.T) {
		chunks, done, broken := events(t, with(t, "no_done").post("/v1/completions", request))
		if len(text(chunks)) != 40 || done || broken != nil || chunks[len(chunks)-1].Usage == nil {
			t.Errorf("%q, done %v, %v", text(chunks), done, broken)
		}
	})
	t.Run("stall", func(t *testing.T) {
		w := with(t, "stall=600ms,after_tokens=5,session=s-?")
		for session, stalls := range map[string]bool{"s-1": true, "t-1": false} {
			w.header.Set("X-Session-Affinity", session)
			began := time.Now()
			chunks, done, _ := events(t, w.post("/v1/completions", request))
			if took := time.Since(began); len(text(chunks)) != 40 || !done || stalls != (took > 590*time.Millisecond) {
				t.Errorf("%s: %q in %s", session, text(chunks), took)
			}
		}
	})
	t.Run("slow", func(t *testing.T) {
		began := time.Now()
		chunks, done, _ := events(t, with(t, "slow=6x,after_tokens=3").post("/v1/completions", request))
		took := time.Since(began) // 36 gaps of 6 ms
		if len(text(chunks)) != 40 || !done || took < 200*time.Millisecond || len(chunks) < 4 {
			t.Errorf("%q in %d chunks, in %s", text(chunks), len(chunks), took)
		}
	})
	t.Run("counted", func(t *testing.T) {
		w := with(t, "no_done", "status=500,every=2")
		for range 3 {
			_, _ = io.Copy(io.Discard, w.post("/v1/completions", request).Body)
		}
		metrics := scrape(t, w)
		for _, want := range []string{`servegrid_faults_total{kind="no_done"} 3`, `servegrid_faults_total{kind="status"} 1`, `servegrid_faults_total{kind="drop"} 0`} {
			if !strings.Contains(metrics, want) {
				t.Errorf("no %s", want)
			}
		}
	})
}
