package workload

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// badRows collects what is wrong with the rows of a trace, so that one error tells of many.
type badRows struct {
	problems []string
	more     int
}

// add notes a problem of a line; enough says that nobody needs to know of more.
func (b *badRows) add(path string, line int, err error) (enough bool) {
	if len(b.problems) < maxTraceProblems {
		b.problems = append(b.problems, fmt.Sprintf("%s:%d: %v", path, line, err))
		return false
	}
	b.more++
	return b.more >= maxBadLines
}

// err is nil when nothing is wrong.
func (b *badRows) err() error {
	if len(b.problems) == 0 {
		return nil
	}
	return &TraceError{Problems: b.problems, More: b.more}
}

// eachLine calls read for every line of a JSON Lines file that is not blank. What read returns is collected; only what
// ends the reading is returned.
func (b *badRows) eachLine(ctx context.Context, src Source, path string, read func(number int, line []byte) error) error {
	file, err := src.open(ctx, path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := newLines(file)
	for {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("trace file %s: %w", path, err)
		}
		if in.number == 1 {
			line = bytes.TrimPrefix(line, []byte(byteOrderMark))
		}
		if in.number%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := read(in.number, line); err != nil && b.add(path, in.number, err) {
			return nil // this is no trace; the error says so
		}
	}
}

const byteOrderMark = "\xef\xbb\xbf"

// csvColumn is a column that a format looks for.
type csvColumn struct {
	// name is the column's own; others are accepted too. Case, spaces and underscores do not count.
	name     string
	others   []string
	optional bool
}

// csvRow is a row of a CSV file; fields are in the order of the columns asked for, empty when the file lacks them.
type csvRow struct {
	columns []csvColumn
	fields  []string
}

// eachCSVRow calls read for every row of a CSV file with a header. Columns that nobody asks for are skipped.
func (b *badRows) eachCSVRow(ctx context.Context, src Source, path string, columns []csvColumn, read func(csvRow) error) error {
	file, err := src.open(ctx, path)
	if err != nil {
		return err
	}
	defer file.Close()
	limit := &recordLimit{r: file}
	in := csv.NewReader(limit)
	in.FieldsPerRecord, in.ReuseRecord, in.TrimLeadingSpace = -1, true, true
	header, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("trace file %s: %w", path, describeRead(err))
	}
	places, err := findColumns(header, columns)
	if err != nil {
		return fmt.Errorf("trace file %s: %w", path, err)
	}
	row := csvRow{columns: columns, fields: make([]string, len(columns))}
	line, _ := in.FieldPos(0)
	for n := 1; ; n++ {
		limit.taken = 0
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if syntax := (*csv.ParseError)(nil); errors.As(err, &syntax) {
			line, err = syntax.Line, fmt.Errorf("is not CSV: column %d: %w", syntax.Column, syntax.Err)
		} else if err != nil {
			return fmt.Errorf("trace file %s: cannot be read past line %d: %w", path, line, describeRead(err))
		} else {
			line, _ = in.FieldPos(0)
			err = row.take(record, places, read)
		}
		if err != nil && b.add(path, line, err) {
			return nil
		}
	}
}

// take picks the fields that were asked for out of a record.
func (r csvRow) take(record []string, places []int, read func(csvRow) error) error {
	for i, place := range places {
		r.fields[i] = ""
		if place >= 0 && place < len(record) {
			r.fields[i] = strings.TrimSpace(record[place])
		}
		if r.fields[i] == "" && !r.columns[i].optional {
			return &fieldError{field: r.columns[i].name, message: "is missing"}
		}
	}
	return read(r)
}

// recordLimit bounds the bytes of one record, so that a file without line breaks can't take all memory.
type recordLimit struct {
	r     io.Reader
	taken int
}

func (l *recordLimit) Read(p []byte) (int, error) {
	if l.taken > maxLine {
		return 0, fmt.Errorf("a row is longer than %d MiB; is this a trace?", maxLine>>20)
	}
	n, err := l.r.Read(p)
	l.taken += n
	return n, err
}

// findColumns says at which place of the header each column is; -1 when it is not there and optional.
func findColumns(header []string, columns []csvColumn) ([]int, error) {
	names := make([]string, len(header))
	for i, name := range header {
		names[i] = columnKey(strings.TrimPrefix(name, byteOrderMark))
	}
	places := make([]int, len(columns))
	var missing []string
	for i, c := range columns {
		places[i] = -1
		for _, name := range append([]string{c.name}, c.others...) {
			if places[i] = slices.Index(names, columnKey(name)); places[i] >= 0 {
				break
			}
		}
		if places[i] < 0 && !c.optional {
			missing = append(missing, strconv.Quote(c.name))
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("its header %q has no column %s; the first line must name the columns", strings.Join(header, ","), strings.Join(missing, ", "))
	}
	return places, nil
}

// columnKey is a column's name without what does not count.
func columnKey(name string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "").Replace(name))
}

// tokens reads a length in tokens; spreadsheets and data frames may have written it as 12.0.
func (r csvRow) tokens(column int) (int, error) {
	text := r.fields[column]
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || v > MaxTokens || v != float64(int(v)) {
		return 0, &fieldError{r.columns[column].name, shortened(text), fmt.Sprintf("must be a whole number of tokens from 0 to %d", MaxTokens)}
	}
	return int(v), nil
}

// seconds reads a time in seconds and returns ms, rounded to microseconds.
func (r csvRow) seconds(column int) (float64, error) {
	text := r.fields[column]
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, &fieldError{r.columns[column].name, shortened(text), "must be a number of seconds"}
	}
	return secondsToMs(r.columns[column].name, v)
}

// secondsToMs rounds to microseconds, so that decimal seconds become the ms that they mean.
func secondsToMs(field string, seconds float64) (float64, error) {
	ms := toMicroseconds(seconds * 1000)
	if !(ms >= -maxTimeMs && ms <= maxTimeMs) {
		return 0, &fieldError{field, fmt.Sprint(seconds), fmt.Sprintf("is beyond ±%g seconds", maxTimeMs/1000)}
	}
	return ms, nil
}

// toMicroseconds rounds a time in ms to whole microseconds.
func toMicroseconds(ms float64) float64 { return math.Round(ms*1000) / 1000 }

// shortened is a value as an error shows it.
func shortened(value string) string {
	const most = 60
	if len(value) <= most {
		return strconv.Quote(value)
	}
	return strconv.Quote(strings.ToValidUTF8(value[:most-3], "")) + "..."
}
