package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/deploy"
	"github.com/servegrid/servegrid/results/recommend"
)

// writeDeployment writes the files that deploy the best configuration, those of each traffic into a folder of its own.
func (f *recommendFlags) writeDeployment(st *state, t *results.Table, r *recommend.Recommendation) error {
	chosen := 0 // traffics that the limits select
	for i := range r.Answers {
		if r.Answers[i].Configurations > 0 {
			chosen++
		}
	}
	for i := range r.Answers {
		a := &r.Answers[i]
		if a.Best == nil {
			continue
		}
		dir := f.deploy
		if chosen > 1 {
			dir = filepath.Join(dir, fileName(strings.ReplaceAll(settingsText(a.Traffic), " ", "-")))
		}
		point, err := pointOfRow(st.fileSystem(), t, a.Best.Row)
		if err != nil {
			return fmt.Errorf("--deploy: %w", err)
		}
		point.Config.SLA = f.askedSLA(point.Config.SLA)
		plan := deploy.Plan{Config: point.Config, Workload: point.Workload, GPUPrice: point.GPUPrice, Name: specName(t.Metadata.Spec)}
		if err := writeDeployment(st, dir, plan); err != nil {
			return fmt.Errorf("--deploy: %w", err)
		}
	}
	return nil
}
