package engine

import "math/bits"

// stdRNG is the random generator of the reference, so that fractional acceptance rates give its very figures: ChaCha
// with 12 rounds (Bernstein 2008, with a 64-bit block counter) under a key made of a 64-bit seed. It is what Rust's
// rand crate calls StdRng::seed_from_u64.
type stdRNG struct {
	key     [8]uint32
	counter uint64
	block   [16]uint32
	next    int // first unused word of block
}

// seed starts the sequence of a seed: the key is eight outputs of a PCG generator (XSH-RR, O'Neill 2014) that starts
// there.
func (g *stdRNG) seed(seed uint64) {
	for i := range g.key {
		seed = seed*6364136223846793005 + 11634580027462260723
		g.key[i] = bits.RotateLeft32(uint32((seed>>18^seed)>>27), -int(seed>>59))
	}
	g.counter, g.next = 0, len(g.block)
}

// Uint64 returns the next 64 bits.
func (g *stdRNG) Uint64() uint64 {
	if g.next == len(g.block) {
		g.refill()
	}
	low, high := g.block[g.next], g.block[g.next+1]
	g.next += 2
	return uint64(high)<<32 | uint64(low)
}

const chachaRounds = 12

// refill computes the next block.
func (g *stdRNG) refill() {
	start := [16]uint32{0: 0x61707865, 1: 0x3320646e, 2: 0x79622d32, 3: 0x6b206574, 12: uint32(g.counter), 13: uint32(g.counter >> 32)}
	copy(start[4:], g.key[:])
	b := &g.block
	*b = start
	for range chachaRounds / 2 {
		for i := range 4 { // the columns
			quarterRound(b, i, i+4, i+8, i+12)
		}
		for i := range 4 { // the diagonals
			quarterRound(b, i, 4+(i+1)%4, 8+(i+2)%4, 12+(i+3)%4)
		}
	}
	for i := range b {
		b[i] += start[i]
	}
	g.counter++
	g.next = 0
}

func quarterRound(s *[16]uint32, a, b, c, d int) {
	s[a] += s[b]
	s[d] = bits.RotateLeft32(s[d]^s[a], 16)
	s[c] += s[d]
	s[b] = bits.RotateLeft32(s[b]^s[c], 12)
	s[a] += s[b]
	s[d] = bits.RotateLeft32(s[d]^s[a], 8)
	s[c] += s[d]
	s[b] = bits.RotateLeft32(s[b]^s[c], 7)
}
