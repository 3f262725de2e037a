package fidelity

import (
	"fmt"

	"github.com/servegrid/servegrid/simcore/workload"
)

// NumbersIn says which request of a workload each request of a run is, by its number there: as the run says, or by names, sessions
// or order. Those of the run that the workload does not have are [Unknown]. The error says that the run is of another workload.
func (r *Run) NumbersIn(w *workload.Workload) ([]int, error) {
	numbers := make([]int, len(r.Requests))
	stated := true
	for i := range r.Requests {
		numbers[i] = r.Requests[i].Number
		stated = stated && numbers[i] != Unknown
	}
	if !stated {
		of := ofWorkload(w)
		pairs, _, err := join(r, of, JoinAuto)
		if err != nil {
			return nil, err
		}
		for i := range numbers {
			numbers[i] = Unknown
		}
		for _, p := range pairs {
			numbers[p.a] = of.Requests[p.b].Number
		}
	}
	return numbers, r.checkNumbers(w, numbers)
}

// checkNumbers finds requests that the workload does not have or has twice, and lengths that it does not state.
func (r *Run) checkNumbers(w *workload.Workload, numbers []int) error {
	seen := make([]bool, w.Requests())
	other := 0
	for i, number := range numbers {
		switch {
		case number == Unknown:
			continue
		case number < 0 || number >= w.Requests():
			return fmt.Errorf("%s has a request number %d, and %s has %d requests; give the workload that the run is of", r.Name, number, w.Name, w.Requests())
		case seen[number]:
			return fmt.Errorf("%s has request %d of %s more than once, as the AgentX scenario and loops have; give a run that has each once", r.Name, number, w.Name)
		}
		seen[number] = true
		q := &r.Requests[i]
		// An answer is shorter where a context length cut it.
		if !r.WireLengths && q.Input != Unknown && q.Input != int(w.Input[number]) || q.Output > int(w.Output[number]) {
			other++
		}
	}
	if other > 0 {
		return fmt.Errorf("%d of %d requests of %s have other lengths than in %s; give the workload that the run is of", other, len(numbers), r.Name, w.Name)
	}
	return nil
}

// ofWorkload is a workload as a run in which each request takes the time that it took in its source.
func ofWorkload(w *workload.Workload) *Run {
	run := &Run{Name: w.Name, Requests: make([]Request, w.Requests())}
	starts := w.RecordedStarts()
	for session := range w.Sessions() {
		first := int(w.SessionStart[session])
		for i := first; i < int(w.SessionStart[session+1]); i++ {
			q := unknownRequest()
			q.ID, q.Number, q.StartMs = w.ID(i), i, starts[i]
			if m, ok := w.Measured(i); ok {
				q.ClientID = m.ClientID
			}
			if name, given := w.SessionLabel(session); given {
				q.Session, q.Turn = name, i-first
			}
			run.Requests[i] = q
		}
	}
	run.sort()
	return run
}
