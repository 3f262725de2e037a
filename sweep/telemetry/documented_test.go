package telemetry

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

var update = flag.Bool("update", false, "rewrite the table of docs/observability.md")

const repository = "../.."

// The documentation has every metric, as it is.
func TestMetricsAreDocumented(t *testing.T) {
	path := filepath.Join(repository, "docs/observability.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "-update -->\n", "<!-- end of metrics -->"
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/observability.md has no place for the table")
	}
	var table strings.Builder
	table.WriteString("\n| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, f := range Families() {
		labels := "–"
		if len(f.Labels) > 0 {
			labels = "`" + strings.Join(f.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", f.Name, f.Type, labels, f.Help)
	}
	table.WriteString("\n")
	want := before + begin + table.String() + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(page) {
		t.Error("the table of metrics in docs/observability.md is not what there is; write it with -update")
	}
}

// expressions are those of the dashboard and of the alerts, by where they are.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	text, err := os.ReadFile(filepath.Join(repository, "deploy/helm/servegrid/dashboards/servegrid.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title, Type, Description string
			Targets                  []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		if p.Type != "row" && (len(p.Targets) == 0 || p.Description == "") {
			t.Errorf("the panel %q has no expression or no description", p.Title)
		}
		for i, target := range p.Targets {
			out[fmt.Sprintf("panel %s %s %d", p.Title, p.Type, i)] = target.Expr
		}
	}
	for _, v := range dashboard.Templating.List {
		if query, ok := strings.CutPrefix(v.Definition, "label_values("); ok {
			metric, _, _ := strings.Cut(strings.TrimSuffix(query, ")"), ", ")
			out["variable "+v.Name] = metric
		}
	}
	if text, err = os.ReadFile(filepath.Join(repository, "deploy/helm/servegrid/alerts/alerts.yaml")); err != nil {
		t.Fatal(err)
	}
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(text, &alerts); err != nil {
		t.Fatal(err)
	}
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			out["alert "+r.Alert] = r.Expr
		}
	}
	return out
}

var (
	selector = regexp.MustCompile(`(servegrid_[a-z_]+)(?:\{([^}]*)\})?`)
	matchers = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"[^"]*"`)
	grouping = regexp.MustCompile(`\b(?:by|without) \(([a-z_, ]+)\)`)
)

// checkExpression returns what an expression uses that is not there.
func checkExpression(expression string, families map[string]Family) []string {
	var problems []string
	known := []string{"sweep", "queue_namespace"}
	found := selector.FindAllStringSubmatch(expression, -1)
	if len(found) == 0 {
		problems = append(problems, "it has no metric of servegrid")
	}
	for _, m := range found {
		name, labels := m[1], []string{"sweep", "queue_namespace"}
		f, ok := families[name]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if h, isPart := strings.CutSuffix(name, suffix); !ok && isPart && families[h].Type == "histogram" {
				f, ok, labels = families[h], true, append(labels, "le")
			}
		}
		if !ok {
			problems = append(problems, "there is no metric "+name)
			continue
		}
		labels = append(labels, f.Labels...)
		known = append(known, labels...)
		for _, matcher := range matchers.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(labels, matcher[1]) {
				problems = append(problems, fmt.Sprintf("%s has no label %s", name, matcher[1]))
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(expression, -1) {
		for label := range strings.SplitSeq(g[1], ",") {
			if label = strings.TrimSpace(label); !slices.Contains(known, label) {
				problems = append(problems, "none of its metrics has the label "+label)
			}
		}
	}
	return problems
}

// Dashboard and alerts use metrics and labels that exist. That their PromQL is in order is checked by tools/promql.py.
func TestDashboardAndAlertsUseWhatThereIs(t *testing.T) {
	families := map[string]Family{}
	for _, f := range Families() {
		families[f.Name] = f
	}
	all := expressions(t)
	if len(all) < 40 {
		t.Errorf("just %d expressions were found", len(all))
	}
	for where, expression := range all {
		for _, p := range checkExpression(expression, families) {
			t.Errorf("%s: %s: %s", where, p, expression)
		}
	}
	for _, wrong := range []string{
		"up", "servegrid_nothing", `servegrid_points_queued{reason="x"}`, `sum by (nothing) (servegrid_points_queued)`,
		`servegrid_points_finished_total{status="ok", nothing=~"x"}`, "servegrid_points_queued_bucket",
	} {
		if len(checkExpression(wrong, families)) == 0 {
			t.Errorf("%s is taken for right", wrong)
		}
	}
}
