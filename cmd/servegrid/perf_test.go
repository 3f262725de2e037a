package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/perfmodel/tables"
	"github.com/servegrid/servegrid/sweep/filelock"
)

// embeddedTables is the folder of the tables that the program contains.
const embeddedTables = repository + "/simcore/perfmodel/tables/data"

func TestPassFlags(t *testing.T) {
	for _, test := range []struct {
		prefill, decode []string
		want            string
	}{
		{nil, nil, "0 0+0 0, 0 0"},
		{[]string{"4x2048"}, nil, "4 2048+0 8192, 0 0"},
		{[]string{"1x10+5", "2x100"}, []string{"3x7"}, "3 70+1 210, 3 7"},
		{nil, []string{"1x10", "2x1"}, "0 0+0 0, 3 4"},
		{[]string{"65536x1"}, []string{"1x0"}, "65536 1+0 65536, 1 0"},
	} {
		p, err := passFlags{test.prefill, test.decode}.pass()
		if err != nil {
			t.Error(err)
			continue
		}
		got := fmt.Sprintf("%d %d+%d %d, %d %d", p.Prefill.Requests, p.Prefill.Length-p.Prefill.Prefix, p.Prefill.Prefix, p.Prefill.Tokens, p.Decode.Requests, p.Decode.Context)
		if got != test.want || len(p.Prefill.Chunks) != p.Prefill.Requests || p.Prefill.Finishing != p.Prefill.Requests {
			t.Errorf("%v %v is %s, want %s", test.prefill, test.decode, got, test.want)
		}
	}
	for _, bad := range []string{"", "x", "4", "0x1", "4x", "4x-1", "4x2+", "1x2+3+4", "65537x1", "1x16777217", "1x99999999999999999999", " 1x1", "1x16777216+1"} {
		if _, err := (passFlags{prefill: []string{bad}}).pass(); err == nil {
			t.Errorf("--prefill %q is accepted", bad)
		}
		if _, err := (passFlags{decode: []string{bad}}).pass(); err == nil && bad != "" {
			t.Errorf("--decode %q is accepted", bad)
		}
	}
	if _, err := (passFlags{prefill: []string{"1x0"}}).pass(); err == nil {
		t.Error("a prompt without new tokens is accepted")
	}
}

func TestUsedRows(t *testing.T) {
	row := func(dtype string, corrected bool) *tables.Config {
		return &tables.Config{DType: dtype, Corrected: corrected}
	}
	rows := []*tables.Config{row("bf16", false), row("fp8", false), row("fp8", true), row("fp4", true)}
	if got := usedRows(rows); !slices.Equal(got, []*tables.Config{rows[0], rows[2], rows[3]}) {
		t.Errorf("used rows are %v", got)
	}
}

func mustDeployment(t *testing.T, change func(*perfShowFlags)) *deployment {
	t.Helper()
	f := perfShowFlags{timing: perfmodel.DefaultConfig(), blockSize: 64}
	f.timing.GPU, f.timing.Model = "h200_sxm", "llama-3.1-8b"
	if change != nil {
		change(&f)
	}
	d, err := f.deployment()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestPlot requires well-formed drawings without a number that is none, and equal bytes for equal deployments.
func TestPlot(t *testing.T) {
	for name, change := range map[string]func(*perfShowFlags){
		"table":    nil,
		"analytic": func(f *perfShowFlags) { f.timing.GPU = "mi300x" },
		"too big":  func(f *perfShowFlags) { f.timing.GPU, f.timing.Model = "l4", "llama-3.1-70b" },
		"ranks":    func(f *perfShowFlags) { f.timing.GPU, f.timing.Model, f.timing.DP = "mi300x", "qwen3-30b-a3b", 8 },
	} {
		t.Run(name, func(t *testing.T) {
			d := mustDeployment(t, change)
			var first, second bytes.Buffer
			if err := errors.Join(newLatencyPlot(d).write(&first), newLatencyPlot(d).write(&second)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first.Bytes(), second.Bytes()) {
				t.Error("two plots of one deployment differ")
			}
			if strings.Contains(first.String(), "NaN") || strings.Contains(first.String(), "Inf") {
				t.Error("the plot has a number that is none")
			}
			if n := countElements(t, &first, "path"); n < 2*4 {
				t.Errorf("%d paths", n)
			}
		})
	}
}

// countElements parses XML to its end.
func countElements(t *testing.T, r io.Reader, name string) int {
	t.Helper()
	n := 0
	for decoder := xml.NewDecoder(r); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == name {
			n++
		}
	}
}

// TestPlotStopsAtMemory lets a line end where the KV cache of its pass is the last that fits.
func TestPlotStopsAtMemory(t *testing.T) {
	d := mustDeployment(t, nil)
	long := newLatencyPlot(d).Panels[0].Lines[3]
	last := int(long.points[len(long.points)-1].x)
	if !long.Full || last*65537 > d.kvTokens() || (last+1)*65537 <= d.kvTokens() {
		t.Errorf("the line of 65536 tokens ends at batch %d of %d tokens, full is %v", last, d.kvTokens(), long.Full)
	}
}

func TestDrawSplitsWhatIsExtrapolated(t *testing.T) {
	l := plotLine{points: []plotPoint{{1, 1, false}, {2, 1, false}, {4, 10, true}, {8, 10, false}, {16, 10, false}}}
	l.draw(logScale{1, 16, 40}, logScale{1, 10, 10})
	if l.Measured != "M0.0 10.0L10.0 10.0M30.0 0.0L40.0 0.0" || l.Extrapolated != "M10.0 10.0L20.0 0.0L30.0 0.0" {
		t.Errorf("paths are %s and %s", l.Measured, l.Extrapolated)
	}
}

// TestTicksAround requires ticks that enclose the values closely.
func TestTicksAround(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := math.Exp2(rapid.Float64Range(-3, 12).Draw(t, "low"))
		high := low * math.Exp2(rapid.Float64Range(0, 12).Draw(t, "octaves"))
		ticks := ticksAround(low, high)
		n := len(ticks)
		if n < 2 || !slices.IsSorted(ticks) || ticks[0] > low || ticks[n-1] < high {
			t.Fatalf("ticks of %v to %v are %v", low, high, ticks)
		}
		if n > 2 && (ticks[1] <= low || ticks[n-2] >= high) {
			t.Fatalf("ticks of %v to %v are wider than need be: %v", low, high, ticks)
		}
	})
}

func TestSpreadLabels(t *testing.T) {
	lines := []*plotLine{{LabelY: 100}, {LabelY: 101}, {LabelY: 99}, {LabelY: 100, LabelX: 300}}
	spreadLabels(lines)
	if a, b := lines[0].LabelY-lines[2].LabelY, lines[1].LabelY-lines[0].LabelY; a < labelHeight-.1 || b < labelHeight-.1 {
		t.Errorf("labels are %v and %v apart", a, b)
	}
	if lines[3].LabelY != 100 {
		t.Errorf("a label by itself moved to %v", lines[3].LabelY)
	}
}

func TestSampled(t *testing.T) {
	got := sampled(1, 512)
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Errorf("not increasing: %v", got)
	}
	for _, want := range []int{1, 2, 3, 4, 8, 16, 256, 512} {
		if !slices.Contains(got, want) {
			t.Errorf("%d is missing", want)
		}
	}
}

// TestPerfDocs requires docs/perf.md to name every key of the JSON output.
func TestPerfDocs(t *testing.T) {
	page, err := os.ReadFile(repository + "/docs/perf.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{known{}, knownGPU{}, knownModel{}, knownName{}, knownDeployment{}, knownRefusal{}, errorFigures{},
		shownDocument{}, shownProvenance{}, shownMemory{}, passDocument{}, passPart{}, perfmodel.Part{}, pricedDecode{}, pricedPrefill{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(v)) {
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if key != "" && key != "-" && !strings.Contains(string(page), "`"+key+"`") {
				t.Errorf("docs/perf.md does not explain %s of %T", key, v)
			}
		}
	}
}

// TestImportsTakeTurns checks that no import writes to a folder that another one writes to.
func TestImportsTakeTurns(t *testing.T) {
	dir := t.TempDir()
	other, err := os.OpenFile(filepath.Join(dir, importLock), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if taken, err := filelock.Try(other); !taken || err != nil {
		t.Fatalf("the lock is not free: %v %v", taken, err)
	}
	source := filepath.Join(repository, "simcore/perfmodel/tables/data")
	if got := runCommand(t, "perf", "import", source, "--output", dir); got.code != exitRefused || !strings.Contains(got.stderr, "another import is writing") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if got := runCommand(t, "perf", "import", source, "--output", dir); got.code != exitOK {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
}
