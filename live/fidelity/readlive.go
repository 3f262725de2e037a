package fidelity

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
)

// addLiveFacts adds what a live run notes of itself beside its requests; runs that are no live ones have no such file.
func (r *Run) addLiveFacts(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var facts struct {
		Model       string `json:"model"`
		Tokenizer   string `json:"tokenizer"`
		BlockSize   int    `json:"block_size"`
		Digest      string `json:"workload_digest"`
		Planned     int    `json:"planned_requests"`
		Interrupted bool   `json:"interrupted"`
	}
	if err := json.Unmarshal(data, &facts); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	r.Facts.Model, r.Facts.Tokenizer, r.Facts.Workload = facts.Model, facts.Tokenizer, facts.Digest
	if facts.BlockSize > 0 {
		r.Facts.BlockSize = strconv.Itoa(facts.BlockSize)
	}
	r.Planned = max(facts.Planned, 0)
	if facts.Interrupted {
		r.Notes = append(r.Notes, "the run was interrupted")
	}
	return nil
}
