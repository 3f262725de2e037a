package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/servegrid/servegrid/results"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/perfmodel"
	"github.com/servegrid/servegrid/simcore/workload"
)

// writeReportJSON writes the report with the reference's keys, sorted, and returns where. An empty path makes a
// new file in the working folder, a folder one in it.
func writeReportJSON(path string, now time.Time, report *simcore.Report, cfg simcore.Config, w *workload.Workload, wall time.Duration) (string, error) {
	folder := ""
	if path == "" || isFolder(path) {
		folder, path = path, ""
	}
	values := map[string]any{
		"source":            results.SourceSimulated,
		"simulator_version": report.SimulatorVersion,
		"workload_digest":   report.WorkloadDigest,
		"wall_time_ms":      float64(wall.Nanoseconds()) / 1e6,
	}
	if report.Live != nil {
		values["source"] = results.SourceOnline
	}
	maps.Copy(values, provenanceValues(cfg))
	maps.Copy(values, workloadValues(w))
	for _, f := range metrics.Fields() {
		v, ok := f.Value(report)
		switch {
		case ok && f.Integer:
			values[f.Name] = int64(v)
		case ok:
			values[f.Name] = v
		}
	}
	if len(report.GoodputByPriority) > 0 {
		values["goodput_by_priority"] = classValues(report.GoodputByPriority)
		values["goodput_by_policy_class"] = classValues(report.GoodputByPolicyClass)
	}
	seconds := max(wall.Seconds(), 1e-9)
	processed := report.TotalInputTokens + report.TotalOutputTokens
	values["processed_tokens"] = processed
	values["processed_tokens_per_s"] = float64(processed) / seconds
	values["processed_output_tokens_per_s"] = float64(report.TotalOutputTokens) / seconds
	data, err := json.MarshalIndent(values, "", "  ")
	if err != nil {
		return "", err
	}
	data = append(data, '\n')
	if path == "" {
		path, err = writeNewReport(folder, now, data)
	} else if err = os.MkdirAll(filepath.Dir(path), 0o777); err == nil {
		err = os.WriteFile(path, data, 0o666)
	}
	if err != nil {
		return "", fmt.Errorf("--report-json: %w", err)
	}
	return path, nil
}

// workloadValues says in a report where the requests come from, and what is special about that.
func workloadValues(w *workload.Workload) map[string]any {
	values := map[string]any{}
	if w.Format != "" {
		values["trace_format"] = w.Format
	}
	if len(w.Warnings) > 0 {
		values["workload_warnings"] = w.Warnings
	}
	if w.Graph != nil {
		values["pacing"], values["plays"] = w.Graph.Pacing(), w.Graph.Plays()
	}
	return values
}

// provenanceValues says in a report where the durations of passes come from. Those of the pools of a disaggregated
// deployment have its name in front.
func provenanceValues(cfg simcore.Config) map[string]any {
	values := map[string]any{}
	for _, pool := range namedPools(cfg) {
		p := pool.Timing.Provenance()
		prefix := ""
		if pool.name != "" {
			prefix = pool.name + "_"
		}
		values[prefix+"timing_source"], values[prefix+"num_gpu_blocks"] = pool.Timing.Source, pool.Engine.NumGPUBlocks
		for key, text := range map[string]string{"timing_mode": pool.Timing.UsedMode(), "timing_data": p.Data, "timing_digest": p.Digest} {
			if text != "" {
				values[prefix+key] = text
			}
		}
		for key, pct := range map[string]float64{"timing_prefill_error_pct": p.PrefillErrorPct, "timing_decode_error_pct": p.DecodeErrorPct} {
			if pct != 0 {
				values[prefix+key] = pct
			}
		}
		if p.Anomaly {
			values[prefix+"timing_anomaly"] = true
		}
	}
	return values
}

// namedPool is a pool of workers with its name; that of an aggregated deployment has none.
type namedPool struct {
	simcore.Pool
	name string
}

func namedPools(cfg simcore.Config) []namedPool {
	pools := cfg.Stages()
	if len(pools) == 1 {
		return []namedPool{{pools[0], ""}}
	}
	return []namedPool{{pools[0], rolePrefill}, {pools[1], roleDecode}}
}

// classValues is the goodput of classes in a report, by their name.
func classValues(classes []metrics.ClassGoodput) map[string]any {
	values := map[string]any{}
	for _, c := range classes {
		values[className(c)] = map[string]any{
			"num_requests":                    c.Requests,
			"goodput_completed_requests":      c.CompletedRequests,
			"goodput_request_throughput_rps":  c.RequestThroughputRPS,
			"goodput_output_throughput_tok_s": c.OutputThroughputTokS,
			"sla_attainment":                  c.SLAAttainment,
		}
	}
	return values
}

// className is the name of a class; requests that name none are of the default one.
func className(c metrics.ClassGoodput) string { return cmp.Or(c.Class, "default") }

// writeNewReport writes a report under a name that no file in the folder has: the second, and a number after it
// when several replays end in one.
func writeNewReport(folder string, now time.Time, data []byte) (path string, err error) {
	stem := filepath.Join(folder, now.Format("servegrid_replay_report_20060102_150405"))
	for n := 1; ; n++ {
		path = stem + ".json"
		if n > 1 {
			path = fmt.Sprintf("%s_%d.json", stem, n)
		}
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = file.Write(data)
		return path, errors.Join(err, file.Close())
	}
}

// printReport prints the table that AIPerf and the reference print.
func printReport(w io.Writer, report *simcore.Report, cfg simcore.Config, wall time.Duration, path string) error {
	t := table.NewWriter()
	t.SetTitle("servegrid | LLM Metrics")
	t.SetStyle(table.StyleRounded)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"Metric", "avg", "min", "max", "p99", "p90", "p75", "std"})
	for _, row := range []struct {
		name string
		s    metrics.Summary
	}{
		{"Time to First Token (ms)", report.TTFT},
		{"Time to Second Token (ms)", report.TTST},
		{"Request Latency (ms)", report.E2ELatency},
		{"Inter Token Latency (ms)", report.ITL},
		{"Output Token Throughput Per User (tokens/sec/user)", report.OutputTokenThroughputPerUser},
	} {
		s := row.s
		cells := table.Row{row.name}
		for _, v := range []float64{s.Mean, s.Min, s.Max, s.P99, s.P90, s.P75, s.Std} {
			cells = append(cells, grouped(v))
		}
		t.AppendRow(cells)
	}
	for _, row := range []struct {
		name string
		v    float64
	}{
		{"Output Token Throughput (tokens/sec)", report.OutputThroughputTokS},
		{"Request Throughput (requests/sec)", report.RequestThroughputRPS},
		{"Request Count (requests)", float64(report.CompletedRequests)},
	} {
		t.AppendRow(table.Row{row.name, grouped(row.v), "N/A", "N/A", "N/A", "N/A", "N/A", "N/A"})
	}
	configs := []table.ColumnConfig{}
	for column := 2; column <= 8; column++ {
		configs = append(configs, table.ColumnConfig{Number: column, Align: text.AlignRight})
	}
	t.SetColumnConfigs(configs)
	var b strings.Builder
	fmt.Fprintln(&b, t.Render())
	for _, n := range []struct {
		name  string
		count int64
	}{{"Rejected", report.RejectedRequests}, {"Truncated", report.TruncatedRequests}, {"Unfinished", report.UnfinishedRequests}} {
		if n.count > 0 {
			fmt.Fprintf(&b, "%s Requests: %d\n", n.name, n.count)
		}
	}
	b.WriteString(servingText(report))
	b.WriteString(timingText(report, cfg))
	fmt.Fprintf(&b, "Wall Time (ms): %.2f\n", float64(wall.Nanoseconds())/1e6)
	if report.Live == nil || report.Live.KnowsReuse {
		fmt.Fprintf(&b, "Prefix Cache Reused Ratio: %.2f\n", report.PrefixCacheReusedRatio)
	}
	if report.Live == nil {
		fmt.Fprintf(&b, "First Admission Prefix Cache Reused Ratio: %.2f\n", report.FirstAdmissionReusedRatio)
	}
	fmt.Fprintf(&b, "Saved full report to: %s\n", path)
	return printText(w, "%s", b.String())
}

// servingText says how much was good, and what routers and hand-offs cost. It is empty where there is none of it.
func servingText(report *simcore.Report) string {
	var b strings.Builder
	goodput := func(name string, g metrics.Goodput) {
		fmt.Fprintf(&b, "%s: %d requests, %.2f requests/sec, %.2f tokens/sec, SLA attainment %.2f\n",
			name, g.CompletedRequests, g.RequestThroughputRPS, g.OutputThroughputTokS, g.SLAAttainment)
	}
	if report.Goodput != nil {
		goodput("Goodput", *report.Goodput)
	}
	for _, list := range []struct {
		name    string
		classes []metrics.ClassGoodput
	}{{"priority", report.GoodputByPriority}, {"policy class", report.GoodputByPolicyClass}} {
		for _, c := range list.classes {
			if len(list.classes) > 1 {
				goodput(fmt.Sprintf("Goodput of %s %s", list.name, className(c)), c.Goodput)
			}
		}
	}
	if c := report.Scaling; c != nil {
		b.WriteString(workersText(report, c))
	}
	if q := report.RouterQueue; q != nil && q.Max > 0 {
		fmt.Fprintf(&b, "Router Queue (ms): avg %s, p99 %s, max %s\n", grouped(q.Mean), grouped(q.P99), grouped(q.Max))
	}
	if t := report.Tiers; t != nil {
		fmt.Fprint(&b, "Hit Ratio by Tier:")
		for i, tokens := range t.HitTokens {
			fmt.Fprintf(&b, " G%d %.2f", i+1, float64(tokens)/float64(max(1, t.LookedUpTokens)))
		}
		fmt.Fprintf(&b, "; Waits for KV Blocks: %d, avg %s ms\n", t.WaitCount, grouped(t.Waits.Mean))
	}
	if a := report.AgentX; a != nil {
		fmt.Fprintf(&b, "AgentX Window: from %s ms, after %d warm-up requests; %d of %d plays completed, %d requests never issued, %d idle times cut by %s ms\n",
			grouped(a.StartMs), a.WarmUpRequests, a.CompletedPlays, a.StartedPlays, a.NeverIssued, a.IdleCuts, grouped(a.IdleCutMs))
		perGPU := ""
		if report.Live == nil || report.Live.KnowsDeployment {
			perGPU = fmt.Sprintf("; Total Throughput per GPU: %s tokens/s", grouped(a.TotalThroughputTokSPerGPU))
		}
		fmt.Fprintf(&b, "E2E-normalised Interactivity (tokens/s): p50 %s, p90 %s, p99 %s%s; Theoretical Hit Ratio: %.3f\n",
			grouped(perSecond(a.E2EPerToken.Median)), grouped(perSecond(a.E2EPerToken.P90)), grouped(perSecond(a.E2EPerToken.P99)), perGPU, a.TheoreticalHitRatio)
	}
	if h := report.Handoff; h != nil {
		fmt.Fprintf(&b, "KV Hand-off (ms): avg %s, p99 %s, max %s\n", grouped(h.Mean), grouped(h.P99), grouped(h.Max))
		fmt.Fprintf(&b, "Utilisation: prefill workers %.2f, decode workers %.2f\n", report.PrefillUtilisation, report.DecodeUtilisation)
	}
	return b.String()
}

// workersText says how many workers there were, and what they cost in GPU time.
func workersText(report *simcore.Report, c *metrics.Scaling) string {
	pool := func(name string, p *metrics.PoolScaling) string {
		return fmt.Sprintf("%s: avg %s, least %d, most %d", name, grouped(p.MeanReady), p.LeastReady, p.PeakReady)
	}
	workers := pool("Workers", &c.Decode)
	if report.PrefillGPUsPerWorker > 0 {
		workers = pool("Prefill Workers", &c.Prefill) + "\n" + pool("Decode Workers", &c.Decode)
	}
	return fmt.Sprintf("%s\nGPUs: avg %s, most %d; GPU-hours: %.4g\n", workers, grouped(report.MeanGPUs), report.PeakGPUs, report.GPUHours)
}

// perSecond turns ms for each into a rate; 0 when there are none.
func perSecond(ms float64) float64 {
	if ms == 0 {
		return 0
	}
	return 1000 / ms
}

// timingText says where the durations of passes come from, and what the deployment costs. It is empty for the models that
// know no GPU.
func timingText(report *simcore.Report, cfg simcore.Config) string {
	var b strings.Builder
	for _, pool := range namedPools(cfg) {
		p := pool.Timing.Provenance()
		if p.Data == "" {
			continue
		}
		fmt.Fprintf(&b, "Timing%s: %s, %s%s; %d KV blocks a worker\n", of(pool.name), pool.Timing.Source, p.Data, errorText(pool.Timing, p), pool.Engine.NumGPUBlocks)
		if p.Anomaly {
			fmt.Fprintf(&b, "Warning: the source of these tables is suspect: %s.\n", perfmodel.AnomalyMeaning)
		}
	}
	if share := report.ExtrapolatedPassRatio; share > 0 {
		fmt.Fprintf(&b, "Warning: %s of the passes lie outside of the data behind the timing model.\n", results.WholePercent(share))
	}
	switch c := report.Cost; {
	case c == nil || report.GPUHours == 0:
	case c.USD > 0:
		fmt.Fprintf(&b, "Cost: %.4g USD, %.4g USD per million input tokens, %.4g USD per million output tokens\n", c.USD, c.USDPerMtokInput, c.USDPerMtokOutput)
	default:
		gpu := cfg.Stages()[0].Timing.GPU
		fmt.Fprintf(&b, "Cost: no price of %s; give one with --set prices.%[1]s=USD\n", gpu)
	}
	return b.String()
}

// of names a pool after what it has.
func of(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

// errorText says how far prices may be off. Tables are compared with the program that they come from, not with a GPU.
func errorText(timing perfmodel.Config, p perfmodel.Provenance) string {
	if p.PrefillErrorPct == 0 && p.DecodeErrorPct == 0 {
		return ""
	}
	prefill, decode := errorPct(p.PrefillErrorPct), errorPct(p.DecodeErrorPct)
	row, err := timing.Row()
	if err != nil {
		return fmt.Sprintf(", ±%s %% in prefill, ±%s %% in decode", prefill, decode)
	}
	program, _, _ := strings.Cut(row.Generator, " ")
	return fmt.Sprintf(", within %s %% (prefill) and %s %% (decode) of %s", prefill, decode, program)
}

// grouped formats with two decimals and commas between thousands.
func grouped(v float64) string {
	s := fmt.Sprintf("%.2f", v)
	for i := len(s) - 6; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
