// Package tabletest makes tables for tests.
package tabletest

import (
	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// Column returns a column with these values, strings, ints, float64s or bools, and a null for each nil. The first value that is
// not nil tells the kind; a column of nils holds reals.
func Column(name string, role results.Role, values ...any) *results.Column {
	kind := gridspec.KindFloat
	for _, v := range values {
		switch v.(type) {
		case string:
			kind = gridspec.KindString
		case int:
			kind = gridspec.KindInt
		case bool:
			kind = gridspec.KindBool
		case float64:
			kind = gridspec.KindFloat
		default:
			continue
		}
		break
	}
	c := results.NewColumn(name, kind, len(values))
	c.Role = role
	for row, v := range values {
		switch v := v.(type) {
		case string:
			c.Set(row, gridspec.Value{Kind: gridspec.KindString, Str: v})
		case int:
			c.Set(row, gridspec.Value{Kind: gridspec.KindInt, Int: int64(v)})
		case float64:
			c.Set(row, gridspec.Value{Kind: gridspec.KindFloat, Float: v})
		case bool:
			c.Set(row, gridspec.Value{Kind: gridspec.KindBool, Bool: v})
		}
	}
	return c
}
