package gridspec

import (
	"bytes"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Resolved returns the merged spec, with all that environment and --set changed, as canonical YAML. Loading it
// gives the same points from any folder: the paths of traces and output are absolute.
func (s *Spec) Resolved() ([]byte, error) {
	tree := s.layers.koanf.Raw()
	absoluteTraces(tree, s.Dir)
	if output, ok := tree["output"].(map[string]any); ok && s.Output.Dir != "" && !filepath.IsAbs(s.Output.Dir) {
		output["dir"] = filepath.Join(s.Dir, s.Output.Dir)
	}
	return s.layers.parser.Marshal(tree)
}

// absoluteTraces makes the paths of traces in the workload and its axes absolute.
func absoluteTraces(tree map[string]any, dir string) {
	if w, ok := tree[workloadPath]; ok {
		tree[workloadPath] = absoluteTrace(workloadPath, w, dir)
	}
	axes := func(v any) {
		m, _ := v.(map[string]any)
		for path, values := range m {
			m[path] = absoluteTrace(path, values, dir)
		}
	}
	axes(tree["grid"])
	axes(tree["zip"])
	for _, method := range samplers() {
		if m, ok := tree[method.name].(map[string]any); ok {
			axes(m["space"])
		}
	}
	cases, _ := tree["cases"].(map[string]any)
	for _, b := range cases {
		axes(b)
	}
	include, _ := tree["include"].([]any)
	for _, b := range include {
		axes(b)
	}
}

// absoluteTrace rewrites the value, or list of values, at a key path when it holds the path of a trace.
func absoluteTrace(path string, v any, dir string) any {
	const (
		tracePath  = workloadPath + ".trace.path"
		tracePaths = workloadPath + ".trace.paths"
	)
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = absoluteTrace(path, v[i], dir)
		}
	case map[string]any:
		for k := range v {
			inner := join(path, k)
			if k == "choices" {
				inner = path
			}
			v[k] = absoluteTrace(inner, v[k], dir)
		}
	case string:
		if path == tracePath || path == tracePaths {
			return absolutePath(v, dir)
		}
	}
	return v
}

// marshalYAML writes a tree with mappings of up to three levels as blocks and all else in one line.
func marshalYAML(tree map[string]any, o *origins) []byte {
	var out bytes.Buffer
	var top []string
	for _, f := range jsonFields(reflect.TypeFor[document]()) {
		if _, ok := tree[f.name]; ok {
			top = append(top, f.name)
		}
	}
	for _, k := range o.sorted("", tree) {
		if !slices.Contains(top, k) {
			top = append(top, k)
		}
	}
	for _, k := range top {
		writeBlock(&out, o, k, k, tree[k], 0)
	}
	return out.Bytes()
}

func writeBlock(out *bytes.Buffer, o *origins, path, key string, v any, depth int) {
	const maxDepth = 2
	out.WriteString(strings.Repeat("  ", depth) + scalarYAML(key) + ":")
	switch v := v.(type) {
	case map[string]any:
		if depth < maxDepth && len(v) > 0 {
			out.WriteByte('\n')
			for _, k := range o.sorted(path, v) {
				writeBlock(out, o, join(path, k), k, v[k], depth+1)
			}
			return
		}
	case []any:
		if len(v) > 0 && isMapping(v[0]) {
			out.WriteByte('\n')
			for i, element := range v {
				out.WriteString(strings.Repeat("  ", depth+1) + "- ")
				writeFlow(out, o, indexed(path, i), element)
				out.WriteByte('\n')
			}
			return
		}
	}
	out.WriteByte(' ')
	writeFlow(out, o, path, v)
	out.WriteByte('\n')
}

func isMapping(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

func writeFlow(out *bytes.Buffer, o *origins, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		out.WriteByte('{')
		for i, k := range o.sorted(path, v) {
			if i > 0 {
				out.WriteString(", ")
			}
			out.WriteString(scalarYAML(k) + ": ")
			writeFlow(out, o, join(path, k), v[k])
		}
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		for i, element := range v {
			if i > 0 {
				out.WriteString(", ")
			}
			writeFlow(out, o, indexed(path, i), element)
		}
		out.WriteByte(']')
	default:
		out.WriteString(scalarYAML(v))
	}
}

var (
	plainText = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$`)
	notText   = regexp.MustCompile(`(?i)^(true|false|null|yes|no|on|off|y|n)$`)
)

// scalarYAML writes a scalar so that it reads back with the same type.
func scalarYAML(v any) string {
	switch v := v.(type) {
	case string:
		if plainText.MatchString(v) && !notText.MatchString(v) {
			return v
		}
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return text
	}
	text, err := jsonText(v)
	if err != nil {
		return strconv.Quote(err.Error())
	}
	return text
}
