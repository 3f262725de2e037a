package workload

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime"
	"testing"
)

// growing writes a conversation whose prompts grow by one block a turn: the text grows with the square of its turns, the
// requests and different blocks with the turns alone.
func growing(turns int, begin, end string, row func(w io.Writer, turn int, ids []byte)) io.Reader {
	r, w := io.Pipe()
	go func() {
		out := bufio.NewWriterSize(w, 1<<16)
		fmt.Fprint(out, begin)
		var ids []byte
		for turn := range turns {
			if turn > 0 {
				ids = append(ids, ',')
			}
			ids = fmt.Append(ids, uint64(turn)*0x9E3779B97F4A7C15)
			row(out, turn, ids)
		}
		fmt.Fprint(out, end)
		out.Flush()
		w.Close()
	}()
	return r
}

// liveAfterLoad loads a conversation and returns the bytes that the workload keeps and the number of bytes of its text.
func liveAfterLoad(t *testing.T, format string, turns int) (live, text int64) {
	t.Helper()
	counted := &countingReader{r: map[string]func() io.Reader{
		FormatDynamo: func() io.Reader {
			return growing(turns, "", "", func(w io.Writer, turn int, ids []byte) {
				fmt.Fprintf(w, `{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":%d,"agent_context":{"session_id":"s"},"request":{"request_id":"r%d","output_tokens":1,"request_received_ms":%d,"total_time_ms":5,"replay":{"trace_block_size":64,"input_length":%d,"input_sequence_hashes":[%s]}}}`+"\n",
					turn*10+5, turn, turn*10, 64*(turn+1), ids)
			})
		},
		FormatMooncake: func() io.Reader {
			return growing(turns, "", "", func(w io.Writer, turn int, ids []byte) {
				fmt.Fprintf(w, `{"timestamp":%d,"session_id":"s","output_length":1,"hash_ids":[%s]}`+"\n", turn*10, ids)
			})
		},
		FormatAgenticMooncake: func() io.Reader {
			return growing(turns, agenticHeaderLine+"\n", "", func(w io.Writer, turn int, ids []byte) {
				deps := ""
				if turn > 0 {
					deps = agenticDep(fmt.Sprint("r", turn-1), "completion", 5, "sequence")
				}
				fmt.Fprintf(w, `{"request_id":"r%d","play_id":"p","session_id":"s","model":"m","input_length":%d,"output_length":1,"hash_ids":[%s],"not_before_ms":0,"dependencies":[%s]}`+"\n",
					turn, 64*(turn+1), ids, deps)
			})
		},
		FormatWeka: func() io.Reader {
			return growing(turns, `{"id":"a","block_size":64,"hash_id_scope":"local","requests":[`, "]}", func(w io.Writer, turn int, ids []byte) {
				if turn > 0 {
					fmt.Fprint(w, ",")
				}
				fmt.Fprintf(w, `{"t":%d,"type":"s","model":"m","in":%d,"out":1,"hash_ids":[%s],"api_time":0.5}`, turn, 64*(turn+1), ids)
			})
		},
	}[format]()}
	s := DefaultTraceSpec()
	s.Path, s.Format = "-", format
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w, err := Spec{Trace: &s}.Load(context.Background(), Source{Stdin: counted})
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if w.Requests() != turns {
		t.Fatalf("%d requests, want %d", w.Requests(), turns)
	}
	runtime.KeepAlive(w)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc), counted.n
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// Memory grows with requests and different blocks, not with text: four times the text of twice the turns takes about twice
// the memory.
func TestCapturesStream(t *testing.T) {
	for _, format := range []string{FormatMooncake, FormatAgenticMooncake, FormatDynamo, FormatWeka} {
		small, smallText := liveAfterLoad(t, format, 600)
		large, largeText := liveAfterLoad(t, format, 1200)
		if largeText < 7*smallText/2 {
			t.Fatalf("%s: %d and %d bytes of text", format, smallText, largeText)
		}
		if limit := 3 * max(small, 100<<10); large > limit || large > largeText/10 {
			t.Errorf("%s: %d bytes of text take %d bytes, %d take %d", format, smallText, small, largeText, large)
		}
	}
}
