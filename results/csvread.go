package results

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
)

// readCSV reads comma-, semicolon- or tab-separated values with a header line. A column is of the narrowest kind
// that fits all its fields: integer, real, boolean, string.
func readCSV(r io.Reader) (*Table, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	head, _ := buffered.Peek(1 << 16)
	in := csv.NewReader(buffered)
	in.Comma = csvSeparator(string(head))
	records, err := in.ReadAll()
	if err != nil {
		return nil, csvError(err)
	}
	if len(records) == 0 {
		return nil, errors.New("the file is empty; a header line with column names is needed")
	}
	header, records := records[0], records[1:]
	if len(records) == 0 {
		return nil, errors.New("the file has a header line and no rows; give one row a point")
	}
	t := &Table{}
	fields := make([]string, len(records))
	for i, name := range header {
		if i == 0 {
			name = strings.TrimPrefix(name, byteOrderMark)
		}
		if name == "" {
			t.Notes = append(t.Notes, fmt.Sprintf("column %d has no name (an index?) and was left out", i+1))
			continue
		}
		for row, record := range records {
			fields[row] = record[i]
		}
		t.Columns = append(t.Columns, inferColumn(name, fields))
	}
	return t, nil
}

const byteOrderMark = "\ufeff"

func csvError(err error) error {
	var parse *csv.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	if errors.Is(err, csv.ErrFieldCount) {
		return fmt.Errorf("line %d: the number of fields differs from the header's", parse.Line)
	}
	return fmt.Errorf("line %d, column %d: %w", parse.Line, parse.Column, parse.Err)
}

// csvSeparator guesses from the header line: a comma unless there is none but another separator.
func csvSeparator(head string) rune {
	line := headerLine(head)
	for _, sep := range []rune{',', '\t', ';'} {
		if strings.ContainsRune(line, sep) {
			return sep
		}
	}
	return ','
}

// headerLine is the first line, without what stands in quotes.
func headerLine(head string) string {
	var b strings.Builder
	for i, part := range strings.Split(head, `"`) {
		if i%2 == 1 {
			continue
		}
		line, _, ends := strings.Cut(part, "\n")
		if b.WriteString(line); ends {
			break
		}
	}
	return b.String()
}

// inferColumn makes a column of the narrowest kind that fits all fields.
func inferColumn(name string, fields []string) *Column {
	for _, parse := range []func(string) (gridspec.Value, bool){parseInt, parseFloat, parseBool, parseText} {
		if c, ok := parseColumn(name, fields, parse); ok {
			return c
		}
	}
	return NewColumn(name, gridspec.KindString, len(fields))
}

func parseColumn(name string, fields []string, parse func(string) (gridspec.Value, bool)) (*Column, bool) {
	var c *Column
	for row, field := range fields {
		v, ok := parse(field)
		if !ok {
			return nil, false
		}
		if v == missing {
			continue
		}
		if c == nil {
			c = NewColumn(name, v.Kind, len(fields))
		}
		c.Set(row, v)
	}
	return c, c != nil
}

// nullWords are how tools write a missing number or boolean.
var nullWords = []string{"", "NaN", "nan", "NA", "N/A", "null", "NULL", "None", "<NA>"}

func parseInt(field string) (gridspec.Value, bool) {
	if slices.Contains(nullWords, field) {
		return missing, true
	}
	n, err := strconv.ParseInt(field, 10, 64)
	return gridspec.Value{Kind: gridspec.KindInt, Int: n}, err == nil
}

func parseFloat(field string) (gridspec.Value, bool) {
	if slices.Contains(nullWords, field) {
		return missing, true
	}
	f, err := strconv.ParseFloat(field, 64)
	return float(f), err == nil && !math.IsNaN(f)
}

func parseBool(field string) (gridspec.Value, bool) {
	switch field {
	case "true", "True", "TRUE":
		return gridspec.Value{Kind: gridspec.KindBool, Bool: true}, true
	case "false", "False", "FALSE":
		return gridspec.Value{Kind: gridspec.KindBool}, true
	}
	return missing, slices.Contains(nullWords, field)
}

func parseText(field string) (gridspec.Value, bool) {
	if field == "" {
		return missing, true
	}
	return text(field), true
}
