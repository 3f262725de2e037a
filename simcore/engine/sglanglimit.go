package engine

// This file is what limits a worker with the SGLang-style scheduler.

// Limited says what kept the worker from admitting requests. See [Worker].
func (s *SGLang) Limited() *LimitedTimes { return s.constraint.total() }

// Arriving tells that prompts are on their way from prefill workers. See [DecodeWorker].
func (s *SGLang) Arriving(prompts int, now float64) { s.constraint.arrive(prompts, now) }

// limitOfPass notes what kept a pass from admitting more requests, after it has admitted what it could.
func (s *SGLang) limitOfPass() {
	compute := s.pass.limit == LimitCompute && s.waiting.len() > 0
	if s.limit(len(s.running) + len(s.pass.batch)); compute {
		s.pass.limit = LimitCompute
	}
}

// limitOfRun is the same for passes that only decode.
func (s *SGLang) limitOfRun() { s.limit(len(s.running)) }

// limit notes what keeps requests from joining so many others, the budget of tokens apart.
func (s *SGLang) limit(requests int) {
	s.pass.full, s.pass.limit = requests >= s.maxSeqs, NoLimit
	switch waits := s.waiting.len() > 0 || s.handoff.arrived.len() > 0; {
	case waits && s.pass.full:
		s.pass.limit = LimitBatchSlots
	case waits || s.handoff.reserving:
		s.pass.limit = LimitKVMemory
	case s.tiers.loads():
		s.pass.limit = LimitTransfer
	}
}
