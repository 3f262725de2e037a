package metrics

// Planning counts what a planner did.
type Planning struct {
	// Ticks is the number of times at which it decided, those included at which nothing was due.
	Ticks int64
	// ScaleUps and ScaleDowns count the changes that it asked for, one for each pool.
	ScaleUps, ScaleDowns int64
	// Transitions counts how often the ready workers of a pool were not as many as at the tick before.
	Transitions int64
}

// planningFields are the figures of runs with a planner.
func planningFields() []Field {
	field := func(name, unit, doc string, get func(*Planning) int64) Field {
		return Field{Name: name, Unit: unit, Doc: doc, Integer: true, Better: Neutral, Optional: true,
			get: func(r *Report) (float64, bool) {
				if r.Planning == nil {
					return 0, false
				}
				return float64(get(r.Planning)), true
			}}
	}
	return []Field{
		field("planner_ticks", "ticks", "How often the planner decided, times included at which nothing was due.", func(p *Planning) int64 { return p.Ticks }),
		field("scaling_decisions", "decisions", "Changes of the number of workers of a pool that the planner asked for.", func(p *Planning) int64 { return p.ScaleUps + p.ScaleDowns }),
		field("scale_ups", "decisions", "Changes to more workers that the planner asked for.", func(p *Planning) int64 { return p.ScaleUps }),
		field("scale_downs", "decisions", "Changes to fewer workers that the planner asked for.", func(p *Planning) int64 { return p.ScaleDowns }),
		field("replica_transitions", "changes", "How often a pool had not as many ready workers as at the tick before.", func(p *Planning) int64 { return p.Transitions }),
	}
}
