package results

import "github.com/servegrid/servegrid/gridspec"

// EdgeColumn marks the points at which a saturation search found the edge of the SLA.
const EdgeColumn = "at_saturation"

// markDocs say what the columns mean that an analysis or a search adds to a table. None is a setting, also where a file
// states no roles.
var markDocs = map[string]string{
	FeasibleColumn:       "Whether the point keeps every constraint.",
	FrontierColumn:       "Whether no other feasible point is at least as good in every objective and better in one.",
	NoiseColumn:          noiseDoc,
	EdgeColumn:           edgeDoc,
	gridspec.SearchRound: searchRoundDoc,
}

const edgeDoc = "Whether the point has the last value of the axis of a saturation search that keeps the SLA, before the first that does not."

const searchRoundDoc = "Batch in which a search asked for the point, from 1; 0 for the points of `include`."

// MarkColumn returns a column of marks, one a row.
func MarkColumn(name string, marks []bool) *Column {
	c := NewColumn(name, gridspec.KindBool, len(marks))
	c.Doc, c.Role = markDocs[name], RolePoint
	for i, v := range marks {
		c.Set(i, gridspec.Value{Kind: gridspec.KindBool, Bool: v})
	}
	return c
}
