package results

import "github.com/servegrid/servegrid/simcore"

// SLA returns the SLA that all points of a sweep have, in ms; a bound that they have not, or not all, is 0.
func (t *Table) SLA() simcore.SLA {
	ms := func(key string) float64 {
		switch v := t.Metadata.Constants["sla."+key].(type) {
		case float64:
			return v
		case int64:
			return float64(v)
		}
		return 0
	}
	return simcore.SLA{TTFTMs: ms("ttft_ms"), ITLMs: ms("itl_ms"), E2EMs: ms("e2e_ms")}
}

// MeanSLAConstraints bounds the mean figures by the SLA that all points of a sweep have: the edge to look for where the
// objectives count the requests that keep the SLA, so that the file bounds no percentile. It is empty where points have different
// bounds, or none.
func (t *Table) MeanSLAConstraints() []Constraint {
	means := map[string]string{"p99_ttft_ms": "mean_ttft_ms", "p99_tpot_ms": "mean_tpot_ms", "p99_e2e_latency_ms": "mean_e2e_latency_ms"}
	constraints := SLAConstraints(t.SLA())
	for i := range constraints {
		constraints[i].Column = means[constraints[i].Column]
	}
	return constraints
}
