package engine

// reserveRatio is the share of their remaining output for which room is kept beside running requests when prompts are
// admitted. It decays from pass to pass and starts anew, or follows the progress of the running requests, when memory ran
// out (engine specification §8.1).
type reserveRatio struct {
	first, least, step float64
	now                float64
}

// How the ratio follows from the schedule conservativeness.
const (
	reserveFirst  = 0.7
	reserveLeast  = 0.14 // of the first one
	reservePasses = 600  // until the least one is reached
)

func newReserveRatio(conservativeness float64) reserveRatio {
	first := reserveFirst * conservativeness
	least := reserveLeast * first
	return reserveRatio{first: first, least: least, step: (first - least) / reservePasses, now: first}
}

// reset starts anew.
func (r *reserveRatio) reset() { r.now = r.first }

// follow makes the ratio the share that is expected to be used of the output of running requests.
func (r *reserveRatio) follow(expected, output int) {
	r.now = min(1, float64(expected)/float64(output+1))
}

// decay lets so many passes go by.
func (r *reserveRatio) decay(passes int) {
	for ; passes > 0 && r.now > r.least; passes-- {
		r.now = max(r.least, r.now-r.step)
	}
}
