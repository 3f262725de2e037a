package aiperf

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"
)

// The files of a run.
const (
	RecordsFile = "profile_export.jsonl"
	JSONFile    = "profile_export_aiperf.json"
	CSVFile     = "profile_export_aiperf.csv"
)

// Version is that of AIPerf whose files these are.
const Version = "0.13.0"

// Facts are what the JSON file says of a run beside its metrics.
type Facts struct {
	// Model, URLs and Tokenizer say what was asked.
	Model     string
	URLs      []string
	Tokenizer string
	// Started and Ended are when the run did, Cancelled whether it was ended before its time.
	Started, Ended time.Time
	Cancelled      bool
	// ProfilingSeconds is how long the measured phase took, WarmUpSeconds the one before; 0 without one.
	ProfilingSeconds, WarmUpSeconds float64
}

// WriteRecords writes profile_export.jsonl, a request a line.
func WriteRecords(w io.Writer, records iter.Seq[*Record]) error {
	out, n := bufio.NewWriter(w), 0
	lines := json.NewEncoder(out)
	for r := range records {
		if err := lines.Encode(r); err != nil {
			return fmt.Errorf("request %d: %w", n, err)
		}
		n++
	}
	return out.Flush()
}

// WriteJSON writes profile_export_aiperf.json.
func WriteJSON(w io.Writer, t Totals, f Facts) error {
	const clock = "2006-01-02T15:04:05.000000"
	out := map[string]any{
		"schema_version": "1.4", "aiperf_version": Version, "was_cancelled": f.Cancelled, "is_complete": !f.Cancelled, "error_summary": t.errors,
		"start_time": f.Started.UTC().Format(clock), "end_time": f.Ended.UTC().Format(clock),
		"input_config": map[string]any{
			"models":    map[string]any{"items": []any{map[string]any{"name": f.Model}}},
			"endpoint":  map[string]any{"urls": f.URLs, "type": "chat", "streaming": true, "use_server_token_count": true},
			"tokenizer": map[string]any{"name": f.Tokenizer},
		},
		"run_info": map[string]any{"written_by": "servegrid live"},
	}
	for tag, s := range t.Profiling {
		out[tag] = s.values()
	}
	if t.WarmUp != nil {
		warm := map[string]any{}
		for tag, s := range t.WarmUp {
			warm[tag] = s.values()
		}
		out["warmup_metrics"] = warm
	}
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// values is a metric as the JSON file has it.
func (s Stat) values() map[string]any {
	out := map[string]any{"unit": s.Unit, "avg": s.Avg}
	if s.Single {
		return out
	}
	out["min"], out["max"], out["std"] = s.Min, s.Max, s.Std
	if !s.Weighted {
		out["sum"], out["count"] = s.Sum, s.Count
	}
	for _, p := range percentiles {
		if !s.Weighted || weightedHas(p.name) {
			out[p.name] = *p.of(&s)
		}
	}
	return out
}

// weightedHas reports whether metrics whose values count by how long they held have a percentile.
func weightedHas(percentile string) bool {
	return slices.Contains([]string{"p50", "p90", "p95", "p99"}, percentile)
}

// WriteCSV writes profile_export_aiperf.csv: the metrics with a value a request, and those with one for the run.
func WriteCSV(w io.Writer, t Totals) error {
	s := t.Profiling
	out := csv.NewWriter(w)
	two := func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
	row := []string{"Metric", "avg", "min", "max", "sum"}
	for _, p := range percentiles {
		row = append(row, p.name)
	}
	rows := [][]string{append(row, "std")}
	for _, tag := range s.byHeader(false) {
		stat := s[tag]
		row := []string{header(tag, stat.Unit), two(stat.Avg), two(stat.Min), two(stat.Max), two(stat.Sum)}
		if stat.Weighted {
			row[4] = ""
		}
		for _, p := range percentiles {
			if stat.Weighted && !weightedHas(p.name) {
				row = append(row, "")
				continue
			}
			row = append(row, two(*p.of(&stat)))
		}
		rows = append(rows, append(row, two(stat.Std)))
	}
	if err := out.WriteAll(rows); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	rows = [][]string{{"Metric", "Value"}}
	for _, tag := range s.byHeader(true) {
		rows = append(rows, []string{header(tag, s[tag].Unit), two(s[tag].Avg)})
	}
	return out.WriteAll(rows)
}

// byHeader lists the metrics of one kind in the order of the CSV file.
func (s Summary) byHeader(single bool) []string {
	tags := slices.Sorted(maps.Keys(s))
	tags = slices.DeleteFunc(tags, func(tag string) bool { return s[tag].Single != single })
	slices.SortStableFunc(tags, func(a, b string) int { return cmp.Compare(header(a, s[a].Unit), header(b, s[b].Unit)) })
	return tags
}

// header is the name of a metric in the CSV file. Counts have no unit there.
func header(tag, unit string) string {
	name := tag
	for _, f := range slices.Concat(perRequest, ofMetadata, overTime, single) {
		if f.tag == tag {
			name = f.header
		}
	}
	if unit == "" || unit == "count" || unit == "requests" {
		return name
	}
	return name + " (" + unit + ")"
}
