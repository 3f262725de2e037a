package results

import (
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// axisColumns returns one column for every axis that some row has, in order of first appearance. Rows without the
// axis hold null. A whole-number and a real axis value make a real column; other mixtures make strings.
func axisColumns(rows []Row) []*Column {
	var axes []*axis
	byPath := map[string]*axis{}
	for i := range rows {
		for _, v := range rows[i].Point.Axes {
			a := byPath[v.Path]
			if a == nil {
				a = &axis{path: v.Path, name: v.Column, kind: v.Value.Kind}
				byPath[v.Path] = a
				axes = append(axes, a)
			}
			a.kind = commonKind(a.kind, v.Value.Kind)
		}
	}
	nameAxes(axes)
	columns := make([]*Column, len(axes))
	for i, a := range axes {
		a.column = NewColumn(a.name, a.kind, len(rows))
		a.column.Role = RoleAxis
		a.column.Unit, a.column.Doc = describeAxis(a.path)
		columns[i] = a.column
	}
	for i := range rows {
		for _, v := range rows[i].Point.Axes {
			byPath[v.Path].column.Set(i, v.Value)
		}
	}
	return columns
}

type axis struct {
	path, name string
	kind       gridspec.Kind
	column     *Column
}

// nameAxes makes the columns' names unique and different from those of the table's own columns: first the whole
// path, then "axis_" and the path, then further underscores.
func nameAxes(axes []*axis) {
	taken := reservedNames()
	for _, a := range axes {
		flat := flatName(a.path)
		for _, name := range []string{a.name, flat, "axis_" + flat} {
			if a.name = name; !taken[name] {
				break
			}
		}
		for taken[a.name] {
			a.name += "_"
		}
		taken[a.name] = true
	}
}

// reservedNames are the columns whose meaning no axis may change.
func reservedNames() map[string]bool {
	taken := map[string]bool{}
	for _, f := range slices.Concat(pointColumns, provenanceColumns) {
		taken[f.name] = f.name != "timing_source" // the axis timing.source is the same thing
	}
	for _, f := range metrics.Fields() {
		taken[f.Name] = true
	}
	return taken
}

func flatName(path string) string { return strings.ReplaceAll(path, ".", "_") }

func commonKind(a, b gridspec.Kind) gridspec.Kind {
	numeric := func(k gridspec.Kind) bool { return k == gridspec.KindInt || k == gridspec.KindFloat }
	switch {
	case a == b:
		return a
	case numeric(a) && numeric(b):
		return gridspec.KindFloat
	}
	return gridspec.KindString
}

// describeAxis returns the unit and meaning of the setting that an axis varies.
func describeAxis(path string) (unit, doc string) {
	for _, s := range settings() {
		if s.path == path {
			return s.unit, s.doc
		}
	}
	switch {
	case path == "workload":
		return "", "Label of the replayed workload."
	case strings.HasPrefix(path, "workload."):
		return unitOf(path), "Workload setting " + path + "."
	case strings.Contains(path, "."):
		return unitOf(path), "Setting " + path + "."
	}
	return "", "Derived value or case " + path + " of the spec."
}
