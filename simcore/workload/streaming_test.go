package workload

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"strconv"
	"strings"
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

// textTrace writes conversations in one of the formats. ids are those of a prompt's blocks, with commas between them, and pad is
// text that says nothing new.
type textTrace struct {
	format string
	header string
	row    func(w io.Writer, conversation, turn int, ids, pad string)
}

// textTraces are all formats, and the ways in which one of them has text.
func textTraces() map[string]textTrace {
	mooncake := func(w io.Writer, conversation, turn int, ids, pad string) {
		fmt.Fprintf(w, `{"timestamp":%d,"session_id":"s%d","prompt":"%s","output_length":100,"hash_ids":[%s]}`+"\n", conversation*1000+turn*10, conversation, pad, ids)
	}
	aiperf := func(content string) func(w io.Writer, conversation, turn int, ids, pad string) {
		return func(w io.Writer, conversation, turn int, ids, pad string) {
			fmt.Fprintf(w, `{"timestamp":%d,"session_id":"s%d","output_length":100,`+content+"}\n", conversation*1000+turn*10, conversation, pad, ids)
		}
	}
	return map[string]textTrace{
		FormatMooncake: {FormatMooncake, "", mooncake},
		FormatMooncakeDelta: {FormatMooncakeDelta, "", func(w io.Writer, conversation, turn int, ids, pad string) {
			mooncake(w, conversation*50+turn, 0, ids, pad)
		}},
		FormatAgenticMooncake: {FormatAgenticMooncake, agenticHeaderLine + "\n", func(w io.Writer, conversation, turn int, ids, pad string) {
			deps := ""
			if turn > 0 {
				deps = agenticDep(fmt.Sprintf("c%d-%d", conversation, turn-1), "completion", 5, "sequence")
			}
			fmt.Fprintf(w, `{"request_id":"c%d-%d","play_id":"p%d","session_id":"s%d","model":"m","messages":"%s","input_length":%d,"output_length":1,"hash_ids":[%s],"not_before_ms":0,"dependencies":[%s]}`+"\n",
				conversation, turn, conversation, conversation, pad, 64*(strings.Count(ids, ",")+1), ids, deps)
		}},
		FormatAppliedCompute: {FormatAppliedCompute, "", func(w io.Writer, conversation, turn int, ids, pad string) {
			fmt.Fprintf(w, `{"num_turns":1,"prompts":["%s","%s"],"input_prompt_length":600,"assistant_response_length":[3],"tool_call_output_length":[4],"tool_call_latency":[0.5],"final_assistant_response_length":6}`+"\n", pad, ids)
		}},
		"aiperf text_input":         {FormatAIPerf, "", aiperf(`"text_input":"%s%s"`)},
		"aiperf messages and tools": {FormatAIPerf, "", aiperf(`"tools":[{"name":"%s"}],"messages":[{"role":"user","content":[{"type":"text","text":"%s"}]}]`)},
		"aiperf payload":            {FormatAIPerf, "", aiperf(`"payload":{"messages":[{"role":"system","content":"%s"},{"role":"user","content":"%s"}]}`)},
		FormatAzure: {FormatAzure, "TIMESTAMP,Prompt,ContextTokens,GeneratedTokens\n", func(w io.Writer, conversation, turn int, ids, pad string) {
			fmt.Fprintf(w, `2023-11-16 18:17:03.9799600,"%s%s",4808,10`+"\n", pad, ids)
		}},
		FormatBurstGPT: {FormatBurstGPT, "Timestamp,Session ID,Prompt,Request tokens,Response tokens\n", func(w io.Writer, conversation, turn int, ids, pad string) {
			fmt.Fprintf(w, `%d,s%d,"%s%s",4808,10`+"\n", conversation*1000+turn*10, conversation, pad, ids)
		}},
		FormatQwenBailian: {FormatQwenBailian, "", func(w io.Writer, conversation, turn int, ids, pad string) {
			parent := -1
			if turn > 0 {
				parent = conversation*50 + turn - 1
			}
			fmt.Fprintf(w, `{"chat_id":%d,"parent_chat_id":%d,"timestamp":%d,"type":"%s","output_length":1,"hash_ids":[%s]}`+"\n", conversation*50+turn, parent, conversation+turn, pad, ids)
		}},
		FormatDynamo: {FormatDynamo, "", func(w io.Writer, conversation, turn int, ids, pad string) {
			fmt.Fprintf(w, `{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":%d,"agent_context":{"session_id":"s%d"},"request":{"request_id":"c%d-%d","finish_reason_metadata":{"text":"%s"},"output_tokens":1,"request_received_ms":%d,"total_time_ms":5,"replay":{"trace_block_size":64,"input_length":%d,"input_sequence_hashes":[%s]}}}`+"\n",
				turn*10+5, conversation, conversation, turn, pad, turn*10, 64*(strings.Count(ids, ",")+1), ids)
		}},
		FormatWeka: {FormatWeka, "", func(w io.Writer, conversation, turn int, ids, pad string) {
			if turn == 0 {
				fmt.Fprintf(w, `{"id":"c%d","block_size":64,"hash_id_scope":"local","requests":[`, conversation)
			} else {
				fmt.Fprint(w, ",")
			}
			fmt.Fprintf(w, `{"t":%d,"type":"s","model":"m","stop":"%s","in":%d,"out":100,"hash_ids":[%s],"api_time":0.5}`, turn, pad, 64*(strings.Count(ids, ",")+1), ids)
			if turn == 49 {
				fmt.Fprintln(w, "]}")
			}
		}},
	}
}

// read writes conversations of 50 turns while more says so of how many there are and of their bytes: some blocks come first,
// a tenth of them with each turn.
func (f textTrace) read(blocks int, pad string, more func(conversations int, size int64) bool) *countingReader {
	r, w := io.Pipe()
	go func() {
		counted := &countingWriter{w: w}
		out := bufio.NewWriterSize(counted, 1<<18)
		fmt.Fprint(out, f.header)
		var ids []byte
		var ends []int // of the ids of each block
		for conversation := 0; more(conversation, counted.n); conversation++ {
			ids, ends = ids[:0], ends[:0]
			for block := range blocks + 49*blocks/10 {
				if block > 0 {
					ids = append(ids, ',')
				}
				ids = strconv.AppendUint(ids, uint64(conversation*2000+block+1)*0x9E3779B97F4A7C15, 10)
				ends = append(ends, len(ids))
			}
			for turn := range 50 {
				f.row(out, conversation, turn, string(ids[:ends[blocks-1+turn*blocks/10]]), pad)
			}
		}
		out.Flush()
		w.Close()
	}()
	return &countingReader{r: r}
}

// loaded loads a trace and returns what the heap held at most meanwhile and what the workload takes, in bytes.
func (f textTrace) loaded(t *testing.T, text io.Reader) (w *Workload, peak, kept int64) {
	t.Helper()
	s := DefaultTraceSpec()
	s.Path, s.Format = "-", f.format
	before := liveBytes()
	stop := peakHeap()
	w, err := Spec{Trace: &s}.Load(context.Background(), Source{Stdin: text})
	most := stop()
	if err != nil {
		t.Fatal(err)
	}
	return w, int64(most) - before, liveBytes() - before
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

// TestTextIsNotKept loads traces with the same requests in ten times as much text: that must not show in memory.
func TestTextIsNotKept(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a lot of text")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // so that the heap holds little garbage
	for name, f := range textTraces() {
		t.Run(name, func(t *testing.T) {
			var sizes, peaks, kepts [2]int64
			for i, pad := range []int{1000, 20_000} {
				text := f.read(20, strings.Repeat("x", pad), func(conversations int, _ int64) bool { return conversations < 40 })
				w, peak, kept := f.loaded(t, text)
				sizes[i], peaks[i], kepts[i] = text.n, peak, kept
				runtime.KeepAlive(w)
			}
			t.Logf("%d and %d MB of text: %d and %d kB kept, %d and %d kB at most", sizes[0]>>20, sizes[1]>>20, kepts[0]>>10, kepts[1]>>10, peaks[0]>>10, peaks[1]>>10)
			if more := sizes[1] - sizes[0]; more < 35<<20 || kepts[1] > kepts[0]+more/100 || peaks[1] > peaks[0]+more/4 {
				t.Errorf("%d bytes of text take %d bytes, and %d at most; %d take %d, and %d at most", sizes[0], kepts[0], peaks[0], sizes[1], kepts[1], peaks[1])
			}
		})
	}
}

// TestLargeTraces loads traces of as many MB of text as TRACE_TEST_MB says in a memory that follows their requests and different
// blocks. With 1024 it takes a minute or two.
func TestLargeTraces(t *testing.T) {
	v := os.Getenv("TRACE_TEST_MB")
	if v == "" {
		t.Skip("reads a lot of text: set TRACE_TEST_MB=1024 for 1 GB a format")
	}
	size, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range textTraces() {
		t.Run(name, func(t *testing.T) {
			text, begin := f.read(200, "", func(_ int, written int64) bool { return written < size<<20 }), time.Now()
			w, peak, kept := f.loaded(t, text)
			took := time.Since(begin)
			requests, entries := int64(w.Requests()), w.HashEntries()
			if want := 4<<20 + 500*requests + 40*int64(entries); kept > want || peak > 3*want+64<<20 { // garbage is there too, and collected beside the reading
				t.Errorf("%d requests with %d different blocks and runs of them take %d bytes, %d while they are read; want %d and three times that and 64 MB at most", requests, entries, kept, peak, want)
			}
			t.Logf("%d MB of text, %d requests, %d different blocks and runs: %.1f s, %d MB kept, %d MB at most", text.n>>20, requests, entries, took.Seconds(), kept>>20, peak>>20)
			runtime.KeepAlive(w)
		})
	}
}
