package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/servegrid/servegrid/live/fidelity"
	"github.com/servegrid/servegrid/simcore/workload"
)

// observations are the latencies of a run that a simulation is compared with.
type observations struct {
	// timed is the workload with the starts of the run.
	timed   *workload.Workload
	samples []sample
	// samplesOf are the places in samples of each request of the workload; -1 for none. movedMs is how much later than in the run each
	// of them starts, so that it keeps its place in the queue.
	samplesOf [][kinds]int
	movedMs   []float64
	requests  [2]int // fitted and held out
	leftOut   int
	together  int // started together, with several queues
}

// The latencies of a request.
const (
	ttft = iota
	itl
	kinds
)

// sample is one measured latency.
type sample struct {
	kind    int
	ms      float64
	heldOut bool
	// scale is what a difference is measured by: between the latency itself, which would let the shortest ones decide, and the mean of
	// all of its kind, which would let the longest ones.
	scale float64
}

// observe finds the requests of a run in its workload. With one queue those that started together start in the order in which it
// served them.
func observe(w *workload.Workload, run *fidelity.Run, oneQueue bool) (*observations, error) {
	numbers, err := run.NumbersIn(w)
	if err != nil {
		return nil, err
	}
	o := &observations{samplesOf: make([][kinds]int, w.Requests()), movedMs: make([]float64, w.Requests())}
	starts := make([]float64, w.Requests())
	for i := range starts {
		starts[i], o.samplesOf[i] = math.Inf(1), [kinds]int{-1, -1}
	}
	first := math.Inf(1)
	for i, number := range numbers {
		if number != fidelity.Unknown {
			first = min(first, earliest(run.Requests[i].StartMs))
		}
	}
	split := newSplit()
	for i, number := range numbers {
		q := &run.Requests[i]
		if number == fidelity.Unknown || math.IsNaN(q.StartMs) {
			o.leftOut++
			continue
		}
		starts[number] = q.StartMs - first // what failed was a load for the others all the same
		if !q.Completed {
			o.leftOut++
			continue
		}
		o.add(number, q, split.holdsOut(q.Session))
	}
	if o.requests[0]+o.requests[1] < leastRequests {
		return nil, fmt.Errorf("%s: %w; it has %d", run.Name, errTooFew, o.requests[0]+o.requests[1])
	}
	if len(o.samples) == 0 {
		return nil, fmt.Errorf("%s: %w", run.Name, errNoLatencies)
	}
	o.scale()
	for _, numbers := range o.startedTogether(starts) {
		if oneQueue {
			o.asServed(starts, numbers)
		} else if len(numbers) > 1 {
			o.together += len(numbers)
		}
	}
	o.timed, err = w.StartingAt(starts)
	return o, err
}

func earliest(startMs float64) float64 {
	if math.IsNaN(startMs) {
		return math.Inf(1)
	}
	return startMs
}

func (o *observations) add(number int, q *fidelity.Request, heldOut bool) {
	part := 0
	if heldOut {
		part = 1
	}
	o.requests[part]++
	for kind, ms := range [kinds]float64{ttft: q.TTFTMs, itl: q.ITLMs} {
		if !math.IsNaN(ms) {
			o.samplesOf[number][kind] = len(o.samples)
			o.samples = append(o.samples, sample{kind: kind, ms: ms, heldOut: heldOut})
		}
	}
}

// togetherMs is within how many ms requests start together: each has a way of its own to the server, and which one is there first
// is chance.
const togetherMs = 1

// startedTogether are the requests with a first token in groups that started together, in order of their starts.
func (o *observations) startedTogether(starts []float64) (groups [][]int) {
	var numbers []int
	for number, at := range o.samplesOf {
		if at[ttft] >= 0 {
			numbers = append(numbers, number)
		}
	}
	slices.SortFunc(numbers, func(a, b int) int { return cmp.Or(cmp.Compare(starts[a], starts[b]), cmp.Compare(a, b)) })
	for len(numbers) > 0 {
		n := 1
		for n < len(numbers) && starts[numbers[n]] <= starts[numbers[0]]+togetherMs {
			n++
		}
		groups, numbers = append(groups, numbers[:n]), numbers[n:]
	}
	return groups
}

// asServed changes the starts of requests that started together so that they are in the order of their first tokens, which is that in
// which one queue let them in.
func (o *observations) asServed(starts []float64, together []int) {
	times := make([]float64, len(together))
	for i, number := range together {
		times[i] = starts[number]
	}
	firstToken := func(number int) float64 { return starts[number] + o.samples[o.samplesOf[number][ttft]].ms }
	slices.SortStableFunc(together, func(a, b int) int { return cmp.Compare(firstToken(a), firstToken(b)) })
	for i, number := range together {
		o.movedMs[number] = times[i] - starts[number]
	}
	for i, number := range together {
		starts[number] = times[i]
	}
}

func (o *observations) scale() {
	var sum [kinds]float64
	var n [kinds]float64
	for _, s := range o.samples {
		sum[s.kind] += s.ms
		n[s.kind]++
	}
	for i := range o.samples {
		s := &o.samples[i]
		mean := sum[s.kind] / n[s.kind]
		s.scale = max((s.ms+mean)/2, 1e-6)
	}
}

// split says which requests are held out: those of every third session in the order in which sessions begin.
type split struct{ sessions map[string]int }

func newSplit() *split { return &split{sessions: map[string]int{}} }

const heldOutEvery = 3

// holdsOut is asked request by request, in order of their starts. A request without a session is one of its own.
func (s *split) holdsOut(session string) bool {
	number, known := s.sessions[session]
	if !known || session == "" {
		if session == "" {
			number = s.sessions[""]
			s.sessions[""] = number + 1
		} else {
			number = len(s.sessions)
			s.sessions[session] = number
		}
	}
	return number%heldOutEvery == heldOutEvery-1
}
