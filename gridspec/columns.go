package gridspec

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/problem"
)

// Column is one column that a spec adds to the results: an axis or a derived value.
type Column struct {
	// Name is the column's name, Path the key path of the axis; a derived value has its name as its path.
	Name, Path string
	// Derived marks derived values.
	Derived bool
}

// Columns lists the columns of a spec in the order of [Point.Axes].
func (s *Spec) Columns() []Column {
	var out []Column
	for _, a := range s.axes {
		out = append(out, Column{Name: a.column, Path: a.path})
	}
	if s.Execution.Replicates > 1 {
		out = append(out, Column{Name: replicateColumn, Path: replicateColumn})
	}
	for _, name := range s.rules.names {
		out = append(out, Column{Name: name, Path: name, Derived: true})
	}
	return out
}

// SearchRound is the column and path of the axis value by which a search says in which of its batches it asked for a
// point.
const SearchRound = "search_round"

const (
	replicateColumn = "replicate"
	// gpusColumn is the number of GPUs; a derived value of this name replaces the built-in one.
	gpusColumn = "gpus"
)

// fixedColumns lists the columns that every result has besides its metrics.
func fixedColumns() []string {
	return []string{"id", "status", "reason", "error", "wall_s", replicateColumn, workloadPath, SearchRound, "limiting_resource", "source"}
}

// shortName is the last part of a key path. Parts that say little by themselves take the part before in front:
// router.policy becomes router_policy. Settings of a stage keep its name: prefill_tp.
func shortName(path string) string {
	if like := likeSection(path); like != path {
		section, _, _ := strings.Cut(path, ".")
		return section + "_" + shortName(like)
	}
	parts := strings.Split(path, ".")
	last := parts[len(parts)-1]
	generic := []string{"policy", "type", "mode", "source", "path", "name", "rate", "seed", "requests"}
	if len(parts) > 1 && slices.Contains(generic, last) {
		return parts[len(parts)-2] + "_" + last
	}
	return last
}

func longName(path string) string { return strings.ReplaceAll(path, ".", "_") }

// reservedColumns says what each taken name is.
var reservedColumns = sync.OnceValue(func() map[string]string {
	reserved := map[string]string{}
	for _, f := range metrics.Fields() {
		reserved[f.Name] = "a metric"
	}
	for _, name := range fixedColumns() {
		reserved[name] = "a column of every result"
	}
	return reserved
})

// nameColumns gives every axis its column and checks the names of derived values.
func (s *Spec) nameColumns(c *collector, doc *document) {
	reserved := reservedColumns()
	short := map[string]int{}
	for _, a := range s.axes {
		short[shortName(a.path)]++
	}
	taken := map[string]string{}
	for _, a := range s.axes {
		a.column = shortName(a.path)
		own := a.path == workloadPath || a.path == casePath
		if _, clash := reserved[a.column]; !own && (clash || short[a.column] > 1) {
			a.column = longName(a.path)
		}
		if other, clash := taken[a.column]; clash {
			c.addMessage(join(a.home, a.path), "its column %s is also that of %s", a.column, other)
		}
		taken[a.column] = a.path
	}
	for _, name := range c.origins.sorted("derive", derivedAny(doc.Derive)) {
		c.checkDerivedName(name, reserved, taken)
	}
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (c *collector) checkDerivedName(name string, reserved, taken map[string]string) {
	at := join("derive", name)
	if !identifier.MatchString(name) {
		c.addMessage(at, "a column name has letters, digits and _, and starts with no digit")
	}
	if what, clash := reserved[name]; clash {
		c.addMessage(at, "the name is taken: %s is %s", name, what)
	}
	if path, clash := taken[name]; clash {
		c.addMessage(at, "the name is taken: %s is the column of the axis %s", name, path)
	}
}

// checkPartitions reports columns to partition files by that are no axis and no derived value.
func (s *Spec) checkPartitions(c *collector) {
	if len(s.Output.PartitionBy) == 0 {
		return
	}
	var known []string
	for _, column := range s.Columns() {
		known = append(known, column.Name)
	}
	for i, name := range s.Output.PartitionBy {
		at := indexed("output.partition_by", i)
		switch near := problem.Nearest(name, known); {
		case slices.Contains(s.Output.PartitionBy[:i], name):
			c.add(at, name, "give every column once")
		case slices.Contains(known, name):
		case near != "":
			c.add(at, name, "it is no column of an axis or derived value; the nearest is %s", near)
		default:
			c.add(at, name, "give columns of axes or derived values; this spec has %s", cmp.Or(strings.Join(known, ", "), "none"))
		}
	}
}

// checkObjectives reports objectives that are no metric and no column.
func (s *Spec) checkObjectives(c *collector) {
	if len(s.Objectives.Maximize)+len(s.Objectives.Minimize) == 0 {
		return
	}
	var known []string
	for _, f := range metrics.Fields() {
		known = append(known, f.Name)
	}
	for _, column := range s.Columns() {
		known = append(known, column.Name)
	}
	known = append(known, gpusColumn)
	seen := map[string]bool{}
	check := func(at string, names []string) {
		for i, name := range names {
			if !slices.Contains(known, name) {
				if near := problem.Nearest(name, known); near != "" {
					c.add(indexed(at, i), name, "it is no metric or column; the nearest is %s", near)
				} else {
					c.add(indexed(at, i), name, "give a metric or column such as output_throughput_tok_s_per_gpu or p99_ttft_ms")
				}
			} else if seen[name] {
				c.add(indexed(at, i), name, "give every objective once")
			}
			seen[name] = true
		}
	}
	check("objectives.maximize", s.Objectives.Maximize)
	check("objectives.minimize", s.Objectives.Minimize)
}
