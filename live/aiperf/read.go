package aiperf

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a line of profile_export.jsonl in bytes: a request with a million gaps between chunks fits.
const maxLine = 32 << 20

// mostProblems bounds how many bad lines an error names.
const mostProblems = 10

// ReadRecords reads profile_export.jsonl: a request a line, warm-up included. Empty lines are skipped. The error names the
// lines that are no records, up to ten of them; what was read is returned too.
func ReadRecords(r io.Reader) ([]Record, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	var out []Record
	var problems []error
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")))
		if len(line) == 0 {
			continue
		}
		record, err := readRecord(line)
		if err != nil {
			if problems = append(problems, fmt.Errorf("line %d: %w", n, err)); len(problems) == mostProblems {
				break
			}
			continue
		}
		out = append(out, record)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		problems = append(problems, fmt.Errorf("line %d: is longer than %d MiB", n+1, maxLine>>20))
	case err != nil:
		problems = append(problems, fmt.Errorf("after line %d: %w", n, err))
	}
	return out, errors.Join(problems...)
}

func readRecord(line []byte) (Record, error) {
	var given struct {
		Metadata *Metadata         `json:"metadata"`
		Metrics  map[string]Metric `json:"metrics"`
		Error    *ErrorDetails     `json:"error"`
	}
	if err := json.Unmarshal(line, &given); err != nil {
		return Record{}, fmt.Errorf("is no record of AIPerf: %w", err)
	}
	switch m := given.Metadata; {
	case m == nil:
		return Record{}, errors.New("is no record of AIPerf: metadata is missing")
	case m.RequestStartNs <= 0 || m.RequestEndNs < m.RequestStartNs:
		return Record{}, fmt.Errorf("request_start_ns %d and request_end_ns %d are no times of a request", m.RequestStartNs, m.RequestEndNs)
	case m.TurnIndex < 0:
		return Record{}, fmt.Errorf("turn_index %d is below 0", m.TurnIndex)
	}
	return Record{Metadata: *given.Metadata, Metrics: given.Metrics, Error: given.Error}, nil
}
