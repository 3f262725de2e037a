package results

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/servegrid/servegrid/gridspec"
)

func pointWith(axes ...gridspec.AxisValue) *gridspec.Point { return &gridspec.Point{Axes: axes} }

func TestHiveFolder(t *testing.T) {
	p := pointWith(
		gridspec.AxisValue{Column: "gpu", Value: text("h200_sxm")},
		gridspec.AxisValue{Column: "workers", Value: integer(4)},
		gridspec.AxisValue{Column: "rate", Value: float(0.5)},
		gridspec.AxisValue{Column: "caching", Value: gridspec.Value{Kind: gridspec.KindBool, Bool: true}},
		gridspec.AxisValue{Column: "workload", Value: text("a/b=c %é\x00")},
		gridspec.AxisValue{Column: "empty", Value: text("")},
		gridspec.AxisValue{Column: "long", Value: text(strings.Repeat("/", 100))},
	)
	for _, test := range []struct {
		by   []string
		want string
	}{
		{nil, ""},
		{[]string{"gpu", "workers"}, "gpu=h200_sxm/workers=4"},
		{[]string{"rate", "caching"}, "rate=0.5/caching=true"},
		{[]string{"workload"}, "workload=a%2Fb%3Dc%20%25%C3%A9%00"},
		{[]string{"missing", "empty"}, "missing=__HIVE_DEFAULT_PARTITION__/empty=__HIVE_DEFAULT_PARTITION__"},
	} {
		got, err := HiveFolder(test.by, p)
		if err != nil || filepath.ToSlash(got) != test.want {
			t.Errorf("%v: %q, %v; want %q", test.by, got, err, test.want)
		}
	}
	if got, err := HiveFolder([]string{"long"}, p); err == nil || !strings.Contains(err.Error(), "the long of a point is too long") {
		t.Errorf("%q, %v", got, err)
	}
}

// TestHiveFolderReadsBack checks that every value comes back as readers decode it, and never leads out of its folder.
func TestHiveFolderReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{".", "..", "../x", "a\\b", "%41", "a+b", "~"})).Draw(t, "value")
		folder, err := HiveFolder([]string{"column"}, pointWith(gridspec.AxisValue{Column: "column", Value: text(value)}))
		if err != nil {
			return // it is too long
		}
		level, ok := strings.CutPrefix(folder, "column=")
		if !ok || filepath.Base(folder) != folder || !filepath.IsLocal(folder) {
			t.Fatalf("%q becomes %q", value, folder)
		}
		if got, err := url.PathUnescape(level); err != nil || got != value && (value != "" || got != hiveNull) {
			t.Fatalf("%q becomes %q, which reads as %q, %v", value, folder, got, err)
		}
	})
}
