package workload

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/files"
)

// detectionBytes is how much of a trace is looked at to tell its format.
const detectionBytes = 1 << 16

// detect tells the format of a trace by the beginning of its first file with content, and how it shows. What is read of
// a pipe to find out is kept for the loader.
func (s *Source) detect(ctx context.Context, paths []string) (format, shown string, err error) {
	var problems []string
	for _, path := range paths {
		if info, err := s.stat(ctx, path); err == nil && info.Folder {
			return s.detectFolder(ctx, path)
		}
		head, err := s.peek(ctx, path)
		if damage := (*readError)(nil); errors.As(err, &damage) && ctx.Err() == nil {
			problems = append(problems, fmt.Sprintf("%s:%d: %v", path, damage.line+1, damage))
			continue
		}
		if err != nil {
			return "", "", err
		}
		if len(bytes.TrimSpace(withoutMark(head))) == 0 {
			continue
		}
		format, shown := detectFormat(head)
		if format == "" {
			return "", "", fmt.Errorf("trace file %s: its format is not recognised: %s; name it with format (--trace-format), one of: %s", path, shown, strings.Join(Formats(), ", "))
		}
		return format, fmt.Sprintf("%s is read as %s: %s", files.Base(path), format, shown), nil
	}
	if len(problems) == 0 {
		problems = append(problems, fmt.Sprintf("trace file %s did not contain any requests", listed(paths)))
	}
	return "", "", &TraceError{Problems: problems[:min(len(problems), maxTraceProblems)], More: max(0, len(problems)-maxTraceProblems)}
}

// detectFolder looks into the first file of a folder, and refuses formats that are not read from folders.
func (s *Source) detectFolder(ctx context.Context, folder string) (format, shown string, err error) {
	found, err := s.filesIn(ctx, []string{folder}, InFolder)
	if err != nil {
		return "", "", err
	}
	if lines := slices.DeleteFunc(slices.Clone(found), func(path string) bool { return !isJSONLines(path) }); len(lines) > 0 {
		found = lines // what else lies there may be about the trace
	}
	format, shown, err = s.detect(ctx, found)
	if err == nil && !(TraceSpec{Format: format}).MayBeFolder() {
		err = fmt.Errorf("trace folder %s: %s; only %s and %s traces are read from folders, so name the files in it", folder, shown, FormatDynamo, FormatWeka)
	}
	return format, shown, err
}

// peek returns the first bytes of a file and leaves it to the next open.
func (s *Source) peek(ctx context.Context, path string) ([]byte, error) {
	file, err := s.open(ctx, path)
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewReaderSize(file, detectionBytes)
	head, err := buffered.Peek(detectionBytes)
	if err != nil && !errors.Is(err, io.EOF) && len(head) == 0 {
		file.Close()
		return nil, fmt.Errorf("trace file %s: %w", path, &readError{0, describeRead(err)})
	}
	if s.peeked == nil {
		s.peeked = map[string]io.ReadCloser{}
	}
	s.peeked[path] = decompressed{Reader: buffered, file: file}
	return head, nil
}

// open opens a trace file, or goes on with one that was peeked at.
func (s Source) open(ctx context.Context, path string) (io.ReadCloser, error) {
	if file, ok := s.peeked[path]; ok {
		delete(s.peeked, path)
		return file, nil
	}
	return s.openTrace(ctx, path)
}

// closePeeked closes the files that no loader wanted.
func (s Source) closePeeked() {
	for _, file := range s.peeked {
		file.Close()
	}
}

// detectFormat tells a format by the beginning of a trace, and what shows it; the format is empty when nothing does.
// Without a name of its own in the data, mooncake-delta cannot be told from mooncake, so it is never detected.
func detectFormat(head []byte) (format, shown string) {
	head = withoutMark(head)
	text := bytes.TrimLeft(head, " \t\r\n")
	if len(text) == 0 || text[0] != '{' {
		return detectTable(text)
	}
	keys := fieldsOf(text)
	for _, rule := range formatSigns {
		if i := slices.IndexFunc(keys, func(key string) bool { return slices.Contains(rule.any, key) }); i >= 0 {
			return rule.format, fmt.Sprintf("it has the field %q", keys[i])
		}
	}
	if len(keys) == 0 {
		return "", "its first line is no JSON object"
	}
	return "", "no format has the fields " + strings.Join(keys[:min(len(keys), 12)], ", ")
}

// formatSigns lists fields that tell a format; the first rule with a field that occurs counts.
var formatSigns = []struct {
	format string
	any    []string
}{
	{FormatDynamo, []string{"event_type", "event"}},
	{FormatAgenticMooncake, []string{"not_before_ms", "dependencies", "play_id", "wait_for", "tool_wait_ms", "prefix_reset", "branches"}},
	{FormatAppliedCompute, []string{"num_turns", "input_prompt_length", "tool_call_latency"}},
	{FormatWeka, []string{"requests"}},
	{FormatAgenticMooncake, []string{"hash_id_scope"}}, // of a header without a row
	{FormatQwenBailian, []string{"chat_id", "parent_chat_id"}},
	{FormatAIPerf, []string{"text_input", "messages", "payload"}},
	{FormatMooncake, []string{"hash_ids"}},
	{FormatAIPerf, []string{"input_length"}},
}

func withoutMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte(byteOrderMark)) }

// fieldsOf lists the names of the fields of JSON Lines, or of one object over several lines, as far as they go.
func fieldsOf(text []byte) []string {
	var names []string
	add := func(object []byte) error {
		line := jsonLine{data: object}
		return line.members(func(key []byte) error {
			if name := string(key); len(names) < maxDetectedFields && !slices.Contains(names, name) {
				names = append(names, name)
			}
			return line.skip()
		})
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	if add(first) != nil {
		_ = add(text) // its lines may make up one object
	}
	for len(rest) > 0 {
		first, rest, _ = bytes.Cut(rest, []byte("\n"))
		_ = add(first) // the last line may be cut off
	}
	return names
}

// maxDetectedFields bounds what is remembered of an object with many fields.
const maxDetectedFields = 200

// detectTable tells the CSV formats by the names of their columns.
func detectTable(text []byte) (format, shown string) {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	header, err := csv.NewReader(bytes.NewReader(first)).Read()
	if err != nil || len(first) == 0 {
		return "", "its first line is neither a JSON object nor the header of a CSV file"
	}
	for _, table := range []struct {
		format  string
		columns []csvColumn
	}{{FormatAzure, azureColumns}, {FormatBurstGPT, burstGPTColumns}} {
		if _, err := findColumns(header, table.columns); err == nil {
			return table.format, fmt.Sprintf("it has the column %q", table.columns[1].name)
		}
	}
	return "", fmt.Sprintf("no format has the columns %s", shortened(string(first)))
}
