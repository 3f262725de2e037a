package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/requests"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/workload"
)

// recordFiles writes the records of a run as JSON Lines, as a Parquet file, or as both; the zero value writes nothing.
type recordFiles struct {
	columns []requests.Column
	lines   *os.File
	out     *bufio.Writer
	line    []byte
	err     error

	workload    *workload.Workload
	parquetPath string
	records     []simcore.RequestRecord
}

// openRecords makes a run write its records. An empty path leaves a file out.
func openRecords(linesPath, parquetPath string, w *workload.Workload, opt *simcore.Options) (*recordFiles, error) {
	r := &recordFiles{columns: requests.Columns(w), workload: w, parquetPath: parquetPath}
	for _, path := range []struct{ flag, path string }{{"--report-jsonl", linesPath}, {"--report-parquet", parquetPath}} {
		if path.path == "" {
			continue
		}
		opt.Records = r.add
		if err := os.MkdirAll(filepath.Dir(path.path), 0o777); err != nil {
			return nil, fmt.Errorf("%s: %w", path.flag, err)
		}
	}
	if linesPath != "" {
		file, err := os.Create(linesPath)
		if err != nil {
			return nil, fmt.Errorf("--report-jsonl: %w", err)
		}
		r.lines, r.out = file, bufio.NewWriter(file)
	}
	return r, nil
}

func (r *recordFiles) add(record simcore.RequestRecord) {
	if r.parquetPath != "" {
		r.records = append(r.records, record)
	}
	if r.out != nil && r.err == nil {
		if r.line, r.err = requests.AppendJSON(r.line[:0], r.columns, &record); r.err == nil {
			_, r.err = r.out.Write(r.line)
		}
	}
}

// close writes what is left, of requests that a deployment of that configuration served.
func (r *recordFiles) close(cfg simcore.Config) error {
	err := r.err
	if r.lines != nil {
		err = errors.Join(err, r.out.Flush(), r.lines.Close())
	}
	if err != nil {
		return fmt.Errorf("--report-jsonl: %w", err)
	}
	if r.parquetPath == "" {
		return nil
	}
	t := requests.Table("", r.records, r.workload, versions())
	requests.Describe(t, r.workload, cfg)
	if err := results.WriteFile(r.parquetPath, func(w io.Writer) error { return results.WriteParquet(w, t) }); err != nil {
		return fmt.Errorf("--report-parquet: %w", err)
	}
	return nil
}
