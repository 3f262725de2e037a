package gridspec

import (
	"path/filepath"
	"reflect"
	"slices"
	"sync"

	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/simcore/metrics"
	"github.com/servegrid/servegrid/simcore/workload"
)

// Source says where a spec comes from. Environment variables override the file, Set overrides both.
type Source struct {
	// Path is the file. It is read unless Data is given, and then only names it in errors.
	Path string
	// Data is the text of the spec.
	Data []byte
	// Format is the syntax; empty means by the extension of Path, and YAML when there is none.
	Format Format
	// Env holds "NAME=value" pairs as from os.Environ; those that start with [EnvPrefix] are used.
	Env []string
	// Set holds "key.path=value" pairs. A value is a YAML scalar or a collection in brackets, and replaces all
	// that the key held.
	Set []string
	// Dir is the folder at which relative paths in the spec start, or its URL; empty means the folder of Path.
	Dir string
	// Files opens the spec and the files that it names; nil means those of this machine, without URLs.
	Files files.System
}

// Spec is a loaded grid spec. It does not change and is safe for concurrent use.
type Spec struct {
	// Name labels the sweep; it may be empty.
	Name string
	// Dir is the absolute folder at which relative paths in the spec start, or its URL.
	Dir string
	// Objectives says what the frontier maximizes and minimizes.
	Objectives Objectives
	// Search says how a search chooses the points to simulate.
	Search Search
	// Execution says how the points are run.
	Execution Execution
	// Output says where the results go.
	Output Output

	// files opens what the spec names.
	files  files.System
	layers *layered
	base   settings
	// factors are multiplied with each other, the last one fastest; include adds to their product.
	factors []factor
	include []factor
	axes    []*axis
	rules   expressions
	// prices are those of the catalogue, with what the spec overrides.
	prices map[string]metrics.GPUPrice
	// warnings finds what is allowed but hardly meant.
	warnings func() Problems
}

// settings is a configuration and what it replays, as far as it is known.
type settings struct {
	config   Config
	workload *workload.Spec
	given    givenKeys
	// bound holds what is written of the settings that belong to one deployment mode; the first boundByBase are those
	// of the base.
	bound       []assignment
	boundByBase int
}

// Load reads, merges and checks a spec. What is wrong with the spec is a [Problems]; other errors are about the
// file. Whether the configurations are sound shows in [Spec.Expand].
func Load(src Source) (*Spec, error) {
	layers, err := loadLayers(src)
	if err != nil {
		return nil, err
	}
	return build(src, layers)
}

// build makes a spec of its merged layers.
func build(src Source, layers *layered) (*Spec, error) {
	dir := src.Dir
	if dir == "" {
		dir = files.Dir(src.Path)
	}
	if !files.IsURL(dir) {
		var err error
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
	}
	c := &layers.parser.collector
	doc := defaultDocument()
	tree := layers.tree()
	c.bind("", tree, reflect.ValueOf(&doc).Elem())
	s := &Spec{
		Name: doc.Name, Dir: dir, Objectives: doc.Objectives, Search: doc.Search, Execution: doc.Execution, Output: doc.Output,
		files: files.Or(src.Files), layers: layers, base: settings{config: doc.Config, given: givenIn(tree)},
	}
	s.base.bound = boundSettings(tree, &doc.Config)
	s.base.boundByBase = len(s.base.bound)
	c.checkExecution(doc.Execution)
	s.prices = c.prices(doc.Prices, doc.Timing.Tables != "")
	s.buildAxes(c, &doc)
	s.checkOverrides(c)
	s.nameColumns(c, &doc)
	s.compile(c, &doc)
	s.checkObjectives(c)
	s.checkPartitions(c)
	s.checkSearch(c)
	s.checkPlaces(c, tree)
	if len(c.problems) > 0 {
		c.problems = append(c.problems, s.unsound(c.problems)...)
		c.problems.sort(layers.parser.name)
		return nil, c.problems
	}
	s.warnings = sync.OnceValue(func() Problems {
		return slices.Concat(layers.parser.warnings, s.timingWarnings(), s.unusedSettings(tree))
	})
	return s, nil
}

func (c *collector) checkExecution(e Execution) {
	if e.Replicates < 1 {
		c.add("execution.replicates", e.Replicates, "give 1 or more")
	}
}

// checkOverrides refuses overrides of the base value of an axis, which would change nothing.
func (s *Spec) checkOverrides(c *collector) {
	for _, path := range s.layers.overridden {
		for _, a := range s.axes {
			if a.home != "" && a.path == path {
				c.addMessage(path, "this is an axis, so its base value has no effect; set %s", join(a.home, a.path))
			}
		}
	}
}
