package gridspec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/servegrid/servegrid/simcore/files"
)

// Portable returns the spec of just this point as [Point.Alone] does, but as JSON, which is read faster, without names and with the paths of files replaced. Rename
// is called with the key path of each file-valued setting and the path there, and returns what stands for it on another
// machine, or an error. The number of a replicate is not in it.
func (p Point) Portable(rename func(key, path string) (string, error)) ([]byte, error) {
	t := p.tree()
	var problem error
	visitFiles(t.tree, isAnyFile, func(key, path string) string {
		if problem != nil {
			return path
		}
		path, problem = rename(key, path)
		return path
	})
	if problem != nil {
		return nil, problem
	}
	return json.Marshal(keepFloats(t.tree))
}

// keepFloats replaces the floats of a tree by numbers that read back as floats: JSON would write 1e20 as a whole number, which is
// too large for one.
func keepFloats(v any) any {
	switch v := v.(type) {
	case float64:
		return json.Number(scalarYAML(v))
	case map[string]any:
		for k, inner := range v {
			v[k] = keepFloats(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = keepFloats(inner)
		}
	}
	return v
}

// FromPortable returns the point of a text that [Point.Portable] made. Its files are below a folder, under the declared
// names. Everything else is refused, so that a text from elsewhere can read nothing but those: other files, URLs, the standard
// input, axes, several points, and sections that do not belong to a point. Neither the environment nor other files count.
func FromPortable(text []byte, dir string, declared []string) (Point, error) {
	src := Source{Path: "point", Data: text, Format: JSON, Dir: dir}
	if !bytes.HasPrefix(text, []byte("{")) { // from a release that wrote YAML
		src.Format = YAML
	}
	layers, err := loadLayers(src)
	if err != nil {
		return Point{}, err
	}
	if err := checkPortable(layers, declared); err != nil {
		return Point{}, err
	}
	spec, err := build(src, layers)
	if err != nil {
		return Point{}, err
	}
	points, err := spec.Expand(ExpandOptions{MaxPoints: 1})
	if err != nil {
		return Point{}, err
	}
	if len(points) != 1 {
		return Point{}, fmt.Errorf("the text has %d points; it must have one", len(points))
	}
	if p := points[0]; p.SkipReason != "" {
		return Point{}, fmt.Errorf("%s: %s", p.SkipReason, p.SkipMessage)
	}
	return points[0], points[0].checkFiles(spec.Dir, declared)
}

// checkFiles looks again whether the files of a point are those that were declared, now that all of it is known.
func (p *Point) checkFiles(dir string, declared []string) error {
	named := configFiles(&p.Config)
	if p.Workload.Trace != nil {
		for _, path := range traceFiles(p.Workload.Trace) {
			named = append(named, configFile{workloadPath + ".trace", &path})
		}
	}
	for _, f := range named {
		if *f.path != "" && !slices.ContainsFunc(declared, func(name string) bool { return files.From(dir, name) == *f.path }) {
			return fmt.Errorf("%s names a file that was not declared with the point", f.key)
		}
	}
	return nil
}

// checkPortable reports what a text may not have.
func checkPortable(l *layered, declared []string) error {
	c := &l.parser.collector
	tree := l.tree()
	allowed := portableSections()
	for _, section := range slices.Sorted(maps.Keys(tree)) {
		if !slices.Contains(allowed, section) {
			c.addMessage(section, "the text of one point cannot have it; it can have: %s", strings.Join(allowed, ", "))
		}
	}
	if _, ok := tree[workloadPath].([]any); ok {
		c.addMessage(workloadPath, "the text of one point has one workload")
	}
	visitFiles(tree, isAnyFile, func(key, path string) string {
		if !slices.Contains(declared, path) {
			c.add(key, path, "it is not among the files that were declared with the point")
		}
		return path
	})
	c.problems.sort(l.parser.name)
	return c.problems.err()
}

// portableSections lists the sections of a spec that belong to a point.
var portableSections = sync.OnceValue(func() []string {
	sections := []string{"prices", workloadPath}
	for _, f := range jsonFields(reflect.TypeFor[Config]()) {
		sections = append(sections, f.name)
	}
	slices.Sort(sections)
	return sections
})
