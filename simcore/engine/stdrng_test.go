package engine

import (
	"encoding/binary"
	"encoding/hex"
	"testing"
)

// TestStdRNGBlock compares a block with the keystream of ChaCha12 under a key of zeros (draft-strombergson-chacha-test-
// vectors-01, TC1, 12 rounds, 256 bits).
func TestStdRNGBlock(t *testing.T) {
	const want = "9bf49a6a0755f953811fce125f2683d50429c3bb49e074147e0089a52eae155f" +
		"0564f879d27ae3c02ce82834acfa8c793a629f2ca0de6919610be82f411326be"
	var g stdRNG
	g.next = len(g.block)
	var got []byte
	for range 8 {
		got = binary.LittleEndian.AppendUint64(got, g.Uint64())
	}
	if hex.EncodeToString(got) != want {
		t.Errorf("keystream is %x, want %s", got, want)
	}
}

// TestStdRNGSeed compares the draws of seed 42 with the reference's: which of 100 requests in turn got both of their
// tokens in one pass, with one speculative token and a rate of one half. A request that did not draws once more.
func TestStdRNGSeed(t *testing.T) {
	const want = "0011011011010010110100010110111110001111100101101100101011001010011011101101101000001011101110110101"
	var g stdRNG
	g.seed(42)
	got := ""
	for range len(want) {
		if g.Uint64() < 1<<63 {
			got += "1"
		} else {
			got += "0"
			g.Uint64()
		}
	}
	if got != want {
		t.Errorf("draws are\n%s, want\n%s", got, want)
	}
}

func BenchmarkStdRNG(b *testing.B) {
	var g stdRNG
	g.seed(42)
	b.ReportAllocs()
	for b.Loop() {
		g.Uint64()
	}
}
