package workload

import (
	"strings"
	"testing"
)

func asDelta(s *TraceSpec) { s.Format = FormatMooncakeDelta }

// Each prompt goes on after the answer before it, so that prompt and answer of the turn before are its beginning, and
// sessions may be mixed in the file.
func TestDelta(t *testing.T) {
	w, err := loadText(`{"session_id":"a","timestamp":0,"input_length":512,"output_length":16,"hash_ids":[1]}
{"session_id":"b","timestamp":5,"input_length":512,"output_length":32,"hash_ids":[1]}
{"session_id":"a","delay":20,"input_length":128,"output_length":16,"hash_ids":[2]}
{"session_id":"a","delay":20,"input_length":64,"output_length":8,"hash_ids":[3]}
{"session_id":"b","delay":20,"input_length":64,"output_length":0,"hash_ids":[3]}
`, asDelta)
	if err != nil {
		t.Fatal(err)
	}
	wantInput := []int32{512, 512 + 16 + 128, 512 + 16 + 128 + 16 + 64, 512, 512 + 32 + 64}
	for i, want := range wantInput {
		if w.Input[i] != want {
			t.Errorf("request %d has %d input tokens, want %d", i, w.Input[i], want)
		}
	}
	table, err := w.Blocks(16, true)
	if err != nil {
		t.Fatal(err)
	}
	if !table.KnownOutputs {
		t.Error("outputs are not known")
	}
	// What a turn leaves in the cache is the beginning of the next.
	for _, turn := range []int{0, 1, 3} {
		if known, want := table.Known(turn), int(w.Input[turn]+w.Output[turn])/16; known != want {
			t.Errorf("request %d has %d known blocks, want %d", turn, known, want)
		}
		if got := sharedLead(table, turn, turn+1); got != table.Known(turn) {
			t.Errorf("requests %d and %d share %d blocks, want %d", turn, turn+1, got, table.Known(turn))
		}
	}
	// Two sessions share the prompt, and no answer.
	if got := sharedLead(table, 1, 4); got != 512/16 {
		t.Errorf("the sessions share %d blocks, want %d", got, 512/16)
	}
}

// sharedLead is the number of known blocks that two requests begin with.
func sharedLead(t *BlockTable, a, b int) int {
	ids := func(request int) (list []uint32) {
		for _, s := range t.Segments(request) {
			for k := range s.Len {
				list = append(list, s.Start+k)
			}
		}
		return list
	}
	x, y := ids(a), ids(b)
	n := 0
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	return n
}

// Sessions of one turn are the same as in plain Mooncake rows, and sizes are checked where they add up.
func TestDeltaIsMooncake(t *testing.T) {
	const rows = `{"timestamp":0,"input_length":500,"output_length":16,"hash_ids":[1]}
{"timestamp":1,"input_length":600,"output_length":16,"hash_ids":[1,2]}
`
	delta, err := loadText(rows, asDelta)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := loadText(rows)
	if err != nil {
		t.Fatal(err)
	}
	if delta.Digest() != plain.Digest() {
		t.Error("they differ")
	}
	_, err = loadText(`{"session_id":"long","timestamp":0,"output_length":268435456,"hash_ids":[1]}
{"session_id":"long","output_length":1,"hash_ids":[1]}`, asDelta)
	if err == nil || !strings.Contains(err.Error(), "session long: its turns have more than") {
		t.Errorf("an endless session gives %v", err)
	}
}

// A different answer is different work.
func TestDeltaDigest(t *testing.T) {
	load := func(planned string) string {
		w, err := loadText(`{"session_id":"a","timestamp":0,"output_length":1,"hash_ids":[1]`+planned+`}
{"session_id":"a","output_length":1,"hash_ids":[1]}`, asDelta)
		if err != nil {
			t.Fatal(err)
		}
		return w.Digest()
	}
	if a, b, c := load(""), load(`,"output_token_ids":[1]`), load(`,"output_token_ids":[2]`); a == b || b == c || a == c {
		t.Error("digests are equal")
	}
}
