package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const repository = "../.."

// examplePages check that a page shows the figures of an example's sweep.
var examplePages = map[string]func(t *testing.T, dir string){
	"cold-start/grid.yaml":  checkColdStart,
	"cold-start/moves.yaml": checkColdStartMoves,
	"planner/grid.yaml":     checkPolicies,
	"parallelism/grid.yaml": checkParallelism,
	"capacity/grid.yaml":    checkCapacity,
	"routing/tune.yaml":     checkRouterTuning,
	"gpus/grid.yaml":        checkGPUs,
}

// TestExamples sweeps every example, which must all succeed. With -update it rewrites the pages that show their figures.
func TestExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("sweeps thousands of points")
	}
	specs, err := filepath.Glob(filepath.Join(repository, "examples/*/*.yaml"))
	if err != nil || len(specs) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, spec := range specs {
		t.Run(filepath.Base(filepath.Dir(spec)), func(t *testing.T) {
			dir := t.TempDir()
			mustRun(t, "sweep", spec, "-q", "-o", dir)
			if table := readResultsFile(t, filepath.Join(dir, "results.parquet")); table.Rows() == 0 {
				t.Error("no points")
			}
			if check := examplePages[filepath.Base(filepath.Dir(spec))+"/"+filepath.Base(spec)]; check != nil {
				check(t, dir)
			}
		})
	}
}

// TestDocumentedCommands runs every command line in the README and in docs, page by page, in one copy of what the
// repository offers to users: a reader goes on from page to page in the same folder. A line with the comment "needs a trace file" gets a made trace under the name that it reads, one with
// "needs tables" the folder my-tables.
func TestDocumentedCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("sweeps thousands of points")
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh here to run the commands")
	}
	pages, err := filepath.Glob(filepath.Join(repository, "docs/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, filepath.Join(repository, "README.md"))
	work := t.TempDir()
	if err := os.CopyFS(filepath.Join(work, "examples"), os.DirFS(filepath.Join(repository, "examples"))); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		commands := documentedCommands(string(text))
		found += len(commands)
		if len(commands) == 0 {
			continue
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			for _, c := range commands {
				runDocumented(t, work, c)
			}
		})
	}
	if found == 0 {
		t.Error("no page shows a command")
	}
}

// documented is one command line of a page.
type documented struct {
	line int
	text string
}

// documentedCommands finds the lines that start with servegrid in fenced sh blocks. A backslash at the end of a
// line goes on with the next.
func documentedCommands(page string) []documented {
	var out []documented
	inside, open := false, false
	for n, line := range strings.Split(page, "\n") {
		switch text := strings.TrimSpace(line); {
		case strings.HasPrefix(text, "```"):
			inside, open = !inside && text == "```sh", false
		case open:
			last := &out[len(out)-1]
			last.text += "\n" + line
			open = strings.HasSuffix(line, `\`)
		case inside && strings.HasPrefix(text, "servegrid "):
			out = append(out, documented{n + 1, text})
			open = strings.HasSuffix(line, `\`)
		}
	}
	return out
}

// runDocumented runs a command as a user would: in a shell.
func runDocumented(t *testing.T, work string, c documented) {
	t.Helper()
	if strings.Contains(c.text, "# needs a trace file") {
		read := regexp.MustCompile(`--output \S+`).ReplaceAllString(c.text, "")
		for _, name := range regexp.MustCompile(`[^\s'"]+\.jsonl(\.gz|\.zst)?`).FindAllString(read, -1) {
			if path := filepath.Join(work, strings.TrimPrefix(strings.TrimPrefix(name, "file://"), "$PWD/")); !exists(path) {
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				copyHead(t, "testdata/golden/traces/chat.jsonl", path, 600)
			}
		}
	}
	if strings.Contains(c.text, "# needs tables") && !exists(filepath.Join(work, "my-tables")) {
		const system = "l40s"
		if err := os.CopyFS(filepath.Join(work, "my-tables", system), os.DirFS(filepath.Join(embeddedTables, system))); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-c", c.text)
	cmd.Dir = work
	cmd.Env = programEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("line %d: %s\n%v\n%s", c.line, c.text, err, out)
	}
}

func TestFindingDocumentedCommands(t *testing.T) {
	page := "```sh\nservegrid version # now\ngo test ./...\nservegrid sweep \\\n  grid.yaml\n```\ntext\nservegrid no\n```yaml\nservegrid: no\n```\n```sh\n  servegrid help\n```\n"
	want := "[{2 servegrid version # now} {4 servegrid sweep \\\n  grid.yaml} {13 servegrid help}]"
	if got := fmt.Sprint(documentedCommands(page)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
