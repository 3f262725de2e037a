package engine

import "github.com/servegrid/servegrid/simcore/kvcache"

// run is a series of passes in which every running request gets one token and nothing else happens, so that they
// are simulated at once. A run ends where a request completes or needs a block, and can be cut short by an
// arrival.
//
// While a run is possible (steady), the requests' own counters lag behind: they are brought up to date when
// something happens to the request. Pass numbers say when that is.
type run struct {
	steady bool
	active bool
	// block and done hold, for each running request, the number of the pass that needs its next block, and of
	// the pass that gives it its last token.
	block, done []int64
	lengths     int64   // total known tokens of the running requests
	second      []int32 // running requests that have one token
	lastEnd     float64 // when the latest pass ended

	timeline
}

// enterRun checks after a pass whether every running request got a token in it, and if so prepares for runs.
func (v *VLLM) enterRun(end float64) {
	s := &v.run
	s.steady, s.active, s.lastEnd = false, false, end
	if v.speculation.drafts > 0 {
		return // each request gets another number of tokens in each pass
	}
	going := 0
	for _, id := range v.emitted {
		if v.env.Requests[id].State == Running {
			going++
		}
	}
	if going == 0 || going < len(v.running) {
		return
	}
	s.reset()
	for _, id := range v.running {
		r := &v.env.Requests[id]
		s.block = append(s.block, v.nextBlock(r))
		s.add(id, r, v.pass.number)
	}
	s.steady = true
}

// reset forgets the requests of the run.
func (s *run) reset() {
	s.block, s.done, s.second, s.lengths = s.block[:0], s.done[:0], s.second[:0], 0
}

// add adds a running request that is up to date with the pass of the given number.
func (s *run) add(id int32, r *Request, number int64) {
	r.synced = number
	s.done = append(s.done, number+int64(r.Output-r.Tokens))
	s.lengths += int64(r.length())
	if r.Tokens == 1 {
		s.second = append(s.second, id)
	}
}

// catchUp brings the counters of a running request up to date with the latest pass, which has the given number, and
// reports whether they lagged behind.
func (s *run) catchUp(r *Request, number int64) bool {
	passes := int32(number - r.synced)
	if passes == 0 {
		return false
	}
	r.Tokens += passes
	r.computed += passes
	r.LastTokenMs = s.lastEnd
	r.synced = number
	return true
}

// finish notes the tokens that the passes of the run gave to so many requests.
func (s *run) finish(env *Environment, p *pricer, requests int) {
	s.active = false
	s.record(env.Gaps, p, requests)
	for _, id := range s.second {
		env.Requests[id].SecondTokenMs = s.firstEnd()
	}
	s.second = s.second[:0]
	s.lengths += int64(requests) * int64(s.passes)
	s.lastEnd = s.end
}

// Sync brings the running requests' counters up to date, which lag behind during runs.
func (v *VLLM) Sync() { v.leaveRun() }

// leaveRun brings all running requests up to date.
func (v *VLLM) leaveRun() {
	if !v.run.steady {
		return
	}
	for _, id := range v.running {
		v.sync(id, &v.env.Requests[id])
	}
	v.run.steady, v.run.active = false, false
}

// sync brings one running request up to date with the latest pass.
func (v *VLLM) sync(id int32, r *Request) {
	if v.run.catchUp(r, v.pass.number) && !v.env.Rules.BlocksAtEmission {
		v.settle(id, r, r.computed)
	}
}

// nextBlock returns the number of the pass that takes the next block of an up-to-date request.
func (v *VLLM) nextBlock(r *Request) int64 {
	held := int64(r.blocks)
	if r.partial {
		held++
	}
	room := held*int64(v.blockSize) - int64(r.length())
	if v.env.Rules.BlocksAtEmission {
		return v.pass.number + room + 1
	}
	return v.pass.number + room + 2
}

// startRun plans a run at the given time, as long as possible with no pass starting at limit or later. It returns
// false when the next pass needs to be looked at request by request.
func (v *VLLM) startRun(now, limit float64) bool {
	s := &v.run
	if now != s.lastEnd || len(v.running) > v.maxTokens || v.waiting.len() > 0 && v.mayAdmit() {
		return false
	}
	next := v.pass.number + 1
	passes := v.runLength(next)
	if passes == 0 {
		return false
	}
	s.active = true
	v.signals = v.signals[:0]
	s.plan(&v.pricer, now, limit, passes, len(v.running), s.lengths, v.heldTokens())
	if v.env.Passes != nil {
		v.latest = s.load(v.env, v.running, v.pass.number, v.queued)
	}
	return true
}

// load is what the first pass of a run does, in which the given requests decode, when the pass with the given number was the
// latest.
func (s *run) load(env *Environment, running []int32, number int64, q queued) PassLoad {
	var c loadCounter
	for _, id := range running {
		r := &env.Requests[id]
		c.decode(r.length() + int32(number-r.synced))
	}
	return c.load(q)
}

// runLength returns how many passes from number next on are equal, and takes the blocks that the first of them
// needs; 0 means that blocks may run out.
func (v *VLLM) runLength(next int64) int {
	s := &v.run
	if v.env.Rules.BlocksAtEmission {
		room := v.cache.Available()
		if v.env.Index != nil {
			room = v.cache.Free() // what is evicted is seen when the pass starts, not at the end of a run
		}
		due := min(least(s.block), least(s.done))
		if passes := int(due - next + 1); countDue(s.block, due) <= room {
			return passes
		} else {
			return passes - 1 // the last pass takes the blocks; it is looked at by itself
		}
	}
	if n := countDue(s.block, next); n > 0 {
		if n > v.cache.Available() {
			return 0
		}
		v.takeBlocks(next)
	}
	return int(min(least(s.block)-next, least(s.done)-next+1))
}

// takeBlocks gives a block to every running request that needs one in the pass with the given number, which
// allocates before it computes.
func (v *VLLM) takeBlocks(number int64) {
	for i, due := range v.run.block {
		if due != number {
			continue
		}
		id := v.running[i]
		r := &v.env.Requests[id]
		v.sync(id, r)
		v.cache.Hold(kvcache.Sequence{}, 0, 0, 0, 1)
		r.partial = true
		v.run.block[i] = v.nextBlock(r)
	}
}

// Interrupt tells the worker, before it is submitted, that a request arrives at the given time, while what Start
// began is under way. It returns when that now ends: a run is cut at the first pass end from then on, if the
// request could join there.
func (v *VLLM) Interrupt(at float64) float64 {
	s := &v.run
	v.joinsMs = at
	if s.active && v.mayAdmit() {
		s.cut(at)
	}
	return s.end
}

// LastPassStart returns when the last pass of what Start began starts.
func (v *VLLM) LastPassStart() float64 { return v.run.lastStart() }

// Finish completes what Start began, at its end.
func (v *VLLM) Finish() []Signal {
	s := &v.run
	v.constraint.finish(s.end)
	if v.env.Passes != nil {
		v.env.Passes.end(v.env.Pool, v.index, s.passes)
	}
	if s.active {
		s.finish(v.env, &v.pricer, len(v.running))
		v.pass.number += int64(s.passes)
		v.settleDue()
	}
	v.tiers.offloadFinished(s.end)
	return v.signals
}

// settleDue does what the last pass of a run leads to: blocks that its tokens need (when blocks are taken at
// emission) and completions, in the order of the running queue.
func (v *VLLM) settleDue() {
	s, number := &v.run, v.pass.number
	atEmission := v.env.Rules.BlocksAtEmission
	if least(s.done) > number && !(atEmission && least(s.block) <= number) {
		return
	}
	kept := 0
	for i, id := range v.running {
		block, done := s.block[i], s.done[i]
		if done == number || atEmission && block == number {
			r := &v.env.Requests[id]
			v.sync(id, r)
			if atEmission && block == number {
				if r.partial {
					v.promote(id, r)
				}
				v.cache.Hold(kvcache.Sequence{}, 0, 0, 0, 1)
				r.partial = true
				block = v.nextBlock(r)
			}
			if done == number {
				s.lengths -= int64(r.length())
				v.complete(id, r)
				v.signals = append(v.signals, Signal{Request: id, Ended: true})
				continue
			}
		}
		v.running[kept], s.block[kept], s.done[kept] = id, block, done
		kept++
	}
	v.running, s.block, s.done = v.running[:kept], s.block[:kept], s.done[:kept]
	s.steady = kept > 0
}

func countDue(numbers []int64, due int64) int {
	n := 0
	for _, d := range numbers {
		if d == due {
			n++
		}
	}
	return n
}
