// Package recommend turns a table of results into a decision: the best configuration under limits and a budget, what else
// is worth considering, how far each is from its limits, and what a relaxed limit or another GPU would buy.
//
// [For] is all there is to call. Read recommend.go for what it answers, scale.go for how configurations are ordered,
// alternatives.go and relax.go for what surrounds the best one, noise.go for what replicates say about chance.
package recommend

import (
	"fmt"
	"slices"

	"github.com/servegrid/servegrid/results"
)

// Request says what the configuration is for.
type Request struct {
	// Objective is what the best configuration is best in.
	Objective results.Objective
	// Limits are what it must keep: the bounds of an SLA, and whatever selects rows, such as a load.
	Limits []results.Constraint
	// Budget bounds what it may use, such as gpus <= 8. Unlike limits it is set aside to say what more of it would buy.
	Budget []results.Constraint
	// By names the columns of the traffic: each combination of their values has an answer of its own.
	By []string
	// RunnersUp is how many alternatives to name at most.
	RunnersUp int
	// Tolerance is the relative difference in the objective that decides nothing: among configurations so close to the
	// best the cheaper one wins, then the one with fewer GPUs, then the one farther from its limits. 0.005 is 0.5 %.
	Tolerance float64
	// AllowRejected also takes configurations that drop requests although others serve them all.
	AllowRejected bool
}

// DefaultTolerance is the difference below which figures of a simulation are not worth a decision.
const DefaultTolerance = 0.005

// Recommendation is the answer to a request. All its figures are finite, so it is always JSON.
type Recommendation struct {
	Objective results.Objective    `json:"objective"`
	Limits    []results.Constraint `json:"limits"`
	Budget    []results.Constraint `json:"budget"`
	// Answers holds one for each traffic, in the order of the table.
	Answers []Answer `json:"answers"`
	// Searched says how much of its space was simulated when the table comes from a search; nil when it does not.
	Searched *Searched `json:"searched,omitempty"`
	// Cautions are what to know before trusting the figures, a sentence each.
	Cautions []string `json:"cautions"`
}

// Searched is how much of a space a search has simulated.
type Searched struct {
	// Simulated of all Combinations were; Combinations is 0 when their number is not known.
	Simulated    int    `json:"simulated"`
	Combinations uint64 `json:"combinations,omitempty"`
}

// Partial reports whether something was not simulated, so that what is best may be missing.
func (s *Searched) Partial() bool {
	return s != nil && uint64(s.Simulated) < s.Combinations || s != nil && s.Combinations == 0
}

// Answer is the recommendation for one traffic.
type Answer struct {
	// Traffic says which, by the columns of Request.By; it is empty when there is just one.
	Traffic []Setting `json:"traffic,omitempty"`
	// Configurations are those that the request selects, Simulated of them ran to an end. Of these, WithoutObjective have no
	// value in the objective, such as a cost where no price is known, and Feasible of the others keep limits and budget.
	Configurations   int `json:"configurations"`
	Simulated        int `json:"simulated"`
	WithoutObjective int `json:"without_objective"`
	Feasible         int `json:"feasible"`
	// Rejecting are left out since they drop requests that others serve.
	Rejecting int `json:"rejecting"`
	// Best is the recommended configuration; nil when none is feasible.
	Best *Choice `json:"best"`
	// RunnersUp differ from the best and from each other in more than a knob, best first.
	RunnersUp []Alternative `json:"runners_up"`
	// Next is the best configuration with the next larger number of GPUs, whatever the budget; nil when there is none.
	Next *Alternative `json:"next_gpus"`
	// Relaxed says for each limit and budget what giving way would buy, up to twice the bound, or half of one that asks for
	// at least so much, the greatest gain first. When nothing is feasible it says what would be possible by giving up just this bound, the least excess first.
	Relaxed []Relaxation `json:"relaxed"`
	// Closest is what comes closest when nothing is feasible.
	Closest *Choice `json:"closest,omitempty"`
}

// Setting is one value that tells a configuration from others.
type Setting struct {
	Column string `json:"column"`
	Value  string `json:"value"`
}

// Figure is one measured value of a configuration.
type Figure struct {
	Column string  `json:"column"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit,omitempty"`
	// HalfWidth is half the width of the 95 % confidence interval of a mean over replicates; 0 without replicates.
	HalfWidth float64 `json:"half_width_95,omitempty"`
}

// Limit is how a configuration stands to one constraint.
type Limit struct {
	Constraint results.Constraint `json:"constraint"`
	// Value is what the configuration has.
	Value float64 `json:"value"`
	// Headroom is the distance to the bound as a share of the bound: 0.1 is 10 % within it, -0.1 10 % beyond.
	Headroom float64 `json:"headroom"`
	// Kept is how many of the configuration's Runs, its replicates, keep the constraint.
	Kept int `json:"kept_runs"`
	Runs int `json:"runs"`
}

// Choice is one configuration with what speaks for and against it.
type Choice struct {
	// ID is the content ID of its first replicate; empty in a file that has none.
	ID string `json:"id,omitempty"`
	// Settings are the values of the columns that differ between the configurations of the table.
	Settings []Setting `json:"settings"`
	// Figures are the objective, the GPUs, the cost and the usual latencies and throughputs, as far as the table has them.
	Figures []Figure `json:"figures"`
	// Limits are the bounds that have a distance: inequalities of numbers.
	Limits []Limit `json:"limits"`
	// Binding is the place in Limits of the one with the least headroom; -1 without limits.
	Binding int `json:"binding"`
	// LimitedBy is the resource that limits the configuration; empty when the table does not say.
	LimitedBy string `json:"limited_by,omitempty"`
	// Command simulates the configuration by itself; empty when the table does not say.
	Command string `json:"command,omitempty"`
	// Row is the place of its first replicate in the table.
	Row int `json:"-"`
}

// Choices are all configurations of a recommendation.
func (r *Recommendation) Choices() []*Choice {
	var out []*Choice
	for i := range r.Answers {
		for _, c := range r.Answers[i].named() {
			out = append(out, c.choice)
		}
		for j := range r.Answers[i].Relaxed {
			out = append(out, &r.Answers[i].Relaxed[j].Choice)
		}
	}
	return out
}

// Figure returns a figure by its column.
func (c *Choice) Figure(column string) (Figure, bool) {
	at := slices.IndexFunc(c.Figures, func(f Figure) bool { return f.Column == column })
	if at < 0 {
		return Figure{}, false
	}
	return c.Figures[at], true
}

// Alternative is a configuration beside the best one.
type Alternative struct {
	Choice
	// Changes compare its figures with those of the best configuration.
	Changes []Change `json:"changes"`
	// WithinNoise says that the replicates do not tell it from the best in the objective, with 95 % confidence.
	WithinNoise bool `json:"within_noise,omitempty"`
	// OverBudget says that it exceeds the budget.
	OverBudget bool `json:"over_budget,omitempty"`
}

// Change is how much a figure differs from that of the best configuration.
type Change struct {
	Column string `json:"column"`
	// Share is the difference divided by the best configuration's figure: 0.1 is 10 % more.
	Share float64 `json:"share"`
}

// Relaxation is what a wider bound leads to, when all others stay.
type Relaxation struct {
	Constraint results.Constraint `json:"constraint"`
	// Needed is the value that would have to be allowed instead.
	Needed float64 `json:"needed"`
	// Gain is by what share the objective gets better; 0 when nothing is feasible with the constraint.
	Gain float64 `json:"gain,omitempty"`
	// Choice is the configuration that becomes possible.
	Choice Choice `json:"choice"`
}

// For answers a request from a table, whose order of rows does not matter. Replicates of a configuration count once, with
// their mean. The error lists every column that the request names and the table lacks.
func For(t *results.Table, r Request) (*Recommendation, error) {
	if !(r.Tolerance >= 0) {
		return nil, fmt.Errorf("tolerance %v is not allowed; give 0 or more", r.Tolerance)
	}
	s, err := newScale(t, r)
	if err != nil {
		return nil, err
	}
	groups, err := s.table.Groups(r.By)
	if err != nil {
		return nil, err
	}
	out := &Recommendation{
		Objective: r.Objective, Limits: slices.Clone(r.Limits), Budget: slices.Clone(r.Budget), Answers: []Answer{},
		Cautions: append(s.otherLoads(), s.candidates.Cautions(s.analysis())...),
	}
	if wider := s.candidates.WiderLimits(s.constraints()); wider != "" {
		out.Cautions = append(out.Cautions, wider) // relaxed bounds are some
	}
	for _, rows := range groups {
		out.Answers = append(out.Answers, s.answer(rows))
	}
	out.Cautions = append(out.Cautions, s.analytic(out.Answers)...)
	return out, nil
}

// answer recommends for the rows of one traffic.
func (s *scale) answer(rows []int) Answer {
	g := s.group(rows)
	a := Answer{Configurations: len(g.rows), Rejecting: len(g.simulated) - len(g.ok), RunnersUp: []Alternative{}}
	for _, row := range g.rows {
		if s.ran[row] {
			a.Simulated++
		}
	}
	a.WithoutObjective = a.Simulated - len(g.simulated)
	for _, name := range s.request.By {
		a.Traffic = append(a.Traffic, Setting{name, s.table.Column(name).Text(rows[0])})
	}
	feasible := g.keeping(-1)
	a.Feasible = len(feasible)
	if len(feasible) == 0 {
		a.Closest, a.Relaxed = g.closest(), g.relaxations(nil)
		return a
	}
	best := s.first(feasible)
	a.Best = g.choice(best)
	a.RunnersUp = g.runnersUp(feasible, best)
	a.Next = g.nextGPUs(best)
	a.Relaxed = g.relaxations(&best)
	return a
}
