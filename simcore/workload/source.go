package workload

// What a workload keeps of its source, for those who write it again.

// SessionLabel is [Workload.SessionName], and whether the source gave that name.
func (w *Workload) SessionLabel(session int) (name string, given bool) {
	return w.SessionName(session), session < len(w.sessionNames) && w.sessionNames[session] != ""
}

// SessionOf is the number of the session that a request is in.
func (w *Workload) SessionOf(request int) int { return int(w.sessionOf(int32(request))) }

// RecordedServiceMs is how long a request took in the source, in ms; 0 when it does not say.
func (w *Workload) RecordedServiceMs(request int) float64 { return w.recordedService(request) }

// RecordedStarts says when each request starts, in ms from the workload's own zero, if each takes the time that it took in
// the source. Sessions that do not say when they start do so at 0.
func (w *Workload) RecordedStarts() []float64 { return w.nominalStarts(w.recordedService) }
