package profile

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// readCSV reads a measured profile: a header line and a line for each pass, separated by commas, semicolons or tabs.
// Lines that start with # are comments.
func readCSV(path string) (*Profile, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	rows, err := parseCSV(data)
	if err != nil {
		return nil, err
	}
	return rowsProfile(rows)
}

func parseCSV(data []byte) ([]row, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	in := csv.NewReader(bytes.NewReader(data))
	in.Comment, in.TrimLeadingSpace, in.Comma = '#', false, separator(data)
	names, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("is empty; give a header line with the columns and a line for each pass")
	} else if err != nil {
		return nil, csvError(err)
	}
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	numbers, phase, err := header(names)
	if err != nil {
		return nil, err
	}
	var wrong faults
	var rows []row
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, wrong.err()
		} else if err != nil {
			return nil, csvError(err)
		}
		line, _ := in.FieldPos(0)
		r := row{at: fmt.Sprintf("line %d", line), phase: strings.TrimSpace(record[phase])}
		for c, i := range numbers {
			r.cells[c] = math.NaN()
			if i >= 0 {
				if r.cells[c], err = parseCell(record[i]); err != nil {
					wrong.add("%s: %s is %.40q, which is no number", r.at, columnNames[c], record[i])
				}
			}
		}
		rows = append(rows, r)
	}
}

// separator is what the first line that is no comment separates its fields by: a comma unless there is none.
func separator(data []byte) rune {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		for _, s := range ",;\t" {
			if bytes.ContainsRune(line, s) {
				return s
			}
		}
		break
	}
	return ','
}

// emptyWords are how tools write a missing number.
var emptyWords = []string{"", "nan", "na", "n/a", "null", "none"}

// parseCell reads a number, NaN for an empty cell.
func parseCell(text string) (float64, error) {
	text = strings.TrimSpace(text)
	if slices.Contains(emptyWords, strings.ToLower(text)) {
		return math.NaN(), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if errors.Is(err, strconv.ErrRange) {
		err = nil // an infinity, which the column's range refuses
	}
	return v, err
}

func csvError(err error) error {
	var parse *csv.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	if errors.Is(err, csv.ErrFieldCount) {
		return fmt.Errorf("line %d: the number of fields differs from the header's", parse.Line)
	}
	return fmt.Errorf("line %d: %w", parse.Line, parse.Err)
}
