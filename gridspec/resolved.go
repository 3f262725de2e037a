package gridspec

import (
	"bytes"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/simcore/files"
)

// resolvedComment stands at the top of every resolved spec.
const resolvedComment = "# The spec as it was run, with what the environment and --set changed. Relative paths start at this file's folder.\n"

// Resolved returns the merged spec, with all that environment and --set changed, as canonical YAML for a file in
// the folder of the results. Loading it from there gives the same points: paths that were relative to the spec
// become relative to that folder, and the results go to it.
func (s *Spec) Resolved(folder string) ([]byte, error) {
	if !files.IsURL(folder) {
		var err error
		if folder, err = filepath.Abs(folder); err != nil {
			return nil, err
		}
	}
	tree := s.layers.koanf.Raw()
	visitFiles(tree, isAnyFile, func(_, path string) string { return movedPath(path, s.Dir, folder) })
	output, ok := tree["output"].(map[string]any)
	if !ok {
		output = map[string]any{}
		tree["output"] = output
	}
	output["dir"] = "."
	text, err := s.layers.parser.Marshal(tree)
	return append([]byte(resolvedComment), text...), err
}

// movedPath makes a path that starts at one folder start at another. Where no relative path leads there, such as
// on another drive or from a bucket, it becomes absolute.
func movedPath(path, from, to string) string {
	if path == "" || path == "-" || filepath.IsAbs(path) || files.IsURL(path) {
		return path
	}
	if files.IsURL(from) || files.IsURL(to) {
		return files.Join(from, path)
	}
	moved, err := filepath.Rel(to, filepath.Join(from, path))
	if err != nil {
		return filepath.Join(from, path)
	}
	return filepath.ToSlash(moved)
}

// documentFields are the sections of a spec.
var documentFields = jsonFields(reflect.TypeFor[document]())

// marshalYAML writes a tree with mappings of up to three levels as blocks and all else in one line.
func marshalYAML(tree map[string]any, o *origins) []byte {
	var out bytes.Buffer
	var top []string
	for _, f := range documentFields {
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

// OverrideText is text as --set and the environment read it back: in quotes where it looks like something else.
func OverrideText(text string) string {
	if v, err := parseOverride(text); err == nil && v == any(text) {
		return text
	}
	return scalarYAML(text)
}

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
