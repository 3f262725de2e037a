package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/results"
)

// Setting is something that was set differently.
type Setting struct {
	// Name is a column, or a key path of the configuration.
	Name string `json:"name"`
	// Before and After are the values as text; "varied" for an axis, and empty where the side has no such setting.
	Before string `json:"before"`
	After  string `json:"after"`
}

// varied stands for the values of an axis.
const varied = "varied"

// plain writes a value so that equal ones look alike, whatever their types: 4 and 4.0 are one.
func plain(v gridspec.Value) string {
	switch v.Kind {
	case gridspec.KindBool:
		return strconv.FormatBool(v.Bool)
	case gridspec.KindString:
		return v.Str
	}
	return strconv.FormatFloat(v.Float64(), 'f', -1, 64)
}

// plainConstant writes a constant of the metadata in the same way.
func plainConstant(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case int64:
		return strconv.FormatFloat(float64(v), 'f', -1, 64)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// isSetting reports whether a column says how a point was set up.
func isSetting(c *results.Column) bool {
	return c.Role == results.RoleAxis || c.Role == results.RoleConfig
}

// named reports whether a column holds the setting of a key path: columns have the path's last parts.
func named(column, path string) bool {
	for rest := path; ; {
		if strings.ReplaceAll(rest, ".", "_") == column {
			return true
		}
		_, after, ok := strings.Cut(rest, ".")
		if !ok {
			return false
		}
		rest = after
	}
}

// constant finds the constant that a column of another table holds; of several the one with the shortest path.
func constant(t *results.Table, column string) (path string, found bool) {
	paths := slices.SortedFunc(maps.Keys(t.Metadata.Constants), func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "."), strings.Count(b, ".")), strings.Compare(a, b))
	})
	at := slices.IndexFunc(paths, func(p string) bool { return named(column, p) })
	if at < 0 {
		return "", false
	}
	return paths[at], true
}

// settingReader reads a column's setting row by row, from the column or from the constants; empty where there is none.
func settingReader(t *results.Table, column string) func(row int) string {
	if c := t.Column(column); c != nil {
		return func(row int) string {
			v, ok := c.Value(row)
			if !ok {
				return ""
			}
			return plain(v)
		}
	}
	text := ""
	if path, ok := constant(t, column); ok {
		text = plainConstant(t.Metadata.Constants[path])
	}
	return func(int) string { return text }
}

// settingColumns are the names of the setting columns of either table, in their order.
func settingColumns(a, b *results.Table) []string {
	var names []string
	for _, t := range []*results.Table{a, b} {
		for _, c := range t.Columns {
			if isSetting(c) && !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// constants lists the settings that are equal within a table and not between both, and the versions and workloads behind them.
func constants(a, b *results.Table) []Setting {
	out := []Setting{}
	describe := func(t *results.Table, path string) string {
		if v, ok := t.Metadata.Constants[path]; ok {
			return plainConstant(v)
		}
		if slices.ContainsFunc(t.Columns, func(c *results.Column) bool { return isSetting(c) && named(c.Name, path) }) {
			return varied
		}
		return ""
	}
	for _, path := range keys(a.Metadata.Constants, b.Metadata.Constants) {
		if before, after := describe(a, path), describe(b, path); before != after {
			out = append(out, Setting{path, before, after})
		}
	}
	texts := func(name string, before, after map[string]string) {
		for _, key := range keys(before, after) {
			if before[key] != after[key] {
				out = append(out, Setting{name + " " + key, before[key], after[key]})
			}
		}
	}
	texts("version of", a.Metadata.Versions, b.Metadata.Versions)
	texts("requests of", a.Metadata.Workloads, b.Metadata.Workloads)
	for _, of := range []struct {
		name string
		get  func(*results.Table) string
	}{
		{"objectives", func(t *results.Table) string { return joined(t.Metadata.Objectives, objectiveText) }},
		{"constraints", func(t *results.Table) string { return joined(t.Metadata.Constraints, results.Constraint.String) }},
	} {
		if before, after := of.get(a), of.get(b); before != after {
			out = append(out, Setting{of.name, before, after})
		}
	}
	return out
}

func objectiveText(o results.Objective) string {
	if o.Maximize {
		return "maximize " + o.Name
	}
	return "minimize " + o.Name
}

func joined[T any](values []T, text func(T) string) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = text(v)
	}
	return strings.Join(parts, ", ")
}

// keys are those of both maps, sorted.
func keys[V any](a, b map[string]V) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}
