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

// TestLoadGrowsLinearly compares the time for eight times the text with that for the text: a byte takes the same.
func TestLoadGrowsLinearly(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a lot of text")
	}
	for name, f := range textTraces() {
		t.Run(name, func(t *testing.T) {
			small, large := f.text(t, 2<<20), f.text(t, 16<<20)
			// Other work on the machine slows single runs down, so the fastest counts.
			fastest := func(text []byte) time.Duration {
				best := time.Duration(1 << 62)
				for range 4 {
					begin := time.Now()
					f.load(t, text)
					best = min(best, time.Since(begin))
				}
				return best
			}
			perByte := func(text []byte) float64 { return float64(fastest(text)) / float64(len(text)) }
			a, b := perByte(small), perByte(large)
			for range 3 { // quadratic growth would make it eight times as much
				if b <= 2.5*a {
					break
				}
				a, b = perByte(small), perByte(large)
			}
			t.Logf("%.2f and %.2f ns a byte", a, b)
			if b > 2.5*a {
				t.Errorf("a byte takes %.2f ns in %d bytes, and %.2f ns in %d", a, len(small), b, len(large))
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
