package planner

// see takes the passes of a pool's workers: the newest of each is what it does now, and the others are learned.
func (c *core) see(p *pool, in *poolInput) {
	newest := map[int32]int{}
	for i := range in.passes {
		newest[in.passes[i].worker] = i
	}
	if !c.rules.StaleNewest {
		p.seen = p.seen[:0]
	}
	for i := range in.passes {
		w := &in.passes[i]
		p.note(*w)
		if newest[w.worker] != i && p.model != nil && w.wallSeconds > 0 {
			p.model.observe(in.passes[i : i+1])
		}
	}
	if c.rules.NewestByCount {
		for len(p.seen) > len(in.ready) {
			p.forgetHighest()
		}
		return
	}
	p.keepReady(in.ready)
}

// note keeps a pass as the newest of its worker.
func (p *pool) note(w pass) {
	for i := range p.seen {
		if p.seen[i].worker == w.worker {
			p.seen[i] = w
			return
		}
	}
	p.seen = append(p.seen, w)
}

// forgetHighest forgets the worker with the greatest id.
func (p *pool) forgetHighest() {
	highest := 0
	for i := range p.seen {
		if p.seen[i].worker > p.seen[highest].worker {
			highest = i
		}
	}
	p.seen = append(p.seen[:highest], p.seen[highest+1:]...)
}

// keepReady keeps the ready workers, in order; those without a pass are idle.
func (p *pool) keepReady(ready []int32) {
	seen := p.seen
	p.seen = make([]pass, 0, len(ready))
	for _, id := range ready {
		w := pass{worker: id}
		for i := range seen {
			if seen[i].worker == id {
				w = seen[i]
			}
		}
		p.seen = append(p.seen, w)
	}
}

// learnNewest learns what the workers do now.
func (c *core) learnNewest() {
	for _, p := range c.pools {
		if p.model == nil {
			continue
		}
		if c.rules.StaleNewest {
			p.model.observe(p.seen)
			continue
		}
		for i := range p.seen {
			if p.seen[i].wallSeconds > 0 {
				p.model.observe(p.seen[i : i+1])
			}
		}
	}
}
