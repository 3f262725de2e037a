package fidelity

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/servegrid/servegrid/simcore/workload"
)

// The files of a folder that hold a run, in the order in which they are looked for.
const (
	requestsFile = "requests.parquet"
	aiperfFile   = "profile_export.jsonl"
	// liveFile says how a live run was made, and sweepFile is what a sweep has.
	liveFile  = "live.json"
	sweepFile = "results.parquet"
)

// whatToGive ends what refuses something that holds no run.
const whatToGive = "give the requests of a replay (--report-parquet or --report-jsonl), the folder of a live run, AIPerf's " + aiperfFile + ", or a capture"

// Read reads the run that a file or folder holds, told apart by content. Of a capture, source says how its files are read.
// An error says which file is wrong, and what to give instead.
func Read(ctx context.Context, source workload.Source, path string) (*Run, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	var run *Run
	if info.IsDir() {
		run, err = readFolder(ctx, source, path)
	} else {
		run, err = readFile(ctx, source, path)
	}
	if err != nil {
		return nil, err
	}
	if len(run.Requests) == 0 {
		return nil, fmt.Errorf("%s holds no request; %s", path, whatToGive)
	}
	run.Name = path
	if err := run.checkTimes(); err != nil {
		return nil, err
	}
	run.sort()
	return run, nil
}

// mostMs is more than any time of a run, those since 1970 included, in ms.
const mostMs = 1e15

// checkTimes refuses times that no run has, so that sums of them stay finite.
func (r *Run) checkTimes() error {
	for i := range r.Requests {
		q := &r.Requests[i]
		for _, ms := range []float64{q.StartMs, q.LagMs, q.TTFTMs, q.ITLMs, q.E2EMs} {
			if math.Abs(ms) > mostMs {
				return fmt.Errorf("%s: request %s has a time of %g ms; at most %g is allowed", r.Name, q.name(), ms, mostMs)
			}
		}
		for _, ms := range []float64{q.TTFTMs, q.ITLMs, q.E2EMs} {
			if ms < 0 {
				return fmt.Errorf("%s: request %s took %g ms; give 0 or more", r.Name, q.name(), ms)
			}
		}
	}
	return nil
}

func readFolder(ctx context.Context, source workload.Source, folder string) (*Run, error) {
	for _, name := range []string{requestsFile, aiperfFile} {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		run, err := readFile(ctx, source, path)
		if err == nil {
			err = run.addLiveFacts(filepath.Join(folder, liveFile))
		}
		return run, err
	}
	if _, err := os.Stat(filepath.Join(folder, sweepFile)); err == nil {
		return nil, fmt.Errorf("%s has the results of a sweep; name a point of it by how its ID begins, such as %s#3f2a, of a spec with `output: {per_request: true}`", folder, folder)
	}
	run, err := readCapture(ctx, source, folder)
	if err != nil {
		err = fmt.Errorf("%s has no %s and no %s, and is no capture that can be read: %w; %s", folder, requestsFile, aiperfFile, err, whatToGive)
	}
	return run, err
}

// readFile reads a file by what it begins with.
func readFile(ctx context.Context, source workload.Source, path string) (*Run, error) {
	kind, err := kindOf(path)
	if err != nil {
		return nil, err
	}
	switch kind {
	case KindReplay:
		return readTable(path)
	case KindAIPerf:
		return readAIPerf(path)
	}
	return readCapture(ctx, source, path)
}

// maxFirstLine is more than the first line of any of the files has.
const maxFirstLine = 8 << 20

// kindOf tells a file by its beginning. What is compressed can only be a capture, and so can what begins with anything else than
// the JSON object of another kind; reading it as a capture then says what is wrong.
func kindOf(path string) (Kind, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	in := bufio.NewReader(io.LimitReader(file, maxFirstLine))
	head, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if bytes.Equal(head, []byte("PAR1")) {
		return KindReplay, nil
	}
	var line struct {
		Status   json.RawMessage `json:"terminal_status"`
		Metadata json.RawMessage `json:"metadata"`
		Metrics  json.RawMessage `json:"metrics"`
	}
	if err := json.NewDecoder(in).Decode(&line); err != nil {
		return KindCapture, nil
	}
	switch {
	case line.Status != nil:
		return KindReplay, nil
	case line.Metadata != nil && line.Metrics != nil:
		return KindAIPerf, nil
	}
	return KindCapture, nil
}
