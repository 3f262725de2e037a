package report

import (
	"encoding/json"
	"io"
	"time"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/simcore/workload"
)

// facts are what live.json says of a run.
type facts struct {
	Source           string                 `json:"source"`
	ID               string                 `json:"id"`
	URLs             []string               `json:"urls"`
	Model            string                 `json:"model"`
	Tokenizer        string                 `json:"tokenizer"`
	BlockSize        int                    `json:"block_size,omitempty"`
	Workload         string                 `json:"workload"`
	WorkloadDigest   string                 `json:"workload_digest"`
	LeftOutRecords   int                    `json:"left_out_records"`
	DeploymentStated bool                   `json:"deployment_stated"`
	Started          time.Time              `json:"started"`
	DurationMs       float64                `json:"duration_ms"`
	Interrupted      bool                   `json:"interrupted"`
	PlannedRequests  int                    `json:"planned_requests"`
	SentRequests     int                    `json:"sent_requests"`
	Window           *window                `json:"window,omitempty"`
	Errors           map[live.ErrorKind]int `json:"errors"`
	Command          string                 `json:"command,omitempty"`
	Versions         map[string]string      `json:"versions"`
}

type window struct {
	StartMs float64 `json:"start_ms"`
	EndMs   float64 `json:"end_ms"`
}

func factsOf(id string, w *workload.Workload, run *live.Run, s *Summary, opt Options) facts {
	f := facts{
		Source: "live", ID: id, URLs: shownURLs(opt.URLs), Model: opt.Model, Tokenizer: opt.Tokenizer, BlockSize: opt.BlockSize, Workload: w.Name, WorkloadDigest: w.Digest(),
		LeftOutRecords:   w.LeftOut,
		DeploymentStated: opt.DeploymentStated, Started: run.Started.UTC(), DurationMs: run.EndMs, Interrupted: run.Interrupted,
		PlannedRequests: run.Planned, SentRequests: len(run.Records), Errors: s.Errors, Command: opt.Command, Versions: opt.Versions,
	}
	if run.Window != nil {
		f.Window = &window{run.Window.StartMs, run.Window.EndMs}
	}
	return f
}

// shownURLs are URLs without what may be secret in them.
func shownURLs(urls []string) []string {
	out := make([]string, len(urls))
	for i, url := range urls {
		out[i] = files.Shown(url)
	}
	return out
}

func (f facts) write(w io.Writer) error {
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}
