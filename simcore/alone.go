package simcore

import (
	"math"

	"github.com/servegrid/servegrid/simcore/engine"
	"github.com/servegrid/servegrid/simcore/workload"
)

// runAlone simulates the workers one after another. Round robin hands the i-th arrival to worker i mod workers, so
// no worker depends on another, and one worker's memory serves all.
func (s *simulation) runAlone() error {
	starts := s.sessionStarts()
	order := byStart(starts)
	workers := s.cfg.Deployment.Workers
	worker := engine.New(&s.env, engine.Place{})
	defer worker.Recycle()
	most := (len(order) + workers - 1) / workers
	own := arrivals{times: make([]float64, 0, most), overheadMs: s.overheadMs}
	numbers := make([]int32, 0, most)
	s.env.Requests = make([]engine.Request, 0, most)
	all, blocks := s.env.Blocks, new(workload.BlockTable)
	s.env.Blocks = blocks
	for index := range min(workers, len(order)) {
		if index > 0 {
			worker.Reset(engine.Place{Worker: index})
		}
		own = arrivals{times: own.times[:0], overheadMs: s.overheadMs}
		s.env.Requests, numbers = s.env.Requests[:0], numbers[:0]
		for i := index; i < len(order); i += workers {
			// With one turn a session, session and request numbers are the same.
			numbers = append(numbers, order[i])
			own.times = append(own.times, starts[order[i]])
			s.env.Requests = append(s.env.Requests, s.newRequest(order[i], &s.cfg.Engine))
		}
		all.Select(numbers, blocks)
		s.watch.restart(len(numbers))
		if err := s.runOne(worker, &own); err != nil {
			return err
		}
		worker.Sync()
		s.watch.settle(s.env.Requests, s.endMs)
		s.collect(&s.env)
		s.capped = s.capped || own.at < len(own.times)
	}
	s.count(worker)
	if !s.capped {
		return s.stuck
	}
	return nil
}

// noteDeadEnd notes that a worker is stuck with nothing to come. Under a time cap that is an error only when no other
// worker goes on until the cap, which is where the simulation then ends.
func (s *simulation) noteDeadEnd(worker engine.Worker, now float64) error {
	err := worker.Stuck(now)
	if math.IsInf(s.stop, 1) {
		return err
	}
	if s.stuck == nil {
		s.stuck = err
	}
	return nil
}

// arrivals walks the requests of one worker in order of arrival.
type arrivals struct {
	times      []float64 // of each request in the environment
	at         int
	overheadMs float64 // until a request is at its worker
}

// peek returns when the next request is at its worker, or infinity.
func (a *arrivals) peek() float64 {
	if a.at >= len(a.times) {
		return math.Inf(1)
	}
	return a.times[a.at] + a.overheadMs
}

func (a *arrivals) pop() (request int32, at float64) {
	request, at = int32(a.at), a.times[a.at]
	a.at++
	return request, at
}

// runOne simulates one worker to its end.
func (s *simulation) runOne(worker engine.Worker, own *arrivals) error {
	// The reference's loop for a lone worker looks at the time cap before a pass, after releasing what arrived.
	lone := s.rules.SingleWorkerLoop && s.cfg.Deployment.Workers == 1
	now := 0.0
	for step := 0; ; step++ {
		if step%checkEvery == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		if s.watch.due(step) {
			if err := s.watch.look(s.env.Requests, now); err != nil {
				return err
			}
		}
		for own.peek() <= now && (lone || own.peek() < s.stop) {
			s.submit(worker, own)
		}
		if !worker.HasWork() {
			next := own.peek()
			if math.IsInf(next, 1) || next >= s.stop && !lone || now >= s.stop {
				return nil
			}
			now = next
			continue
		}
		if now >= s.stop {
			return nil
		}
		end, progress, err := worker.Start(now, own.peek(), s.stop)
		if err != nil {
			return err
		}
		if !progress {
			next := own.peek()
			if math.IsInf(next, 1) {
				return s.noteDeadEnd(worker, now)
			}
			now = next
			continue
		}
		s.notePassEnd(worker, end)
		s.busy[0] += wholeNanoseconds(end) - wholeNanoseconds(now)
		worker.Finish()
		now = end
	}
}

func (s *simulation) submit(worker engine.Worker, own *arrivals) {
	request, at := own.pop()
	routed := at + own.overheadMs
	s.env.Requests[request].ArrivalMs, s.env.Requests[request].RoutedMs = at, routed
	s.arrived++
	s.endMs = max(s.endMs, routed)
	worker.Submit(request)
}

// notePassEnd notes the last event before the time cap: the end of a pass, or its start when it ends later.
func (s *simulation) notePassEnd(worker engine.Worker, end float64) {
	if end < s.stop {
		s.endMs = max(s.endMs, end)
	} else {
		s.capped = true
		s.endMs = max(s.endMs, worker.LastPassStart())
	}
}
