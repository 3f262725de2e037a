// Package plannerreport shows what a planner saw and did as one HTML page that opens offline: all plots of the
// diagnostics page of Dynamo's planner (planner specification §14), on an axis of simulated time, with the starting and
// draining workers, a table of the decisions, and a few hundred kB at most.
//
// Read plannerreport.go, then charts.go for the plots, replicas.go for the numbers of workers and reasons.go for what the
// reasons mean.
package plannerreport

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/results/htmlpage"
	"github.com/servegrid/servegrid/results/timeplot"
	"github.com/servegrid/servegrid/simcore"
)

// Data is what the page shows.
type Data struct {
	// Title heads the page.
	Title string
	// Record is what the planner did.
	Record *planner.Record
	// Report is the simulation's; nil leaves out what only it knows.
	Report *simcore.Report
}

// Write writes the page. It holds no clock time, so equal data gives equal bytes.
func Write(w io.Writer, d Data) error {
	v := newView(d)
	page := timeplot.Page{
		Title: d.Title, Subtitle: v.subtitle(), EndSeconds: v.end, Cautions: v.cautions(), Tiles: v.tiles(), Charts: v.charts(), Tracks: v.tracks(),
		Tables: []timeplot.Table{v.decisions()},
	}
	if d.Report != nil {
		page.Footer = fmt.Sprintf("Simulator version %s · workload %s", d.Report.SimulatorVersion, d.Report.WorkloadDigest)
	}
	if err := timeplot.Write(w, page, states); err != nil {
		return fmt.Errorf("planner page: %w", err)
	}
	return nil
}

// view is the data with what several plots need.
type view struct {
	Data
	*planner.Record
	// end is when the last thing happens, in seconds; at are the times of the ticks, lookedAt of those that looked at the
	// engines.
	end          float64
	at, lookedAt []float64
	// replicas are the numbers of workers of each pool.
	replicas []replicas
}

func newView(d Data) *view {
	v := &view{Data: d, Record: d.Record, at: make([]float64, len(d.Record.Ticks))}
	for i, t := range v.Ticks {
		v.at[i] = t.NowMs / 1000
		v.end = max(v.end, v.at[i])
		if looksAtEngines(&v.Ticks[i]) {
			v.lookedAt = append(v.lookedAt, v.at[i])
		}
	}
	for _, e := range v.Events {
		v.end = max(v.end, e.AtMs/1000)
	}
	if d.Report != nil {
		v.end = max(v.end, d.Report.DurationMs/1000)
	}
	v.end = max(v.end, 1e-3)
	for pool := range v.Pools {
		v.replicas = append(v.replicas, v.replicasOf(pool))
	}
	return v
}

// keepsLatencies reports whether the planner aims at the latencies of its configuration.
func (v *view) keepsLatencies() bool {
	return v.Config.Policy == planner.PolicyForesight || v.Config.Policy == planner.PolicyDynamo && v.Config.OptimizationTarget == "sla"
}

func (v *view) subtitle() string {
	parts := []string{"Policy " + string(v.Config.Policy)}
	if v.Config.Policy == planner.PolicyDynamo {
		parts[0] += " for " + v.Config.OptimizationTarget
		if v.Config.EnableLoadScaling {
			parts = append(parts, fmt.Sprintf("load scaling every %d s", v.Config.LoadAdjustmentIntervalSeconds))
		}
		if v.Config.EnableThroughputScaling && v.Config.OptimizationTarget == "sla" {
			parts = append(parts, fmt.Sprintf("throughput scaling every %d s, predicted by %s", v.Config.ThroughputAdjustmentIntervalSeconds, v.Config.LoadPredictor))
		}
	}
	if v.keepsLatencies() {
		parts = append(parts, fmt.Sprintf("TTFT %s ms and ITL %s ms to keep", htmlpage.Number(v.Config.TTFTMs), htmlpage.Number(v.Config.ITLMs)))
	}
	return strings.Join(parts, " · ")
}

func (v *view) cautions() []string {
	var out []string
	if len(v.Ticks) == 0 {
		out = append(out, "The run was over before the planner looked for the first time.")
	}
	defaults := planner.DefaultConfig()
	if v.Config.Policy == planner.PolicyDynamo && !v.keepsLatencies() && (v.Config.TTFTMs != defaults.TTFTMs || v.Config.ITLMs != defaults.ITLMs) {
		out = append(out, fmt.Sprintf("The latencies ttft_ms and itl_ms have no effect with optimization_target %s.", v.Config.OptimizationTarget))
	}
	return out
}

func (v *view) tiles() []htmlpage.Tile {
	ups, downs := 0, 0
	for _, d := range v.Decisions {
		if d.To > d.From {
			ups++
		} else if d.To < d.From {
			downs++
		}
	}
	tiles := []htmlpage.Tile{{
		Label: "Decisions", Figure: htmlpage.Whole(ups + downs), Unit: fmt.Sprintf("in %s ticks", htmlpage.Whole(v.TickCount)),
		Note: fmt.Sprintf("%s to add workers, %s to remove some", htmlpage.Whole(ups), htmlpage.Whole(downs)),
	}}
	for pool, name := range v.Pools {
		r := v.replicas[pool]
		label := "Workers"
		if len(v.Pools) > 1 {
			label = title(name) + " workers"
		}
		tiles = append(tiles, htmlpage.Tile{
			Label: label, Figure: htmlpage.Number(r.meanReady(v.end)), Unit: "ready, mean",
			Note: fmt.Sprintf("at most %s; %s seconds of workers starting", htmlpage.Whole(r.mostReady()), htmlpage.Number(integral(r.at, r.starting, v.end))),
		})
	}
	tiles = append(tiles, htmlpage.Tile{Label: "GPU-hours", Figure: htmlpage.Number(v.gpuHours()), Note: "of all workers, those that start or drain included"})
	if r := v.Report; r != nil {
		tiles = append(tiles, latencyTile("TTFT", "p90", r.TTFT.P90, r.TTFT.Mean), latencyTile("ITL", "p90", r.ITL.P90, r.ITL.Mean))
		if r.Goodput != nil {
			tiles = append(tiles, htmlpage.Tile{
				Label: "SLA attainment", Figure: htmlpage.Number(100 * r.Goodput.SLAAttainment), Unit: "%",
				Note: fmt.Sprintf("%s of %s requests kept all bounds", htmlpage.Whole(int(r.Goodput.CompletedRequests)), htmlpage.Whole(int(r.NumRequests))),
			})
		}
	}
	return tiles
}

func latencyTile(name, percentile string, ms, mean float64) htmlpage.Tile {
	return htmlpage.Tile{Label: name, Figure: htmlpage.Number(ms), Unit: "ms, " + percentile, Note: "mean " + htmlpage.Number(mean) + " ms"}
}

// gpuHours are those of the whole run as far as they are known.
func (v *view) gpuHours() float64 {
	if v.Report != nil {
		return v.Report.GPUHours
	}
	if n := len(v.Ticks); n > 0 {
		return v.Ticks[n-1].GPUHours
	}
	return math.NaN()
}

// mostDecisions bounds the table of decisions.
const mostDecisions = 1000

func (v *view) decisions() timeplot.Table {
	t := timeplot.Table{Table: htmlpage.Table{Title: "Decisions", Note: "A decision asks for a number of workers; those that start count as asked for already.", Head: []string{"time, s", "pool", "from", "to", "why"}}}
	for i, d := range v.Decisions {
		if i == mostDecisions {
			t.Note = fmt.Sprintf("The first %s of %s. ", htmlpage.Whole(mostDecisions), htmlpage.Whole(len(v.Decisions))) + t.Note
			break
		}
		t.AtSeconds = append(t.AtSeconds, d.AtMs/1000)
		t.Rows = append(t.Rows, []string{fmt.Sprintf("%.1f", d.AtMs/1000), v.Pools[d.Pool], fmt.Sprint(d.From), fmt.Sprint(d.To), explain(d.Reason)})
	}
	if len(v.Decisions) == 0 {
		t.Note = "There were none."
	}
	return t
}

// title begins a name with a capital.
func title(name string) string {
	if name == "" {
		return ""
	}
	return strings.ToUpper(name[:1]) + name[1:]
}
