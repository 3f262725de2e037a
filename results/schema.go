package results

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// NewTable returns the table of a sweep, one row a point in the order given. Its columns are, in this order: how
// the point ended; every axis and derived value; the workload and the GPUs; every metric that some point has; every setting that
// differs between points and is no axis; where the figures come from. Settings that are equal at all points go
// into the metadata's Constants, the digests into its Workloads; the SLA becomes its Constraints and the axes of the
// traffic its FrontierBy. Points that failed or were skipped have no metrics, but for live ones, of which what was measured stays.
func NewTable(rows []Row, m Metadata) *Table {
	t := &Table{Metadata: m}
	axes := tableAxes(rows)
	t.addPointColumns(rows)
	taken := map[string]bool{}
	for _, a := range axes {
		taken[a.name] = true
		t.Columns = append(t.Columns, a.column)
	}
	t.addDerivedColumns(rows, taken)
	t.addMetrics(rows)
	t.addSettings(rows)
	t.addProvenance(rows)
	if !CountsSLA(t.Metadata.Objectives) {
		t.Metadata.Constraints = commonSLA(rows)
	}
	t.Metadata.FrontierBy = trafficColumns(rows, axes)
	t.Metadata.Workloads = map[string]string{}
	for _, r := range rows {
		if r.WorkloadDigest != "" {
			t.Metadata.Workloads[r.Point.Workload.Label()] = r.WorkloadDigest
		}
	}
	return t
}

// CommandColumn holds the command line that simulates a row's point by itself.
const CommandColumn = "reproduce"

// AddCommands adds the column of the command lines that reproduce each row.
func (t *Table) AddCommands(command func(row int) string) {
	c := NewColumn(CommandColumn, gridspec.KindString, t.Rows())
	c.Doc, c.Role = commandDoc, RolePoint
	for row := range t.Rows() {
		c.Set(row, text(command(row)))
	}
	t.Add(c)
}

const commandDoc = "Command line that simulates the point by itself."

// ErrorKindsColumn says what went wrong with requests of a live run.
const ErrorKindsColumn = "error_kinds"

const errorKindsDoc = "What went wrong with requests of a live run, and how often, such as `overloaded 3, timeout 1`; null when nothing did. Only there with live rows."

// AddErrorKinds adds the column of what went wrong with the requests of each row; an empty text is null.
func (t *Table) AddErrorKinds(kinds func(row int) string) {
	c := NewColumn(ErrorKindsColumn, gridspec.KindString, t.Rows())
	c.Doc, c.Role = errorKindsDoc, RolePoint
	for row := range t.Rows() {
		if s := kinds(row); s != "" {
			c.Set(row, text(s))
		}
	}
	t.Add(c)
}

// CountsSLA reports whether one of the objectives is how many requests keep the SLA, or what they get: its bounds are then no
// constraints on the 99th percentiles as well.
func CountsSLA(objectives []Objective) bool {
	return slices.ContainsFunc(objectives, func(o Objective) bool {
		return o.Name == "sla_attainment" || strings.HasPrefix(o.Name, "goodput_")
	})
}

// commonSLA returns the bounds of the SLA when all points have the same one.
func commonSLA(rows []Row) []Constraint {
	for i := range rows {
		if rows[i].Point.Config.SLA != rows[0].Point.Config.SLA {
			return nil
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return SLAConstraints(rows[0].Point.Config.SLA)
}

// fixedColumn is a column that every table has, whatever the sweep varies.
type fixedColumn struct {
	name, unit, doc string
	role            Role
	kind            gridspec.Kind
	get             func(*Row) gridspec.Value
}

func text(s string) gridspec.Value { return gridspec.Value{Kind: gridspec.KindString, Str: s} }

func integer(n int) gridspec.Value { return gridspec.Value{Kind: gridspec.KindInt, Int: int64(n)} }

func float(f float64) gridspec.Value { return gridspec.Value{Kind: gridspec.KindFloat, Float: f} }

// missing stands for a null.
var missing = gridspec.Value{Kind: -1}

// pointColumns say how a point ended; an empty reason or error is null.
var pointColumns = []fixedColumn{
	{"id", "", "Content ID of the point: equal configurations, workloads and simulator versions have equal IDs.", RolePoint, gridspec.KindString,
		func(r *Row) gridspec.Value { return text(r.ID) }},
	{"status", "", `How the point ended: "ok", "failed", "skipped", or "stopped" before its end because it could no longer keep the SLA.`, RolePoint, gridspec.KindString,
		func(r *Row) gridspec.Value { return text(string(r.Status)) }},
	{"reason", "", `Stable category of a point that is not ok, such as "timeout", "invalid_config" or "sla_lost"; null when ok.`, RolePoint, gridspec.KindString,
		func(r *Row) gridspec.Value { return optionalText(r.Reason) }},
	{"error", "", "Message of a point that is not ok; null when ok.", RolePoint, gridspec.KindString,
		func(r *Row) gridspec.Value { return optionalText(r.Error) }},
	{"wall_s", "s", "Real time that the simulation or the live run took. It is the only column that differs between equal runs.", RolePoint, gridspec.KindFloat,
		func(r *Row) gridspec.Value { return float(r.WallSeconds) }},
}

// derivedColumns follow the axes. An axis or derived value of the same name takes a column's place.
var derivedColumns = []fixedColumn{
	{replicateColumn, "", "Number of the repetition, from 0; present when the spec asks for more than one.", RolePoint, gridspec.KindInt,
		func(r *Row) gridspec.Value { return integer(r.Point.Replicate) }},
	{"workload", "", "Label of the replayed workload.", RolePoint, gridspec.KindString,
		func(r *Row) gridspec.Value { return text(r.Point.Workload.Label()) }},
	{"gpus", "GPUs", "GPUs that the configuration asks for. Where a planner changes the workers, `mean_gpus` says how many there were. Null for a live run at an endpoint of which nobody said what is behind it.", RolePoint, gridspec.KindInt,
		func(r *Row) gridspec.Value {
			if r.DeploymentUnknown {
				return missing
			}
			return integer(r.Point.Config.GPUs())
		}},
}

// limitColumn says in a word what the columns of the limits say in numbers. Text is nothing to compare, so that it is no
// metric.
var limitColumn = fixedColumn{LimitingColumn, "", limitDoc(), RolePoint, gridspec.KindString, limitingResource}

// SourceColumn says where the figures of a row come from; see [Source].
const SourceColumn = "source"

// LimitingColumn names what kept requests waiting most.
const LimitingColumn = "limiting_resource"

func limitDoc() string {
	var names []string
	for _, l := range metrics.LimitFields() {
		names = append(names, l.Resource)
	}
	return fmt.Sprintf("What kept requests from being admitted most, by the largest of the limited_by columns: %s. It is %s where these sum to %s at most, so that the load is what limits.",
		strings.Join(names, ", "), metrics.LimitNone, WholePercent(metrics.LimitedThreshold))
}

func limitingResource(r *Row) gridspec.Value {
	fields := metrics.Fields()
	var shares []float64
	for _, l := range metrics.LimitFields() {
		at := slices.IndexFunc(fields, func(f metrics.Field) bool { return f.Name == l.Field })
		if r.Status != StatusOK || at >= len(r.Metrics) || math.IsNaN(r.Metrics[at]) {
			return missing
		}
		shares = append(shares, r.Metrics[at])
	}
	return text(metrics.LimitingResource(shares))
}

// provenanceSettings are the columns that say where the figures come from and are settings too: an axis of one is the
// same thing.
var provenanceSettings = []string{"timing_source", "timing_mode"}

// provenanceColumns say where the figures come from.
var provenanceColumns = []fixedColumn{
	{SourceColumn, "", `Where the figures come from: "simulated", "online" from a simulated deployment to which requests came in real time, or "live" from an endpoint. The other columns of this part are null for live rows, but for the workload's.`, RolePoint, gridspec.KindString,
		func(r *Row) gridspec.Value { return text(string(cmp.Or(r.Source, SourceSimulated))) }},
	{"timing_source", "", "Timing model that gave the pass durations.", RolePoint, gridspec.KindString,
		func(r *Row) gridspec.Value { return r.ofPools(func(p *simcore.Pool) string { return p.Timing.Source }) }},
	{"timing_mode", "", "How the prices of a pass with prompts and decodes combine; null where the model does not know what a pass consists of.", RolePoint, gridspec.KindString,
		func(r *Row) gridspec.Value {
			return r.ofPools(func(p *simcore.Pool) string { return p.Timing.UsedMode() })
		}},
	{"timing_data", "", "Data behind the timing model, with its version; null when there is none.", RolePoint, gridspec.KindString,
		func(r *Row) gridspec.Value {
			return r.ofProvenance(func(p perfmodel.Provenance) string { return p.Data })
		}},
	{"timing_digest", "", "Hash of the data behind the timing model, such as tables or a profile: equal digests mean the same data. Null when there is none.", RolePoint, gridspec.KindString,
		func(r *Row) gridspec.Value {
			return r.ofProvenance(func(p perfmodel.Provenance) string { return p.Digest })
		}},
	{"timing_prefill_error_pct", "%", "How far the prefill price of a pass may be off: for tables the 99th percentile against the program that they come from, which timing_data names, and not against a GPU; for analytic timing the band against such tables. Null when it is not known.", RolePoint, gridspec.KindFloat,
		func(r *Row) gridspec.Value {
			return r.errorPct(func(p perfmodel.Provenance) float64 { return p.PrefillErrorPct })
		}},
	{"timing_decode_error_pct", "%", "The same for the decode price.", RolePoint, gridspec.KindFloat,
		func(r *Row) gridspec.Value {
			return r.errorPct(func(p perfmodel.Provenance) float64 { return p.DecodeErrorPct })
		}},
	{"timing_anomaly", "", "True where the source of the tables is suspect: " + perfmodel.AnomalyMeaning + ". Null without tables.", RolePoint, gridspec.KindBool, timingAnomaly},
	{"workload_digest", "", "SHA-256 of the replayed work: equal digests mean equal requests.", RolePoint, gridspec.KindString,
		func(r *Row) gridspec.Value { return optionalText(r.WorkloadDigest) }},
	{"simulator_version", "", "Semantic version of the simulator: equal versions give equal figures.", RolePoint, gridspec.KindString,
		func(r *Row) gridspec.Value {
			if r.Source == SourceLive {
				return missing
			}
			return text(simcore.SemanticVersion)
		}},
}

// timed reports whether a timing model gave the figures of the row.
func (r *Row) timed() bool { return r.Status != StatusSkipped && r.Source != SourceLive }

func timingAnomaly(r *Row) gridspec.Value {
	out := missing
	if !r.timed() {
		return out
	}
	for _, p := range r.Point.Config.Stages() {
		if p.Timing.Source == perfmodel.SourceTable {
			out.Bool = out.Kind == gridspec.KindBool && out.Bool || p.Timing.Provenance().Anomaly
			out.Kind = gridspec.KindBool
		}
	}
	return out
}

// ofPools is what the pools of workers have: that of each, when they differ.
func (r *Row) ofPools(get func(*simcore.Pool) string) gridspec.Value {
	if r.Source == SourceLive {
		return missing
	}
	var texts []string
	for _, p := range r.Point.Config.Stages() {
		if t := get(&p); t != "" && !slices.Contains(texts, t) {
			texts = append(texts, t)
		}
	}
	return optionalText(strings.Join(texts, ", "))
}

// ofProvenance is where the prices of a point that was simulated come from.
func (r *Row) ofProvenance(get func(perfmodel.Provenance) string) gridspec.Value {
	if !r.timed() {
		return missing
	}
	return r.ofPools(func(p *simcore.Pool) string { return get(p.Timing.Provenance()) })
}

// errorPct is the largest error of the pools.
func (r *Row) errorPct(get func(perfmodel.Provenance) float64) gridspec.Value {
	if !r.timed() {
		return missing
	}
	most := 0.0
	for _, p := range r.Point.Config.Stages() {
		most = max(most, get(p.Timing.Provenance()))
	}
	return optionalFloat(most)
}

func optionalFloat(f float64) gridspec.Value {
	if f == 0 {
		return missing
	}
	return float(f)
}

func optionalText(s string) gridspec.Value {
	if s == "" {
		return missing
	}
	return text(s)
}

func (f fixedColumn) build(rows []Row) *Column {
	c := NewColumn(f.name, f.kind, len(rows))
	c.Unit, c.Doc, c.Role = f.unit, f.doc, f.role
	last := ""
	for i := range rows {
		v := f.get(&rows[i])
		if v == missing {
			continue
		}
		if v.Str == last {
			v.Str = last // one copy of a text that many rows have
		}
		last = v.Str
		c.Set(i, v)
	}
	return c
}

func (t *Table) addPointColumns(rows []Row) {
	for _, f := range pointColumns {
		t.Columns = append(t.Columns, f.build(rows))
	}
}

func (t *Table) addDerivedColumns(rows []Row, taken map[string]bool) {
	for _, f := range derivedColumns {
		c := f.build(rows)
		if taken[c.Name] || c.Name == replicateColumn && c.constant() {
			continue
		}
		t.Columns = append(t.Columns, c)
	}
}

func (t *Table) addProvenance(rows []Row) {
	for _, f := range provenanceColumns {
		if t.Column(f.name) == nil {
			t.Columns = append(t.Columns, f.build(rows))
		}
	}
}

// addMetrics appends the metrics; those that a point may lack by design, such as goodput, only when one has them or
// could have them.
func (t *Table) addMetrics(rows []Row) {
	underSLA := slices.ContainsFunc(rows, func(r Row) bool { return r.Point.Config.SLA.Set() })
	scenario := slices.ContainsFunc(rows, func(r Row) bool { return r.Point.Config.AgentX.Enabled() })
	known := slices.ContainsFunc(rows, func(r Row) bool { return r.Point.GPUPrice != metrics.GPUPrice{} })
	for i, f := range metrics.Fields() {
		wanted := isGoodput(f.Name) && underSLA || IsCost(i) && known || scenario && metrics.OfAgentX(f.Name)
		if f.Optional && !wanted && !slices.ContainsFunc(rows, func(r Row) bool { return r.hasMetric(i) }) {
			continue
		}
		c := metricColumn(f, len(rows))
		for r := range rows {
			if rows[r].hasMetric(i) {
				setMetric(c, r, rows[r].Metrics[i])
			}
		}
		t.Columns = append(t.Columns, c)
	}
	if c := limitColumn.build(rows); !c.allNull() {
		t.Columns = append(t.Columns, c)
	}
}

func metricColumn(f metrics.Field, n int) *Column {
	kind := gridspec.KindFloat
	if f.Integer {
		kind = gridspec.KindInt
	}
	c := NewColumn(f.Name, kind, n)
	c.Unit, c.Doc, c.Role = f.Unit, f.Doc, RoleMetric
	return c
}

// hasMetric reports whether a row has a figure for a metric, by its place. Files and JSON have no common infinity, so that
// these are none.
func (r *Row) hasMetric(i int) bool {
	if r.Status != StatusOK && r.Source != SourceLive || i >= len(r.Metrics) {
		return false
	}
	return !math.IsNaN(r.Metrics[i]) && !math.IsInf(r.Metrics[i], 0)
}

// setMetric stores a figure.
func setMetric(c *Column, row int, v float64) {
	if c.Kind == gridspec.KindInt {
		c.Set(row, gridspec.Value{Kind: gridspec.KindInt, Int: int64(v)})
		return
	}
	c.Set(row, float(v))
}

// isGoodput reports whether a metric exists only under an SLA.
func isGoodput(name string) bool {
	return strings.HasPrefix(name, "goodput_") || name == "sla_attainment"
}
