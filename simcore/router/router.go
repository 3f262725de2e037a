// Package router decides which worker gets a request.
package router

import (
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/problem"
)

// Config selects the routing policy.
type Config struct {
	// Policy is "round_robin".
	Policy string `json:"policy"`
}

// PolicyRoundRobin hands requests to the workers in turn, in id order.
const PolicyRoundRobin = "round_robin"

// Policies lists the accepted values of Config.Policy.
func Policies() []string { return []string{PolicyRoundRobin} }

// DefaultConfig is round robin.
func DefaultConfig() Config { return Config{Policy: PolicyRoundRobin} }

// Validate returns all problems of the configuration.
func (c Config) Validate() problem.List {
	var l problem.List
	if !slices.Contains(Policies(), c.Policy) {
		l.Add("policy", c.Policy, "use one of: %s", strings.Join(Policies(), ", "))
	}
	return l
}

// RoundRobin hands out worker indices 0..workers-1 in turn.
type RoundRobin struct {
	workers, next int
}

// NewRoundRobin starts at worker 0.
func NewRoundRobin(workers int) *RoundRobin { return &RoundRobin{workers: workers} }

// Pick returns the next worker's index.
func (r *RoundRobin) Pick() int {
	w := r.next
	if r.next++; r.next == r.workers {
		r.next = 0
	}
	return w
}
