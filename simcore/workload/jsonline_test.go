package workload

import (
	"encoding/json"
	"strings"
	"testing"
)

// skippable are values, and texts that are none, at the edges of what JSON allows.
var skippable = []string{
	`{}`, `[]`, `{"a":[1,-2.5e+3,{"b":null}],"c":true,"d":"\u00e9\\\"/\n"}`, ` [ 1 , [ ] , { } ] `, `"日本"`, "\"\xff\"", `-0`, `0.0E0`, `1e9`, `false`,
	``, `[`, `{`, `[1,]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{1:2}`, `nul`, `truee`, `01`, `-`, `1.`, `.5`, `1e`, `+1`, `--1`, `1-`, `"`, `"\`, `"\x"`, `"\u12g4"`, `"\u12`,
	"\"\n\"", `[1 2]`, `]`, `{"a":1 "b":2}`,
	strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001), strings.Repeat(`{"a":`, 10_001),
}

// checkSkip compares skip with encoding/json.
func checkSkip(t *testing.T, text string) {
	t.Helper()
	line := jsonLine{data: []byte(text)}
	err := line.skip()
	line.space()
	if got, want := err == nil && line.at == len(line.data), json.Valid([]byte(text)); got != want {
		t.Errorf("%.60q: skipped is %v (%v), encoding/json says %v", text, got, err, want)
	}
}

func TestSkip(t *testing.T) {
	for _, text := range skippable {
		checkSkip(t, text)
	}
}

func FuzzSkip(f *testing.F) {
	for _, text := range skippable {
		if len(text) < 1000 {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) { checkSkip(t, text) })
}

func BenchmarkSkip(b *testing.B) {
	line := jsonLine{data: []byte(`{"id":"x_request_id","worker":{"prefill":1,"decode":[1,2,3.5e1]},"finish":"stop","tokens":[` + strings.Repeat("123456,", 99) + `1]}`)}
	b.SetBytes(int64(len(line.data)))
	b.ReportAllocs()
	for b.Loop() {
		line.at = 0
		if err := line.skip(); err != nil {
			b.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(10, func() { line.at = 0; _ = line.skip() }); n != 0 {
		b.Errorf("a skipped value allocates %v times", n)
	}
}
