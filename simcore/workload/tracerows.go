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

// findings is what the reading of a trace finds besides its requests: what is wrong, so that one error tells of many, what is
// odd, and how far each file could be read.
type findings struct {
	// salvage goes on with what is whole: what is wrong is left out.
	salvage bool
	// strict counts what looks incomplete as wrong. A check is strict and goes on all the same.
	strict bool

	format   string // that the trace is read as
	problems []string
	more     int  // problems beyond those
	fatal    bool // some problem leaves nothing to go on with
	warnings []string
	files    []CheckedFile
	tools    int // tool calls that ended
}

// add notes a problem of a line; enough says that nobody needs to know of more.
func (f *findings) add(path string, line int, err error) (enough bool) {
	return f.problem("%s:%d: %v", path, line, err)
}

// problem notes what is wrong.
func (f *findings) problem(format string, args ...any) (enough bool) {
	if len(f.problems) < maxTraceProblems {
		f.problems = append(f.problems, fmt.Sprintf(format, args...))
		return false
	}
	f.more++
	return !f.salvage && f.more >= maxBadLines
}

// warn notes what is odd and loses nothing.
func (f *findings) warn(format string, args ...any) {
	f.warnings = append(f.warnings, fmt.Sprintf(format, args...))
}

// doubt notes what makes a trace look incomplete: a warning, or a problem for strict readers.
func (f *findings) doubt(format string, args ...any) {
	if f.strict {
		f.problem(format, args...)
	} else {
		f.warn(format, args...)
	}
}

// err is nil when nothing is wrong that cannot be left out.
func (f *findings) err() error {
	if len(f.problems) == 0 || f.salvage && !f.fatal {
		return nil
	}
	return &TraceError{Problems: f.problems, More: f.more}
}

// leftOut says what salvaging has left out.
func (f *findings) leftOut() []string {
	texts := make([]string, 0, len(f.problems)+1)
	for _, problem := range f.problems {
		texts = append(texts, "left out: "+problem)
	}
	if f.more > 0 {
		texts = append(texts, fmt.Sprintf("left out: and %d more", f.more))
	}
	return texts
}

// begin opens a file of the trace and notes that it is read.
func (f *findings) begin(ctx context.Context, src Source, path string) (io.ReadCloser, error) {
	f.files = append(f.files, CheckedFile{Path: path, Whole: true})
	file, err := src.open(ctx, path)
	if err != nil {
		return nil, f.damage(ctx, path, err)
	}
	return file, nil
}

// damage notes where a file is damaged, so that nothing after it can be read. What else ends the reading is returned.
func (f *findings) damage(ctx context.Context, path string, err error) error {
	var damage *readError
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !errors.As(err, &damage) {
		return err
	}
	file := &f.files[len(f.files)-1]
	file.Whole = false
	kept := "--salvage keeps them"
	if f.salvage && !f.strict {
		kept = "they are kept"
	}
	f.add(path, damage.line+1, fmt.Errorf("%w (good records before it: %d; %s)", err, file.Records, kept))
	return nil
}

// eachLine calls read for every line of a JSON Lines file that is not blank. What read returns is collected; only what
// ends the reading is returned.
func (f *findings) eachLine(ctx context.Context, src Source, path string, read func(number int, line []byte) error) error {
	file, err := f.begin(ctx, src, path)
	if file == nil {
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
			return f.damage(ctx, path, err)
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
		if err := read(in.number, line); err == nil {
			f.files[len(f.files)-1].Records++
		} else if f.add(path, in.number, err) {
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
func (f *findings) eachCSVRow(ctx context.Context, src Source, path string, columns []csvColumn, read func(csvRow) error) error {
	file, err := f.begin(ctx, src, path)
	if file == nil {
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
	if syntax := (*csv.ParseError)(nil); errors.As(err, &syntax) {
		return &TraceError{Problems: []string{fmt.Sprintf("%s:%d: is not CSV: column %d: %v", path, syntax.Line, syntax.Column, syntax.Err)}}
	}
	if err != nil {
		return f.damage(ctx, path, &readError{0, describeRead(err)})
	}
	places, err := findColumns(header, columns)
	if err != nil {
		return &TraceError{Problems: []string{fmt.Sprintf("%s:1: %v", path, err)}}
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
			return f.damage(ctx, path, &readError{line, describeRead(err)})
		} else {
			line, _ = in.FieldPos(0)
			err = row.take(record, places, read)
		}
		if err == nil {
			f.files[len(f.files)-1].Records++
		} else if f.add(path, line, err) {
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
