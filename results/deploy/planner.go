package deploy

import (
	"reflect"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/planner"
)

// plannerOptions are the settings of the planner that Dynamo's own configuration has, under the same names, and that are not at
// their defaults, which are Dynamo's too.
func plannerOptions(c planner.Config) []option {
	// What the policies of servegrid's own have, and what bounds the simulation rather than the planner.
	own := []string{"policy", "target_tracking", "foresight", "benchmark_granularity"}
	var out []option
	given, defaults := reflect.ValueOf(c), reflect.ValueOf(planner.DefaultConfig())
	for i := range given.NumField() {
		key, _, _ := strings.Cut(given.Type().Field(i).Tag.Get("json"), ",")
		v := given.Field(i)
		if slices.Contains(own, key) || v.Equal(defaults.Field(i)) || gridspec.IsNull("planner."+key, v) {
			continue
		}
		o := option{name: key, value: v.Interface()}
		if key == "scale_interval_seconds" {
			o = option{"scheduling", []option{o}, ""}
		}
		out = append(out, o)
	}
	return out
}
