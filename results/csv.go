package results

import (
	"encoding/csv"
	"fmt"
	"io"
)

// WriteCSV writes the table as CSV with a header line. A null is an empty field; numbers read back as the same
// number.
func WriteCSV(w io.Writer, t *Table) error {
	out := csv.NewWriter(w)
	record := t.names()
	if err := out.Write(record); err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	for row := range t.Rows() {
		for i, c := range t.Columns {
			record[i] = c.Text(row)
		}
		if err := out.Write(record); err != nil {
			return fmt.Errorf("csv: %w", err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	return nil
}
