package workload

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// text returns so many bytes of conversations, or a little more.
func (f textTrace) text(tb testing.TB, size int64) []byte {
	tb.Helper()
	text, err := io.ReadAll(f.read(200, "", func(_ int, written int64) bool { return written < size }))
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func (f textTrace) load(tb testing.TB, text []byte) {
	tb.Helper()
	s := DefaultTraceSpec()
	s.Path, s.Format = "-", f.format
	if _, err := (Spec{Trace: &s}).Load(context.Background(), Source{Stdin: bytes.NewReader(text)}); err != nil {
		tb.Fatal(err)
	}
}

// TestLoadGrowsLinearly compares the time for eight times the text with eight times that for the text: they are the same.
func TestLoadGrowsLinearly(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a lot of text")
	}
	const times = 8
	for name, f := range textTraces() {
		t.Run(name, func(t *testing.T) {
			small, large := f.text(t, 2<<20), f.text(t, times<<21)
			took := func(n int, text []byte) time.Duration {
				begin := time.Now()
				for range n {
					f.load(t, text)
				}
				return time.Since(begin)
			}
			// Other work on the machine slows both down, for as long as both take, so the fastest of several count.
			fastestSmall, fastestLarge := took(times, small), took(1, large)
			for range 10 { // quadratic growth would make it eight times as much
				if 2*fastestLarge <= 5*fastestSmall {
					break
				}
				fastestSmall, fastestLarge = min(fastestSmall, took(times, small)), min(fastestLarge, took(1, large))
			}
			t.Logf("%s for %d times %d bytes, %s for %d", fastestSmall, times, len(small), fastestLarge, len(large))
			if 2*fastestLarge > 5*fastestSmall {
				t.Errorf("%d bytes take %s, and %d times %d take %s", len(large), fastestLarge, times, len(small), fastestSmall)
			}
		})
	}
}

// BenchmarkLoad loads the Mooncake conversation trace, a WEKA file of 25 MB, and 10 MB of each format.
func BenchmarkLoad(b *testing.B) {
	b.Run("conversation trace", func(b *testing.B) {
		shared := cmp.Or(os.Getenv("SHARED_DATA_DIR"), filepath.Join(moduleRoot(b), "..", "shared"))
		text, err := os.ReadFile(filepath.Join(shared, "traces", "mooncake", "conversation_trace.jsonl"))
		if err != nil {
			b.Skip("needs traces/mooncake: set SHARED_DATA_DIR to the folder that holds traces")
		}
		benchmarkLoad(b, textTrace{format: FormatMooncake}, text)
	})
	traces := textTraces()
	b.Run("weka 25 MB", func(b *testing.B) { benchmarkLoad(b, traces[FormatWeka], traces[FormatWeka].text(b, 25_000_000)) })
	for _, name := range slices.Sorted(maps.Keys(traces)) {
		b.Run(name, func(b *testing.B) { benchmarkLoad(b, traces[name], traces[name].text(b, 10_000_000)) })
	}
}

func benchmarkLoad(b *testing.B, f textTrace, text []byte) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		f.load(b, text)
	}
}
