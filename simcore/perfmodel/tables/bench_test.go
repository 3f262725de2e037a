package tables

import (
	"math/rand/v2"
	"testing"
)

// benchmarkQuery is a deployment that sweeps ask for often.
var benchmarkQuery = Query{System: "h200_sxm", Backend: "vllm", Model: "Qwen/Qwen3-32B", DType: "bf16", TP: 2, DP: 1, Corrections: true}

func benchmarkTable(b *testing.B) *Table {
	b.Helper()
	c, problems := Embedded().Find(benchmarkQuery)
	if problems != nil {
		b.Fatal(problems)
	}
	table, err := Embedded().Load(c, true)
	if err != nil {
		b.Fatal(err)
	}
	return table
}

// BenchmarkPrice prices one prefill and one decode of random sizes; the target is 100 ns and no allocation.
func BenchmarkPrice(b *testing.B) {
	table := benchmarkTable(b)
	random := rand.New(rand.NewPCG(1, 2))
	var passes [4096][5]int
	for i := range passes {
		passes[i] = [5]int{1 + random.IntN(4), 1 + random.IntN(4000), random.IntN(30000), 1 + random.IntN(256), 1 + random.IntN(30000)}
	}
	b.ReportAllocs()
	sum, i := 0.0, 0
	for b.Loop() {
		p := &passes[i&4095]
		i++
		sum += table.Tokens(p[0]*p[1]) + table.Requests(p[0]) + table.PrefillAttention(p[0], p[1]+p[2], p[2]) +
			table.Generation(p[3]) + table.GenerationAttention(p[3], p[4])
	}
	if sum <= 0 {
		b.Fatal("no time passed")
	}
}

// BenchmarkFind finds the row of a deployment; the target is 2 us.
func BenchmarkFind(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, problems := Embedded().Find(benchmarkQuery); problems != nil {
			b.Fatal(problems)
		}
	}
}

// BenchmarkFirstLoad reads a system's rows and the curves and grids of one of them as a fresh process does; the target
// is 10 ms.
func BenchmarkFirstLoad(b *testing.B) {
	files := Embedded().files
	b.ReportAllocs()
	for b.Loop() {
		fresh := newSet(files, false)
		c, problems := fresh.Find(benchmarkQuery)
		if problems != nil {
			b.Fatal(problems)
		}
		if _, err := fresh.Load(c, true); err != nil {
			b.Fatal(err)
		}
	}
}
