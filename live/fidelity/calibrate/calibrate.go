// Package calibrate fits the terms of the timing model that a run against an endpoint can tell to that run: how much longer passes
// take than the tables say, and what each pass and each request costs besides.
//
// Read calibrate.go for what comes of it, observe.go for what is compared, terms.go for what is fitted, fit.go and solve.go for
// how.
package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/servegrid/servegrid/live/fidelity"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Result is what a calibration found.
type Result struct {
	// Terms are the terms of the timing model, fitted or left.
	Terms []Term `json:"terms"`
	// Fitted and HeldOut are the errors on the requests that the terms were fitted to, and on those that they were not.
	Fitted  Part `json:"fitted"`
	HeldOut Part `json:"held_out"`
	// LeftOut counts requests of the run that were not used: those that did not complete, or that the workload does not have.
	LeftOut int `json:"left_out,omitempty"`
	// Together counts those that were used and started within a ms of another one, where there are several queues: the run does not
	// say which of them came to which worker, nor in which order. See [Result.Unordered].
	Together int `json:"together,omitempty"`
	// Simulations counts how often the workload was simulated.
	Simulations int `json:"simulations"`
}

// Term is a setting of the timing model.
type Term struct {
	// Key is its name in the spec's timing section.
	Key string `json:"key"`
	// Before is what the configuration has, and After what fits.
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// StandardError says how exactly the run tells it; 0 where it was left.
	StandardError float64 `json:"standard_error,omitempty"`
	// Left says why it was left as it was; "" when it was fitted.
	Left string `json:"left,omitempty"`
}

// Part is how far simulation and run are apart on some requests.
type Part struct {
	Requests int     `json:"requests"`
	TTFT     *Errors `json:"ttft,omitempty"`
	ITL      *Errors `json:"itl,omitempty"`
}

// Errors compare one latency, before and after calibration.
type Errors struct {
	// MeasuredMs is the run's mean.
	MeasuredMs float64 `json:"measured_ms"`
	Before     Error   `json:"before"`
	After      Error   `json:"after"`
}

// NoNearer names the latencies of the requests that were held out that the fitted terms brought no nearer to the run, request by
// request. With any, the terms fit what only the other requests have.
func (r *Result) NoNearer() []string {
	var names []string
	for _, latency := range []struct {
		name string
		of   *Errors
	}{{"TTFT", r.HeldOut.TTFT}, {"ITL", r.HeldOut.ITL}} {
		if e := latency.of; e != nil && e.After.MeanAbsolute > e.Before.MeanAbsolute {
			names = append(names, latency.name)
		}
	}
	return names
}

// mostTogether is the share of requests that may start together: at a rate that a few workers carry that many do so by chance.
const mostTogether = .05

// Unordered reports whether so many requests started together, with several queues, that the simulation has others in each worker's
// batches than the run had. The terms then make up for that, and say nothing of the server.
func (r *Result) Unordered() bool {
	return float64(r.Together) > mostTogether*float64(r.Fitted.Requests+r.HeldOut.Requests)
}

// Error is how far a simulation is from the run.
type Error struct {
	// SimulatedMs is its mean, and Bias how much that is above the run's, as a share of it.
	SimulatedMs float64 `json:"simulated_ms"`
	Bias        float64 `json:"bias"`
	// MeanAbsolute is the mean size of the differences of single requests, as a share of the run's mean.
	MeanAbsolute float64 `json:"mean_absolute"`
}

// leastRequests is how many there must be for a fit and a part that is held out.
const leastRequests = 12

// Fit fits the timing terms of a configuration to a run of a workload. The workload is simulated with the run's own starts, so that
// nothing but the timing decides. Requests that started together may have come to the server in another order: with one worker it is
// that of their first tokens, and with several a run does not tell it. Every third session, in order of their starts, is held out; without sessions, every third
// request. Errors: the run is of another workload, has too few completed requests, or says no latencies; the configuration
// cannot be simulated.
func Fit(ctx context.Context, cfg simcore.Config, w *workload.Workload, run *fidelity.Run) (*Result, error) {
	oneQueue := cfg.Deployment.Mode != simcore.ModeDisaggregated && cfg.Deployment.Workers == 1
	o, err := observe(w, run, oneQueue)
	if err != nil {
		return nil, err
	}
	f := fitter{ctx: ctx, cfg: measured(cfg), observations: o}
	return f.fit()
}

// measured is the configuration as it is simulated here: with the times of the run, and only what decides them.
func measured(cfg simcore.Config) simcore.Config {
	defaults := simcore.DefaultConfig()
	cfg.Load, cfg.AgentX, cfg.SLA = defaults.Load, defaults.AgentX, simcore.SLA{}
	return cfg
}

var (
	errTooFew      = fmt.Errorf("calibration needs %d completed requests or more", leastRequests)
	errNoLatencies = errors.New("the run says neither TTFT nor ITL of any request")
)

// round keeps four digits, which is more than a run tells.
func round(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-3)
	return math.Round(v/unit) * unit
}
