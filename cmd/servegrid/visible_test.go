package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"chat rate=4 – 日本 é": "chat rate=4 – 日本 é",
		"\x1b[31mred\a":      `\x1b[31mred\a`,
		"\x1b]0;title\x9c":   `\x1b]0;title\x9c`,
		"a\u009bb":           `a\u009bb`,
		"a\nb\r\tc":          `a\nb\r\tc`,
		"a\u202eb\u2066":     `a\u202eb\u2066`,
		"a\u2028b\x7f":       `a\u2028b\x7f`,
		"\xff\xfe":           `\xff\xfe`,
		"\ufffd":             "\ufffd",
	} {
		if got := visible(in); got != want {
			t.Errorf("visible(%q) = %q, want %q", in, got, want)
		}
	}
}

// Whatever goes in, a terminal shows what comes out, and does so again.
func TestVisibleProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		got := visible(s)
		if !utf8.ValidString(got) || strings.IndexFunc(got, obeyed) >= 0 {
			t.Fatalf("visible(%q) = %q", s, got)
		}
		if again := visible(got); again != got {
			t.Fatalf("visible(%q) = %q", got, again)
		}
	})
}

func TestCellTextIsCut(t *testing.T) {
	if got, want := cellText(strings.Repeat("x", 200)), strings.Repeat("x", maxCellWidth-1)+"…"; got != want {
		t.Errorf("got %q", got)
	}
	if got := cellText(strings.Repeat("x", maxCellWidth)); strings.Contains(got, "…") {
		t.Errorf("got %q", got)
	}
}

// hostile has a sequence that would clear the terminal, one that would name its window, a bell, a C1 control, a line
// that looks like the program's and a mark that turns text around.
const hostile = "\x1b[2J\x1b]0;pwned\a\u009b31m\nservegrid: all is well\u202e"

// hostileSpec writes a spec whose names are hostile.
func hostileSpec(t *testing.T) string {
	return writeSpec(t, `
name: `+quoted(hostile)+`
workload:
  - {name: `+quoted("first"+hostile)+`, synthetic: {input_tokens: 100, output_tokens: 5, requests: 10}}
  - {name: second, synthetic: {input_tokens: 50, output_tokens: 5, requests: 10}}
cases:
  `+quoted("one"+hostile)+`: {engine.block_size: 16}
  two: {engine.block_size: 32}
`)
}

// quoted writes text as a double-quoted YAML scalar.
func quoted(s string) string {
	return `"` + strings.NewReplacer("\x1b", `\x1b`, "\a", `\a`, "\u009b", `\u009b`, "\n", `\n`, "\u202e", `\u202e`).Replace(s) + `"`
}

// checkHarmless requires that a command's output has no line but those of the program, and nothing a terminal obeys.
func checkHarmless(t *testing.T, got outcome) {
	t.Helper()
	for _, text := range []string{got.stdout, got.stderr} {
		for _, line := range strings.Split(text, "\n") {
			if visible(line) != line || strings.HasPrefix(line, "servegrid: all is well") {
				t.Errorf("the terminal gets %q", line)
			}
		}
	}
}

func TestHostileNamesInSpecs(t *testing.T) {
	spec := hostileSpec(t)
	dir := filepath.Join(t.TempDir(), "out\x1b[1m")
	for _, args := range [][]string{
		{"spec", "expand", spec},
		{"sweep", spec, "-o", dir, "--dry-run"},
		{"sweep", spec, "-o", dir},
		{"sweep", spec, "-o", dir, "--dry-run"},
		{"pareto", dir},
		{"pareto", dir, "--where", "p99_ttft_ms < 0"},
		{"report", dir, "-o", filepath.Join(t.TempDir(), "r\x1b.html")},
		{"cliff", dir, "--axis", "wall_s", "--where", "p99_ttft_ms < 40", "--by", "workload"},
		{"recommend", dir, "--objective", "min:p99_ttft_ms"},
		{"sensitivity", dir},
		{"check", dir},
		{"diff", dir, dir},
	} {
		got := mustRun(t, args...)
		checkHarmless(t, got)
		if got.stdout == "" {
			t.Errorf("servegrid %q prints nothing", args)
		}
	}
	checkHarmless(t, runOnTerminal("spec", "validate", spec))
	table := readResultsFile(t, filepath.Join(dir, "results.parquet"))
	if diff := cmp.Diff("one"+hostile, table.Column("case").Text(0)); diff != "" {
		t.Errorf("the data is changed:\n%s", diff)
	}
}

func TestHostileNamesInErrors(t *testing.T) {
	spec := hostileSpec(t)
	for _, args := range [][]string{
		{"sweep", "\x1b[2J.yaml"},
		{"sweep", spec, "--set", "grid={\"\x1b[2J\": [1]}"},
		{"spec", "expand", spec, "--set", "cases={\"a\\nservegrid: all is well\": {nonsense\x1b: 1}}"},
		{"replay", "--preset", "\xff\x9b"},
		{"pareto", "\xff\x1b.csv"},
		{"\x1b[2J"},
	} {
		got := runCommand(t, args...)
		checkHarmless(t, got)
		if got.code != exitRefused || got.stderr == "" {
			t.Errorf("servegrid %q: exit code %d, %q", args, got.code, got.stderr)
		}
	}
}

// Files of others are shown harmlessly too, and written as they are.
func TestHostileNamesInFiles(t *testing.T) {
	table := &results.Table{}
	name := results.NewColumn("name"+hostile, gridspec.KindString, 2)
	rate := results.NewColumn("rate"+hostile, gridspec.KindFloat, 2)
	for row, text := range []string{"a" + hostile, "b\xff"} {
		name.Set(row, gridspec.Value{Kind: gridspec.KindString, Str: text})
		rate.Set(row, gridspec.Value{Kind: gridspec.KindFloat, Float: float64(row) + 0.5})
	}
	table.Add(name)
	table.Add(rate)
	for _, format := range []string{"csv", "json", "parquet"} {
		path := filepath.Join(t.TempDir(), "made."+format)
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		write, err := tableWriter(format)
		if err != nil {
			t.Fatal(err)
		}
		if err := write(file, table); err != nil {
			t.Fatal(err)
		}
		file.Close()
		column := `"rate` + strings.NewReplacer(`"`, `""`).Replace(hostile) + `"`
		got := mustRun(t, "pareto", path, "--maximize", column)
		checkHarmless(t, got)
		if !strings.Contains(got.stdout, `\x1b[2J`) {
			t.Errorf("%s: the frontier shows nothing of the name:\n%s", format, got.stdout)
		}
		copied := mustRun(t, "pareto", path, "--maximize", column, "--format", "csv")
		if !strings.Contains(copied.stdout, "\x1b[2J") {
			t.Errorf("%s: the data is changed: %q", format, copied.stdout)
		}
		checkHarmless(t, runCommand(t, "pareto", path, "--maximize", "rate"))
	}
}
