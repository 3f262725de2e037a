package results

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
)

const madeUpSpec = `name: chat on four workers
workload:
  preset: {name: chat, requests: 2000, seed: 1}
load: {mode: concurrency}
engine: {type: vllm, block_size: 64}
timing: {source: polynomial, tp: 2}
grid:
  deployment.workers: [1, 2, 4, 8]
  router.policy: [round_robin, kv_router]
  engine.max_num_batched_tokens: [2048, 8192, 16384]
  load.concurrency: {logspace: [1, 512, 13], round: true}
on_invalid: skip
`

// madeUpReport is a report over made-up rows with an SLA.
func madeUpReport(t testing.TB) ReportData {
	t.Helper()
	constraints, err := ParseConstraints("p99_ttft_ms <= 6000")
	if err != nil {
		t.Fatal(err)
	}
	table := NewTable(madeUpRows(1), Metadata{Spec: madeUpSpec, Versions: map[string]string{"servegrid": "0.1.0", "simulator": "1"}})
	table.AddCommands(func(row int) string {
		return fmt.Sprintf("servegrid sweep grid.yaml --point %s", table.Column("id").Text(row))
	})
	return ReportData{Title: "Chat on one to eight workers", Table: table, Analysis: Analysis{Constraints: constraints}}
}

func renderReport(t testing.TB, d ReportData) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteReport(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReportIsDeterministicAndOffline(t *testing.T) {
	first := renderReport(t, madeUpReport(t))
	if first != renderReport(t, madeUpReport(t)) {
		t.Error("equal data gives different reports")
	}
	for _, remote := range []string{"src=", "href=", "@import", "url("} {
		if strings.Contains(first, remote) {
			t.Errorf("the report refers to something outside by %q", remote)
		}
	}
}

func TestReportEmbedsEveryFile(t *testing.T) {
	entries, err := reportFiles.ReadDir("report")
	if err != nil {
		t.Fatal(err)
	}
	if used := len(reportStyles) + len(reportScripts) + 1; len(entries) != used {
		t.Errorf("report holds %d files; the page uses %d", len(entries), used)
	}
}

// All scripts of the page share one scope, in which the later of two functions of a name wins without a word.
func TestReportNamesAreUnique(t *testing.T) {
	page := renderReport(t, madeUpReport(t))
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(?:async )?(?:function|const|let|class) (\w+)`).FindAllStringSubmatch(page, -1) {
		if seen[m[1]] {
			t.Errorf("two scripts declare %s", m[1])
		}
		seen[m[1]] = true
	}
	if len(seen) < 100 {
		t.Errorf("only %d names were found", len(seen))
	}
}

func TestReportIgnoresEarlierMarks(t *testing.T) {
	plain := renderReport(t, madeUpReport(t))
	marked := madeUpReport(t)
	constraints, err := ParseConstraints("workers == 1")
	if err != nil {
		t.Fatal(err)
	}
	if err := MarkFrontier(marked.Table, Analysis{Objectives: DefaultObjectives(), Constraints: constraints}); err != nil {
		t.Fatal(err)
	}
	columns := len(marked.Table.Columns)
	if renderReport(t, marked) != plain {
		t.Error("marks of an earlier analysis change the report")
	}
	if len(marked.Table.Columns) != columns {
		t.Error("the report changed its caller's table")
	}
}

func TestReportRefusesUnknownColumns(t *testing.T) {
	d := madeUpReport(t)
	d.Constraints = []Constraint{{Column: "p99_tftt_ms", Operator: "<=", Bound: integer(1)}}
	if err := WriteReport(io.Discard, d); err == nil || !strings.Contains(err.Error(), "did you mean p99_ttft_ms?") {
		t.Errorf("error %v; want the nearest column", err)
	}
}
