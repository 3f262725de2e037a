package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// say asks for an answer of so many tokens and returns its text.
func say(t *testing.T, url, session, parent string, messages []map[string]string, output int) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": "m", "messages": messages, "max_tokens": output, "stream": true, "stream_options": map[string]bool{"include_usage": true}})
	if err != nil {
		t.Fatal(err)
	}
	stream := postTo(t, url+"/v1/chat/completions", string(body), "X-Dynamo-Session-ID", session, "X-Dynamo-Parent-Session-ID", parent)
	var text strings.Builder
	for line := range strings.Lines(stream) {
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if data, ok := strings.CutPrefix(line, "data: {"); ok && json.Unmarshal([]byte("{"+data), &chunk) == nil && len(chunk.Choices) > 0 {
			text.WriteString(chunk.Choices[0].Delta.Content)
		}
	}
	if text.Len() == 0 {
		t.Fatalf("no text in %s", stream)
	}
	return text.String()
}

// capturedRequest is what a test reads of a captured request.
type capturedRequest struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
	Cached int `json:"cached_tokens"`
	Replay struct {
		Input      int      `json:"input_length"`
		Hashes     []uint64 `json:"input_sequence_hashes"`
		Completion []uint64 `json:"completion_sequence_hashes"`
	}
}

func readCaptured(t *testing.T, path string) []capturedRequest {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var requests []capturedRequest
	for in := json.NewDecoder(plain); in.More(); {
		var line struct {
			Event struct{ Request *capturedRequest }
		}
		if err := in.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if line.Event.Request != nil {
			requests = append(requests, *line.Event.Request)
		}
	}
	return requests
}

// TestCaptureOfAServedDeployment records conversations with a simulated deployment, whose tokens and blocks are the capture's: the
// lengths are equal, and so is what the deployment found in its cache and what the trace's hashes say that it must.
func TestCaptureOfAServedDeployment(t *testing.T) {
	const size = 16
	server := startServe(t, "--tokenizer", "chars:4", "--model", "m", "--extra-engine-args", `{"block_size":16}`)
	dir := t.TempDir()
	c := startCapture(t, "--upstream", server.url, "-o", dir, "--tokenizer", "chars:4", "--block-size", fmt.Sprint(size))
	for _, session := range []string{"a", "b"} {
		parent := map[string]string{"b": "a"}[session]
		messages := []map[string]string{{"role": "system", "content": strings.Repeat("All agents have these rules. ", 20)}, {"role": "user", "content": "The task of " + session}}
		for turn := range 3 {
			answer := say(t, c.url, session, parent, messages, 20+7*turn)
			messages = append(messages, map[string]string{"role": "assistant", "content": answer}, map[string]string{"role": "user", "content": fmt.Sprint("Go on, turn ", turn)})
			time.Sleep(3 * time.Millisecond)
		}
	}
	if code := c.stop(t); code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, c.stdout.String(), c.stderr.String())
	}
	path := filepath.Join(dir, "capture.000000.jsonl.gz")
	seen := map[uint64]bool{}
	for i, r := range readCaptured(t, path) {
		known := 0
		for known < len(r.Replay.Hashes) && seen[r.Replay.Hashes[known]] {
			known++
		}
		if r.Input != r.Replay.Input || r.Cached != known*size {
			t.Errorf("request %d: the server counts %d tokens, %d of them cached, and the trace says %d and %d", i, r.Input, r.Cached, r.Replay.Input, known*size)
		}
		for k, hash := range r.Replay.Completion {
			if (k+1)*size < r.Input+r.Output { // the last token of an answer is never computed
				seen[hash] = true
			}
		}
	}
	if len(seen) == 0 {
		t.Error("nothing was captured")
	}
	if got := runCommand(t, "trace", "check", path, "--requests", "6", "--sessions", "2", "--turns", "a=3", "--turns", "b=3"); got.code != exitOK {
		t.Errorf("exit code %d: %s%s", got.code, got.stdout, got.stderr)
	}
}
