package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/recommend"
)

// printRecommendation prints a recommendation: for each traffic a table with a column a configuration, then what follows
// from it in sentences.
func printRecommendation(w io.Writer, r *recommend.Recommendation) error {
	goal := "least "
	if r.Objective.Maximize {
		goal = "most "
	}
	bounds := constraintsText(slices.Concat(r.Limits, r.Budget))
	if err := printText(w, "Recommendation: %s%s%s\n", goal, visible(r.Objective.Name), bounds); err != nil {
		return err
	}
	for i := range r.Answers {
		a := &r.Answers[i]
		if len(a.Traffic) > 0 {
			if err := printText(w, "\n%s\n", settingsText(a.Traffic)); err != nil {
				return err
			}
		}
		lines := []string{fmt.Sprintf("Nothing to choose from: %s, of which none was simulated to an end.", plural(a.Configurations, "configuration"))}
		if a.Simulated > 0 {
			lines[0] = fmt.Sprintf("Nothing to choose from: none of %s has a value in %s.", plural(a.Configurations, "configuration"), visible(r.Objective.Name))
		}
		switch {
		case a.Best != nil:
			p := answerText{r, a}
			lines = append([]string{p.table()}, p.sentences()...)
		case a.Closest != nil || a.Simulated > a.WithoutObjective:
			lines = answerText{r, a}.infeasible()
		}
		for _, line := range lines {
			if err := printText(w, "%s\n", line); err != nil {
				return err
			}
		}
	}
	if len(r.Answers) == 0 {
		if err := printText(w, "Nothing to choose from: there are no rows.\n"); err != nil {
			return err
		}
	}
	for _, caution := range r.Cautions {
		if err := printText(w, "%s\n", visible(caution)); err != nil {
			return err
		}
	}
	return nil
}

// settingsText names a configuration, such as "gpu=h200 workers=2".
func settingsText(settings []recommend.Setting) string {
	parts := make([]string, len(settings))
	for i, s := range settings {
		parts[i] = cellText(s.Column) + "=" + cellText(s.Value)
	}
	return strings.Join(parts, " ")
}

// answerText lays out one answer.
type answerText struct {
	r *recommend.Recommendation
	a *recommend.Answer
}

// shownChoice is a column of the table.
type shownChoice struct {
	title  string
	choice *recommend.Choice
}

func (p answerText) choices() []shownChoice {
	out := []shownChoice{{"best", p.a.Best}}
	for i := range p.a.RunnersUp {
		out = append(out, shownChoice{fmt.Sprintf("runner-up %d", i+1), &p.a.RunnersUp[i].Choice})
	}
	if next := p.next(); next != nil {
		out = append(out, shownChoice{"next GPUs", &next.Choice})
	}
	return out
}

// next is the configuration of the next number of GPUs, unless a runner-up is it.
func (p answerText) next() *recommend.Alternative {
	if p.a.Next == nil || slices.ContainsFunc(p.a.RunnersUp, func(u recommend.Alternative) bool { return u.Row == p.a.Next.Row }) {
		return nil
	}
	return p.a.Next
}

// widestTable is the width up to which a table is readable in most terminals.
const widestTable = 120

// table shows the configurations side by side: with the distance to a bound below the figure when they are too many to have it
// beside, and without the last runners-up when that is still too wide.
func (p answerText) table() string {
	choices, hidden := p.choices(), []string{}
	text := p.tableOf(choices, " ")
	if tableWidth(text) > widestTable {
		text = p.tableOf(choices, "\n")
	}
	for last := len(p.a.RunnersUp); tableWidth(text) > widestTable && last > 0; last-- {
		hidden = append(hidden, choices[last].title)
		choices = slices.Delete(choices, last, last+1)
		text = p.tableOf(choices, "\n")
	}
	if len(hidden) > 0 {
		slices.Reverse(hidden)
		text += "\nToo wide for the table, but in --json: " + strings.Join(hidden, ", ") + "."
	}
	return text
}

func tableWidth(table string) int {
	first, _, _ := strings.Cut(table, "\n")
	return utf8.RuneCountInString(first)
}

// tableOf has a line for each setting and figure, and a column for each configuration. The separator comes before units and the
// distance to a bound.
func (p answerText) tableOf(choices []shownChoice, separator string) string {
	out := newTableWriter()
	header := table.Row{""}
	for _, c := range choices {
		header = append(header, c.title)
	}
	out.AppendHeader(header)
	line := func(name string, cell func(*recommend.Choice) string) {
		row, empty := table.Row{strings.ReplaceAll(cellText(name), ", ", ","+separator)}, true
		for _, c := range choices {
			text := cell(c.choice)
			row, empty = append(row, text), empty && text == ""
		}
		if !empty {
			out.AppendRow(row)
		}
	}
	for _, name := range p.settingNames(choices) {
		line(name, func(c *recommend.Choice) string {
			at := slices.IndexFunc(c.Settings, func(s recommend.Setting) bool { return s.Column == name })
			if at < 0 {
				return ""
			}
			return cellText(c.Settings[at].Value)
		})
	}
	out.AppendSeparator()
	for _, f := range p.shownFigures(choices) {
		line(figureName(f), func(c *recommend.Choice) string { return figureCell(c, f.Column, separator) })
	}
	line("limited by", func(c *recommend.Choice) string { return cellText(c.LimitedBy) })
	out.SetColumnConfigs(rightAligned(2, len(choices)+1))
	return out.Render()
}

// settings names a configuration of the answer; the traffic is said already.
func (p answerText) settings(c *recommend.Choice) string {
	return settingsText(slices.DeleteFunc(slices.Clone(c.Settings), func(s recommend.Setting) bool { return slices.Contains(p.a.Traffic, s) }))
}

// settingNames are the settings that some choice has, in their order.
func (p answerText) settingNames(choices []shownChoice) []string {
	var names []string
	for _, c := range choices {
		for _, s := range c.choice.Settings {
			if !slices.Contains(names, s.Column) && !slices.Contains(p.a.Traffic, s) {
				names = append(names, s.Column)
			}
		}
	}
	return names
}

// tabledFigures are the figures of the table besides the objective and those with a bound; JSON has more.
var tabledFigures = []string{
	"gpus", recommend.HourlyCostColumn, "cost_usd_per_mtok_input", "cost_usd_per_mtok_output", "p99_ttft_ms", "p99_tpot_ms", "p99_e2e_latency_ms",
	"output_throughput_tok_s", "mean_output_token_throughput_per_user",
}

// shownFigures are the figures of the table.
func (p answerText) shownFigures(choices []shownChoice) []recommend.Figure {
	var out []recommend.Figure
	for _, c := range choices {
		for _, f := range c.choice.Figures {
			known := slices.ContainsFunc(out, func(o recommend.Figure) bool { return o.Column == f.Column })
			bounded := slices.ContainsFunc(c.choice.Limits, func(l recommend.Limit) bool { return l.Constraint.Column == f.Column })
			if !known && (bounded || f.Column == p.r.Objective.Name || slices.Contains(tabledFigures, f.Column)) {
				out = append(out, f)
			}
		}
	}
	return out
}

// figureName is a column with its unit, where the name does not have it.
func figureName(f recommend.Figure) string {
	says := map[string]string{"ms": "_ms", "GPUs": "gpus", "ratio": "", "USD/h": "usd", "USD/Mtoken": "usd", "requests/s": "_rps", "GPU-hours": "gpu_hours"}
	part, known := says[f.Unit]
	if f.Unit == "" || known && strings.Contains(f.Column, part) || strings.Contains(f.Column, "tok_s") {
		return f.Column
	}
	return f.Column + ", " + f.Unit
}

// figureCell is a figure, its uncertainty, and how far it is within its bound.
func figureCell(c *recommend.Choice, column, separator string) string {
	f, ok := c.Figure(column)
	if !ok {
		return ""
	}
	out := shownFigure(f.Value)
	if f.HalfWidth > 0 {
		out += " ± " + figure(f.HalfWidth)
	}
	for _, l := range c.Limits {
		if l.Constraint.Column == column {
			out += separator + "(" + headroomText(l.Headroom) + ")"
		}
	}
	return out
}

// shownFigure writes whole numbers without decimals.
func shownFigure(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return settingFigure(v)
	}
	return figure(v)
}

// headroomText is a distance to a bound, in whole percent.
func headroomText(share float64) string {
	if share < 0 {
		return results.WholePercent(-share) + " over"
	}
	return results.WholePercent(share) + " left"
}

// sentences say what the table does not show by itself.
func (p answerText) sentences() []string {
	best := p.a.Best
	lines := []string{fmt.Sprintf("%d of %s %s; the best: %s.%s", p.a.Feasible, plural(p.a.Configurations, "configuration"),
		map[bool]string{true: "keep all limits", false: "can be chosen from"}[len(p.r.Limits)+len(p.r.Budget) > 0], p.settings(best), p.counts())}
	lines = append(lines, p.searched()...)
	if n := p.a.Rejecting; n > 0 {
		lines = append(lines, plural(n, "configuration")+" left out since requests are rejected that others serve.")
	}
	lines = append(lines, p.binding()...)
	lines = append(lines, p.noise()...)
	lines = append(lines, p.nextText())
	for _, x := range p.a.Relaxed {
		lines = append(lines, p.relaxedText(x))
	}
	if best.Command != "" {
		lines = append(lines, "Simulate the best alone: "+visible(best.Command))
	}
	return lines
}

// counts says which configurations could not be chosen whatever their limits; empty when all could.
func (p answerText) counts() string {
	text := ""
	if n := p.a.Configurations - p.a.Simulated; n > 0 {
		text += fmt.Sprintf(" %d of them did not run to an end.", n)
	}
	if n := p.a.WithoutObjective; n > 0 {
		text += fmt.Sprintf(" %d of them could not be compared: no %s.", n, visible(p.r.Objective.Name))
	}
	return text
}

// searched says that a search has left configurations out, and how to be sure.
func (p answerText) searched() []string {
	s := p.r.Searched
	if !s.Partial() {
		return nil
	}
	all := "a larger space"
	if s.Combinations > 0 {
		all = plural(int(min(s.Combinations, math.MaxInt)), "configuration")
	}
	what := map[bool]string{true: "The best of", false: "That is of"}[p.a.Best != nil]
	return []string{fmt.Sprintf("%s %d simulated of %s, which a search has chosen: --search-points 100%% simulates all, to be sure.", what, s.Simulated, all)}
}

// binding says which limit is the tightest, and what limits the configuration.
func (p answerText) binding() []string {
	best := p.a.Best
	var lines []string
	if best.Binding >= 0 {
		l := best.Limits[best.Binding]
		lines = append(lines, fmt.Sprintf("Tightest limit: %s, kept with %s (%s).", visible(l.Constraint.String()), headroomText(l.Headroom), shownFigure(l.Value)))
	}
	for _, l := range best.Limits {
		if l.Kept < l.Runs {
			lines = append(lines, fmt.Sprintf("Beware: only %d of %d replicates keep %s; their mean does.", l.Kept, l.Runs, visible(l.Constraint.String())))
		}
	}
	return lines
}

// noise names the runners-up that chance does not tell from the best.
func (p answerText) noise() []string {
	var equal []string
	for i, u := range p.a.RunnersUp {
		if u.WithinNoise {
			equal = append(equal, fmt.Sprint(i+1))
		}
	}
	if len(equal) == 0 {
		return nil
	}
	return []string{"Within noise of the best, as far as the replicates tell: runner-up " + strings.Join(equal, ", ") + "."}
}

// nextText says what more GPUs would buy.
func (p answerText) nextText() string {
	next := p.a.Next
	if next == nil {
		return "No configuration with more GPUs of the kind keeps the limits, or none was simulated, so this does not say what more GPUs would buy."
	}
	had, _ := p.a.Best.Figure("gpus")
	has, _ := next.Figure("gpus")
	over := ""
	if next.OverBudget {
		over = ", beyond the budget,"
	}
	return fmt.Sprintf("%s instead of %s%s would change: %s (%s).", shownFigure(has.Value), plural(int(had.Value), "GPU"), over,
		p.changesText(next.Changes), p.settings(&next.Choice))
}

// changed are the figures that a comparison names, beside the objective and the bounded ones.
var changed = []string{recommend.HourlyCostColumn, "p99_ttft_ms", "p99_tpot_ms", "output_throughput_tok_s", "mean_output_token_throughput_per_user"}

// changesText lists the changes that one sees, such as "p99_ttft_ms -40 %".
func (p answerText) changesText(changes []recommend.Change) string {
	var parts []string
	for _, c := range changes {
		told := slices.Contains(changed, c.Column) || c.Column == p.r.Objective.Name ||
			slices.ContainsFunc(p.r.Limits, func(l results.Constraint) bool { return l.Column == c.Column })
		if told && math.Abs(c.Share) >= .005 {
			parts = append(parts, fmt.Sprintf("%s %s", cellText(c.Column), changeText(c.Share)))
		}
	}
	if len(parts) == 0 {
		return "nothing by 1 % or more"
	}
	return strings.Join(parts, ", ")
}

// changeText is a signed change in percent, or a factor when it is large.
func changeText(share float64) string {
	if share > 9 {
		return "×" + figure(1+share)
	}
	return fmt.Sprintf("%+.0f %%", 100*share)
}

// relaxedText says what a wider bound would buy.
func (p answerText) relaxedText(x recommend.Relaxation) string {
	share := x.Gain
	if !p.r.Objective.Maximize {
		share = -share
	}
	return fmt.Sprintf("%s %s might go from %s to %s (%s): %s %s (%s).", p.ifText(), cellText(x.Constraint.Column), boundText(x.Constraint), shownFigure(x.Needed),
		changeText(relativeTo(x)), cellText(p.r.Objective.Name), changeText(share), p.settings(&x.Choice))
}

// ifText begins a sentence about another bound. A search did not look for what is beyond the bounds.
func (p answerText) ifText() string {
	if p.r.Searched.Partial() {
		return "Of what was simulated, if"
	}
	return "If"
}

// infeasible says what comes closest when nothing keeps all limits, and what would have to give.
func (p answerText) infeasible() []string {
	lines := []string{fmt.Sprintf("None of %s keeps all limits.%s", plural(p.a.Configurations, "configuration"), p.counts())}
	lines = append(lines, p.searched()...)
	if c := p.a.Closest; c != nil {
		var misses []results.Miss
		for _, l := range c.Limits {
			if l.Headroom < 0 || l.Kept == 0 {
				misses = append(misses, results.Miss{Constraint: l.Constraint, Value: l.Value})
			}
		}
		lines = append(lines, fmt.Sprintf("Closest: %s: %s.", p.settings(c), visible(results.JoinMisses(misses))))
	}
	for _, x := range p.a.Relaxed {
		lines = append(lines, fmt.Sprintf("%s %s might go from %s to %s (%s), all else would be kept by %s.", p.ifText(), cellText(x.Constraint.Column), boundText(x.Constraint),
			shownFigure(x.Needed), changeText(relativeTo(x)), p.settings(&x.Choice)))
	}
	if len(p.a.Relaxed) == 0 {
		lines = append(lines, "No single limit is to blame: giving up any one of them makes nothing feasible. Try more GPUs, other GPUs or less load.")
	}
	return lines
}

// boundText is the number of a bound.
func boundText(c results.Constraint) string {
	if c.Bound.Kind == gridspec.KindInt {
		return results.WithSeparators(c.Bound.String())
	}
	return settingFigure(c.Bound.Float)
}

// relativeTo is how far the needed value is from the bound, as a share of the bound.
func relativeTo(x recommend.Relaxation) float64 {
	at := slices.IndexFunc(x.Choice.Limits, func(l recommend.Limit) bool { return l.Constraint == x.Constraint })
	if at < 0 {
		return 0
	}
	h := x.Choice.Limits[at].Headroom
	if o := x.Constraint.Operator; o == "<" || o == "<=" {
		return -h
	}
	return h
}
