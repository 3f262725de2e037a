package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/expr-lang/expr"
)

// The plan of docs/scale.md follows from its own figures by its own formulas.
func TestScalePlan(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "docs/scale.md"))
	if err != nil {
		t.Fatal(err)
	}
	given, follows, ok := strings.Cut(string(text), "| follows |")
	if !ok {
		t.Fatal("there is no table of what follows")
	}
	figures := map[string]any{}
	for _, row := range scaleRow.FindAllStringSubmatch(given, -1) {
		if figures[row[1]], err = strconv.ParseFloat(row[2], 64); err != nil {
			t.Fatal(err)
		}
	}
	rows := scaleRow.FindAllStringSubmatch(follows, -1)
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row[0], "| "), " | ")
		value, err := expr.Eval(strings.ReplaceAll(cells[len(cells)-1], ",", ""), figures)
		if err != nil {
			t.Fatalf("%s: %v", row[1], err)
		}
		f, isNumber := value.(float64)
		if !isNumber {
			t.Fatalf("%s is %v", row[1], value)
		}
		want := fmt.Sprintf("%.3g", f)
		if f >= 1000 {
			want = fmt.Sprintf("%.0f", f)
		}
		if figures[row[1]] = f; row[2] != want {
			t.Errorf("%s is %s and not %s", row[1], want, row[2])
		}
	}
	if len(rows) < 10 || len(figures) < 25 {
		t.Errorf("%d rows follow from %d figures", len(rows), len(figures)-len(rows))
	}
}

var scaleRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([0-9.]+) \\|.*$")
