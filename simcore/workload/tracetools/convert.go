package tracetools

import (
	"io"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Target says in which format a workload is written.
type Target struct {
	// Format is one of [Formats]; empty means agentic_mooncake for workloads whose requests wait for each other across
	// sessions, and mooncake for others.
	Format string
	// BlockSize is the number of tokens per hash id of a workload that has no ids; 0 means 512.
	BlockSize int
	// HashIDScope is "local" or "global", for weka: whether equal ids of two conversations mean the same. Empty means global
	// only where conversations share blocks.
	HashIDScope string
}

// Formats lists the formats that can be written.
func Formats() []string {
	return []string{workload.FormatMooncake, workload.FormatAgenticMooncake, workload.FormatWeka}
}

// Validate returns all problems of a target.
func (t Target) Validate() problem.List {
	var l problem.List
	if t.Format != "" && !slices.Contains(Formats(), t.Format) {
		l.Add("to", t.Format, "use one of: %s", strings.Join(Formats(), ", "))
	}
	if t.BlockSize < 0 || t.BlockSize > workload.MaxTokens {
		l.Add("block_size", t.BlockSize, "give 1 to %d tokens per hash id, or 0 for %d", workload.MaxTokens, workload.DefaultTraceBlockSize)
	}
	if t.HashIDScope != "" && t.HashIDScope != "local" && t.HashIDScope != "global" {
		l.Add("hash_id_scope", t.HashIDScope, "use local or global")
	}
	if t.HashIDScope != "" && t.Format != workload.FormatWeka {
		l.Add("hash_id_scope", t.HashIDScope, "only weka has a choice; leave it out")
	}
	return l
}

// For completes a target for a workload.
func (t Target) For(w *workload.Workload) Target {
	if t.BlockSize == 0 {
		t.BlockSize = workload.DefaultTraceBlockSize
	}
	if t.Format == "" {
		t.Format = workload.FormatMooncake
		if w.Graph != nil {
			t.Format = workload.FormatAgenticMooncake
		}
	}
	return t
}

// Folder reports whether the format is a folder of files; then [Target.WriteFiles] writes it, otherwise [Target.Write].
func (t Target) Folder() bool { return t.Format == workload.FormatWeka }

// Write writes a workload as one file. The notes say what could not be kept.
func (t Target) Write(out io.Writer, w *workload.Workload) (notes []string, err error) {
	if t.Format == workload.FormatAgenticMooncake {
		return writeAgentic(out, w, t.BlockSize)
	}
	return writeMooncake(out, w, t.BlockSize)
}

// WriteFiles writes a workload as several files, each of which create makes. What the format cannot say is an error that
// names it; the notes say what could not be kept.
func (t Target) WriteFiles(create func(name string, write func(io.Writer) error) error, w *workload.Workload) (notes []string, err error) {
	return writeWeka(create, w, t.BlockSize, t.HashIDScope)
}
