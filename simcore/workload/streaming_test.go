package workload

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime"
	runtimemetrics "runtime/metrics"
	"strconv"
	"testing"
	"time"
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
	before := liveBytes()
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
	w, err := Spec{Trace: &s}.Load(context.Background(), Source{Stdin: counted})
	if err != nil {
		t.Fatal(err)
	}
	live = liveBytes() - before
	if w.Requests() != turns {
		t.Fatalf("%d requests, want %d", w.Requests(), turns)
	}
	runtime.KeepAlive(w)
	return live, counted.n
}

// liveBytes is what is reachable. Pools give up what they hold in the second collection only.
func liveBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
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
		liveAfterLoad(t, format, 600) // what is made once is not of the workload
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

// conversationsOf writes conversations of 50 turns until there is that much text: 200 blocks come first, 20 with each turn.
func conversationsOf(size int64, write func(w io.Writer, conversation, turn int, ids string)) io.Reader {
	r, w := io.Pipe()
	go func() {
		counted := &countingWriter{w: w}
		out := bufio.NewWriterSize(counted, 1<<18)
		var ids []byte
		var ends []int // of the ids of each block
		for conversation := 0; counted.n < size; conversation++ {
			ids, ends = ids[:0], ends[:0]
			for block := range 200 + 49*20 {
				if block > 0 {
					ids = append(ids, ',')
				}
				ids = strconv.AppendUint(ids, uint64(conversation*2000+block+1)*0x9E3779B97F4A7C15, 10)
				ends = append(ends, len(ids))
			}
			for turn := range 50 {
				write(out, conversation, turn, string(ids[:ends[199+20*turn]]))
			}
		}
		out.Flush()
		w.Close()
	}()
	return r
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// peakHeap watches the heap until stop is called, which returns the most that it held, garbage included.
func peakHeap() (stop func() uint64) {
	done, peak := make(chan struct{}), make(chan uint64)
	go func() {
		sample := []runtimemetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		most := uint64(0)
		for {
			runtimemetrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			select {
			case <-done:
				peak <- most
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(done); return <-peak }
}

// TestLargeTraces loads traces of 1 GB of text in a memory that follows their requests and different blocks.
func TestLargeTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a lot of text")
	}
	for format, write := range map[string]func(w io.Writer, conversation, turn int, ids string){
		FormatMooncake: func(w io.Writer, conversation, turn int, ids string) {
			fmt.Fprintf(w, `{"timestamp":%d,"session_id":"s%d","output_length":100,"hash_ids":[%s]}`+"\n", conversation*1000+turn*10, conversation, ids)
		},
		FormatWeka: func(w io.Writer, conversation, turn int, ids string) {
			if turn == 0 {
				fmt.Fprintf(w, `{"id":"c%d","block_size":64,"hash_id_scope":"local","requests":[`, conversation)
			} else {
				fmt.Fprint(w, ",")
			}
			fmt.Fprintf(w, `{"t":%d,"type":"s","model":"m","in":%d,"out":100,"hash_ids":[%s],"api_time":0.5}`, turn, 64*(200+20*turn), ids)
			if turn == 49 {
				fmt.Fprintln(w, "]}")
			}
		},
	} {
		t.Run(format, func(t *testing.T) {
			text := &countingReader{r: conversationsOf(1<<30, write)}
			s := DefaultTraceSpec()
			s.Path, s.Format = "-", format
			runtime.GC()
			stop, begin := peakHeap(), time.Now()
			w, err := Spec{Trace: &s}.Load(context.Background(), Source{Stdin: text})
			took, peak := time.Since(begin), stop()
			if err != nil {
				t.Fatal(err)
			}
			var after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&after)
			requests, blocks := int64(w.Requests()), int64(w.Requests()/50*(200+49*20))
			if want := 250*requests + 40*blocks; int64(after.HeapAlloc) > want || int64(peak) > 3*want {
				t.Errorf("%d requests with %d different blocks take %d bytes, %d while they are read; want %d and three times that at most", requests, blocks, after.HeapAlloc, peak, want)
			}
			t.Logf("%d MB of text, %d requests, %d different blocks: %.1f s, %d MB kept, %d MB at most", text.n>>20, requests, blocks, took.Seconds(), after.HeapAlloc>>20, peak>>20)
			runtime.KeepAlive(w)
		})
	}
}
