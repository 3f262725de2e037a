package metrics

// Scaling is what became of the workers of a deployment whose number changes while it serves. An aggregated deployment has
// its workers under Decode.
type Scaling struct {
	Prefill, Decode PoolScaling
}

// PoolScaling is what became of the workers of a pool.
type PoolScaling struct {
	// WorkersAdded counts the workers that were asked for beside those of the beginning, WorkersCancelled those of them that
	// were given up before they were ready, WorkersRemoved those that were ready and are gone.
	WorkersAdded, WorkersCancelled, WorkersRemoved int64
	// PeakReady and LeastReady are the most and the fewest workers that took requests at a time, MeanReady the mean over time.
	PeakReady, LeastReady int64
	MeanReady             float64
	// ReadySeconds, StartingSeconds and DrainingSeconds are the time of workers that took requests, that were not ready yet,
	// and that finished the requests they had.
	ReadySeconds, StartingSeconds, DrainingSeconds float64
}

// WorkerSeconds is the time in which workers occupied their GPUs.
func (p PoolScaling) WorkerSeconds() float64 {
	return p.ReadySeconds + p.StartingSeconds + p.DrainingSeconds
}

// sum is both pools together.
func (s *Scaling) sum(of func(*PoolScaling) float64) float64 { return of(&s.Prefill) + of(&s.Decode) }

// scalingFields are the figures of deployments whose number of workers changes.
func scalingFields() []Field {
	field := func(name, unit, doc string, integer bool, better Direction, get func(*Scaling) float64) Field {
		return Field{Name: name, Unit: unit, Doc: doc, Integer: integer, Better: better, Optional: true,
			get: func(r *Report) (float64, bool) {
				if r.Scaling == nil {
					return 0, false
				}
				return get(r.Scaling), true
			}}
	}
	prefill := func(f Field) Field {
		get := f.get
		f.get = func(r *Report) (float64, bool) {
			if r.PrefillGPUsPerWorker == 0 {
				return 0, false
			}
			return get(r)
		}
		return f
	}
	return []Field{
		field("workers_added", "workers", "Workers that the autoscaler asked for beside those of the beginning.", true, Neutral, func(s *Scaling) float64 {
			return s.sum(func(p *PoolScaling) float64 { return float64(p.WorkersAdded) })
		}),
		field("workers_cancelled", "workers", "Workers that were given up before they were ready.", true, LowerIsBetter, func(s *Scaling) float64 {
			return s.sum(func(p *PoolScaling) float64 { return float64(p.WorkersCancelled) })
		}),
		field("workers_removed", "workers", "Workers that were ready, finished the requests they had, and are gone.", true, Neutral, func(s *Scaling) float64 {
			return s.sum(func(p *PoolScaling) float64 { return float64(p.WorkersRemoved) })
		}),
		prefill(field("peak_prefill_workers", "workers", "The most prefill workers that took requests at a time.", true, Neutral, func(s *Scaling) float64 { return float64(s.Prefill.PeakReady) })),
		prefill(field("mean_prefill_workers", "workers", "Prefill workers that took requests, mean over time.", false, LowerIsBetter, func(s *Scaling) float64 { return s.Prefill.MeanReady })),
		field("peak_decode_workers", "workers", "The most decode workers that took requests at a time, or of all workers when aggregated.", true, Neutral, func(s *Scaling) float64 { return float64(s.Decode.PeakReady) }),
		field("mean_decode_workers", "workers", "Decode workers that took requests, or all workers when aggregated, mean over time.", false, LowerIsBetter, func(s *Scaling) float64 { return s.Decode.MeanReady }),
		field("starting_worker_seconds", "s", "Time of workers that were not ready yet.", false, LowerIsBetter, func(s *Scaling) float64 {
			return s.sum(func(p *PoolScaling) float64 { return p.StartingSeconds })
		}),
		field("draining_worker_seconds", "s", "Time of workers that took no more requests and finished those they had.", false, LowerIsBetter, func(s *Scaling) float64 {
			return s.sum(func(p *PoolScaling) float64 { return p.DrainingSeconds })
		}),
	}
}
