package tables

import "testing"

// TestEmbedded validates all embedded data as a user's folder is validated, ids and held-out passes included.
func TestEmbedded(t *testing.T) {
	_, report, err := Check("data")
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Systems) != 9 || report.Configs < 1903 {
		t.Errorf("%d systems and %d rows; nine and 1903 were measured", len(report.Systems), report.Configs)
	}
	if embedded, err := Embedded().Check(); err != nil || embedded.Configs != report.Configs || embedded.Curves != report.Curves || embedded.Grids != report.Grids {
		t.Errorf("the program contains %+v, %v; the folder %+v", embedded, err, report)
	}
	for name, points := range map[string]CheckedPoints{"prefill": report.Prefill, "decode": report.Decode} {
		t.Logf("%s: %d points, errors %+v %%, worst %s", name, points.Count, points.Errors, points.Worst)
		if points.Count < 1000 || points.Errors.Median > 0.1 || points.Errors.P99 > 2.5 {
			t.Errorf("%s: errors are %+v %% at %d points; 0.1 in the median, 2.5 at p99 and 1000 points are required", name, points.Errors, points.Count)
		}
	}
}
