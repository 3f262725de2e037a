package workload_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/servegrid/servegrid/simcore/workload"
)

func ExampleSpec_Load() {
	trace := workload.DefaultTraceSpec()
	trace.Path = "-"
	input := strings.NewReader(`
{"timestamp": 0, "input_length": 1000, "output_length": 20, "hash_ids": [0, 1], "session_id": "a"}
{"timestamp": 300, "input_length": 1500, "output_length": 10, "hash_ids": [0, 1, 2], "session_id": "a"}
{"timestamp": 40, "input_length": 700, "output_length": 5, "hash_ids": [0, 3]}
`)
	w, err := workload.Spec{Trace: &trace}.Load(context.Background(), workload.Source{Stdin: input})
	if err != nil {
		fmt.Println(err)
		return
	}
	for session := range w.Sessions() {
		for r := w.SessionStart[session]; r < w.SessionStart[session+1]; r++ {
			fmt.Printf("%s: %d tokens in, %d out, %v ms after the turn before\n", w.SessionName(session), w.Input[r], w.Output[r], w.DelayMs[r])
		}
	}
	// Output:
	// a: 1000 tokens in, 20 out, 0 ms after the turn before
	// a: 1500 tokens in, 10 out, 300 ms after the turn before
	// request_2: 700 tokens in, 5 out, 0 ms after the turn before
}
