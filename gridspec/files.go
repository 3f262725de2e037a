package gridspec

import (
	"context"
	"io"
	"maps"
	"slices"

	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/simcore/perfmodel"
)

// CheckTraces reports the trace files of points that do not exist or cannot be read, as [Problems] with the keys
// that name them. Whether a trace is sound shows when it is loaded.
func (s *Spec) CheckTraces(points []Point) error {
	used := map[string]bool{} // files, and whether each may be a folder
	for _, p := range points {
		if p.Workload.Trace != nil && p.SkipReason == "" {
			for _, file := range traceFiles(p.Workload.Trace) {
				used[file] = used[file] || p.Workload.Trace.MayBeFolder()
			}
		}
	}
	if len(used) == 0 {
		return nil
	}
	c := collector{origins: s.layers.parser.origins}
	visitFiles(s.layers.tree(), isTraceFile, func(at, path string) string {
		file := files.From(s.Dir, path)
		if folder, ok := used[file]; ok {
			if why := s.unreadable(file, folder); why != "" {
				c.add(at, files.Shown(path), "%s", why)
			}
		}
		return path
	})
	c.problems.sort(s.layers.parser.name)
	return c.problems.err()
}

// unreadable says why a trace file, or perhaps a folder of them, cannot be read; empty means that it can. Pipes are left
// alone, because opening one takes what is in it.
func (s *Spec) unreadable(path string, folder bool) string {
	if path == "-" {
		return ""
	}
	ctx := context.Background()
	info, err := s.files.Stat(ctx, path)
	switch {
	case err == nil && info.Folder && !folder:
		return "it is a folder; name a trace file"
	case err == nil && !info.Regular && !info.Folder, err == nil && files.IsURL(path):
		return ""
	case err == nil && info.Folder:
		_, err = s.files.List(ctx, path)
	case err == nil:
		var f io.ReadCloser
		if f, err = s.files.Open(ctx, path); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		return "the trace file cannot be read: " + files.Cause(err).Error()
	}
	return ""
}

// checkPlaces refuses URLs of files that hold what may be secret or name no storage that is known, and paths that lead out of
// the places to which the system keeps.
func (s *Spec) checkPlaces(c *collector, tree map[string]any) {
	guard, guarded := s.files.(files.Guard)
	check := func(at, path string) string {
		var err error
		if files.IsURL(path) {
			err = files.CheckURL(path)
		}
		if err == nil && guarded {
			err = guard.Allowed(files.From(s.Dir, path))
		}
		if err != nil {
			c.add(at, files.Shown(path), "%v", files.Cause(err))
		}
		return path
	}
	visitFiles(tree, isAnyFile, check)
	if output, ok := tree["output"].(map[string]any); ok {
		if dir, ok := output["dir"].(string); ok {
			check("output.dir", dir)
		}
	}
}

// visitFiles calls visit with the place and the path of every file in a tree that is one by the path and the value of
// its setting, and writes back what it returns.
func visitFiles(tree map[string]any, isFile func(path, value string) bool, visit func(at, path string) string) {
	v := fileVisitor{isFile, visit}
	for _, section := range append(stages(), workloadPath, "timing", "router", "planner") {
		if w, ok := tree[section]; ok {
			tree[section] = v.value(section, section, w)
		}
	}
	for _, name := range []string{"grid", "zip"} {
		v.settings(name, tree[name])
	}
	for _, method := range samplers() {
		if m, ok := tree[method.name].(map[string]any); ok {
			v.settings(join(method.name, "space"), m["space"])
		}
	}
	cases, _ := tree["cases"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		v.settings(join("cases", name), cases[name])
	}
	include, _ := tree["include"].([]any)
	for i, b := range include {
		v.settings(indexed("include", i), b)
	}
}

type fileVisitor struct {
	isFile func(path, value string) bool
	visit  func(at, path string) string
}

// settings visits a mapping of key paths to values or axes.
func (f fileVisitor) settings(at string, v any) {
	m, _ := v.(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(m)) {
		m[path] = f.value(join(at, path), path, m[path])
	}
}

// value visits the value at a place, or the list of them, which is that of a key path.
func (f fileVisitor) value(at, path string, v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = f.value(indexed(at, i), path, v[i])
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			inner := join(path, k)
			if k == "choices" {
				inner = path
			}
			v[k] = f.value(join(at, k), inner, v[k])
		}
	case string:
		if f.isFile(path, v) {
			return f.visit(at, v)
		}
	}
	return v
}

// isSettingFile reports whether the value of a setting, apart from the workload's, is the path of a file.
func isSettingFile(path, value string) bool {
	switch likeSection(path) {
	case "timing.profile", "timing.tables", "router.router_policy_config", "planner.load_predictor_warmup_trace":
		return value != ""
	case "timing.model":
		return perfmodel.IsModelFile(value)
	}
	return false
}

// isTraceFile reports whether the value of a setting is the path of a trace.
func isTraceFile(path, _ string) bool {
	return path == workloadPath+".trace.path" || path == workloadPath+".trace.paths"
}

// isAnyFile reports whether the value of a setting is the path of a file.
func isAnyFile(path, value string) bool {
	return isTraceFile(path, value) || isSettingFile(path, value)
}
