package profile

import (
	"archive/zip"
	"testing"
)

func benchmarks(b *testing.B, p *Profile) {
	sum := 0.0
	b.Run("prefill", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			sum += p.PrefillMs(1+i&7, 1+i*7919&8191, i&1023)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			sum += p.DecodeMs(1+i&127, i*7919&65535, 1+i*104729&8191)
		}
	})
	if sum == 0 {
		b.Error("passes take no time")
	}
}

func BenchmarkNPZ(b *testing.B) {
	benchmarks(b, mustRead(b, written(b, "p.npz", zipped(zip.Store, worked()...))))
}

func BenchmarkFolder(b *testing.B) {
	benchmarks(b, mustRead(b, "testdata/reference/folder_npz"))
}

func BenchmarkCSV(b *testing.B) {
	benchmarks(b, mustRead(b, written(b, "p.csv", []byte(smallCSV))))
}

// TestPricingAllocatesNothing holds for every pass of a simulation.
func TestPricingAllocatesNothing(t *testing.T) {
	p := mustRead(t, "testdata/reference/folder_npz")
	if n := testing.AllocsPerRun(100, func() { p.PrefillMs(3, 700, 20); p.DecodeMs(3, 7000, 800); p.MeasuredDecode(3, 7000, 800) }); n != 0 {
		t.Errorf("%v allocations a pass", n)
	}
}
