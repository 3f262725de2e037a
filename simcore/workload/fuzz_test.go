package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/servegrid/servegrid/simcore/rules"
)

// loadBytes reads a trace from memory under the default and the reference's rules, and checks what it accepts.
func loadBytes(t *testing.T, data []byte) (*Workload, error) {
	t.Helper()
	reference, err := rules.For(rules.Dynamo13)
	if err != nil {
		t.Fatal(err)
	}
	trace := TraceSpec{Path: "-", Format: FormatMooncake, BlockSize: 16}
	load := func(set rules.Set) (*Workload, error) {
		w, err := Spec{Trace: &trace}.Load(context.Background(), Source{Rules: set, Stdin: bytes.NewReader(data)})
		if err == nil {
			checkWorkload(t, w)
		} else if w != nil || err.Error() == "" {
			t.Errorf("a workload comes with the error %q", err)
		}
		return w, err
	}
	w, err := load(rules.Set{})
	if _, other := load(reference); err == nil && other != nil {
		t.Errorf("only the default rules accept it: %v", other)
	}
	return w, err
}

// checkWorkload checks that lengths and times are in range and that block tables can be made of it.
func checkWorkload(t *testing.T, w *Workload) {
	t.Helper()
	tokens := 0
	for i := range w.Requests() {
		in, out, ids := int(w.Input[i]), int(w.Output[i]), len(w.Hashes(i))
		tokens += in + out
		if in < 1 || in > MaxTokens || out < 0 || out > MaxTokens || ids != (in+w.BlockSize-1)/w.BlockSize {
			t.Errorf("request %d has %d input and %d output tokens and %d ids", i, in, out, ids)
		}
		stated := 0
		for _, run := range w.planned[int32(i)] {
			stated += int(run.count)
		}
		if stated != out && w.planned[int32(i)] != nil {
			t.Errorf("request %d has %d output tokens, of which it states %d", i, out, stated)
		}
		if !(w.DelayMs[i] >= 0) || w.DelayMs[i] > 2*maxTimeMs || math.Abs(w.ArrivalMs[i]) > maxTimeMs {
			t.Errorf("request %d arrives at %v ms or waits for %v", i, w.ArrivalMs[i], w.DelayMs[i])
		}
	}
	if w.Sessions() < 1 || int(w.SessionStart[w.Sessions()]) != w.Requests() || len(w.Digest()) != 64 {
		t.Errorf("%d sessions of %d requests, digest %q", w.Sessions(), w.Requests(), w.Digest())
	}
	if tokens > 1e6 {
		return
	}
	for _, size := range []int{1, 5, 16} {
		if _, err := w.Blocks(size, true); err != nil {
			t.Error(err)
		}
	}
}

func FuzzMooncake(f *testing.F) {
	files, err := os.ReadDir("testdata/mooncake")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile("testdata/mooncake/" + file.Name())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, row := range []string{
		`{"timestamp":-1.5e-3,"output_length":0,"hash_ids":[18446744073709551615],"x":{"a":[null,true,"\ud83d\ude00"]}}`,
		`{"output_length":1,"hash_ids":[1 , 2],"session_id":"\u0000","delay":0}` + "\r\n" + `{"session_id":"\u0000","output_length":1,"hash_ids":[1],"delay":1e15}`,
		`{"timestamp":1e999}`, `{"timestamp":01}`, `{"a":"\x"}`, `{"a":"` + "\xff" + `"}`, `{"output_length":1,}`, `{"":[1,]}`, `[]`, `null`, `{"hash_ids":[1`, `{"a\`,
		`{"output_token_ids":[4294967295],"output_length":1,"hash_ids":[0],"priority":-0,"strict_priority":1E0}`,
	} {
		f.Add([]byte(row))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := loadBytes(t, data)
		checkReadings(t, FormatMooncake, data, func(w *Workload) { checkWorkload(t, w) })
		if head := bytes.TrimLeft(data, "\x1f\x8b\x28\xb5\xfdBPR"); len(head) < len(data) {
			return // it may be compressed
		}
		bad := map[int]bool{} // lines that the loader says are no JSON object
		var trace *TraceError
		if errors.As(err, &trace) {
			for _, p := range trace.Problems {
				if strings.Contains(p, "is not a JSON object") {
					bad[lineOf(t, p)] = true
				}
			}
			if trace.More > 0 {
				return
			}
		}
		for i, line := range bytes.Split(data, []byte("\n")) {
			if i == 0 {
				line = bytes.TrimPrefix(line, []byte("\ufeff"))
			}
			if line = bytes.TrimRight(line, "\r"); len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			// A line with another problem is read up to there, so its syntax may be wrong further on.
			var object map[string]json.RawMessage
			valid := json.Unmarshal(line, &object) == nil && object != nil
			if valid && bad[i+1] {
				t.Errorf("line %d is an object for encoding/json: %q\n%v", i+1, line, err)
			}
			if !valid && err == nil {
				t.Errorf("line %d is no object for encoding/json: %q", i+1, line)
			}
		}
	})
}

// lineOf returns the line number of a problem of the standard input, "-:line: text".
func lineOf(t *testing.T, problem string) int {
	t.Helper()
	n := 0
	for _, c := range strings.TrimPrefix(problem, "-:") {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int(c-'0')
	}
	if n == 0 {
		t.Fatalf("problem without a line: %q", problem)
	}
	return n
}

func FuzzOpen(f *testing.F) {
	for _, s := range []string{
		"", twoRows, gzipped(f, twoRows), zstdded(f, twoRows), gzipped(f, twoRows) + gzipped(f, twoRows), hostileZstd(20, twoRows),
		hostileZstd(41, ""), "\x1f\x8b", "\x1f\x8b\x08\x00", "\x28\xb5\x2f\xfd", "PAR1", "BZh9", "\x50\x2a\x4d\x18\xff\xff\xff\x7f",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if n := allocated(func() { loadBytes(t, data) }); n > 600<<20 {
			t.Errorf("%d bytes make the reader allocate %d MiB", len(data), n>>20)
		}
	})
}
