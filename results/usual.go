package results

import "slices"

// usualMetrics are the figures that one looks at when nothing says which.
var usualMetrics = []string{
	"output_throughput_tok_s", "mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "mean_e2e_latency_ms", "prefix_cache_reused_ratio", "sla_attainment", "gpu_hours",
}

// UsualMetrics names the figures to show where nothing says which: objectives, bounded figures, and the usual ones, as far as
// the table has them as numbers.
func (t *Table) UsualMetrics() []string {
	a := t.Analysis()
	var names, out []string
	for _, o := range a.Objectives {
		names = append(names, o.Name)
	}
	for _, b := range a.Constraints {
		names = append(names, b.Column)
	}
	for _, name := range append(names, usualMetrics...) {
		if c := t.Column(name); c != nil && c.Numeric() && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
