package report

import (
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/timelines"
	"github.com/servegrid/servegrid/simcore"
)

// timelineOf says what happened over the time of a run, with the figures of a sweep's timelines.
func timelineOf(id string, point gridspec.Point, run *live.Run, measured []simcore.MeasuredRequest, deployment bool) *results.Table {
	cfg := point.Config.Config
	s := timelines.Source{SLA: cfg.SLA, EndedMs: make([]float64, len(run.Records)), Records: make([]simcore.RequestRecord, len(run.Records))}
	for i, r := range measured {
		s.Records[i], s.EndedMs[i] = r.RequestRecord, max(run.Records[i].EndMs, run.Records[i].SentMs)
	}
	if deployment {
		for i, stage := range cfg.Stages() {
			p := timelines.Pool{Workers: stage.Workers, GPUsPerWorker: stage.GPUsPerWorker()}
			if cfg.Deployment.Mode == simcore.ModeDisaggregated {
				p.Name = []string{"prefill", "decode"}[i]
			}
			s.Pools = append(s.Pools, p)
		}
	}
	return timelines.Table(id, s)
}

// writePage writes the page that a sweep has too, with one point and what the servers said of themselves.
func writePage(out io.Writer, dir string, table, timeline *results.Table, run *live.Run) error {
	over, err := timelines.ForReport(0, timeline)
	if err != nil {
		return err
	}
	over.Figures = append(over.Figures, serverFigures(over.AtSeconds, run.Samples)...)
	title := filepath.Base(dir)
	return results.WriteReport(out, results.ReportData{Title: title, Table: table, Analysis: table.Analysis(), Sources: []string{dir}, Timelines: []results.ReportTimeline{over}})
}

// serverFigures are what the servers said of themselves, in the windows of a timeline: the sum over endpoints, or the mean of
// a share, each with its last reading in the window. A window without one has the value before.
func serverFigures(atSeconds []float64, samples []live.Sample) []results.TimelineFigure {
	var out []results.TimelineFigure
	for _, f := range []struct {
		name, title, unit string
		scale             float64
		mean              bool
		get               func(*live.Sample) float64
	}{
		{"server_running", "Running, as servers say", "requests", 1, false, func(s *live.Sample) float64 { return s.Running }},
		{"server_waiting", "Waiting, as servers say", "requests", 1, false, func(s *live.Sample) float64 { return s.Waiting }},
		{"server_kv_usage", "KV blocks in use, as servers say", "%", 100, true, func(s *live.Sample) float64 { return s.KVUsage }},
	} {
		values, known := make([]float64, len(atSeconds)), false
		latest := map[string]float64{}
		next := 0
		for i := range atSeconds {
			for next < len(samples) && (i+1 == len(atSeconds) || samples[next].AtMs < atSeconds[i+1]*1000) {
				if v := f.get(&samples[next]); !math.IsNaN(v) {
					latest[samples[next].Endpoint], known = v, true
				}
				next++
			}
			values[i] = math.NaN()
			if len(latest) > 0 {
				values[i] = f.scale * total(latest)
				if f.mean {
					values[i] /= float64(len(latest))
				}
			}
		}
		if known {
			out = append(out, results.TimelineFigure{Name: f.name, Title: f.title, Unit: f.unit, Note: "latest reading in each window", Values: values})
		}
	}
	return out
}

func total(values map[string]float64) float64 {
	sum := 0.0
	for _, endpoint := range slices.Sorted(maps.Keys(values)) { // in one order, since sums round
		sum += values[endpoint]
	}
	return sum
}
