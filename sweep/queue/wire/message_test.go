package wire

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/servegrid/servegrid/gridspec"
)

var update = flag.Bool("update", false, "write the recorded encoding again")

// fullMessage has something in every field.
func fullMessage() *Message {
	return &Message{
		Simulator: "4", Sweep: "abc-1", ID: strings.Repeat("0f", 16), WorkloadDigest: strings.Repeat("a", 64), Replicate: 2,
		Spec: "workload:\n  preset: {name: chat, requests: 20}\n",
		Files: []File{
			{Digest: strings.Repeat("b", 64), Name: "trace.jsonl.gz", Size: 123},
			{Digest: strings.Repeat("c", 64), Name: "tables", Size: 1 << 30, Folder: true},
		},
		Timeout: time.Minute, StopLost: true, Kept: []string{"requests", "timelines"},
	}
}

// TestMessageEncoding compares the encoding with the one that workers of this format read. A change of it needs another format,
// and the workers that are out there another version.
func TestMessageEncoding(t *testing.T) {
	path := filepath.Join("testdata", fmt.Sprintf("message-%d.json", messageFormat))
	m := fullMessage()
	for i := range reflect.TypeFor[Message]().NumField() {
		if f := reflect.ValueOf(m).Elem().Field(i); f.IsZero() && reflect.TypeFor[Message]().Field(i).Name != "Format" {
			t.Errorf("%s has no value here", reflect.TypeFor[Message]().Field(i).Name)
		}
	}
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, append(data, '\n'), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(recorded), string(data)+"\n"); diff != "" {
		t.Errorf("the encoding has changed: raise messageFormat, and run go test ./sweep/queue/wire -run TestMessageEncoding -update\n%s", diff)
	}
	back, err := DecodeMessage(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, back); diff != "" {
		t.Error(diff)
	}
}

// Everything that is wrong with a message is said at once, and neither side lets it pass.
func TestMessageRefused(t *testing.T) {
	changes := map[string]func(*Message){
		"format":          func(m *Message) { m.Format = 2 },
		"simulator":       func(m *Message) { m.Simulator = "" },
		"sweep":           func(m *Message) { m.Sweep = "a.b" },
		"id":              func(m *Message) { m.ID = strings.Repeat("0F", 16) },
		"workload_digest": func(m *Message) { m.WorkloadDigest = "../x" },
		"replicate":       func(m *Message) { m.Replicate = -1 },
		"spec":            func(m *Message) { m.Spec = "" },
		"timeout_ns":      func(m *Message) { m.Timeout = -1 },
		"kept[1]":         func(m *Message) { m.Kept[1] = "../x" },
		"files[0].sha256": func(m *Message) { m.Files[0].Digest = "../" + strings.Repeat("b", 61) },
		"files[0].name":   func(m *Message) { m.Files[0].Name = ".." },
		"files[1].size":   func(m *Message) { m.Files[1].Size = -1 },
	}
	all := fullMessage()
	for field, change := range changes {
		m := fullMessage()
		change(m)
		change(all)
		if _, err := m.Encode(); err == nil || !strings.Contains(err.Error(), "message: "+field+":") {
			t.Errorf("%s: error %v", field, err)
		}
	}
	_, err := all.Encode()
	for field := range changes {
		if err == nil || !strings.Contains(err.Error(), "message: "+field+":") {
			t.Errorf("%s is not among all problems: %v", field, err)
		}
	}
	for name, change := range map[string]func(*Message){
		"kept twice":        func(m *Message) { m.Kept[1] = m.Kept[0] },
		"file twice":        func(m *Message) { m.Files[1] = m.Files[0] },
		"folder in a name":  func(m *Message) { m.Files[0].Name = "a/b" },
		"backslash":         func(m *Message) { m.Files[0].Name = `a\b` },
		"hidden":            func(m *Message) { m.Files[0].Name = ".list.json" },
		"too many kinds":    func(m *Message) { m.Kept = strings.Split("a b c d e f g h i", " ") },
		"too many files":    func(m *Message) { m.Files = make([]File, maxFiles+1) },
		"too large":         func(m *Message) { m.Spec = strings.Repeat("#", MaxPointMessage) },
		"not UTF-8":         func(m *Message) { m.Spec = "\xff" },
		"sweep with spaces": func(m *Message) { m.Sweep = "a b" },
	} {
		m := fullMessage()
		change(m)
		if data, err := m.Encode(); err == nil {
			t.Errorf("%s: it is sent as %.200s", name, data)
		}
	}
}

// What is no message at all is refused too.
func TestDecodeMessageRefused(t *testing.T) {
	data, err := fullMessage().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty": "", "no JSON": "x", "null": "null", "list": "[]", "cut off": string(data[:len(data)-1]), "more behind": string(data) + "{}",
		"unknown field": strings.Replace(string(data), `{"format"`, `{"output":"/tmp","format"`, 1),
		"other type":    strings.Replace(string(data), `"replicate":2`, `"replicate":"2"`, 1),
		"huge number":   strings.Replace(string(data), `"replicate":2`, `"replicate":1e300`, 1),
		"too long":      string(data) + strings.Repeat(" ", MaxPointMessage),
	} {
		if m, err := DecodeMessage([]byte(text)); err == nil {
			t.Errorf("%s is taken as %+v", name, m)
		}
	}
}

// FuzzDecodeMessage checks that no message makes a worker panic, read a file that the message did not declare, or change what it
// says on its way through.
func FuzzDecodeMessage(f *testing.F) {
	full, err := fullMessage().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	digest := strings.Repeat("b", 64)
	for _, spec := range []string{
		"workload: {trace: {path: " + digest + "/trace.jsonl}}", "workload: {trace: {path: /etc/passwd}}",
		"workload: {trace: {path: '" + digest + "/../../x'}}", "workload: {preset: {name: chat}}\ntiming: {profile: " + digest + "/trace.jsonl}",
	} {
		m := fullMessage()
		m.Spec, m.Files = spec, []File{{Digest: digest, Name: "trace.jsonl", Size: 1}}
		data, err := m.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(bytes.Replace(full, []byte("trace.jsonl.gz"), []byte("../trace"), 1))
	f.Add([]byte(`{"format":1,"files":[{}],"kept":[""]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeMessage(data)
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodeMessage(again); err != nil || !reflect.DeepEqual(m, back) {
			t.Fatalf("%+v became %+v, %v", m, back, err)
		}
		dir := filepath.Join(t.TempDir(), "files")
		declared := map[string]bool{}
		var paths []string
		for _, f := range m.Files {
			paths = append(paths, f.Path())
			declared[filepath.Join(dir, f.Path())] = true
			if rel, err := filepath.Rel(dir, filepath.Join(dir, f.Path())); err != nil || rel != filepath.FromSlash(f.Path()) {
				t.Fatalf("%q leads elsewhere", f.Path())
			}
		}
		p, err := gridspec.FromPortable([]byte(m.Spec), dir, paths)
		if err != nil {
			return
		}
		_, err = p.Portable(func(key, path string) (string, error) {
			if !declared[path] {
				return "", errors.New(key + " names " + path)
			}
			return "x", nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
