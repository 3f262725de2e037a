package results

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

func TestParquetBombsAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("writes and reads millions of values")
	}
	type row struct {
		A, B, C, D, E, F, G, H bool
	}
	path := filepath.Join(t.TempDir(), "bomb.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[row](f, parquet.Compression(&parquet.Zstd))
	rows := make([]row, 1<<20)
	for range mostCells/8/len(rows) + 1 {
		if _, err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTable(path); err == nil || !strings.Contains(err.Error(), "more than 1000 times as large") {
		t.Errorf("err = %v", err)
	}
}
