package results

import (
	"reflect"
	"slices"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/metrics"
)

// tableAxes returns every axis that some row has with its column, in order of first appearance. Rows without the
// axis hold null. A whole-number and a real axis value make a real column; other mixtures make strings.
func tableAxes(rows []Row) []*axis {
	var axes []*axis
	byPath := map[string]*axis{}
	for i := range rows {
		for _, v := range rows[i].Point.Axes {
			if v.Path == replicateColumn {
				continue // it repeats a point instead of varying it
			}
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
	for _, a := range axes {
		a.column = NewColumn(a.name, a.kind, len(rows))
		a.column.Role, a.column.Path = a.role(), a.path
		a.column.Unit, a.column.Doc = describeAxis(a.path)
	}
	for i := range rows {
		for _, v := range rows[i].Point.Axes {
			if a := byPath[v.Path]; a != nil {
				a.column.Set(i, v.Value)
			}
		}
	}
	return axes
}

// trafficColumns names the columns that say what was served rather than how: the workload, axes below it, the model, and
// the cases when they change one of these.
func trafficColumns(rows []Row, axes []*axis) []string {
	var out []string
	var traffic []*Column
	for _, a := range axes {
		served := a.path == workloadPath || strings.HasPrefix(a.path, workloadPath+".") || a.path == modelPath
		if served && !a.column.constant() {
			traffic, out = append(traffic, a.column), append(out, a.name)
		}
	}
	for _, a := range axes {
		if a.path == casePath && changesTraffic(rows, traffic) {
			out = append(out, a.name)
		}
	}
	return out
}

// changesTraffic reports whether points with equal traffic columns serve different workloads or models. Replicates have
// seeds of their own, so only the first of each counts.
func changesTraffic(rows []Row, traffic []*Column) bool {
	for _, group := range groupRows(len(rows), traffic) {
		var first *Row
		for _, i := range group {
			switch r := &rows[i]; {
			case r.Point.Replicate > 0:
			case first == nil:
				first = r
			case !reflect.DeepEqual(first.Point.Workload, r.Point.Workload) || otherModel(first, r):
				return true
			}
		}
	}
	return false
}

// otherModel reports whether two rows serve different models, as far as both say which.
func otherModel(a, b *Row) bool {
	x, y := a.Point.Config.Timing.Model, b.Point.Config.Timing.Model
	return x != "" && y != "" && x != y
}

// The paths of axes that are no single setting, or say what was served.
const (
	workloadPath = "workload"
	modelPath    = "timing.model"
	casePath     = "case"
)

type axis struct {
	path, name string
	kind       gridspec.Kind
	column     *Column
}

// role tells settings from what the spec computes: a derived value has a plain name, a setting a key path.
func (a *axis) role() Role {
	if a.path == gridspec.SearchRound {
		return RolePoint
	}
	if a.path == workloadPath || a.path == casePath || strings.Contains(a.path, ".") {
		return RoleAxis
	}
	return RoleDerived
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
		taken[f.name] = !slices.Contains(provenanceSettings, f.name)
	}
	for _, f := range metrics.Fields() {
		taken[f.Name] = true
	}
	for _, name := range []string{replicateColumn, LimitingColumn, CommandColumn, FeasibleColumn, FrontierColumn, NoiseColumn} {
		taken[name] = true
	}
	return taken
}

func flatName(path string) string { return strings.ReplaceAll(path, ".", "_") }

func commonKind(a, b gridspec.Kind) gridspec.Kind {
	switch {
	case a == b:
		return a
	case a.Numeric() && b.Numeric():
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
	case path == workloadPath:
		return "", "Label of the replayed workload."
	case path == gridspec.SearchRound:
		return "", searchRoundDoc
	case strings.HasPrefix(path, workloadPath+"."):
		return unitOf(path), "Workload setting " + path + "."
	case strings.Contains(path, "."):
		return unitOf(path), "Setting " + path + "."
	}
	return "", "Derived value or case " + path + " of the spec."
}
