package profile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// readParquet reads a measured profile with the columns of the CSV form; null and NaN are empty cells.
func readParquet(path string) (*Profile, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	rows, err := parseParquet(data)
	if err != nil {
		return nil, err
	}
	return rowsProfile(rows)
}

func parseParquet(data []byte) (rows []row, err error) {
	defer func() {
		// The library trusts the sizes and offsets inside a file, so a damaged one can make it panic.
		if p := recover(); p != nil {
			rows, err = nil, fmt.Errorf("the Parquet file is damaged: %v", p)
		}
	}()
	f, err := openParquet(data)
	if err != nil {
		return nil, err
	}
	var names []string
	leaves := f.Root().Columns()
	for _, leaf := range leaves {
		names = append(names, leaf.Name())
	}
	numbers, phase, err := header(names)
	if err != nil {
		return nil, err
	}
	phases, err := parquetColumn(f, leaves[phase])
	if err != nil {
		return nil, err
	}
	for i, v := range phases {
		if v.Kind() != parquet.ByteArray && !v.IsNull() {
			return nil, fmt.Errorf("column %s holds no text", columnPhase)
		}
		rows = append(rows, row{at: fmt.Sprintf("row %d", i+1)})
		if !v.IsNull() {
			rows[i].phase = strings.TrimSpace(string(v.ByteArray()))
		}
	}
	for c, column := range numbers {
		if err := fillColumn(rows, c, f, leaves, column); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// openParquet opens a file of few enough rows.
func openParquet(data []byte) (*parquet.File, error) {
	if err := checkFooter(data); err != nil {
		return nil, err
	}
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("the Parquet file is damaged: %w", err)
	}
	if n := f.NumRows(); n < 0 || n > maxGridCells {
		return nil, fmt.Errorf("has %d rows; a profile has at most %d", n, maxGridCells)
	}
	return f, nil
}

// checkFooter checks the length of the footer, for which the library makes room unseen.
func checkFooter(data []byte) error {
	const magic, frame = "PAR1", 12 // the magic at both ends and the length of the footer before the last
	if len(data) < frame || !bytes.HasPrefix(data, []byte(magic)) || !bytes.HasSuffix(data, []byte(magic)) {
		return errors.New("the Parquet file is damaged: it does not start and end like one")
	}
	if n := binary.LittleEndian.Uint32(data[len(data)-8:]); int64(n) > int64(len(data)-frame) {
		return fmt.Errorf("the Parquet file is damaged: a footer of %d bytes is longer than the file", n)
	}
	return nil
}

// fillColumn sets the cells of a number column, empty where the file doesn't have it.
func fillColumn(rows []row, c int, f *parquet.File, leaves []*parquet.Column, column int) error {
	for i := range rows {
		rows[i].cells[c] = math.NaN()
	}
	if column < 0 {
		return nil
	}
	values, err := parquetColumn(f, leaves[column])
	if err != nil {
		return err
	}
	if logical := leaves[column].Type().LogicalType(); logical != nil {
		if _, ok := logical.Value.(*format.IntType); !ok {
			return fmt.Errorf("column %s holds no plain numbers but %s", columnNames[c], leaves[column].Type())
		}
	}
	if len(values) != len(rows) {
		return fmt.Errorf("column %s has %d values, %s %d", columnNames[c], len(values), columnPhase, len(rows))
	}
	for i, v := range values {
		switch {
		case v.IsNull():
		case v.Kind() == parquet.Int32:
			rows[i].cells[c] = float64(v.Int32())
		case v.Kind() == parquet.Int64:
			rows[i].cells[c] = float64(v.Int64())
		case v.Kind() == parquet.Float:
			rows[i].cells[c] = float64(v.Float())
		case v.Kind() == parquet.Double:
			rows[i].cells[c] = v.Double()
		default:
			return fmt.Errorf("column %s holds no plain numbers but %s", columnNames[c], leaves[column].Type())
		}
	}
	return nil
}

// parquetColumn reads the values of a flat column.
func parquetColumn(f *parquet.File, leaf *parquet.Column) (out []parquet.Value, err error) {
	if !leaf.Leaf() || leaf.Repeated() {
		return nil, fmt.Errorf("column %s is nested; a profile's columns are flat", leaf.Name())
	}
	for _, group := range f.RowGroups() {
		pages := group.ColumnChunks()[leaf.Index()].Pages()
		out, err = appendPages(out, pages, int(f.NumRows()))
		if err = errors.Join(err, pages.Close()); err != nil {
			return nil, fmt.Errorf("column %s: %w", leaf.Name(), err)
		}
	}
	return out, nil
}

func appendPages(out []parquet.Value, pages parquet.Pages, rows int) ([]parquet.Value, error) {
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out, err = appendValues(out, page.Values(), rows)
		parquet.Release(page)
		if err != nil {
			return nil, err
		}
	}
}

// appendValues trusts no count in the file, since a damaged one may name any.
func appendValues(out []parquet.Value, values parquet.ValueReader, rows int) ([]parquet.Value, error) {
	buffer := make([]parquet.Value, 256)
	for {
		n, err := values.ReadValues(buffer)
		for _, v := range buffer[:n] {
			out = append(out, v.Clone())
		}
		switch {
		case err == nil && n == 0:
			return nil, io.ErrNoProgress
		case len(out) > rows:
			return nil, fmt.Errorf("has more values than the file has rows, %d", rows)
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		}
	}
}
