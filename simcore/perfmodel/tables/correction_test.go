package tables

import (
	"math"
	"testing"
)

// TestCorrectionMs compares the correction with what it changes, and the check of a whole set with that of its folder.
func TestCorrectionMs(t *testing.T) {
	set := Embedded()
	c, problems := set.Find(Query{System: "h200_sxm", Backend: "vllm", Model: "qwen3-32b", TP: 2, DP: 1})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	plain, err := set.Load(c, false)
	if err != nil {
		t.Fatal(err)
	}
	corrected, err := set.Load(c, true)
	if err != nil {
		t.Fatal(err)
	}
	added := corrected.GenerationAttention(8, 1000) - plain.GenerationAttention(8, 1000)
	if plain.CorrectionMs() != 0 || added < 1 || math.Abs(corrected.CorrectionMs()-added) > 1e-9 {
		t.Errorf("corrections are %v and %v ms, they change a pass by %v ms", plain.CorrectionMs(), corrected.CorrectionMs(), added)
	}
}

func TestSetCheck(t *testing.T) {
	damaged := exampleFolder()
	damaged["gpu1/grids.csv.gz"] = "id\n"
	set, err := Open(damaged.write(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Check(); err == nil {
		t.Error("a damaged set is sound")
	}
	report, err := Embedded().Check()
	if err != nil || report.Configs == 0 {
		t.Errorf("embedded tables: %d rows, %v", report.Configs, err)
	}
}
