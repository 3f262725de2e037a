package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/results/plannerreport"
	"github.com/servegrid/servegrid/simcore"
)

// plannerPageFile is the name of the planner's page in the folder of --planner-output.
const plannerPageFile = "planner.html"

// scalingText lists the changes of the number of workers that the planner asked for, as the reference prints them; empty
// when there are none.
func scalingText(record *planner.Record) string {
	if record == nil || len(record.Decisions) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nScaling events:\n")
	for _, d := range record.Decisions {
		fmt.Fprintf(&b, "  t=%.1fs [%s]: %d -> %d workers (%s)\n", d.AtMs/1000, record.Pools[d.Pool], d.From, d.To, direction(d))
	}
	return b.String()
}

// plannerText says how often the planner looked and where its page is; empty without a planner.
func plannerText(record *planner.Record, page string) string {
	if record == nil {
		return ""
	}
	text := fmt.Sprintf("Planner ticks: %d\n", record.TickCount)
	if page != "" {
		text += fmt.Sprintf("Planner diagnostics report: %s\n", page)
	}
	return text
}

// plannerNotes says what people should know about what the planner did.
func plannerNotes(record *planner.Record) []string {
	if record == nil || record.Config.Policy != planner.PolicyForesight || len(record.Ticks) == 0 || record.Ticks[0].LoadReason != planner.ReasonOutOfReach {
		return nil
	}
	return []string{fmt.Sprintf("no number of workers within planner.max_gpu_budget keeps TTFT %g ms and ITL %g ms for %g %% of the requests: the most that fit serve",
		record.Config.TTFTMs, record.Config.ITLMs, 100*record.Config.Foresight.Attainment)}
}

// direction says which way a decision goes.
func direction(d planner.Decision) string {
	if d.To > d.From {
		return "scale_up"
	}
	return "scale_down"
}

// writePlanner writes what the planner saw and did, and returns the path of its page; empty when there is none.
func (f *replayFlags) writePlanner(out *planner.Outcome) (page string, err error) {
	if out.Record == nil {
		return "", nil
	}
	if f.plannerOutput != "" {
		if err := writePlannerTables(f.plannerOutput, out.Record); err != nil {
			return "", fmt.Errorf("--planner-output: %w", err)
		}
	}
	if f.page.off || len(out.Record.Ticks) == 0 {
		return "", nil
	}
	page = f.page.path(f.plannerOutput, out.Record)
	if err := os.MkdirAll(filepath.Dir(page), 0o777); err != nil {
		return "", fmt.Errorf("the planner's page: %w", err)
	}
	data := plannerreport.Data{Title: "Planner Diagnostics Report", Record: out.Record, Report: out.Report}
	err = results.WriteFile(page, func(w io.Writer) error { return plannerreport.Write(w, data) })
	if err != nil {
		return "", fmt.Errorf("the planner's page: %w", err)
	}
	return page, nil
}

// path is where the page goes: where the configuration says, to the rest of the output, or to the reference's folder under
// a name that no file there has.
func (p plannerPage) path(output string, record *planner.Record) string {
	dir, file := p.dir, p.file
	if dir == "" && output != "" {
		dir = output
		if file == "" {
			file = plannerPageFile
		}
	}
	if dir == "" {
		dir = "./planner_reports"
	}
	if file != "" {
		return joinShown(dir, file)
	}
	last := time.Unix(0, int64(record.Ticks[len(record.Ticks)-1].NowMs*1e6)).UTC()
	for n := 1; ; n++ {
		path := joinShown(dir, fmt.Sprintf("planner_report_%s_%03d.html", last.Format("20060102_150405"), n))
		if !isFile(path) {
			return path
		}
	}
}

// joinShown joins a folder and a file without changing how the folder is written, which is printed.
func joinShown(dir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return strings.TrimSuffix(filepath.ToSlash(dir), "/") + "/" + file
}

// writePlannerTables writes each table of a record as Parquet and as JSON Lines.
func writePlannerTables(dir string, record *planner.Record) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, t := range plannerTables(record) {
		for extension, write := range map[string]func(io.Writer, *results.Table) error{".parquet": results.WriteParquet, ".jsonl": results.WriteJSONLines} {
			err := results.WriteFile(filepath.Join(dir, t.name+extension), func(w io.Writer) error { return write(w, t.table) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// plannerTable is a table of what a planner saw and did.
type plannerTable struct {
	name  string
	table *results.Table
}

func plannerTables(record *planner.Record) []plannerTable {
	return []plannerTable{
		{"ticks", tickTable(record)},
		{"workers", workerTable(record)},
		{"decisions", decisionTable(record)},
		{"events", eventTable(record)},
	}
}

// tickTable has a row for each tick.
func tickTable(record *planner.Record) *results.Table {
	c := plannerColumns[planner.Tick]{rows: record.Ticks}
	c.float("at_ms", "ms", "When the tick was due.", func(t *planner.Tick) float64 { return t.AtMs })
	c.float("now_ms", "ms", "What the clock showed.", func(t *planner.Tick) float64 { return t.NowMs })
	c.bool("load_scaling", "Whether it looked at the engines.", func(t *planner.Tick) bool { return t.LoadScaling })
	c.bool("throughput_scaling", "Whether it looked at the load.", func(t *planner.Tick) bool { return t.ThroughputScaling })
	c.text("load_reason", "Why load scaling decided so.", func(t *planner.Tick) string { return t.LoadReason })
	c.text("throughput_reason", "Why throughput scaling decided so.", func(t *planner.Tick) string { return t.ThroughputReason })
	for i, name := range record.Pools {
		poolColumns(&c, i, poolPrefix(name, len(record.Pools)))
	}
	loadColumns(&c, "observed_", "in the window before", func(t *planner.Tick) *planner.Load { return &t.Observed })
	loadColumns(&c, "predicted_", "as predicted for the next interval", func(t *planner.Tick) *planner.Load { return &t.Predicted })
	c.float("kv_hit_rate", "ratio", "Share of prompt tokens that the planner expects to be cached.", func(t *planner.Tick) float64 { return t.KVHitRate })
	c.float("gpu_hours", "GPU-hours", "What the workers took until now.", func(t *planner.Tick) float64 { return t.GPUHours })
	return c.table()
}

// poolColumns are about one pool at each tick.
func poolColumns(c *plannerColumns[planner.Tick], pool int, prefix string) {
	of := func(t *planner.Tick) *planner.PoolTick { return &t.Pools[pool] }
	count := func(name, doc string, value func(*planner.PoolTick) int) {
		c.int(prefix+name, "workers", doc, func(t *planner.Tick) int64 { return int64(value(of(t))) })
	}
	figure := func(name, unit, doc string, value func(*planner.PoolTick) float64) {
		c.float(prefix+name, unit, doc, func(t *planner.Tick) float64 { return value(of(t)) })
	}
	count("ready_workers", "Workers that take requests.", func(p *planner.PoolTick) int { return p.Ready })
	count("starting_workers", "Workers that are not ready yet.", func(p *planner.PoolTick) int { return p.Starting })
	count("draining_workers", "Workers that finish what they have.", func(p *planner.PoolTick) int { return p.Draining })
	figure("target_workers", "workers", "Workers that were asked for; null where they were left as they were.", func(p *planner.PoolTick) float64 {
		if p.Target < 0 {
			return math.NaN()
		}
		return float64(p.Target)
	})
	count("lower_bound_workers", "Least workers by throughput scaling.", func(p *planner.PoolTick) int { return p.LowerBound })
	figure("estimated_ttft_ms", "ms", "Greatest estimate of any worker for the time to first token.", func(p *planner.PoolTick) float64 { return p.EstimatedTTFTMs })
	figure("estimated_itl_ms", "ms", "Greatest estimate of any worker for the inter-token latency.", func(p *planner.PoolTick) float64 { return p.EstimatedITLMs })
	figure("worker_requests_per_second", "requests/s", "What a worker is reckoned to serve within the SLA.", func(p *planner.PoolTick) float64 { return p.RequestsPerSecond })
	if prefix == "" {
		return // the reasons of the deployment are those of its pool
	}
	c.text(prefix+"load_reason", "Why load scaling decided so for the pool.", func(t *planner.Tick) string { return of(t).LoadReason })
	c.text(prefix+"throughput_reason", "Why throughput scaling decided so for the pool.", func(t *planner.Tick) string { return of(t).ThroughputReason })
}

// loadColumns are about the load at each tick.
func loadColumns(c *plannerColumns[planner.Tick], prefix, when string, of func(*planner.Tick) *planner.Load) {
	figure := func(name, unit, doc string, value func(*planner.Load) float64) {
		c.float(prefix+name, unit, doc+" "+when+".", func(t *planner.Tick) float64 { return value(of(t)) })
	}
	if prefix == "observed_" {
		figure("duration_s", "s", "Time", func(l *planner.Load) float64 { return l.DurationSeconds })
		figure("ttft_ms", "ms", "Mean time to first token", func(l *planner.Load) float64 { return l.TTFTMs })
		figure("itl_ms", "ms", "Mean inter-token latency", func(l *planner.Load) float64 { return l.ITLMs })
	}
	figure("requests", "requests", "Requests", func(l *planner.Load) float64 { return l.Requests })
	figure("input_tokens", "tokens", "Mean input of a request", func(l *planner.Load) float64 { return l.InputTokens })
	figure("output_tokens", "tokens", "Mean output of a request", func(l *planner.Load) float64 { return l.OutputTokens })
	figure("kv_hit_rate", "ratio", "Share of prompt blocks that were cached", func(l *planner.Load) float64 { return l.KVHitRate })
}

// workerRow is what a planner knows of a worker at a tick.
type workerRow struct {
	planner.WorkerTick
	atMs float64
	pool string
}

// workerTable has a row for each worker that the planner heard of, at each tick.
func workerTable(record *planner.Record) *results.Table {
	var c plannerColumns[workerRow]
	for _, t := range record.Ticks {
		for i, p := range t.Pools {
			for _, w := range p.Workers {
				c.rows = append(c.rows, workerRow{w, t.AtMs, record.Pools[i]})
			}
		}
	}
	c.float("at_ms", "ms", "When the tick was due.", func(w *workerRow) float64 { return w.atMs })
	c.text("pool", "The worker's pool: agg, prefill or decode.", func(w *workerRow) string { return w.pool })
	c.int("worker", "", "Its id in the pool.", func(w *workerRow) int64 { return int64(w.Worker) })
	c.int("queued_prefill_tokens", "tokens", "Prompt tokens of requests that waited at its last pass.", func(w *workerRow) int64 { return w.QueuedPrefillTokens })
	c.int("queued_decode_kv_tokens", "tokens", "Lengths of preempted requests that waited then.", func(w *workerRow) int64 { return w.QueuedDecodeKVTokens })
	c.int("decode_kv_tokens", "tokens", "Lengths of the requests that it decoded then.", func(w *workerRow) int64 { return w.DecodeKVTokens })
	return c.table()
}

// decisionTable has a row for each change that was asked for.
func decisionTable(record *planner.Record) *results.Table {
	c := plannerColumns[planner.Decision]{rows: record.Decisions}
	c.float("at_ms", "ms", "When it was asked for.", func(d *planner.Decision) float64 { return d.AtMs })
	c.text("pool", "The pool: agg, prefill or decode.", func(d *planner.Decision) string { return record.Pools[d.Pool] })
	c.int("from_workers", "workers", "Workers that there were, but for compat those that started included.", func(d *planner.Decision) int64 { return int64(d.From) })
	c.int("to_workers", "workers", "Workers that were asked for.", func(d *planner.Decision) int64 { return int64(d.To) })
	c.text("direction", "scale_up or scale_down.", func(d *planner.Decision) string { return direction(*d) })
	c.text("reason", "Why.", func(d *planner.Decision) string { return d.Reason })
	return c.table()
}

// eventTable has a row for each thing that happened to a worker.
func eventTable(record *planner.Record) *results.Table {
	c := plannerColumns[simcore.ScalingEvent]{rows: record.Events}
	c.float("at_ms", "ms", "When it happened.", func(e *simcore.ScalingEvent) float64 { return e.AtMs })
	c.text("pool", "The worker's pool: agg, prefill or decode.", func(e *simcore.ScalingEvent) string { return record.Pools[e.Pool] })
	c.int("worker", "", "Its id in the pool.", func(e *simcore.ScalingEvent) int64 { return int64(e.Worker) })
	c.text("event", "requested, ready, cancelled before it was ready, draining, or removed.", func(e *simcore.ScalingEvent) string { return e.Kind.String() })
	return c.table()
}

// poolPrefix is what stands in front of the columns of a pool: nothing where there is one pool.
func poolPrefix(name string, pools int) string {
	if pools == 1 {
		return ""
	}
	return name + "_"
}

// plannerColumns makes a table with one row for each of a list of values.
type plannerColumns[T any] struct {
	rows    []T
	columns []*results.Column
}

func (c *plannerColumns[T]) add(kind gridspec.Kind, name, unit, doc string, value func(*T) gridspec.Value) {
	column := results.NewColumn(name, kind, len(c.rows))
	column.Unit, column.Doc, column.Role = unit, doc, results.RolePoint
	for i := range c.rows {
		if v := value(&c.rows[i]); v.Kind != gridspec.KindFloat || !math.IsNaN(v.Float) {
			column.Set(i, v)
		}
	}
	c.columns = append(c.columns, column)
}

func (c *plannerColumns[T]) float(name, unit, doc string, value func(*T) float64) {
	c.add(gridspec.KindFloat, name, unit, doc, func(row *T) gridspec.Value {
		return gridspec.Value{Kind: gridspec.KindFloat, Float: value(row)}
	})
}

func (c *plannerColumns[T]) int(name, unit, doc string, value func(*T) int64) {
	c.add(gridspec.KindInt, name, unit, doc, func(row *T) gridspec.Value {
		return gridspec.Value{Kind: gridspec.KindInt, Int: value(row)}
	})
}

func (c *plannerColumns[T]) text(name, doc string, value func(*T) string) {
	c.add(gridspec.KindString, name, "", doc, func(row *T) gridspec.Value {
		return gridspec.Value{Kind: gridspec.KindString, Str: value(row)}
	})
}

func (c *plannerColumns[T]) bool(name, doc string, value func(*T) bool) {
	c.add(gridspec.KindBool, name, "", doc, func(row *T) gridspec.Value {
		return gridspec.Value{Kind: gridspec.KindBool, Bool: value(row)}
	})
}

func (c *plannerColumns[T]) table() *results.Table {
	t := &results.Table{Metadata: results.Metadata{Versions: versions()}}
	for _, column := range c.columns {
		t.Add(column)
	}
	return t
}
