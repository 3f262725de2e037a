package fidelity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Verdict is a comparison in words.
type Verdict struct {
	// Agrees says that every check holds and every bound is kept.
	Agrees bool `json:"agrees"`
	// Sentence says it, Failures what is wrong, and Cautions what to know before trusting it.
	Sentence string   `json:"sentence"`
	Failures []string `json:"failures,omitempty"`
	Cautions []string `json:"cautions,omitempty"`
}

func (c *Comparison) verdict() Verdict {
	var v Verdict
	for _, check := range c.Checks {
		if check.Outcome == Fails {
			v.Failures = append(v.Failures, check.failure())
		}
	}
	for _, b := range c.Bounds {
		switch {
		case b.Value == nil:
			v.Failures = append(v.Failures, fmt.Sprintf("bound %s: a run does not state it, or it is a share of 0", b))
		case !b.Kept:
			measured := b
			measured.Limit = *b.Value
			v.Failures = append(v.Failures, fmt.Sprintf("bound %s is missed: there is %s", b, strings.TrimPrefix(measured.String(), b.Metric+"."+b.Statistic+"=")))
		}
	}
	v.Agrees = len(v.Failures) == 0
	v.Cautions = c.cautions()
	switch {
	case !v.Agrees:
		v.Sentence = fmt.Sprintf("They do not agree: of %s, %d failed. %s", plural(len(c.Checks)+len(c.Bounds), "check and bound", "checks and bounds"), len(v.Failures), sentence(c.apart()))
	case len(c.Bounds) > 0:
		v.Sentence = fmt.Sprintf("They agree: %s, %s. %s", plural(c.held(), "check holds", "checks hold"), plural(len(c.Bounds), "bound is kept", "bounds are kept"), sentence(c.apart()))
	default:
		v.Sentence = fmt.Sprintf("They did the same work: %s. No bound says how far times may be apart: %s.", plural(c.held(), "check holds", "checks hold"), c.apart())
	}
	return v
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// held counts the checks that hold.
func (c *Comparison) held() int {
	n := 0
	for _, check := range c.Checks {
		if check.Outcome == Holds {
			n++
		}
	}
	return n
}

// apart says how far apart the means are.
func (c *Comparison) apart() string {
	var parts []string
	for i := range c.Deltas {
		d := &c.Deltas[i]
		switch change := d.MeanChange(); {
		case d.Metric == "arrival":
			parts = append(parts, fmt.Sprintf("arrivals differ by %s ms (p99 %s)", short(d.Absolute.Mean), short(d.Absolute.P99)))
		case d.Ratio != nil && !math.IsNaN(change):
			parts = append(parts, fmt.Sprintf("mean %s by %+.2g %%", inSentence(d.Title), 100*change))
		case d.Metric == "reuse":
			parts = append(parts, fmt.Sprintf("mean reuse by %+.2g points", 100*(d.B.Mean-d.A.Mean)))
		}
	}
	if len(parts) == 0 {
		return "they do not both say when anything happened"
	}
	return strings.Join(parts, ", ")
}

// inSentence is a title within a sentence: abbreviations stay what they are.
func inSentence(title string) string {
	if title == strings.ToUpper(title) {
		return title
	}
	return strings.ToLower(title)
}

// short shows a figure with three digits.
func short(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

func (c *Comparison) cautions() []string {
	var out []string
	for _, f := range c.Conditions {
		if f.Outcome == Differs {
			out = append(out, fmt.Sprintf("The %s differs: %s in A, %s in B.", f.Name, f.A, f.B))
		}
	}
	if c.Join == JoinOrder {
		out = append(out, "Requests are paired in order of their start, since they have neither names nor sessions in common; each pair may be of different ones.")
	}
	for _, side := range []struct {
		name string
		run  *Run
	}{{"A", c.A}, {"B", c.B}} {
		if n := repeated(side.run, c.Join); n > 0 {
			out = append(out, fmt.Sprintf("%s of %s under a name that another one has; such are paired in order of their start.", plural(n, "request", "requests"), side.name))
		}
		for _, note := range side.run.Notes {
			out = append(out, side.name+": "+note)
		}
	}
	return out
}
