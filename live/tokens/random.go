package tokens

// random is splitmix64: a fast generator of which every seed gives another sequence.
type random uint64

func newRandom(seed uint64) random { return random(seed) }

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Seed makes a seed of some numbers, in their order.
func Seed(numbers ...uint64) uint64 {
	seed := random(0)
	for _, n := range numbers {
		seed = random(seed.next() ^ n)
	}
	return seed.next()
}
